"""Copies a registry from a server to a file, for a backup, and from a file to a server, after a restore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from release_pipeline.errors import StoreError
from release_pipeline.store.database import open_database, statement, transaction
from release_pipeline.store.registry import TABLES, Event, Registry, RegistryAnchor, Row, make_tables, open_registry
from release_pipeline.store.registry_server import Server

Head: TypeAlias = tuple[int, str]  # number and hash of the last event


def write_copy(registry: Registry, file: Path) -> None:
    """Write an open registry into a new DuckDB file."""
    with open_database(file) as connection, transaction(connection):
        make_tables(connection)
        registry.copy_into(connection)


def move_to_server(
    file: Path, server: Server, *, anchor: RegistryAnchor, may_replace: Callable[[Sequence[Event], Head], bool]
) -> None:
    """Move the registry of a file to a server, whole or not at all, and delete the file.

    A server that has another registry is refused, unless the events of the file may replace one with that head: its tables are
    then renamed, and stay. If stopped at any moment, the same call finishes the work.
    """
    try:
        _copy_to_server(file, server, anchor, may_replace)
    except StoreError:
        if file.exists():
            raise  # else another process has moved it meanwhile
    for left in (file, file.with_name(f"{file.name}.wal")):  # a file without its log would be an older registry
        left.unlink(missing_ok=True)


def _copy_to_server(
    file: Path, server: Server, anchor: RegistryAnchor, may_replace: Callable[[Sequence[Event], Head], bool]
) -> None:
    with open_registry(file, anchor=anchor, read_only=True) as registry, server.open() as connection:
        tables = connection.list_tables()
        rows: list[Row] = connection.execute(statement("ledger/list_events")).fetchall() if tables else []
        there: list[Head] = [(number, digest) for number, _, digest, _ in rows]
        mine = [(event.number, event.hash) for event in registry.events]
        if there[: len(mine)] != mine:
            if there and not may_replace(registry.events, there[-1]):
                raise StoreError(
                    f"the server has another registry than {file}, and the file does not say that it replaces that one.",
                    where=str(server),
                    remedy="Stop all hosts. Name an empty database or schema in site.yaml, or take away a wrong file.",
                )
            for table in TABLES if there else ():
                aside = f"{table}_until_{there[-1][0]}_{there[-1][1][:8]}"
                connection.execute(statement("ledger/move_table", table=table, aside=aside))
            if there or not tables:
                make_tables(connection)
            registry.copy_into(connection)
