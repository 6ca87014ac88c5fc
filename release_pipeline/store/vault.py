"""The confidential side: one DuckDB file per population, a schema in it per release, a note per stage."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Protocol, cast, runtime_checkable

import duckdb
import numpy as np
import pyarrow as pa

from release_pipeline.errors import StoreError
from release_pipeline.policy.derivations import Derived
from release_pipeline.privacy.grid import IntArray
from release_pipeline.store.beside import BesideRooms, read_note, write_note
from release_pipeline.store.connections import open_database, remove_spilled, transaction
from release_pipeline.store.exposed import Sums, add_identities, sum_charged, sum_exposed_in
from release_pipeline.store.folders import make_vault
from release_pipeline.store.memory import DATABASE, LARGE, give_back_freed
from release_pipeline.store.people import PERSON, as_arrow, as_rows, insert_people, list_pads, sort_people
from release_pipeline.store.raw import RawTable
from release_pipeline.store.source import Columns, ReleaseFilter, SourceDoor, load_raw
from release_pipeline.store.sql import statement

_RESTORE = "Find out who wrote to the vault, and restore it."
_PART = "_column_"  # between the name of such a table and the number of a column: each is a table of its own


class Written(Protocol):
    """What is written: an Arrow table, or one whose columns are made one after the other."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        ...

    @property
    def column_names(self) -> Sequence[str]:
        """The columns, in order."""
        ...

    def column(self, name: str, /) -> Any:
        """One of them, as Arrow has it."""
        ...


@runtime_checkable
class InParts(Protocol):
    """What is written part by part."""

    def parts(self, name: str, /) -> Iterator[Any]:
        """One of the columns, as Arrow has its parts."""
        ...


