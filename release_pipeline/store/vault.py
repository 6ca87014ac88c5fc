"""The confidential side: one DuckDB file per population, a schema in it per release, a note per stage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from release_pipeline.store.connections import open_database, transaction
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
        with transaction(connection):
            yield ReleaseRoom(connection)
