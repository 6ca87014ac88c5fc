"""What the vault must hold, by the events of the registry: found out before anything is written, and before a new file takes the
place of a lost one. By names and sizes alone, for closing a file that was read frees the locks that this process has on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from release_pipeline.errors import StoreError
from release_pipeline.store.connections import is_unfinished
from release_pipeline.store.ledger import RESERVED, find_entered
from release_pipeline.store.registry import Event

RESTORE = "Restore it from a backup, together with the registry; until then nothing is written."


class VaultDamaged(StoreError):
    """Something is missing in the vault that the registry knows to have been there."""


def list_populations(events: Iterable[Event]) -> list[str]:
    """The populations that were ever charged: each has a file in the vault, made before its first charge. What the officer
    entered after a restore has left nothing there."""
    events = list(events)
    entered = find_entered(events)
    return sorted({event.content["population"] for event in events if event.kind == RESERVED and event.release not in entered})


def find_missing(vault: Path, events: Iterable[Event]) -> Iterator[Path]:
    """The files of populations that are missing, or too short to be databases."""
    for population in list_populations(events):
        file = vault / f"{population}.duckdb"
        if not file.is_file() or is_unfinished(file):
            yield file


def check_populations(vault: Path, events: Iterable[Event]) -> None:
    """Refuse to go on without one of them."""
    for file in find_missing(vault, events):
        raise VaultDamaged(
            "the vault of a population that was charged is missing, or cut short.", where=str(file), remedy=RESTORE
        )
