"""Records that stay in Postgres: what the server counts is what DuckDB counts of the same records in a file, and what anybody
would who looks at one record after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import numpy as np
import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from release_pipeline.errors import Blocked, SourceError
from release_pipeline.mechanisms.basis.counting import GroupsOfEntries, TablePlan, plan_tables
from release_pipeline.mechanisms.whole_table.design import cover_pairs
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.rows.batches import CountTables, NumberCells, TextCells, tally_batches, unpack
from release_pipeline.rows.counted import CountedInPlace, DeliveredCells
from release_pipeline.store.in_place import COUNTED, TIMES, RecordsInPlace, RelationInPlace
from release_pipeline.store.in_place_sql import PostgresInPlace, open_in_place
from release_pipeline.store.raw import ReleaseFilter, create_macros
from release_pipeline.store.remote import find_postgres
from release_pipeline.store.site import Site
from tests.counting import count_cells_of
from tests.integration.sites import TinySite
from tests.integration.test_in_place import go, make, read_people, same_noise  # noqa: F401  the last is a fixture
from tests.integration.test_sources import server  # noqa: F401  a fixture

pytestmark = pytest.mark.slow

KEY = bytes(range(32))
TEXTS = ["", " ", "a", "A", "ä", "it's", '"q"', "b\\", "\\N", "$1", "{x}", "NaN", "null", "🦜", "zürich ", "zz", "a;--", "\t"]
WHOLE = [0, -1, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 7, 10**15]
REAL = [0.0, -0.0, 0.1, -0.1, 1e300, -1e300, 5e-324, 1.0, 0.1 + 2**-56, float("inf"), float("-inf"), float("nan")]
RELEASES = ["2020", " 2020 ", "2021", "", None]
NAMES = ["x", 'a "quoted" name', "delivered", "group0", "Größe", "cell", "own", "times", "count"]


def send(address: str, table: pa.Table, name: str = "records") -> None:
    """Put records in a table of the server."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="replace")
        connection.commit()


def change(address: str, *texts: str) -> list[Any]:
    """The rows of the last of some statements, of somebody else who has the password."""
    connection = psycopg2.connect(address)
    connection.autocommit = True
    with connection.cursor() as cursor:
        for text in texts:
            cursor.execute(text)
        rows = cursor.fetchall() if cursor.description else []
    connection.close()
    return rows


def open_records(
    address: str, query: bool = False, columns: Mapping[str, str] | Sequence[str] = ("a",), release: ReleaseFilter | None = None
) -> AbstractContextManager[PostgresInPlace]:
    """The table `records`, or a query of all its records."""
    table, text = (None, "SELECT * FROM records ORDER BY random()") if query else ("records", None)
    names = columns if isinstance(columns, Mapping) else {column: column for column in columns}
    return open_in_place(find_postgres(address, table=table, query=text), names, release)


