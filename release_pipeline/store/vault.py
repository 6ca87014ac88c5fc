"""The confidential side: one DuckDB file per population, a schema in it per release, a note per stage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from release_pipeline.store.connections import open_database, sync, transaction
from release_pipeline.store.raw import RawTable
from release_pipeline.store.source import Columns, ReleaseFilter, SourceDoor, load_raw
from release_pipeline.store.sql import statement


class ReleaseRoom:
    """The tables and notes of one release. A stage writes its tables and its note in one transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def ingest(self, source: SourceDoor, columns: Columns, *, release: ReleaseFilter | None) -> RawTable:
        """Replace the table `raw` by what the source delivers."""
        self._drop("raw")
        return load_raw(self._connection, source, columns, release=release)

    def raw(self, source_name: str) -> RawTable:
        """The table `raw`."""
        return RawTable(self._connection, source_name)

    def write(self, name: str, table: pa.Table) -> None:
        """Replace the table `name`."""
        self._drop(name)
        self._connection.from_arrow(table).create(name)

    def read(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The table `name`, or some of its columns, in the order in which it was written."""
        relation = self._connection.table(name)
        if columns is not None:
            relation = relation.select(*(duckdb.ColumnExpression(column) for column in columns))
        return relation.to_arrow_table()

    def columns(self, name: str) -> tuple[str, ...]:
        """The columns that the table `name` has."""
        return tuple(self._connection.table(name).columns)

    def drop(self, names: Sequence[str]) -> None:
        """Remove tables, where they exist."""
        for name in names:
            self._drop(name)

    def note(self, stage: str) -> dict[str, Any] | None:
        """What a stage said of itself, or None if it has not run or was forgotten."""
        found = self._connection.execute(statement("stages/select_note"), {"stage": stage}).fetchall()
        return json.loads(found[0][0]) if found else None

    def write_note(self, stage: str, note: Mapping[str, Any]) -> None:
        """Replace the note of a stage."""
        self.forget([stage])
        text = json.dumps(note, sort_keys=True, separators=(",", ":"))
        self._connection.execute(statement("stages/insert_note"), {"stage": stage, "note": text})

    def forget(self, stages: Sequence[str]) -> None:
        """Remove the notes of some stages: what they made counts no more."""
        for stage in stages:
            self._connection.execute(statement("stages/delete_note"), {"stage": stage})

    def expose(self, release: str) -> None:
        """Keep who is in this release (its table `people`) beside the rooms: their exposure outlives them."""
        self._connection.execute(statement("stages/delete_exposed"), {"release": release})
        self._connection.execute(statement("stages/insert_exposed"), {"release": release})

    def compare_people(self, releases: Sequence[str]) -> list[tuple[str, int, int]]:
        """Of each of these releases that people are kept of: its name, how many joined since, and how many left."""
        return self._connection.execute(statement("stages/compare_people"), {"releases": list(releases)}).fetchall()

    def _drop(self, name: str) -> None:
        self._connection.execute(statement("stages/drop_table", table=name))


def make_vault(vault: Path) -> None:
    """The folder of the confidential side: for its owner alone, and never to be committed to a repository."""
    vault.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignore = vault / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


@contextmanager
def open_room(vault: Path, population: str, release: str) -> Iterator[ReleaseRoom]:
    """The room of `release` (policy/partition/rN) in the vault of its population, in one transaction: all or nothing."""
    make_vault(vault)
    with open_database(vault / f"{population}.duckdb") as connection:
        connection.execute(statement("schema/create_release_schema", room=release))
        connection.execute(statement("schema/use_release_schema", room=release))
        connection.execute(statement("schema/create_notes"))
        connection.execute(statement("schema/create_exposed"))
        with transaction(connection):
            yield ReleaseRoom(connection)


def prune_rooms(vault: Path, population: str, rooms: Sequence[str]) -> None:
    """Remove these rooms, and rewrite the population's file without them: what was in them is in no file of the vault then.

    The file is replaced while its lock is held. Stopped anywhere, the old or the new one is there, whole.
    """
    file = vault / f"{population}.duckdb"
    if not file.exists():
        return
    partial = file.with_name(f".{file.name}.pruned")
    partial.unlink(missing_ok=True)
    with open_database(file) as connection:
        for room in rooms:
            connection.execute(statement("schema/drop_release_schema", room=room))
        connection.execute(statement("schema/checkpoint"))
        connection.execute(statement("schema/attach_copy"), {"file": str(partial)})
        connection.execute(statement("schema/copy_vault", vault=file.stem))
        connection.execute(statement("schema/detach_copy"))
        sync(partial)
        partial.replace(file)
        sync(vault)


class Exposed:
    """Who was in which charged release of a population."""

    def __init__(self, connection: duckdb.DuckDBPyConnection | None) -> None:
        self._connection = connection

    def count_people(self) -> list[tuple[list[str], int]]:
        """Lists of releases, and how many people were in exactly those."""
        return [] if self._connection is None else self._connection.execute(statement("facts/count_people")).fetchall()


@contextmanager
def open_exposed(vault: Path, population: str) -> Iterator[Exposed]:
    """The exposure of a population, for reading; nobody where it has no vault yet."""
    file = vault / f"{population}.duckdb"
    if not file.exists():
        yield Exposed(None)
        return
    with open_database(file, read_only=True) as connection:
        yield Exposed(connection)
