"""Spark counts records in place: the same numbers as DuckDB, whoever is killed, and no cell in what Spark or an error tells. Its
workers run a Python that has NumPy and PyArrow alone."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release_pipeline.errors import ReleasePipelineError, SourceError, StoreError
from release_pipeline.mechanisms.basis.counting import GroupsOfEntries, plan_tables
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.pipeline import in_place
from release_pipeline.pipeline.release import run_release
from release_pipeline.rows.batches import pack_counts
from release_pipeline.rows.counted import CountedInPlace, DeliveredCells
from release_pipeline.store import spark
from release_pipeline.store.database import open_memory
from release_pipeline.store.in_place import TIMES, RecordsInPlace, RelationInPlace
from release_pipeline.store.raw import RawTable, create_macros
from release_pipeline.store.spark import SparkAddress, SparkFiles, SparkTable, find_spark_table
from tests.counting import count_cells_of
from tests.integration.sites import make_site
from tests.integration.spark_server import Server, start_spark
from tests.integration.test_in_place import go, make, same_noise  # noqa: F401  the last is a fixture

pytestmark = pytest.mark.slow
COLUMNS = {"age": "age", "pay": "wage", "town": "town", "kind": "kind", "small": "small"}
CANARY, NUMBER = "zyzzyva-of-the-north", 918273645
KEY = bytes(range(32))
WHERE = "site.yaml: spark"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark, "_RETRIES", 1)
        with start_spark(tmp_path_factory.mktemp("spark")) as server:
            import_module("pyspark.cloudpickle").register_pickle_by_value(sys.modules[__name__])
            yield server
            spark._connect(server.url, WHERE).stop()


@pytest.fixture
def address(server: Server) -> SparkAddress:
    """Where it is."""
    return SparkAddress(server.url, WHERE)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that reads release columns as all do."""
    with open_memory() as connection:
        create_macros(connection)
        yield connection


def make_records(seed: int, count: int = 600) -> pa.Table:
    """Numbers and texts of several types, with holes, NaN, both zeros, and spaces around release names."""
    random = np.random.default_rng(seed)

    def some(values: Any, kind: pa.DataType, holes: float = 0.1) -> pa.Array:
        return pa.array(values, kind, mask=random.random(count) < holes)

    wages = np.where(random.random(count) < 0.2, np.nan, np.round(random.normal(0, 3, count)) / 4)
    towns = random.choice(["north", " south", "Zürich", "", "ß", "\u3000east"], count)
    return pa.table(
        {
            "age": some(random.integers(-3, 90, count), pa.int32()),
            "wage": some(np.where(wages == 0, random.choice([0.0, -0.0], count), wages), pa.float64()),
            "town": some(towns, pa.string()).dictionary_encode() if seed % 2 else some(towns, pa.large_string()),
            "kind": some(random.integers(0, 2, count), pa.uint8(), 0),
            "small": some(random.random(count).round(1), pa.float32(), 0.3),
            "year": some(random.choice(["2026", " 2026 ", "2025", "\u00a02026"], count), pa.string()),
            "wave": some(random.integers(0, 3, count), pa.int64()),
            "part": some(random.integers(0, 3, count) / 2, pa.float64()),
        }
    )


def write_files(folder: Path, records: pa.Table, rows: int) -> list[Path]:
    """Two files of small row groups."""
    half = len(records) // 3
    files = [folder / "a.parquet", folder / "b.parquet"]
    for file, part in zip(files, (records.slice(0, half), records.slice(half)), strict=True):
        pq.write_table(part, file, row_group_size=rows)
    return files


def in_duckdb(connection: duckdb.DuckDBPyConnection, files: list[Path], release: tuple[str, str] | None) -> RelationInPlace:
    """What the numbers are compared with."""
    return RelationInPlace("files", connection.read_parquet([str(file) for file in files]), COLUMNS, release)