class Records:
    """Records that are drawn by a seed, and groups of them."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        rows, width = int(random.choice([1, 5, 200])), int(random.integers(1, 8))
        names = [str(name) for name in random.permutation(NAMES)[:width]]
        self.table = pa.table({f"there {name}": self._draw(random, rows) for name in names})
        self.columns = {name: f"there {name}" for name in names}
        releases = pa.array(random.choice(np.array(RELEASES, dtype=object), rows).tolist(), pa.string())
        self.numeric = bool(random.integers(2))
        if self.numeric:
            releases = pa.array(
                [None if not text or not text.strip() else float(text) for text in releases.to_pylist()], pa.float64()
            )
        self.table = self.table.append_column("release", releases)
        self.release = [None, ("release", "2020"), ("release", "2022")][int(random.integers(3))]
        self.seed, self.names = seed, names
        self.rows = [
            {here: row[there] for here, there in self.columns.items()}
            for row in self.table.to_pylist()
            if self.release is None or _read_release(row["release"]) == self.release[1]
        ]

    def _draw(self, random: np.random.Generator, rows: int) -> pa.Array:
        kind: pa.DataType = random.choice([pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()])
        if pa.types.is_string(kind):
            cells: list[Any] = [TEXTS[place] for place in random.integers(0, len(TEXTS), rows)]
        elif pa.types.is_floating(kind):
            choice = REAL if kind == pa.float64() else [float(np.float32(cell)) for cell in REAL if abs(cell) != 1e300]
            cells = [choice[place] for place in random.integers(0, len(choice), rows)]
        else:
            limit = np.iinfo(kind.to_pandas_dtype())
            choice = [number for number in WHOLE if limit.min <= number <= limit.max] + [limit.min, limit.max]
            cells = [choice[place] for place in random.integers(0, len(choice), rows)]
        lost = random.random(rows) < random.choice([0.0, 0.2, 1.0])
        return pa.array([None if gone else cell for gone, cell in zip(lost, cells, strict=True)], kind)

    def entry(self, name: str, cell: Any) -> int:
        """What a cell is read as, by any rule: what is missing is one entry, and so are equal cells."""
        return 0 if _is_missing(cell) else crc32(f"{self.seed} {name} {_one_form(cell)}".encode()) % 9

    def read(self, name: str, engine: RecordsInPlace) -> DeliveredCells:
        """The cells of a column."""
        found = pa.Table.from_batches(list(count_cells_of(engine, name)))
        cells = found.column(name).combine_chunks()
        entries = [self.entry(name, cell) for cell in cells.to_pylist()]
        return DeliveredCells(cells, np.array(entries, dtype=np.int64), found.column(TIMES).to_numpy())

    def plan(self) -> TablePlan:
        """Columns, pairs and triples, some of them sums of blocks."""
        random = np.random.default_rng(self.seed)
        groups, sizes = [], []
        for _ in self.names:
            firsts = np.append(0, np.sort(random.choice(np.arange(1, 9), int(random.integers(0, 5)), replace=False)))
            sizes.append(int(random.integers(1, 5)))
            groups.append(GroupsOfEntries.of(firsts, random.integers(0, sizes[-1], len(firsts)), 9))
        places = range(len(self.names))
        wanted = [columns for most in (1, 2, 3) for columns in combinations(places, most)]
        return plan_tables(groups, sizes, wanted, cover_pairs(sizes, int(random.choice([4, 30, 1000]))))

    def count(self, plan: TablePlan) -> list[int]:
        """Record by record."""
        counts = list[int]()
        for columns in plan.wanted:
            table = np.zeros([plan.sizes[column] for column in columns], dtype=np.int64)
            for row in self.rows:
                entries = [np.array([self.entry(self.names[column], row[self.names[column]])]) for column in columns]
                table[tuple(int(plan.groups[column].find(own)[0]) for column, own in zip(columns, entries, strict=True))] += 1
            counts += table.ravel().tolist()
        return counts


def _is_missing(cell: Any) -> bool:
    return cell is None or cell != cell


def _read_release(cell: Any) -> str | None:
    return None if cell is None else str(int(cell)) if isinstance(cell, float) else cell.strip()


def _one_form(cell: Any) -> str:
    """Equal cells in one form: there are two zeros."""
    return repr(cell + 0.0 if isinstance(cell, float) else cell)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where records are in a file."""
    return tmp_path_factory.mktemp("delivered") / "records.parquet"


@given(seed=st.integers(0, 2**32), query=st.booleans())
@settings(max_examples=40, deadline=None)
def test_what_the_server_counts_is_what_a_file_gives_and_what_the_records_are(
    server: str,  # noqa: F811
    file: Path,
    seed: int,
    query: bool,
) -> None:
    """Cells, tallies, tables, columns, samples; whole numbers and others, texts, missing entries, one release or all."""
    records = Records(seed)
    assume(records.rows)
    send(server, records.table)
    pq.write_table(records.table, file)
    plan = records.plan()
    with duckdb.connect() as connection, open_records(server, query, records.columns, records.release) as here:
        there = RelationInPlace("records", _with_macros(connection, file), records.columns, records.release)
        assert here.kinds == there.kinds
        for name in records.names:
            cells = [_list(count_cells_of(engine, name)) for engine in (here, there)]
            assert cells[0] == cells[1]
            assert dict(cells[0]) == Counter(_one_form(row[name]) for row in records.rows)
            columns = [sorted(_list(engine.read_column(name))) for engine in (here, there)]
            assert columns[0] == columns[1] == sorted((_one_form(row[name]),) for row in records.rows)
            schemas = (
                [pa.Table.from_batches(list(count_cells_of(engine, name))).schema for engine in (here, there)]
                if records.rows
                else []
            )
            assert not schemas or schemas[0] == schemas[1]
        counted = [_count(records, engine) for engine in (here, there)]
        counts = [own.count(plan).tolist() for own in counted]
        assert counts[0] == counts[1] == records.count(plan)
        for place in range(len(records.names)):
            tallies = [own.tally(place) for own in counted]
            assert len(tallies[0]) == len(tallies[1]) == len(records.rows)
            assert tallies[0].count_below(np.arange(10)).tolist() == tallies[1].count_below(np.arange(10)).tolist()
        sample = here.sample(records.names, 7, KEY)
        drawn = Counter(map(repr, map(_forms, sample.to_pylist())))
        assert drawn.total() == min(7, len(records.rows))
        assert drawn <= Counter(map(repr, map(_forms, records.rows)))


