"""What a vault keeps of the people beside the rooms of its releases, and how notes are written there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import duckdb

from release_pipeline.store.exposed import sum_charged
from release_pipeline.store.sql import statement


class BesideRooms:
    """What a vault keeps of the people outside the rooms, so that it outlives them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def has(self, table: str) -> bool:
        """Whether the vault has this table beside its rooms; one that is read only, and just made, may not."""
        return True

    def charged(self) -> dict[str, bool]:
        """Every release of the population that got as far as clusters, and whether it is kept who is in it."""
        return dict(self._connection.execute(statement("stages/list_charged")).fetchall()) if self.has("charged") else {}

    def people_note(self) -> dict[str, Any] | None:
        """What was written of the people, if it was."""
        if not self.has("people_notes"):
            return None
        return read_note(self._connection.execute(statement("stages/select_people_note")))

    def sum_charged(self, key: bytes) -> int:
        """The sum over the releases that are kept as charged, as it is now."""
        if not self.has("charged"):
            return 0
        return sum_charged(self._connection, key)


def read_note(found: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    rows = found.fetchall()  # a result that is not read to its end bars the connection
    return json.loads(rows[0][0]) if rows else None


def write_note(note: Mapping[str, Any]) -> str:
    return json.dumps(note, sort_keys=True, separators=(",", ":"))
