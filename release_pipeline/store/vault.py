"""The confidential side: one DuckDB file per population, a schema in it per release, a note per stage."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from release_pipeline.errors import StoreError
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.policy.file.derivations import Derived
from release_pipeline.rows.columns import AnyTable, ColumnTable
from release_pipeline.rows.counted import CountPart
from release_pipeline.store.database import (
    LARGE_BLOCKS,
    open_database,
    read_batches,
    remove_spilled,
    source_errors,
    statement,
    transaction,
)
from release_pipeline.store.environment import DATABASE
from release_pipeline.store.exposed import PeopleTables, Sums, add_identities, read_note, sum_charged, sum_exposed_in, write_note
from release_pipeline.store.files import make_vault
from release_pipeline.store.in_place import TIMES, RecordsInPlace, RelationInPlace, give_one, hash_columns
from release_pipeline.store.in_place_sql import open_in_place as open_in_postgres
from release_pipeline.store.people import PersonKeys, as_arrow, count_persons, hash_persons, insert_people, sort_people
from release_pipeline.store.raw import Columns, RawTable, ReleaseFilter, create_macros
from release_pipeline.store.remote import PostgresSource
from release_pipeline.store.source import DuckdbSource, FileSource, SourceReader, load_raw
from release_pipeline.store.spark import SparkAddress, SparkFiles, SparkSource, SparkTable

_BATCH = 1 << 17  # records that are counted together


class ReleaseWorkspace(PeopleTables):
    """The tables and notes of one release. A stage writes its tables and its note in one transaction.

    The transaction has exclusive use of the file, so that a column is hashed once, until its table is written again.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, folder: Path, memory: int | None = None, opened: ExitStack | None = None
    ) -> None:
        super().__init__(connection)
        self._folder = folder  # of files without a name
        self._memory = memory
        self._hashes: dict[str, dict[str, str]] = {}  # of columns, by table
        self._stored: dict[str, tuple[str, ...]] | None = None  # the columns of each table
        self._opened = opened or ExitStack()  # open as long as this is

    def ingest(
        self, source: SourceReader, columns: Columns, *, release: ReleaseFilter | None, derive: Mapping[str, Derived]
    ) -> RawTable:
        """Replace the table `raw` by the source's records, and the columns derived from them."""
        self._drop("raw")
        self._stored = None  # made elsewhere
        load_raw(self._connection, source, columns, release=release, derive=derive)
        return self.raw(source.name)

    def raw(self, source_name: str) -> RawTable:
        """Return the table `raw`."""
        return RawTable(self._connection, source_name, memory=self._memory)

    def open_in_place(
        self,
        source: SourceReader,
        columns: Columns,
        release: ReleaseFilter | None,
        *,
        engine: str,
        workers: SparkAddress | None,
    ) -> RecordsInPlace | None:
        """Return the records in their source, where an engine counts them there: in Parquet files, in tables of DuckDB, Postgres
        or Spark. `engine`: as site.yaml names it; `workers`: the server whose workers read files, if it is Spark."""
        if isinstance(source, FileSource) and source.format == "parquet":
            if workers is not None:
                return SparkFiles(workers, source.name, source.files, columns, release)
            reader = self._opened.enter_context(closing(self._connection.cursor()))  # they are read while tables are written
            with source_errors(source.name):
                create_macros(reader)
                return RelationInPlace(source.name, source.scan_parquet(reader), columns, release)
        if isinstance(source, DuckdbSource):
            delivered = self._opened.enter_context(source.open(memory=self._memory))
            return RelationInPlace(source.name, delivered, columns, release)
        if isinstance(source, PostgresSource) and engine == "sql":
            return self._opened.enter_context(open_in_postgres(source, columns, release))
        if isinstance(source, SparkSource) and engine != "duckdb":
            return SparkTable(source.spark, source.table, columns, release)
        return None

    def cells(self, source_name: str, table: str) -> RawTable:
        """Return a table of different cells of a column, read as `raw` is."""
        return RawTable(self._connection, source_name, table=table, times=TIMES, memory=self._memory)

    def write(self, name: str, table: AnyTable | Iterable[pa.RecordBatch]) -> None:
        """Replace the table `name`, part by part if it comes in parts, at least one."""
        self._drop(name)
        types: list[Any] | None = None
        if isinstance(table, ColumnTable):
            parts = table.iterate()
        else:
            parts = [table] if isinstance(table, pa.Table) else (pa.Table.from_batches([batch]) for batch in table)
        for part in parts:
            relation = self._connection.from_arrow(part)
            if types is None:
                relation.create(name)
                self._find_stored()[name], types = tuple(part.column_names), relation.types
            elif relation.types == types and tuple(part.column_names) == self._find_stored()[name]:
                relation.insert_into(name)
            else:  # the database would create them from the earlier content
                raise TypeError(f"a part of the table '{name}' has other columns or types than those before.")

    def count_rows(self, name: str) -> int:
        """Return how many rows the table `name` has."""
        self.columns(name)
        return self._connection.table(name).shape[0]

    def slices(self, name: str, columns: Sequence[str], *, rows: int) -> Iterator[pa.Table]:
        """Yield some columns of the table `name`, so many rows at a time, as they were written, in a transaction before; at least
        one slice."""
        count, text = self.count_rows(name), statement("stages/read_slice", table=name, columns=self._check(name, columns))
        for first in range(0, max(count, 1), rows):
            rows_read = self._connection.sql(text, params={"first": first, "beyond": first + rows}).to_arrow_table()
            if rows_read.num_rows != min(rows, count - first):
                raise StoreError(f"the table '{name}' cannot be read in slices: it was written only now.")
            yield rows_read
            del rows_read  # while the next one is made

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """Return the exact counts that a function makes of the records, which it is given some at a time, in any order."""
        expressions = [duckdb.ColumnExpression(column) for column in self._check("records", columns)]
        relation = self._connection.table("records").select(*expressions)
        return pa.Table.from_batches(list(function(read_batches(relation.to_arrow_reader(_BATCH)))))

    def write_people(self, hashes: Iterable[pa.Array], keys: PersonKeys, *, records: int, allowed: int) -> dict[str, int]:
        """Replace the table `people` by the persons with these hashes, each once, under two keys and in the order of the first,
        which are never shown. Returns counts of them: see `count_persons`."""
        self._drop("people")
        self._connection.execute(statement("stages/create_people"))
        parts = sort_people((hash_persons(some, keys.population) for some in hashes), records, self._folder)
        counts = count_persons(insert_people(self._connection, parts, keys), records=records, allowed=allowed)
        self._stored = None
        return counts

    def write_owners(self, source_name: str, column: str, keys: PersonKeys) -> None:
        """Replace the table `owners`: the person of each record, in their order, as the hash under the key of the population."""
        hashed = [hash_persons(some, keys.population) for some in self.raw(source_name).persons(column, keys.first)]
        self.write("owners", pa.table({"person": as_arrow(np.concatenate(hashed))}))

    def read_earlier_blocks(self, policy: str) -> IntArray:
        """Return, for each record, the block that its person (table `owners`) was in, in earlier releases of a policy that
        swapped values; -1 for people who were in none. Several records of one person have separate blocks."""
        self._check("owners", ["person"])
        text = statement("stages/read_earlier_blocks", owners="owners")
        return self._connection.sql(text, params={"policy": policy}).to_arrow_table().column(0).to_numpy()

    def keep_blocks(self, policy: str, table: str, column: str) -> None:
        """Record outside the schemas the block of each record's person, by a column of a table of this release, and people of the
        policy's earlier releases who are not here: these stay with the others of their block."""
        self._check("owners", ["person"])
        self._check(table, [column])
        text = statement(
            "stages/find_new_blocks",
            owners="owners",
            blocks=table,
            block=column,
        )
        found = self._connection.sql(text, params={"policy": policy}).to_arrow_table()
        self._connection.execute(statement("stages/delete_swapped"), {"policy": policy})
        self._connection.from_arrow(found).insert_into("main.swapped")

    def read(self, name: str, columns: Sequence[str] | None = None, *, where: tuple[str, str] | None = None) -> pa.Table:
        """Return the table `name`, or some of its columns, in the order in which it was written. `where`: only the rows that have
        a text in a column."""
        wanted = self.columns(name) if columns is None else columns
        expressions = [duckdb.ColumnExpression(column) for column in self._check(name, wanted)]
        relation = self._connection.table(name)
        if where is not None:
            column, text = where
            relation = relation.filter(duckdb.ColumnExpression(column) == duckdb.ConstantExpression(text))
        return relation.select(*expressions).to_arrow_table()

    def hash_table(self, name: str, columns: Sequence[str] | None = None) -> dict[str, str]:
        """Return the digest of each column of the table `name`, or of some, made once until the table is written again."""
        wanted, known = sorted(self.columns(name) if columns is None else columns), self._hashes.setdefault(name, {})
        new = [duckdb.ColumnExpression(column) for column in self._check(name, wanted) if column not in known]
        if new:
            reader = self._connection.table(name).select(*new).to_arrow_reader(_BATCH)
            known |= hash_columns(give_one(read_batches(reader), reader.schema))
        return {column: known[column] for column in wanted}

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        return set(self._find_stored())

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the columns that the table `name` has."""
        if name not in self._find_stored():
            raise StoreError(f"the vault has no table '{name}' of this release.", remedy="Run the release from its start.")
        return self._find_stored()[name]

    def _check(self, name: str, columns: Sequence[str]) -> Sequence[str]:
        """Return these columns, which the table must have."""
        stored = self.columns(name)
        if absent := [column for column in columns if column not in stored]:
            raise StoreError(f"the table '{name}' cannot be read: it has no column '{absent[0]}'.")
        return columns

    def _find_stored(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of each table."""
        if self._stored is None:
            self._stored = {}
            for table, column in self._connection.execute(statement("stages/list_columns")).fetchall():
                self._stored[table] = (*self._stored.get(table, ()), column)
        return self._stored

    def drop(self, names: Sequence[str]) -> None:
        """Remove tables, where they exist."""
        for name in names:
            self._drop(name)

    def checkpoint(self, stage: str) -> dict[str, Any] | None:
        """Return the note of a stage, or None if it has not run or was forgotten."""
        return read_note(self._connection.execute(statement("stages/select_note"), {"stage": stage}))

    def write_checkpoint(self, stage: str, checkpoint: Mapping[str, Any]) -> None:
        """Replace the note of a stage."""
        self.forget([stage])
        self._connection.execute(statement("stages/insert_note"), {"stage": stage, "note": write_note(checkpoint)})

    def forget(self, stages: Sequence[str]) -> None:
        """Remove the notes of some stages: their results no longer count."""
        for stage in stages:
            self._connection.execute(statement("stages/delete_note"), {"stage": stage})

    def expose(self, release: str, *, people: bool, key: bytes, kept: Sums | None) -> Sums:
        """Record that this release is charged, and who is in it (its table `people`), outside the schemas, which it outlives.
        Returns the sums after it, from the `kept` ones; without those, of everything that is there."""
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
        """Replace the note on the people."""
        self._connection.execute(statement("stages/delete_people_notes"))
        self._connection.execute(statement("stages/insert_people_note"), {"note": write_note(note)})

    def compare_people(self, releases: Sequence[str]) -> list[tuple[str, int, int]]:
        """Return for each of these releases with recorded people: its name, how many joined since, and how many left."""
        return self._connection.execute(statement("stages/compare_people"), {"releases": list(releases)}).fetchall()

    def _drop(self, name: str) -> None:
        if self._find_stored().pop(name, None) is not None:
            self._connection.execute(statement("stages/drop_table", table=name))
        self._hashes.pop(name, None)