def _with_macros(connection: duckdb.DuckDBPyConnection, file: Path) -> duckdb.DuckDBPyRelation:
    create_macros(connection)
    return connection.read_parquet(str(file))


def _count(records: Records, engine: RecordsInPlace) -> CountedInPlace:
    names = dict.fromkeys(records.names)
    return CountedInPlace(engine, names, lambda name: records.read(name, engine))  # type: ignore[arg-type]


def _list(parts: Any) -> list[tuple[Any, ...]]:
    return [(_one_form(row.pop(next(iter(row)))), *row.values()) for part in parts for row in part.to_pylist()]


def _forms(row: dict[str, Any]) -> list[str]:
    return [_one_form(cell) for cell in row.values()]


@pytest.mark.parametrize("query", [False, True])
def test_no_records_are_counted_too(server: str, query: bool) -> None:  # noqa: F811
    """A release that nobody is in, and a release of which nothing is wanted."""
    send(server, pa.table({"a": [1.5], "b": ["x"], "release": [3]}))
    with open_records(server, query, ["a", "b"], ("release", "4")) as records:
        assert records.snapshot() == "0 0"
        [cells] = count_cells_of(records, "a")
        assert cells.schema == pa.schema([("a", pa.float64()), (TIMES, pa.int64())])
        assert [len(part) for part in records.read_column("b")] == [0]
        assert records.sample(["b"], 5, KEY).to_pydict() == {"b": []}
        groups = [GroupsOfEntries.of(np.array([0]), np.array([0]), 1)] * 2
        encoders = [NumberCells(np.empty(0)), TextCells((), np.empty(0, dtype=np.int64))]
        for wanted in ([(0,), (0, 1)], []):
            function = CountTables(encoders, plan_tables(groups, [2, 3], wanted, []))
            [found] = unpack(records.reduce(["a", "b"], function)).values()
            assert found[1].tolist() == [0] * (8 if wanted else 0)


def test_only_cells_that_are_alike_everywhere_are_counted_in_place(server: str) -> None:  # noqa: F811
    """Types whose equal cells may be written in several ways, or that Arrow delivers as something else, are not."""
    change(server, "DROP TABLE IF EXISTS records", "DROP DOMAIN IF EXISTS income", "CREATE DOMAIN income AS bigint")
    columns = {
        "smallint": "SMALLINT",
        "integer": "INTEGER",
        "bigint": "BIGINT",
        "real": "FLOAT",
        "float8": "DOUBLE",
        "text": "VARCHAR",
        "varchar(9)": "VARCHAR",
    }
    others = ["numeric", "char(3)", "date", "boolean", "json", "income", "uuid", "timestamptz"]
    types = [*columns, *others]
    change(server, f"CREATE TABLE records ({', '.join(f'c{place} {kind}' for place, kind in enumerate(types))})")
    with open_records(server, columns=[f"c{place}" for place in range(len(types))]) as records:
        kinds = list(records.kinds.values())
        assert kinds[: len(columns)] == list(columns.values())
        assert all(COUNTED.fullmatch(kind) for kind in kinds[: len(columns)])
        assert not any(COUNTED.match(kind) for kind in kinds[len(columns) :])


