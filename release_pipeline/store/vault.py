"""The confidential side: one DuckDB file per population, a schema in it per release, a note per stage."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Protocol, cast, runtime_checkable

import duckdb
import numpy as np
import pyarrow as pa

from release_pipeline.errors import StoreError
from release_pipeline.policy.derivations import Derived
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays
from release_pipeline.privacy.grid import IntArray
from release_pipeline.store.beside import BesideRooms, read_note, write_note
from release_pipeline.store.connections import open_database, read_batches, transaction
from release_pipeline.store.exposed import Sums, add_identities, sum_charged, sum_exposed_in
from release_pipeline.store.folders import make_vault
from release_pipeline.store.kept import KeptColumns
from release_pipeline.store.memory import DATABASE, LARGE, give_back_freed
from release_pipeline.store.people import PERSON, as_arrow, as_rows, insert_people, list_pads, sort_people
from release_pipeline.store.raw import RawTable
from release_pipeline.store.scratch import OnDisk
from release_pipeline.store.shared import Cluster, OnCluster, is_shared
from release_pipeline.store.source import Columns, ReleaseFilter, SourceDoor, load_raw
from release_pipeline.store.spilled import make_spill, remove_spilled
from release_pipeline.store.sql import statement

_ALL = ("records", "raw")  # tables that have a row for each record of the release
_RESTORE = "Find out who wrote to the vault, and restore it."
_BATCH = 1 << 18  # rows of a column that are read together where it goes on to disk
_PART = "_column_"  # between the name of such a table and the number of a column: each is a table of its own
_PIECES = 256  # a piece of an array on disk has so many bytes of memory for each of its entries, of which some 40 are used
_LEAST_PIECE = 1 << 16
FREED = 512 << 20  # bytes: what allocators may keep of what was freed, where so much is spare beside as much for columns
_CELL = 64  # bytes that a cell takes at most, as a rule: a table that would fit so is read at once, a larger one column by column


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

    The transaction has the file for itself, so that a column is read, and hashed, once: what is kept of it here is what was
    hashed, and goes when the table is written anew.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        folder: Path,
        disk: OnDisk | None = None,
        disk_from: int = 0,
        memory: int | None = None,
        begin_sharing: Callable[[], OnCluster] | None = None,
        spare: Callable[[int], int] = lambda _: 0,
    ) -> None:
        super().__init__(connection)
        self._spare = spare
        self._folder = folder  # of files without a name
        self._memory = memory
        self._disk, self._disk_from = disk, disk_from
        self._begin_sharing, self._shared = begin_sharing, cast("OnCluster | None", None)
        self._kept = KeptColumns()
        self._contents: dict[str, dict[str, str]] = {}
        self._stored: dict[str, dict[str, str]] | None = None  # by table and column: the table that it lies in
        self._left: int | None = None  # bytes of memory that the release leaves
        self._records: int | None = None  # how many records it has

    def ingest(
        self, source: SourceDoor, columns: Columns, *, release: ReleaseFilter | None, derive: Mapping[str, Derived]
    ) -> RawTable:
        """Replace the table `raw` by what the source delivers, and what is derived of it."""
        self._drop("raw")
        self._stored = self._left = self._records = None  # it is made by others
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
        self._left = self._records = None
        self._contents.pop(name, None)
        self._kept.forget(name)

    def arrays(self, rows: int) -> Arrays:
        """Where arrays of so many entries lie."""
        return self._disk_of(rows) or IN_MEMORY

    def try_cluster(self, rows: int) -> None:
        """Have the cluster, if one will work on arrays of so many entries, show that it can."""
        if isinstance(arrays := self.arrays(rows), OnCluster):
            arrays.work(int, 1)

    @property
    def effort(self) -> Mapping[str, Any]:
        """What a cluster did for what was asked since the workspace was opened, as facts."""
        return {} if self._shared is None else self._shared.effort.facts

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
        kept = {column: values for column in wanted if (values := self._kept.find(name, column)) is not None}
        missing = [column for column in wanted if column not in kept]
        loaded = self._load(name, missing) if missing else dict[str, pa.ChunkedArray]()
        found = {column: loaded[column] if column in loaded else kept[column] for column in wanted}
        for read in (loaded, found):  # those that were asked for are the last ones used
            self._kept.keep(name, read, lies_on_disk=self._lies_on_disk, count_spare=self._count_spare)
        return pa.table(found)

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

    def _load(self, name: str, missing: Sequence[str]) -> Mapping[str, pa.ChunkedArray]:
        """These columns of a table, and of a small one the others too."""
        stored = self._find_places(name, missing)
        places = {stored[column] for column in missing}
        if places != {name}:  # columns that lie by themselves
            relations = {column: self._connection.table(stored[column]) for column in missing}
            if self._count_spare() < 2 * FREED:
                give_back_freed()
            return {column: self._load_column(relation) for column, relation in relations.items()}
        relation = self._connection.table(name)
        rows, columns = relation.shape
        if self._lies_on_disk(rows):
            return {column: self._load_column(relation.select(duckdb.ColumnExpression(column))) for column in missing}
        others = [name for name in relation.columns if name not in missing] if self._kept.may_have(rows * columns * _CELL) else []
        table = relation.select(*(duckdb.ColumnExpression(column) for column in (*missing, *others))).to_arrow_table()
        return dict(zip(table.column_names, table.columns, strict=True))

    def _load_column(self, relation: duckdb.DuckDBPyRelation) -> pa.ChunkedArray:
        """The only column of this."""
        [rows, _] = relation.shape
        if (disk := self._disk_of(rows)) is None:
            return relation.to_arrow_table().column(0)
        reader = relation.to_arrow_reader(_BATCH)
        return disk.keep_column((batch.column(0) for batch in read_batches(reader)), reader.schema.field(0).type, rows)

    def _count_spare(self) -> int:
        """The bytes of memory that the release leaves, by all of its records whatever table is read: there may be fewer
        clusters, or more rows of them with one for each column."""
        if self._left is None:
            stored = [name for name, places in self._find_stored().items() if places]
            self._left = self._spare(self._count_records() or max(map(self.count_rows, stored)))
        return self._left

    def _count_records(self) -> int:
        """How many records the release has, as far as its tables tell; 0 where none has a row for each."""
        if self._records is None:
            stored = self._find_stored()
            self._records = max((self.count_rows(name) for name in _ALL if stored.get(name)), default=0)
        return self._records

    def _lies_on_disk(self, rows: int) -> bool:
        """Whether arrays of so many entries lie on disk: of tables that are large as those of records do, too, where they have
        fewer rows than there are records."""
        if self._disk is None:
            return False
        return rows >= self._disk_from or (self.is_large(rows) and self._count_records() >= self._disk_from)

    def _disk_of(self, rows: int) -> OnDisk | None:
        """What has arrays of so many entries, if they do not lie in memory."""
        if not self._lies_on_disk(rows):
            return None
        if self._begin_sharing is None or not is_shared(rows):
            return self._disk
        if self._shared is None:
            self._shared = self._begin_sharing()
        return self._shared

    def _drop(self, name: str) -> None:
        self._left = self._records = None
        for table in set(self._find_stored().pop(name, {}).values()):
            self._connection.execute(statement("stages/drop_table", table=table))
        self._contents.pop(name, None)
        self._kept.forget(name)


ROOMS = RLock()


@contextmanager
def open_workspace(
    vault: Path,
    population: str,
    release: str,
    *,
    memory: int | None = None,
    spill: Path | None = None,
    share: Fraction = DATABASE,
    disk_from: int | None = None,
    cluster: Cluster | None = None,
    spare: Callable[[int], int] = lambda _: 0,
) -> Generator[ReleaseWorkspace]:
    """The room of `release` (policy/partition/rN) in the vault of its population, in one transaction: all or nothing.

    DuckDB takes its `share` of `memory`, if that is given, and goes on in the folder `spill`, or else beside its file. There
    arrays lie, too, of tables of `disk_from` rows and more, but for those of a `cluster`. One room at a time: between processes
    DuckDB's lock sees to it, between the threads of one a lock of ours. `spare`: how many bytes of memory a release of so many
    records leaves, half of them for columns that were read once, and half for what allocators keep of what was freed.
    """
    make_vault(vault)
    limit = None if memory is None else int(memory * share)
    file = vault / f"{population}.duckdb"
    spilled = None if spill is None else make_spill(file, spill)
    folder = spilled or vault
    disk = None if disk_from is None or memory is None else OnDisk(folder, max(memory // _PIECES, _LEAST_PIECE))
    with ROOMS, ExitStack() as opened:
        connection = opened.enter_context(open_database(file, memory=limit, spill=spilled))
        remove_spilled(file, spill)
        begin_sharing = None
        if cluster is not None:  # what somebody left who was killed goes whatever the engine is now
            cluster.remove(file)
            if cluster.is_used and disk is not None:
                begin_sharing = partial(opened.enter_context, cluster.open(file, folder))
        connection.execute(statement("schema/create_release_schema", workspace=release))
        connection.execute(statement("schema/use_release_schema", workspace=release))
        connection.execute(statement("schema/create_notes"))
        connection.execute(statement("schema/create_charged"))
        connection.execute(statement("schema/create_exposed"))
        connection.execute(statement("schema/create_identities"))
        connection.execute(statement("schema/create_people_notes"))
        connection.execute(statement("schema/create_swapped"))
        with transaction(connection):
            yield ReleaseWorkspace(connection, folder, disk, disk_from or 0, limit, begin_sharing, spare)
    if spilled is not None:
        with suppress(OSError):  # somebody else is in it already
            spilled.rmdir()
