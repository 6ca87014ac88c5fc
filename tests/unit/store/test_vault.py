"""A room of the vault: what a stage has read is read once, and never served when it was written anew."""

from __future__ import annotations

import gc
import hashlib
import hmac
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.errors import StoreError
from release_pipeline.flow.content import content_of
from release_pipeline.stages.column_table import ColumnTable
from release_pipeline.store import kept, people, vault
from release_pipeline.store.exposed import Sums
from release_pipeline.store.scratch import OnDisk
from release_pipeline.store.vault import ReleaseWorkspace, open_workspace

ROWS = 500
SMALL = pa.table(
    {
        "town": pa.array([None if i % 7 == 0 else f"town {i % 5}" for i in range(ROWS)]),
        "income": pa.array([float("nan") if i % 11 == 0 else i / 2 for i in range(ROWS)]),
        "age": pa.array(np.arange(ROWS) % 90),
    }
)
OTHER = pa.table({"town": ["elsewhere"], "income": [1.5]})
COLUMN = 8 * ROWS  # bytes of a column of numbers


@pytest.fixture
def room(tmp_path: Path) -> Iterator[ReleaseWorkspace]:
    """A room with one table."""
    with opened(tmp_path) as room:
        room.write("records", SMALL)
        yield room


@contextmanager
def opened(folder: Path) -> Iterator[ReleaseWorkspace]:
    """The room of a release."""
    with open_workspace(folder / "vault", "folk", "people/1/r1") as room:
        yield room


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The columns of every read from the database."""
    found: list[tuple[str, ...]] = []
    load = ReleaseWorkspace._load

    def counted(self: ReleaseWorkspace, name: str, missing: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        columns = dict(load(self, name, missing))
        found.append(tuple(columns))
        return columns

    monkeypatch.setattr(ReleaseWorkspace, "_load", counted)
    return found


@pytest.mark.parametrize("most", [0, COLUMN, 2 * COLUMN, 1 << 20])
def test_what_is_read_does_not_depend_on_what_is_kept(room: ReleaseWorkspace, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_BYTES", most)
    for columns in (["income"], None, ["age", "town"], ["town"], ["income", "age"], None):
        wanted = SMALL if columns is None else SMALL.select(columns)
        found = room.read("records", columns)
        assert found.column_names == wanted.column_names
        for name in wanted.column_names:
            assert found.column(name).type == wanted.column(name).type
            assert [repr(entry) for entry in found.column(name).to_pylist()] == [
                repr(entry) for entry in wanted.column(name).to_pylist()
            ]


def test_a_small_table_is_read_once(room: ReleaseWorkspace, loads: list[tuple[str, ...]]) -> None:
    for columns in (["income"], ["town"], None):
        room.read("records", columns)
    content_of(room, "records")
    assert [sorted(columns) for columns in loads] == [["age", "income", "town"]]


def test_of_a_large_table_only_what_is_asked_for_is_read(
    room: ReleaseWorkspace, loads: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no more of it is held than may be kept: the columns that were used last."""
    monkeypatch.setattr(kept, "KEPT_BYTES", 2 * COLUMN + 200)
    room.write("numbers", pa.table({name: pa.array(np.arange(ROWS)) for name in "abc"}))
    for column in "abacab":
        room.read("numbers", [column])
        assert sum(one.values.nbytes for one in room._kept.columns.values()) <= kept.KEPT_BYTES
    assert loads == [("a",), ("b",), ("c",), ("b",)]


def test_what_is_kept_goes_with_the_room(tmp_path: Path) -> None:
    """At once, and not when garbage is looked for: the next stage needs the memory."""
    gc.disable()
    try:
        with opened(tmp_path) as room:
            room.write("records", SMALL)
            room.read("records")
            gone = weakref.ref(room)
            del room
        assert gone() is None
    finally:
        gc.enable()