RELEASE_COLUMNS = [  # a column, and a text that some of its cells are compared with, and their number
    ("CASE i % 2 WHEN 0 THEN ' one ' ELSE 'one' END", "one", 100),
    ("(i % 4)::numeric / 2", "0.500", None),
    ("(i % 4)::real / 10", "0.1", 25),
    ("i % 4", "1", 25),
    ("i % 4", "01", 0),
    ("DATE '2020-01-31' + i % 5", "2020-02-01", 20),
    ("i % 2 = 0", "true", 50),
    ("CASE WHEN i % 2 = 0 THEN 'NaN'::float8 ELSE 1 END", "NaN", 0),
]


@pytest.mark.parametrize(("column", "release", "count"), RELEASE_COLUMNS)
def test_releases_are_told_apart_as_a_copy_would(server: str, column: str, release: str, count: int | None) -> None:  # noqa: F811
    """Whatever the type of their column: the server's texts are read by the rules of the pipeline."""
    change(
        server,
        "DROP TABLE IF EXISTS records",
        f"CREATE TABLE records AS SELECT i AS a, {column} AS told FROM generate_series(1, 100) AS numbers(i)",  # noqa: S608
    )
    source = find_postgres(server, table="records", query=None)
    with duckdb.connect() as connection:
        create_macros(connection)
        source.load(connection, {"a": "a"}, ("told", release))
        copied = sorted(row[0] for row in connection.execute("SELECT a FROM raw").fetchall())
    assert count is None or len(copied) == count
    with open_records(server, release=("told", release)) as records:
        assert sorted(cell for part in records.read_column("a") for cell in part["a"].to_pylist()) == copied


def test_texts_are_alike_where_their_bytes_are(server: str) -> None:  # noqa: F811
    """Also where the server takes other texts for equal, and has another order."""
    change(
        server,
        "DROP TABLE IF EXISTS records",
        "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "CREATE TABLE records (a text COLLATE loose)",
        "INSERT INTO records SELECT unnest(ARRAY['a', 'B', 'A', 'ä', 'b', 'a'])",
    )
    with open_records(server) as records:
        [cells] = count_cells_of(records, "a")
        assert cells.to_pydict() == {"a": ["A", "B", "a", "b", "ä"], TIMES: [1, 1, 2, 1, 1]}
        groups = GroupsOfEntries.of(np.arange(3), np.array([2, 1, 0]), 3)
        function = CountTables([TextCells(("a", "ä"), np.array([0, 1]))], plan_tables([groups], [3], [(0,)], []))
        [counts] = unpack(records.reduce(["a"], function)).values()
        assert counts[1].tolist() == [3, 1, 2]
    with open_records(server, release=("a", "a")) as records:
        assert records.snapshot().startswith("2 ")


def test_what_pins_records_is_their_cells_and_not_their_order(server: str) -> None:  # noqa: F811
    """Moved rows, and how a session writes numbers, change nothing; each cell does, and so do two that change places."""
    rows = pa.table({"a": [0.1, 0.1 + 2**-56, 2.0, None], "b": ["x", "y", "", None], "c": [1, 2, 3, 4]})
    send(server, rows)

    def sum_now(query: bool = False) -> str:
        with open_records(server, query, ["a", "b"]) as records:
            return records.snapshot()

    first = sum_now()
    assert first.startswith("4 ")
    assert sum_now(True) == first
    change(server, "UPDATE records SET c = c + 1 WHERE c < 3", "VACUUM FULL records")
    change(server, "ALTER ROLE postgres SET extra_float_digits = 0", "ALTER ROLE postgres SET work_mem = '1GB'")
    assert sum_now() == first
    change(server, "ALTER ROLE postgres RESET ALL")
    found = {first}
    for text in (
        "UPDATE records SET a = 0.1 WHERE b = 'y'",
        "UPDATE records SET a = 2.0000000000000004 WHERE b = ''",
        "UPDATE records SET b = 'y' WHERE b = ''",
        "UPDATE records SET b = '' WHERE b IS NULL",
        "UPDATE records SET a = CASE b WHEN 'x' THEN 2.0000000000000004 ELSE 0.1 END WHERE a IS NOT NULL",
        "DELETE FROM records WHERE a IS NULL",
        "INSERT INTO records SELECT * FROM records LIMIT 1",
    ):
        change(server, text)
        found.add(sum_now())
    assert len(found) == 8