VAULT_LOCK = RLock()


@contextmanager
def open_workspace(vault: Path, population: str, release: str, *, memory: int | None = None) -> Generator[ReleaseWorkspace]:
    """Yield the schema of `release` (policy/partition/rN) in the vault of its population, in one transaction: all or nothing.

    DuckDB takes its share of `memory`, if that is given, and then spills next to its file. One schema is open at a time: between
    processes by DuckDB's lock, between the threads of one by a lock of ours.
    """
    make_vault(vault)
    limit = None if memory is None else int(memory * DATABASE)
    file = vault / f"{population}.duckdb"
    with VAULT_LOCK, open_database(file, memory=limit, blocks=LARGE_BLOCKS) as connection:
        remove_spilled(file)
        connection.execute(statement("schema/create_release_schema", workspace=release))
        connection.execute(statement("schema/use_release_schema", workspace=release))
        connection.execute(statement("schema/create_notes"))
        connection.execute(statement("schema/create_charged"))
        connection.execute(statement("schema/create_exposed"))
        connection.execute(statement("schema/create_identities"))
        connection.execute(statement("schema/create_people_notes"))
        connection.execute(statement("schema/create_swapped"))
        with ExitStack() as opened, transaction(connection):
            yield ReleaseWorkspace(connection, vault, limit, opened)
