"""A room of the vault: what was written is read, and nothing else once it was written anew."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from release_pipeline.errors import StoreError
from release_pipeline.store.exposed import Sums
from release_pipeline.store.people import PersonKeys
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


def test_what_is_read_is_what_was_written(room: ReleaseWorkspace) -> None:
    for columns in (["income"], None, ["age", "town"], ["town"], ["income", "age"], None):
        wanted = SMALL if columns is None else SMALL.select(columns)
        found = room.read("records", columns)
        assert found.column_names == wanted.column_names
        for name in wanted.column_names:
            assert found.column(name).type == wanted.column(name).type
            assert [repr(entry) for entry in found.column(name).to_pylist()] == [
                repr(entry) for entry in wanted.column(name).to_pylist()
            ]


def test_a_table_that_was_written_anew_is_read_anew(room: ReleaseWorkspace) -> None:
    before = room.read("records"), room.hash_table("records")
    room.write("records", OTHER)
    assert room.read("records").equals(OTHER)
    assert room.hash_table("records") != before[1]
    room.write("records", SMALL)
    assert room.hash_table("records") == before[1]
    room.drop(["records"])
    with pytest.raises(StoreError, match="no table 'records'"):
        room.read("records")
    with pytest.raises(StoreError, match="no table 'records'"):
        room.hash_table("records")


def test_moments_have_one_hash_wherever_the_machine_stands(room: ReleaseWorkspace) -> None:
    """A stage that reads records sets the zone, one that only compares them does not."""
    room.write("raw", pa.table({"seen": pa.array([0, None], pa.timestamp("us", "UTC"))}))
    hashes = set[str]()
    for zone in ("Asia/Tokyo", "America/New_York", "UTC"):
        room._connection.execute(f"SET TimeZone = '{zone}'")  # pyright: ignore[reportPrivateUsage]
        room._hashes.clear()  # pyright: ignore[reportPrivateUsage]
        hashes |= set(room.hash_table("raw").values())
    assert len(hashes) == 1


KEYS = PersonKeys(b"h" * 32, b"k" * 32, b"e" * 32)
SUMMED = b"s" * 32  # the key of sums


def test_what_tells_something_else_each_time_is_no_column(room: ReleaseWorkspace) -> None:
    """A generated column, which a table may have as well as a view: what was hashed would not be what is used."""
    connection = room._connection  # pyright: ignore[reportPrivateUsage]
    connection.execute("CREATE SEQUENCE told")
    connection.execute("CREATE TABLE odd (town VARCHAR, income DOUBLE AS (nextval('told')))")
    connection.execute("CREATE VIEW owners AS SELECT 'somebody'::BLOB AS person")
    again = ReleaseWorkspace(connection, Path())
    assert again.columns("odd") == ("town",)
    assert "owners" not in again.tables()
    with pytest.raises(StoreError, match="no column 'income'"):
        again.read("odd", ["income"])
    for asked in (lambda: again.read_earlier_blocks("people"), lambda: again.keep_blocks("people", "odd", "town")):
        with pytest.raises(StoreError, match="no table 'owners'"):
            asked()


def join_parts(*parts: pa.Table) -> Iterator[pa.RecordBatch]:
    """The batches of these tables, one after the other."""
    return (batch for part in parts for batch in part.to_batches())


def test_parts_of_a_table_have_the_same_columns(room: ReleaseWorkspace) -> None:
    """In the same order, and of the same types."""
    first = pa.table({"x": [1.0], "y": [2.0]})
    room.write("masked", join_parts(first, pa.table({"x": [3.0], "y": [4.0]})))
    assert room.read("masked").to_pydict() == {"x": [1.0, 3.0], "y": [2.0, 4.0]}
    for other in (pa.table({"y": [4.0], "x": [3.0]}), pa.table({"x": [3], "y": [4.0]})):
        with pytest.raises(TypeError, match="other columns or types"):
            room.write("masked", join_parts(first, other))


def encrypt(key: bytes, block: bytes) -> bytes:
    """AES of one block: the first of CBC that begins with zeros."""
    return Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor().update(block)


def hash_person(person: str) -> tuple[bytes, bytes]:
    """By Python's own SHA-256 behind a block with the key, one block of AES at a time."""
    block = hashlib.sha256(KEYS.first.ljust(64, b"\0") + person.encode()).digest()[:16]
    return encrypt(KEYS.population, block), encrypt(KEYS.everywhere, block)


def write_people(room: ReleaseWorkspace, persons: str) -> list[tuple[bytes, bytes]]:
    """The people of a raw table with these; as they are stored."""
    room._connection.execute(f"CREATE OR REPLACE TABLE raw AS {persons}")
    raw = room.raw("people.csv")
    room.write_people(raw.persons("person", KEYS.first), KEYS, records=raw.count_records(), allowed=1)
    return room._connection.execute("FROM people").fetchall()


def test_sums_over_people_are_those_of_their_hashes(tmp_path: Path) -> None:
    """Of a first release, of one with some people who are known already, and of the same exposed again: from the sums before as
    from all that is there."""

    def add(key: str, rows: Iterable[bytes]) -> int:
        """By AES in CBC, of which the last block counts."""
        own = hmac.digest(SUMMED, key.encode(), "sha256")
        made = (Cipher(algorithms.AES(own), modes.CBC(bytes(16))).encryptor().update(row)[-16:] for row in rows)
        return sum(int.from_bytes(code[:8], "big") for code in made)

    releases, sums = {"people/1/r1": range(60), "people/2/r1": range(40, 90)}, None
    for done, (release, numbers) in enumerate(releases.items(), start=1):
        there = {name: list(map(hash_person, map(str, some))) for name, some in list(releases.items())[:done]}
        wanted = Sums(
            exposed=sum(add(f"exposed in {name}", [person for person, _ in some]) for name, some in there.items()),
            identities=add("identities", {person + everywhere for some in there.values() for person, everywhere in some}),
            charged=sum(
                int.from_bytes(hmac.digest(SUMMED, json.dumps([name, True]).encode(), "sha256")[:8], "big") for name in there
            ),
        )
        with opened(tmp_path) as room:
            write_people(room, f"SELECT range::VARCHAR AS person FROM range({numbers.start}, {numbers.stop})")  # noqa: S608
            for kept in (sums, wanted, None):
                sums = room.expose(release, people=True, key=SUMMED, kept=kept)
                assert sums == wanted
            assert Sums.of(room._connection, SUMMED) == wanted


def test_a_changed_row_changes_the_sum(tmp_path: Path) -> None:
    """Also one that is no hash, which nobody has."""
    with opened(tmp_path) as room:
        write_people(room, "SELECT range::VARCHAR AS person FROM range(60)")
        sums = room.expose("people/1/r1", people=True, key=SUMMED, kept=None)
        for change in (
            "INSERT INTO main.exposed VALUES ('people/1/r1', 'x')",
            "UPDATE main.exposed SET release = 'people/2/r1' WHERE person = (SELECT min(person) FROM main.exposed)",
            "DELETE FROM main.identities WHERE person = (SELECT min(person) FROM main.identities)",
        ):
            room._connection.execute(change)
            assert sums != (sums := Sums.of(room._connection, SUMMED))