def test_all_that_is_read_meanwhile_is_of_one_state(server: str) -> None:  # noqa: F811
    """What somebody else changes is not seen until the records are opened again; readings may go on side by side."""
    send(server, pa.table({"a": list(range(300_000)), "b": ["x"] * 300_000}))
    with open_records(server, columns=["a", "b"]) as records:
        before, cells = records.snapshot(), iter(count_cells_of(records, "a"))
        first = next(cells)
        change(server, "UPDATE records SET a = -1, b = 'y'", "INSERT INTO records VALUES (5, 'z')")
        assert set(pa.Table.from_batches(list(records.read_column("b"))).column("b").to_pylist()) == {"x"}
        assert pa.Table.from_batches([first, *cells]).column("a").to_pylist() == list(range(300_000))
        assert records.snapshot() == before
    with open_records(server, columns=["a", "b"]) as records:
        assert records.snapshot() != before


@pytest.mark.parametrize("kind", ["table", "query", "view", "parts"])
def test_every_record_is_as_likely_in_a_sample(server: str, kind: str) -> None:  # noqa: F811
    """Equal records too. The same key draws the same ones; a table in parts and a view have no places that tell records apart."""
    change(server, "DROP TABLE IF EXISTS records CASCADE")
    rows = "SELECT i AS a, i / 10 AS b FROM generate_series(0, 19) AS numbers(i)"
    if kind == "parts":
        change(
            server,
            "CREATE TABLE records (a integer, b integer) PARTITION BY LIST (b)",
            "CREATE TABLE of_0 PARTITION OF records FOR VALUES IN (0)",
            "CREATE TABLE of_1 PARTITION OF records FOR VALUES IN (1)",
            f"INSERT INTO records {rows}",
        )
    else:
        change(server, f"CREATE {'VIEW' if kind == 'view' else 'TABLE'} records AS {rows}")
    times, both, trials = Counter[int](), 0, 400
    with open_records(server, kind == "query", ["b", "a"]) as records:
        for trial in range(trials):
            drawn = records.sample(["a"], 5, trial.to_bytes(32, "big")).column("a").to_pylist()
            assert len(set(drawn)) == 5
            times.update(drawn)
            both += sum(record + 10 in drawn for record in drawn)
        assert records.sample(["a"], 5, KEY).equals(records.sample(["a"], 5, KEY))
        assert len(records.sample(["a", "b"], 21, KEY)) == 20
    expected = trials * 5 / 20
    assert sum((times[record] - expected) ** 2 for record in range(20)) / (expected * 0.75) < 43.8  # 1 of 1,000 is above
    assert 150 < both < 280  # of 10 pairs, each drawn together once in 19 times
    change(server, f"DROP {'VIEW' if kind == 'view' else 'TABLE'} records")


def test_another_function_gets_the_records(server: str) -> None:  # noqa: F811
    """What does not say what it counts reads the columns, in their order."""
    send(server, pa.table({"a": [1.0, 2.0, 2.0], "b": ["x", "y", "y"]}))

    def keep(parts: Any) -> Any:
        yield from parts

    with open_records(server, columns=["a", "b"]) as records:
        assert records.reduce(["b", "a"], keep).to_pydict() == {"b": ["x", "y", "y"], "a": [1.0, 2.0, 2.0]}
        tallies = unpack(records.reduce(["b"], partial(tally_batches, [TextCells(("x", "y"), np.array([0, 1]))])))
        assert tallies[0][1].tolist() == [1, 2]