class ReleaseWorkspace(BesideRooms):
    """The tables and notes of one release. A stage writes its tables and its note in one transaction.

    The transaction has the file for itself, so that a column is hashed once, until its table is written anew.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, memory: int | None = None) -> None:
        super().__init__(connection)
        self._folder = folder  # of files without a name
        self._memory = memory
        self._contents: dict[str, dict[str, str]] = {}
        self._stored: dict[str, dict[str, str]] | None = None  # by table and column: the table that it lies in

    def ingest(
        self, source: SourceDoor, columns: Columns, *, release: ReleaseFilter | None, derive: Mapping[str, Derived]
    ) -> RawTable:
        """Replace the table `raw` by what the source delivers, and what is derived of it."""
        self._drop("raw")
        self._stored = None  # it is made by others
        load_raw(self._connection, source, columns, release=release, derive=derive)
        return self.raw(source.name)

    def raw(self, source_name: str) -> RawTable:
        """The table `raw`."""
        return RawTable(self._connection, source_name, memory=self._memory)

    def write(self, name: str, table: Written) -> None:
        """Replace the table `name`. A large one is stored column by column: each is asked for when those before are stored."""
        self._drop(name)
        if self.is_large(table.num_rows):
            for column in table.column_names:
                self.add_column(name, column, table.parts(column) if isinstance(table, InParts) else table.column(column))
        else:
            whole = pa.table({column: table.column(column) for column in table.column_names})
            self._connection.from_arrow(whole).create(name)
            self._find_stored()[name] = dict.fromkeys(table.column_names, name)

    def add_column(self, name: str, column: str, values: Any) -> None:
        """One more column of the table `name`, which has none but such, or what follows in one that it has; whole, or part by
        part."""
        stored = self._find_stored().setdefault(name, {})
        parts = [values] if not isinstance(values, Iterator) else cast("Iterator[Any]", values)
        for part in parts:
            relation = self._connection.from_arrow(pa.table({column: part}))
            if column not in stored:
                stored[column] = f"{name}{_PART}{len(stored):05}"
                relation.create(stored[column])
            elif relation.types == self._connection.table(stored[column]).types:
                relation.insert_into(stored[column])
            else:  # the database would make of them what came before
                raise TypeError(f"what follows in the column '{column}' of the table '{name}' is of another type.")
        if column not in stored:
            raise ValueError(f"the column '{column}' of the table '{name}' came in no parts.")
        self._contents.pop(name, None)

    def is_large(self, rows: int) -> bool:
        """Whether a table of so many rows is stored column by column."""
        return rows >= LARGE

    def count_rows(self, name: str) -> int:
        """How many rows the table `name` has."""
        first = next(iter(self._places_of(name).values()))
        return self._connection.table(first).shape[0]

    def slices(self, name: str, columns: Sequence[str], *, rows: int) -> Iterator[pa.Table]:
        """Some columns of the table `name`, so many rows at a time, as they were written, in a transaction before; at least one
        slice."""
        stored, count = self._places_of(name), self.count_rows(name)
        if len({stored[column] for column in columns}) < len(columns):  # a small table, in one
            whole = self.read(name, columns)
            yield from (whole.slice(first, rows) for first in range(0, max(count, 1), rows))
            return
        for first in range(0, max(count, 1), rows):
            found = pa.table({column: self._read_slice(stored[column], column, first, first + rows) for column in columns})
            if columns and found.num_rows != min(rows, count - first):
                raise StoreError(f"the table '{name}' cannot be read in slices: it was written only now.")
            yield found

    def _read_where(self, name: str, columns: Sequence[str], column: str, text: str) -> pa.Table:
        """Some columns of the rows that have this text in this column; nothing else of them is in memory."""
        stored = self._find_places(name, (*columns, column))
        find = statement("stages/find_rows", table=stored[column], column=column)
        [(first, beyond, count)] = self._connection.execute(find, {"text": text}).fetchall()
        found = pa.table({each: self._read_slice(stored[each], each, first, beyond) for each in columns})
        if count != beyond - first or (columns and found.num_rows != count):
            raise StoreError(f"the rows of '{text}' in the table '{name}' do not lie together.", remedy=_RESTORE)
        return found

    def _read_slice(self, table: str, column: str, first: int, beyond: int) -> pa.ChunkedArray:
        text = statement("stages/read_slice", table=table, column=column)
        return self._connection.sql(text, params={"first": first, "beyond": beyond}).to_arrow_table().column(0)

    def write_people(self, source_name: str, column: str, key: bytes, *, everywhere: bytes) -> None:
        """Replace the table `people` by the persons of this column of `raw`, each once, as hashes under both keys and in the
        order of the first: nobody sees them."""
        self._drop("people")
        self._connection.execute(statement("stages/create_people"))
        hashed = map(as_rows, self.raw(source_name).persons(column, list_pads(key, everywhere)))
        insert_people(self._connection, sort_people(hashed, self._connection.table("raw").shape[0], self._folder))
        self._stored = None

    def write_owners(self, source_name: str, column: str, key: bytes, *, everywhere: bytes) -> None:
        """Replace the table `owners`: the person of each record, in their order, as the hash under the key of the population."""
        batches = self.raw(source_name).persons(column, list_pads(key, everywhere))
        hashed = [as_rows(batch)[:, :PERSON] for batch in batches]
        self.write("owners", pa.table({"person": as_arrow(np.concatenate(hashed))}))

    def read_earlier_blocks(self, policy: str) -> IntArray:
        """The block that each record's person (table `owners`) was in, in earlier releases of a policy that swapped values; -1 of
        who was in none. Of several records of one person each has its own."""
        text = statement("stages/read_earlier_blocks", owners=self._find_places("owners", ["person"])["person"])
        return self._connection.sql(text, params={"policy": policy}).to_arrow_table().column(0).to_numpy()

    def keep_blocks(self, policy: str, table: str, column: str) -> None:
        """Keep beside the rooms in which block each record's person is, by a column of a table of this room, and who of earlier
        releases of the policy is not here: these stay with the others of their block."""
        text = statement(
            "stages/find_new_blocks",
            owners=self._find_places("owners", ["person"])["person"],
            blocks=self._find_places(table, [column])[column],
            block=column,
        )
        found = self._connection.sql(text, params={"policy": policy}).to_arrow_table()
        self._connection.execute(statement("stages/delete_swapped"), {"policy": policy})
        self._connection.from_arrow(found).insert_into("main.swapped")

    def read(self, name: str, columns: Sequence[str] | None = None, *, where: tuple[str, str] | None = None) -> pa.Table:
        """The table `name`, or some of its columns, in the order in which it was written. `where`: of the rows only those that
        have a text in a column, which lie together."""
        wanted = self.columns(name) if columns is None else columns
        if where is not None:
            return self._read_where(name, wanted, *where)
        stored = self._find_places(name, wanted)
        if {stored[column] for column in wanted} == {name}:
            return self._connection.table(name).select(*map(duckdb.ColumnExpression, wanted)).to_arrow_table()
        give_back_freed()  # columns that lie by themselves are long
        return pa.table({column: self._connection.table(stored[column]).to_arrow_table().column(0) for column in wanted})

    def content(
        self, name: str, fingerprint: Callable[[pa.ChunkedArray], str], columns: Sequence[str] | None = None
    ) -> Mapping[str, str]:
        """The fingerprint of each column of the table `name`, or of some, made once until the table is written anew."""
        known = self._contents.setdefault(name, {})
        wanted = sorted(self.columns(name) if columns is None else columns)
        known |= {column: fingerprint(self.read(name, [column]).column(0)) for column in wanted if column not in known}
        return {column: known[column] for column in wanted}

    def tables(self) -> set[str]:
        """The tables that there are."""
        return set(self._find_stored())

    def columns(self, name: str) -> tuple[str, ...]:
        """The columns that the table `name` has."""
        return tuple(self._places_of(name))

    def _places_of(self, name: str) -> dict[str, str]:
        """By column of a table: the table that it lies in."""
        if name not in self._find_stored():
            raise StoreError(f"there is no table '{name}' in this release's room.", remedy="Run the release from its start.")
        return self._find_stored()[name]

    def _find_places(self, name: str, columns: Sequence[str]) -> dict[str, str]:
        """The same; these columns are among them."""
        stored = self._places_of(name)
        if absent := [column for column in columns if column not in stored]:
            raise StoreError(f"the table '{name}' cannot be read: it has no column '{absent[0]}'.")
        return stored

    def _find_stored(self) -> dict[str, dict[str, str]]:
        """By table and column: the table that it lies in."""
        if self._stored is None:
            self._stored = {}
            for table, column in self._connection.execute(statement("stages/list_columns")).fetchall():
                name = table.partition(_PART)[0]
                stored = self._stored.setdefault(name, {})
                is_whole = next(iter(stored.values()), table) == name  # as those before, all of which are alike
                if column in stored or is_whole != (table == name):
                    what = f"the table '{name}' is in this release's room twice."
                    raise StoreError(what, remedy=_RESTORE)
                stored[column] = table
        return self._stored

    def drop(self, names: Sequence[str]) -> None:
        """Remove tables, where they exist."""
        for name in names:
            self._drop(name)

    def checkpoint(self, stage: str) -> dict[str, Any] | None:
        """What a stage said of itself, or None if it has not run or was forgotten."""
        return read_note(self._connection.execute(statement("stages/select_note"), {"stage": stage}))

    def write_checkpoint(self, stage: str, checkpoint: Mapping[str, Any]) -> None:
        """Replace the note of a stage."""
        self.forget([stage])
        self._connection.execute(statement("stages/insert_note"), {"stage": stage, "note": write_note(checkpoint)})

    def forget(self, stages: Sequence[str]) -> None:
        """Remove the notes of some stages: what they made counts no more."""
        for stage in stages:
            self._connection.execute(statement("stages/delete_note"), {"stage": stage})

    def expose(self, release: str, *, people: bool, key: bytes, kept: Sums | None) -> Sums:
        """Keep that this release is charged, and who is in it (its table `people`), beside the rooms: that outlives them. Gives
        the sums after it, from those that were `kept`; without any, of everything that is there."""
        known = Sums.of(self._connection, key) if kept is None else kept
        exposed = known.exposed - sum_exposed_in(self._connection, release, key)
        identities = known.identities
        self._connection.execute(statement("stages/delete_charged"), {"release": release})
        self._connection.execute(statement("stages/insert_charged"), {"release": release, "people": people})
        self._connection.execute(statement("stages/delete_exposed"), {"release": release})
        if people:
            self._connection.execute(statement("stages/insert_exposed"), {"release": release})
            identities += add_identities(self._connection, key)
        exposed += sum_exposed_in(self._connection, release, key)
        return Sums(exposed, identities, sum_charged(self._connection, key))

    def write_people_note(self, note: Mapping[str, Any]) -> None:
        """Replace it."""
        self._connection.execute(statement("stages/delete_people_notes"))
        self._connection.execute(statement("stages/insert_people_note"), {"note": write_note(note)})

    def compare_people(self, releases: Sequence[str]) -> list[tuple[str, int, int]]:
        """Of each of these releases that people are kept of: its name, how many joined since, and how many left."""
        return self._connection.execute(statement("stages/compare_people"), {"releases": list(releases)}).fetchall()

    def _drop(self, name: str) -> None:
        for table in set(self._find_stored().pop(name, {}).values()):
            self._connection.execute(statement("stages/drop_table", table=table))
        self._contents.pop(name, None)


ROOMS = RLock()


@contextmanager
def open_workspace(vault: Path, population: str, release: str, *, memory: int | None = None) -> Generator[ReleaseWorkspace]:
    """The room of `release` (policy/partition/rN) in the vault of its population, in one transaction: all or nothing.

    DuckDB takes its share of `memory`, if that is given, and then goes on beside its file. One room at a time: between processes
    DuckDB's lock sees to it, between the threads of one a lock of ours.
    """
    make_vault(vault)
    limit = None if memory is None else int(memory * DATABASE)
    file = vault / f"{population}.duckdb"
    with ROOMS, open_database(file, memory=limit) as connection:
        remove_spilled(file)
        connection.execute(statement("schema/create_release_schema", workspace=release))
        connection.execute(statement("schema/use_release_schema", workspace=release))
        connection.execute(statement("schema/create_notes"))
        connection.execute(statement("schema/create_charged"))
        connection.execute(statement("schema/create_exposed"))
        connection.execute(statement("schema/create_identities"))
        connection.execute(statement("schema/create_people_notes"))
        connection.execute(statement("schema/create_swapped"))
        with transaction(connection):
            yield ReleaseWorkspace(connection, vault, limit)