def as_rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """Rows that can be compared: NaN is itself."""
    rows = (tuple(row.values()) for batch in batches for row in batch.to_pylist())
    return [tuple("nan" if isinstance(cell, float) and np.isnan(cell) else cell for cell in row) for row in rows]


def sort_rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """The same in one order."""
    return sorted(as_rows(batches), key=repr)


def deliver_cells(records: RecordsInPlace, column: str) -> DeliveredCells:
    """The cells of a column; what is missing is one entry."""
    table = pa.Table.from_batches(count_cells_of(records, column))
    cells = table.column(column).combine_chunks()
    missing = np.asarray(cells.is_null(nan_is_null=True))
    entries = np.where(missing, len(cells) - missing.sum(), np.arange(len(cells)))
    return DeliveredCells(cells, entries, table.column(TIMES).to_numpy())


def count_tables(records: RecordsInPlace) -> IntArray:
    """The counts of some tables of groups of cells, as a release has them counted."""
    cells = {name: deliver_cells(records, name) for name in COLUMNS}
    sizes = [len(own.cells) for own in cells.values()]
    groups = [GroupsOfEntries.of(np.arange(0, size, 3), np.arange(-(-size // 3)), size) for size in sizes]
    wanted = [(0,), (0, 1), (1, 2), (2, 3), (0, 2, 4)]
    plan = plan_tables(groups, [-(-size // 3) for size in sizes], wanted, [])
    encoders: Any = dict.fromkeys(COLUMNS)
    return CountedInPlace(records, encoders, cells.__getitem__).count(plan)


@pytest.mark.parametrize("tasks", range(1, 8))
def test_files_give_the_numbers_of_duckdb(
    address: SparkAddress, connection: duckdb.DuckDBPyConnection, tmp_path: Path, tasks: int
) -> None:
    """Cells, counts, tables, a column and a sample; whatever the number of tasks, and with each kind of release column."""
    release = [None, ("year", "2026"), ("wave", "1"), ("part", "1"), ("town", "south"), None, ("wave", "nothing")][tasks - 1]
    files = write_files(tmp_path, make_records(tasks), 37)
    there, here = SparkFiles(address, "files", files, COLUMNS, release, count=tasks), in_duckdb(connection, files, release)
    assert there.kinds == here.kinds
    for column in COLUMNS:
        counted = list(count_cells_of(there, column))
        assert as_rows(counted) == as_rows(count_cells_of(here, column)), column
        assert [batch.schema for batch in counted] == [batch.schema for batch in count_cells_of(here, column)]
    if release != ("wave", "nothing"):
        assert np.array_equal(count_tables(there), count_tables(here))
    assert as_rows(there.read_column("town")) == as_rows(here.read_column("town"))
    for count in (0, 25, 10_000):
        drawn = there.sample(["pay", "town"], count, KEY)
        assert as_rows(drawn.to_batches()) == as_rows(here.sample(["pay", "town"], count, KEY).to_batches())
        assert drawn.schema.types == [pa.float64(), pa.string()]


@pytest.mark.parametrize("release", [None, ("year", "2026"), ("wave", "2")])
def test_a_view_gives_the_numbers_of_duckdb(
    address: SparkAddress, connection: duckdb.DuckDBPyConnection, tmp_path: Path, release: tuple[str, str] | None
) -> None:
    """What the view shows is counted; the sum over all records is the same until one is another."""
    files = write_files(tmp_path, make_records(11), 40)
    shown = connection.read_parquet([str(file) for file in files]).filter("age >= 20 OR age IS NULL")
    shown = shown.select("* REPLACE (CAST(kind AS SMALLINT) AS kind)")  # Spark has no numbers without a sign
    session = spark._connect(address.url, address.where)
    session.read.parquet(str(tmp_path)).createOrReplaceTempView("all_people")
    session.sql("CREATE OR REPLACE TEMP VIEW people AS SELECT * FROM all_people WHERE age >= 20 OR age IS NULL")
    there, here = SparkTable(address, "people", COLUMNS, release), RelationInPlace("people", shown, COLUMNS, release)
    assert there.kinds == here.kinds
    for column in COLUMNS:
        assert as_rows(count_cells_of(there, column)) == as_rows(count_cells_of(here, column)), column
        assert sort_rows(there.read_column(column)) == sort_rows(here.read_column(column))
    assert np.array_equal(count_tables(there), count_tables(here))
    everybody = sort_rows(there.sample(list(COLUMNS), 10_000, KEY).to_batches())
    assert everybody == sort_rows(here.sample(list(COLUMNS), 10_000, KEY).to_batches())
    few, again, others = (there.sample(list(COLUMNS), 20, key) for key in (KEY, KEY, KEY[::-1]))
    assert len(few) == len(others) == 20
    assert as_rows(few.to_batches()) == as_rows(again.to_batches()) != as_rows(others.to_batches())
    there._done = {0: sum(there._done.values())}  # as if it had come in one part when it was counted
    assert as_rows(there.sample(list(COLUMNS), 20, KEY).to_batches()) == as_rows(few.to_batches())
    before = there.snapshot()
    assert before == SparkTable(address, "people", COLUMNS, release).snapshot()
    session.sql(
        "CREATE OR REPLACE TEMP VIEW people AS SELECT * EXCEPT (small), CAST(small + IF(age > 80, 1, 0) AS FLOAT) AS small "
        "FROM all_people WHERE age >= 20 OR age IS NULL"
    )
    assert SparkTable(address, "people", COLUMNS, release).snapshot() != before


def test_a_snapshot_is_of_every_cell_and_of_its_column(address: SparkAddress, tmp_path: Path) -> None:
    """Both zeros are one, and so is every NaN; a hole is no cell, and is of its column."""
    odd = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    records: dict[str, list[tuple[Any, Any, Any]]] = {
        "zero": [(0.0, "a", 1)],
        "minus": [(-0.0, "a", 1)],
        "nan": [(np.nan, "b", 2)],
        "odd": [(odd, "b", 2)],
        "hole": [(None, None, 3)],
        "first": [(None, "a", 1)],
        "second": [(1.0, None, 1)],
        "third": [(1.0, "a", None)],
        "letter": [(0.0, "A", 1)],
        "twice": [(0.0, "a", 1)] * 2,
        "number": [(0.0, "a", 2)],
    }
    session, found = spark._connect(address.url, address.where), dict[str, str]()
    for name, rows in records.items():
        wages, towns, ages = zip(*rows, strict=True)
        table = pa.table(
            {"wage": pa.array(wages, pa.float64()), "town": pa.array(towns, pa.string()), "age": pa.array(ages, pa.int8())}
        )
        pq.write_table(table, tmp_path / f"{name}.parquet")
        session.read.parquet(str(tmp_path / f"{name}.parquet")).createOrReplaceTempView(f"snapshot_{name}")
        columns = {"pay": "wage", "town": "town", "age": "age"}
        found[name] = SparkTable(address, f"snapshot_{name}", columns, None).snapshot()
    assert found.pop("minus") == found["zero"]
    assert found.pop("odd") == found["nan"]
    assert len(set(found.values())) == len(found)


def test_a_view_that_shows_nobody_is_counted(address: SparkAddress, tmp_path: Path) -> None:
    """Its tasks have no records; and one that shows fewer than before gives no sample of those that were there."""
    write_files(tmp_path, make_records(1), 10)
    session = spark._connect(address.url, address.where)
    session.read.parquet(str(tmp_path)).createOrReplaceTempView("all_of_them")
    session.sql("CREATE OR REPLACE TEMP VIEW some AS SELECT * FROM all_of_them WHERE age > 85")
    records = SparkTable(address, "some", COLUMNS, None)
    assert 0 < len(records.sample(["age"], 10_000, KEY)) < 100
    session.sql("CREATE OR REPLACE TEMP VIEW some AS SELECT * FROM all_of_them WHERE age > 1000")
    with pytest.raises(SourceError, match="Spark table some: it was changed while"):
        records.sample(["age"], 10_000, KEY)
    nobody = SparkTable(address, "some", COLUMNS, None)
    assert as_rows(count_cells_of(nobody, "age")) == []
    assert nobody.snapshot() == "0 0"
    drawn = nobody.sample(["age", "town"], 5, KEY)
    assert (len(drawn), drawn.schema.types) == (0, [pa.int32(), pa.string()])


def test_a_table_is_loaded_where_it_is_not_counted(
    address: SparkAddress, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """With moments and truths, which are not counted in place."""
    records = make_records(5).append_column("born", pa.array(np.arange(600) * 86_400_000_000, pa.timestamp("us", "UTC")))
    records = records.append_column("member", pa.array(np.arange(600) % 2 == 0))
    pq.write_table(records, tmp_path / "a.parquet")
    spark._connect(address.url, address.where).read.parquet(str(tmp_path)).createOrReplaceTempView("moments")
    source = find_spark_table(address, "moments")
    assert source.header == tuple(records.column_names)
    assert (source.name, source.stamp, source.written) == ("Spark table moments", "", None)
    source.load(connection, {"born": "born", "who": "age", "member": "member"}, ("year", "2026"))
    loaded = RawTable(connection, "moments")
    assert loaded.kinds == {"born": "TIMESTAMP WITH TIME ZONE", "who": "number", "member": "BOOLEAN"}
    expected = connection.read_parquet(str(tmp_path / "a.parquet")).filter("entry_of_text(year) = '2026'")
    assert loaded.count_records() == expected.shape[0]
    expected.create_view("delivered")
    moments = [connection.table(table).aggregate("sum(epoch(born))").fetchall() for table in ("raw", "delivered")]
    assert moments[0] == moments[1]


def test_a_release_goes_from_a_table_to_its_candidate(server: Server, tmp_path: Path) -> None:
    """By a method that has its records copied; the site names the server, and the policy the table."""
    tiny = make_site(tmp_path / "site", source="{spark: spark_catalog.default.folk, release_column: year}")
    (tiny.home / "site.yaml").write_text(f"spark: {{url: '{server.url}'}}\n")
    session = spark._connect(server.url, f"{tiny.home / 'site.yaml'}: spark")
    session.read.option("header", True).csv(str(tiny.home / "people.csv")).write.saveAsTable("folk")
    try:
        assert run_release(tiny.flow()).stage == "candidate"
    finally:
        session.sql("DROP TABLE folk")
        session.stop()
    assert len(pq.read_table(next(tiny.folder().glob("*.parquet")))) == 60


@pytest.mark.parametrize("source", ["{path: people.parquet, release_column: year}", "{spark: folk, release_column: year}"])
def test_a_release_that_spark_counts_is_the_one_of_a_copy(
    server: Server,
    tmp_path: Path,
    source: str,
    same_noise: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers read the file, and Spark the view of it."""
    there, copied = (make(tmp_path / name, source=source) for name in ("there", "copied"))
    for tiny in (there, copied):
        (tiny.home / "site.yaml").write_text(f"engine: spark\nspark: {{url: '{server.url}'}}\n")
    session = spark._connect(server.url, f"{there.home / 'site.yaml'}: spark")
    session.read.parquet(str(there.home / "people.parquet")).write.mode("overwrite").saveAsTable("folk")
    found = go(there)
    monkeypatch.setattr(in_place, "find_in_place", lambda *_: None)
    known = go(copied)
    assert "records" in known
    assert not {"records", "raw"} & set(found)
    for name in ("column_cells", "pair_cells", "masked"):
        assert found[name] == known[name], name


def look_at_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Which of some modules a worker has."""
    from importlib.util import find_spec

    for _ in batches:
        pass
    names = ("numpy", "pyarrow", "release_pipeline", "duckdb", "pandas")
    yield pack_counts(0, np.arange(5), np.array([find_spec(name) is not None for name in names]).astype(np.int64))


def test_workers_need_numpy_and_pyarrow_alone(address: SparkAddress, tmp_path: Path) -> None:
    """Functions come to them by value."""
    files = write_files(tmp_path, make_records(1), 100)
    found = SparkFiles(address, "files", files, COLUMNS, None, count=1).reduce(["age"], look_at_worker)
    assert found.column("counts").to_pylist() == [bytes([1, 1, 1, 0, 0, 0])]


def count_records(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many records there are."""
    yield pack_counts(0, np.arange(1), np.array([sum(len(batch) for batch in batches)]))


def count_slowly(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, after a while."""
    time.sleep(1.5)
    yield from count_records(batches)


def read_command(process: psutil.Process | None) -> str:
    """How a process was started; nothing of one that has ended."""
    with suppress(psutil.Error):
        return "" if process is None else " ".join(process.cmdline())
    return ""


def find_workers(server: Server) -> list[psutil.Process]:
    """The Python processes that work: the daemon of each executor began them."""
    python = [process for process in server.processes if "pyspark.daemon" in read_command(process)]
    return [process for process in python if any(process.ppid() == other.pid for other in python)]


def find_executors(server: Server) -> list[psutil.Process]:
    """The JVMs of executors."""
    return [process for process in server.processes if "CoarseGrainedExecutorBackend" in read_command(process)]


@pytest.mark.parametrize("find", [find_workers, find_executors])
def test_a_killed_process_changes_no_number(
    server: Server, address: SparkAddress, tmp_path: Path, find: Callable[[Server], list[psutil.Process]]
) -> None:
    """Its tasks are done again, and each counts once."""
    files = write_files(tmp_path, make_records(3), 11)
    records = SparkFiles(address, "files", files, COLUMNS, None, count=4)
    killed: list[int] = []
    done = threading.Event()

    def kill() -> None:
        while not done.wait(0.5) and not killed:
            if processes := find(server):
                processes[0].send_signal(signal.SIGKILL)
                killed.append(processes[0].pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = records.reduce(["age"], count_slowly)
    finally:
        done.set()
        killer.join()
    assert killed
    assert sum(int.from_bytes(part[1:], "little") for part in found.column("counts").to_pylist()) == 600
    assert len(found) == 4


def test_a_changed_file_is_another_snapshot(address: SparkAddress, tmp_path: Path) -> None:
    """And a pass over files that were listed before is refused."""
    files = write_files(tmp_path, make_records(3), 100)

    def open_files() -> SparkFiles:
        return SparkFiles(address, "files", files, COLUMNS, None)

    records = open_files()
    before = records.snapshot()
    assert before == open_files().snapshot() == records.snapshot()
    cells = as_rows(count_cells_of(records, "age"))
    assert as_rows(count_cells_of(open_files(), "age")) == cells
    pq.write_table(make_records(4), files[1])
    assert records.snapshot() != before
    assert open_files().snapshot() != before
    with pytest.raises(SourceError, match=r"files: it was changed .* run the same command again"):
        records.reduce(["age"], count_records)
    files[0].unlink()
    with pytest.raises(SourceError, match=r"a file cannot be read"):
        records.snapshot()


def take_apart(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What Arrow itself refuses, with the cell."""
    yield from (batch.cast(pa.schema([(batch.schema.names[0], pa.int64())])) for batch in batches)


def quote_cells(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Raises what quotes a cell."""
    for batch in batches:
        raise ValueError(f"not a number: {batch.column(0).to_pylist()}")
    yield pack_counts(0, np.arange(1), np.arange(1))


def test_no_cell_is_in_logs_plans_events_or_errors(
    server: Server,
    address: SparkAddress,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nor in what Spark leaves on disk, or this process prints; whether all goes well or not."""
    caplog.set_level(logging.DEBUG)
    records = make_records(7).slice(0, 300)
    records = records.set_column(2, "town", pa.array([CANARY, *records.column("town").to_pylist()[1:]]))
    records = records.set_column(0, "age", pa.array([NUMBER, *records.column("age").to_pylist()[1:]], pa.int64()))
    files = write_files(tmp_path, records, 50)
    spark._connect(address.url, address.where).read.parquet(str(tmp_path)).createOrReplaceTempView("canaries")
    for place in (
        SparkFiles(address, "files", files, COLUMNS, ("town", CANARY), count=3),
        SparkFiles(address, "files", files, COLUMNS, None, count=3),
        SparkTable(address, "canaries", COLUMNS, None),
    ):
        counted = [row for column in ("age", "town") for row in as_rows(count_cells_of(place, column))]
        assert {(CANARY, 1), (NUMBER, 1)} <= set(counted)
        count_tables(place)
        place.snapshot()
        list(place.read_column("town"))
        place.sample(["town", "age"], 300, KEY)
        for function in (quote_cells, take_apart):
            with pytest.raises(SourceError, match="cannot count these records") as caught:
                place.reduce(["town"], function)
            assert CANARY not in f"{caught.value!r} {caught.value.__context__!r} {caught.value.__cause__!r}"
    assert CANARY not in "".join((caplog.text, *capfd.readouterr()))
    python = server.folder / "python"  # not written by Spark
    written = [path for path in server.folder.rglob("*") if path.is_file() and python not in path.parents]
    for name in ("server.log", "events", "home/work"):
        assert any((server.folder / name) in (path, *path.parents) for path in written), name
    for path in written:
        content = path.read_bytes()
        for canary in (CANARY.encode(), str(NUMBER).encode(), NUMBER.to_bytes(8, "little")):
            assert canary not in content, path


def test_what_is_wrong_is_told(address: SparkAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words for a person, without a token."""
    files = write_files(tmp_path, make_records(3), 100)
    with pytest.raises(SourceError, match=r"Spark table nowhere.at_all: the Spark server at 127.0.0.1:\d+ knows no such table"):
        find_spark_table(address, "nowhere.at_all")
    with pytest.raises(SourceError, match="it has no column 'pay'"):
        SparkFiles(address, "files", files, {"pay": "pay"}, None)
    pq.write_table(pa.table({"age": [1], "day": pa.array([1], pa.date32())}), tmp_path / "c.parquet")
    with pytest.raises(SourceError, match="do not compare 'day'"):
        SparkFiles(address, "files", [tmp_path / "c.parquet"], {"age": "age"}, ("day", "1970-01-02"))
    monkeypatch.setattr(spark, "_WAIT", 1)
    gone = SparkAddress("sc://localhost:1/;token=s3cret", WHERE)
    with pytest.raises(StoreError, match=r"site.yaml: spark: no Spark Connect server answers at localhost:1"):
        SparkFiles(gone, "files", files, COLUMNS, None).reduce(["age"], count_records)
    assert "s3cret" not in repr(gone)

    def import_none(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(spark, "import_module", import_none)
    with pytest.raises(ReleasePipelineError, match=r"the Spark client is not installed. Install release-pipeline\[spark\]"):
        find_spark_table(SparkAddress("sc://localhost:1/;user_id=x", WHERE), "people")


def test_a_server_that_began_anew_is_asked_again(address: SparkAddress, tmp_path: Path) -> None:
    """A session that has ended is not the end."""
    files = write_files(tmp_path, make_records(3), 100)
    records = SparkFiles(address, "files", files, COLUMNS, None)
    assert len(records.reduce(["age"], count_records)) == 1
    spark._connect(address.url, address.where).stop()
    assert len(records.reduce(["age"], count_records)) == 1
    assert os.environ.get("GRPC_VERBOSITY") == "NONE"