def test_no_cell_is_in_an_error_nor_in_the_log_of_the_server(server: str) -> None:  # noqa: F811
    """A server that gives up logs the statement: cells are in its parameters alone, which it does not log by itself."""
    canaries = ["kanarien'vogel", "4711471147.25", "81529152915291"]
    rows = 200_000
    send(
        server,
        pa.table(
            {
                "a": ["kanarien'vogel"] + ["x"] * (rows - 1),
                "b": [4711471147.25, *np.arange(rows - 1.0)],
                "c": [81529152915291, *range(rows - 1)],
                "release": ["kanarien'vogel"] * rows,
            }
        ),
    )
    [(folder,)] = change(server, "SHOW data_directory")
    log = Path(folder).parent / "log"
    groups = [GroupsOfEntries.of(np.arange(3), np.arange(3), 3)] * 3
    encoders = [
        TextCells((canaries[0], "x"), np.array([0, 1])),
        NumberCells(np.array([0.0, float(canaries[1])])),
        NumberCells(np.array([0, int(canaries[2])])),
    ]
    function = CountTables(encoders, plan_tables(groups, [3] * 3, [(0, 1, 2)], []))
    readings: list[Callable[[PostgresInPlace], Any]] = [
        lambda records: records.reduce(["a", "b", "c"], function),
        lambda records: list(count_cells_of(records, "b")),
        lambda records: records.sample(["a", "b"], 10, KEY),
        lambda records: records.snapshot(),
        lambda records: list(records.read_column("a")),
    ]
    before = len(log.read_text())
    with open_records(server, columns=["a", "b", "c"], release=("release", canaries[0])) as records:
        [counts] = unpack(records.reduce(["a", "b", "c"], function)).values()
        assert counts[1].reshape(3, 3, 3)[0, 1, 1] == 1
    for read in readings:
        with open_records(server, columns=["a", "b", "c"], release=("release", canaries[0])) as records:
            records._cursor.execute("SET LOCAL statement_timeout = 5")
            with pytest.raises(SourceError) as refused:
                read(records)
            error: BaseException | None = refused.value
            assert str(error).startswith("Postgres table records: the server or the table cannot be read.")
            while error is not None:
                assert not any(canary in f"{error!r} {error}" for canary in (*canaries, "kanarien", "s3cretword"))
                error = error.__cause__ or error.__context__
    written = log.read_text()[before:]
    assert written.count("canceling statement due to statement timeout") == len(readings)
    assert "GROUPING SETS" in written
    assert not any(canary in written for canary in (*canaries, "kanarien", "s3cretword"))


def test_the_key_of_a_sample_does_not_reach_the_server(server: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Only a number that is made of it for this alone."""
    send(server, pa.table({"a": [1, 2, 3]}))
    texts = list[str]()
    with open_records(server) as records:
        ask = records._ask
        monkeypatch.setattr(records, "_ask", lambda text, values=(): texts.append(text) or ask(text, values))
        records.sample(["a"], 2, KEY)
    whole = " ".join(texts)
    assert "hashtextextended" in whole
    forms = [KEY.hex(), repr(KEY), *(str(int.from_bytes(KEY[:size], "big")) for size in (4, 7, 8))]
    assert not any(form in whole for form in forms)


def test_a_release_is_the_one_of_a_copy(
    server: str,  # noqa: F811
    tmp_path: Path,
    same_noise: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every stage, each with a connection of its own; and a row that is added after the checks stops it."""
    send(server, pa.Table.from_pandas(read_people()), "folk")
    monkeypatch.setattr(TinySite, "site", property(lambda tiny: Site(tiny.home, {"PG": server})))
    source = '{postgres: "${PG}", table: folk, release_column: year}'
    there, copied = (make(tmp_path / name, source=source) for name in ("there", "copied"))
    (there.home / "site.yaml").write_text("engine: sql\n")
    found, known = go(there), go(copied)
    assert "records" in known
    assert not {"records", "raw"} & set(found)
    for name in ("column_cells", "pair_cells"):
        assert found[name] == known[name], name
    later = make(tmp_path / "later", source=source)
    (later.home / "site.yaml").write_text("engine: sql\n")
    go(later, 2)
    change(server, "INSERT INTO folk SELECT * FROM folk LIMIT 1")
    with pytest.raises(Blocked, match="the source has other records now"):
        microaggregate(later.flow())


def test_a_server_that_logs_parameters_gets_no_cell(server: str) -> None:  # noqa: F811
    """It is refused before one is sent; a server that logs statements without their parameters is not."""
    send(server, pa.table({"a": ["kanarien'vogel"]}))
    change(server, "ALTER ROLE postgres SET log_min_duration_statement = 1000")
    try:
        with pytest.raises(SourceError, match="writes parameters of statements to its log"), open_records(server):
            pass
        change(server, "ALTER ROLE postgres SET log_parameter_max_length = 0")
        with open_records(server) as records:
            assert sum(map(len, count_cells_of(records, "a"))) == 1
    finally:
        change(server, "ALTER ROLE postgres RESET ALL")