def test_more_is_kept_where_memory_is_spare(
    tmp_path: Path, loads: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what a release of so many records leaves; what is written anew or dropped counts no more."""
    monkeypatch.setattr(kept, "KEPT_BYTES", COLUMN)
    asked: list[int] = []

    def spare(rows: int) -> int:
        asked.append(rows)
        return 2 * (2 * COLUMN + 200)

    with open_workspace(tmp_path / "vault", "folk", "people/1/r1", spare=spare) as room:
        for _ in range(2):
            room.write("numbers", pa.table({name: pa.array(np.arange(ROWS)) for name in "abc"}))
            for column in "abacab":
                room.read("numbers", [column])
        room.drop(["numbers"])
        assert room._kept.columns == {}
    assert loads == [("a",), ("b",), ("c",), ("b",)] * 2
    assert set(asked) == {ROWS}


def test_what_is_spare_is_by_all_records_whatever_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are fewer clusters than records: reading their columns, one does not keep what a small release would leave."""
    monkeypatch.setattr(vault, "LARGE", ROWS)
    monkeypatch.setattr(kept, "KEPT_BYTES", COLUMN + 200)
    asked: list[int] = []

    def spare(rows: int) -> int:
        asked.append(rows)
        return 0 if rows > ROWS else 1 << 30

    with open_workspace(tmp_path / "vault", "folk", "people/1/r1", spare=spare) as room:
        clusters = pa.table({name: pa.array(np.arange(ROWS)) for name in "abc"})
        room.write("clusters", clusters)
        room.write("records", pa.table({"value": pa.array(np.arange(3 * ROWS))}))
        for name in "abc":
            room.read("clusters", [name])
        assert len(room._kept.columns) == 1
        room.write("statistics", pa.table({"value": pa.array(np.arange(4 * ROWS))}))  # a row for each cluster and column
        room.read("statistics")
        assert set(asked) == {3 * ROWS}
        room.drop(["records", "statistics"])
        for name in "abc":
            room.read("clusters", [name])
        assert len(room._kept.columns) == 3
        assert set(asked) == {3 * ROWS, ROWS}


def test_slices_are_of_what_was_written_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database finds no rows by their numbers in what this transaction wrote: that is told, and not taken for the end."""
    monkeypatch.setattr(vault, "LARGE", ROWS)
    table = pa.table({"value": pa.array(np.arange(ROWS))})
    with opened(tmp_path) as room:
        room.write("numbers", table)
        with pytest.raises(StoreError, match="written only now"):
            list(room.slices("numbers", ["value"], rows=70))
    with opened(tmp_path) as room:
        found = list(room.slices("numbers", ["value"], rows=70))
        assert pa.concat_tables(found).equals(table)
        assert [part.num_rows for part in found] == [70] * 7 + [10]


@pytest.mark.parametrize("large", [1, 8 * ROWS])
def test_rows_of_a_text_are_read_by_themselves(
    tmp_path: Path, large: int, loads: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table in columns and of one that is whole: those rows, in their order, and no column as a whole."""
    monkeypatch.setattr(vault, "LARGE", large)
    names = [name for name in ("b", "a", "it's") for _ in range(ROWS)]
    table = pa.table({"of": names, "size": pa.array(np.arange(3 * ROWS)), "town": [None, *names[1:]]})
    with opened(tmp_path) as room:
        room.write("statistics", table)
    with opened(tmp_path) as room:
        for place, name in enumerate(("b", "a", "it's")):
            own = table.slice(place * ROWS, ROWS)
            assert room.read("statistics", ["size"], where=("of", name)).equals(own.select(["size"]))
            assert room.read("statistics", where=("of", name)).to_pylist() == own.to_pylist()
        assert room.read("statistics", ["town", "size"], where=("of", "c")).num_rows == 0
        assert room.read("statistics", [], where=("of", "b")).num_columns == 0
        for columns, where in ((["wealth"], ("of", "b")), (["size"], ("wealth", "b"))):
            with pytest.raises(StoreError, match="no column 'wealth'"):
                room.read("statistics", columns, where=where)
        assert loads == []
        place = room._places_of("statistics")["of"]
        room._connection.execute(f"UPDATE {place} SET \"of\" = 'b' WHERE rowid = {2 * ROWS}")  # noqa: S608
        with pytest.raises(StoreError, match="'b' in the table 'statistics' do not lie together"):
            room.read("statistics", ["size"], where=("of", "b"))


def test_a_column_may_come_part_by_part(tmp_path: Path) -> None:
    """What follows is read behind what came before, and the content is that of a table that was written at once."""
    table = pa.table({"of": ["a"] * ROWS + ["b"] * ROWS, "size": pa.array(np.arange(2 * ROWS))})
    with opened(tmp_path / "whole") as room:
        room.write("statistics", table)
        content = content_of(room, "statistics")
    with opened(tmp_path / "parts") as room:
        for part in (table.slice(0, ROWS), table.slice(ROWS)):
            for column in table.column_names:
                room.add_column("statistics", column, part.column(column))
                assert room.read("statistics", [column]).num_rows == room.count_rows("statistics")  # none is kept of before
        assert content_of(room, "statistics") == content
        assert room.read("statistics").equals(table)
    with opened(tmp_path / "parts") as room:
        assert content_of(room, "statistics") == content


def test_what_follows_in_a_column_is_of_its_type_and_there_is_something(tmp_path: Path) -> None:
    """The database would make numbers of texts, and a column without parts would not be there."""
    with opened(tmp_path) as room:
        room.add_column("statistics", "size", pa.array([1, 2]))
        with pytest.raises(TypeError, match="'size' of the table 'statistics' is of another type"):
            room.add_column("statistics", "size", pa.array(["3"]))
        with pytest.raises(ValueError, match="'scale' of the table 'statistics' came in no parts"):
            room.add_column("statistics", "scale", iter(()))
        assert room.read("statistics").to_pydict() == {"size": [1, 2]}


def test_what_is_large_lies_on_disk_as_records_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of clusters may have fewer rows than a table from which on arrays lie on disk, and many all the same."""
    monkeypatch.setattr(vault, "LARGE", ROWS)

    def lies_on_disk(room: ReleaseWorkspace, rows: int) -> bool:
        return isinstance(room.arrays(rows), OnDisk)

    how = {"memory": 1 << 30, "disk_from": 3 * ROWS}
    with open_workspace(tmp_path / "vault", "folk", "people/1/r1", **how) as room:  # type: ignore[arg-type]
        assert [lies_on_disk(room, rows) for rows in (ROWS, 3 * ROWS - 1, 3 * ROWS)] == [False, False, True]
        room.write("records", pa.table({"value": pa.array(np.arange(2 * ROWS))}))
        assert [lies_on_disk(room, rows) for rows in (ROWS, 3 * ROWS - 1, 3 * ROWS)] == [False, False, True]
        room.write("records", pa.table({"value": pa.array(np.arange(3 * ROWS))}))
        assert [lies_on_disk(room, rows) for rows in (ROWS - 1, ROWS)] == [False, True]
        room.write("clusters", pa.table({"value": pa.array(np.arange(ROWS)), "name": ["a"] * ROWS}))
        room.read("clusters", ["value", "name"])
        assert [one.size for (name, _), one in room._kept.columns.items() if name == "clusters"] == [0, 0]
        room.drop(["records"])
        assert not lies_on_disk(room, ROWS)


@pytest.mark.parametrize(("spare", "is_given_back"), [(2 * vault.FREED, False), (2 * vault.FREED - 1, True), (0, True)])
def test_what_was_freed_is_given_back_unless_memory_is_spare(
    spare: int, is_given_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first large column is read."""
    given: list[bool] = []
    monkeypatch.setattr(vault, "LARGE", ROWS)
    monkeypatch.setattr(vault, "give_back_freed", lambda: given.append(True))
    with open_workspace(tmp_path / "vault", "folk", "people/1/r1", spare=lambda _: spare) as room:
        room.write("few", OTHER)
        room.read("few")
        assert not given
        room.write("numbers", pa.table({name: pa.array(np.arange(ROWS)) for name in "ab"}))
        room.read("numbers", ["a"])
    assert bool(given) is is_given_back


def test_a_table_that_was_written_anew_is_read_anew(room: ReleaseWorkspace) -> None:
    before = room.read("records"), dict(content_of(room, "records"))
    room.write("records", OTHER)
    assert room.read("records").equals(OTHER)
    assert content_of(room, "records") != before[1]
    room.write("records", SMALL)
    assert dict(content_of(room, "records")) == before[1]
    room.drop(["records"])
    with pytest.raises(StoreError, match="no table 'records'"):
        room.read("records")
    with pytest.raises(StoreError, match="no table 'records'"):
        content_of(room, "records")


def test_of_two_tables_one_is_not_taken_for_the_other(room: ReleaseWorkspace) -> None:
    room.read("records")
    room.write("masked", OTHER)
    assert room.read("masked").equals(OTHER)
    room.write("masked", SMALL)
    assert content_of(room, "masked") == content_of(room, "records")


def test_a_column_that_is_not_there_is_an_error_in_words(tmp_path: Path) -> None:
    with opened(tmp_path) as room:
        room.write("records", SMALL)
    with pytest.raises(StoreError, match="cannot be read"), opened(tmp_path) as room:
        room.read("records", ["wealth"])


def test_the_next_room_reads_what_lies_there_then(tmp_path: Path) -> None:
    """Nothing is taken over from one stage to the next."""
    with opened(tmp_path) as room:
        room.write("records", SMALL)
        before = dict(content_of(room, "records"))
    with opened(tmp_path) as room:
        room._connection.execute("UPDATE records SET age = age + 1 WHERE rowid = 0")
    with opened(tmp_path) as room:
        assert room.read("records", ["age"]).column(0)[0].as_py() == 1
        after = content_of(room, "records")
    assert {name for name in before if before[name] != after[name]} == {"age"}


@pytest.mark.parametrize("large", [1, ROWS, ROWS + 1])
def test_a_large_table_is_one_of_columns(tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored by columns or at once, it reads alike: order, types, what is missing, its content, and its slices."""
    with opened(tmp_path / "plain") as room:
        room.write("records", SMALL)
        content = content_of(room, "records")
    monkeypatch.setattr(vault, "LARGE", large)
    with opened(tmp_path / "other") as room:
        room.write("records", OTHER)
        room.write("records", SMALL)  # of the table before nothing is left
    with opened(tmp_path / "other") as room:  # rows that are committed
        assert room.columns("records") == tuple(SMALL.column_names)
        assert room.count_rows("records") == ROWS
        assert content_of(room, "records") == content
        assert repr(room.read("records").to_pylist()) == repr(SMALL.to_pylist())
        slices = list(room.slices("records", ["age", "town"], rows=70))
        assert [one.num_rows for one in slices] == [70] * 7 + [10]
        assert pa.concat_tables(slices).to_pylist() == SMALL.select(["age", "town"]).to_pylist()
        assert room.tables() == {"notes", "records"}
        room.drop(["records"])
        assert room.tables() == {"notes"}
        room.write("records", SMALL.slice(0, 0))
        assert [one.num_rows for one in room.slices("records", ["age"], rows=70)] == [0]


def test_each_column_is_made_when_those_before_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large table never lies in memory."""
    monkeypatch.setattr(vault, "LARGE", 1)
    seen: list[tuple[str, int]] = []
    with opened(tmp_path) as room:

        def make(name: str) -> pa.ChunkedArray:
            seen.append((name, len(room.columns("records")) if "records" in room.tables() else 0))
            return SMALL.column(name)

        room.write("records", ColumnTable(tuple(SMALL.column_names), ROWS, make))
        assert room.read("records").num_columns == 3
    assert seen == [("town", 0), ("income", 1), ("age", 2)]


def test_a_result_that_is_not_read_to_its_end_bars_nothing(room: ReleaseWorkspace) -> None:
    """Between two reads of notes tables can be read."""
    room.write_checkpoint("masked", {"version": "1"})
    assert room.checkpoint("masked") == {"version": "1"}
    assert room.read("records").num_rows == ROWS
    assert room.checkpoint("nothing") is None
    assert room.read("records", ["age"]).num_rows == ROWS


KEYS = b"k" * 32, b"e" * 32


def hash_person(person: str) -> tuple[bytes, bytes]:
    """By Python's own HMAC."""
    first, second = (hmac.digest(key, person.encode(), "sha256")[:16] for key in KEYS)
    return first, second


def write_people(room: ReleaseWorkspace, persons: str) -> list[tuple[bytes, bytes]]:
    """The people of a raw table with these; as they are stored."""
    room._connection.execute(f"CREATE OR REPLACE TABLE raw AS {persons}")
    room.write_people("people.csv", "person", KEYS[0], everywhere=KEYS[1])
    return room._connection.execute("FROM people").fetchall()


@pytest.mark.parametrize("together", [100, 1 << 19])
def test_each_person_once_in_the_order_of_hashes(tmp_path: Path, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several records each and some without a person, in parts and at once."""
    monkeypatch.setattr(people, "_TOGETHER", together)
    monkeypatch.setattr(people, "_OF_ROOT", 0)
    with opened(tmp_path) as room:
        found = write_people(room, "SELECT CASE WHEN range % 9 THEN 'Ä ' || range % 500 END AS person FROM range(2000)")
    assert found == sorted(hash_person(f"ä{number}") for number in range(500))
    assert sorted(path.name for path in (tmp_path / "vault").iterdir() if "tmp" in path.name) == []


def test_sums_over_people_are_those_of_their_hashes(tmp_path: Path) -> None:
    """Of a first release, of one with some people who are known already, and of the same exposed again: from the sums before as
    from all that is there."""

    def add(beginnings: Iterable[bytes]) -> int:
        return sum(int.from_bytes(hashlib.sha256(b"s" * 32 + one).digest()[:8], "big") for one in beginnings)

    releases, sums = {"people/1/r1": range(60), "people/2/r1": range(40, 90)}, None
    for done, (release, numbers) in enumerate(releases.items(), start=1):
        there = {name: list(map(hash_person, map(str, some))) for name, some in list(releases.items())[:done]}
        wanted = Sums(
            exposed=add(name.encode() + person for name, some in there.items() for person, _ in some),
            identities=add({person + everywhere for some in there.values() for person, everywhere in some}),
            charged=add(f"{name} true".encode() for name in there),
        )
        with opened(tmp_path) as room:
            write_people(room, f"SELECT range::VARCHAR AS person FROM range({numbers.start}, {numbers.stop})")  # noqa: S608
            for kept in (sums, wanted, None):
                sums = room.expose(release, people=True, key=b"s" * 32, kept=kept)
                assert sums == wanted
            assert Sums.of(room._connection, b"s" * 32) == wanted
