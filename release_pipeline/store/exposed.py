"""Who was in which charged release of a population: what the vault keeps beside the rooms, for reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from release_pipeline.store.connections import open_database
from release_pipeline.store.sql import statement


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
