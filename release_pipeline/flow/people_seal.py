"""Who was in which charged release, under the seal of the vault's key: sums over rows that outlive the rooms of their releases,
which the sealed notes of stages do not cover."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from release_pipeline.flow.site import Site
from release_pipeline.flow.states import read_statuses
from release_pipeline.store.exposed import Sums
from release_pipeline.store.holdings import RESTORE, VaultDamaged
from release_pipeline.store.registry import Event
from release_pipeline.store.rooms import Rooms
from release_pipeline.store.vault import ReleaseWorkspace


def people_sums_key(site: Site) -> bytes:
    """The key of the hashes that are summed."""
    return bytes.fromhex(site.keyed_hash(b"the sums of who was in which release"))


def seal_people_sums(site: Site, population: str, sums: Sums) -> dict[str, Any]:
    """The sums as the vault keeps them."""
    note = {name: str(amount) for name, amount in asdict(sums).items()}
    return {**note, "seal": _seal(site, population, note)}


def read_people_sums(site: Site, population: str, note: Mapping[str, Any] | None) -> Sums | None:
    """The sums that were kept; refused where this site has not sealed them."""
    if note is None:
        return None
    content = {name: amount for name, amount in note.items() if name != "seal"}
    if not hmac.compare_digest(str(note.get("seal", "")).encode(), _seal(site, population, content).encode()):
        file = site.vault / f"{population}.duckdb"
        raise VaultDamaged("the note of who was in which release is not what was written.", where=str(file), remedy=RESTORE)
    return Sums(**{name: int(amount) for name, amount in content.items()})


def list_sealed(events: Sequence[Event], population: str) -> set[str]:
    """The drawn releases of a population: who is in them is kept under a seal since their clusters were made."""
    statuses = read_statuses(events).items()
    return {str(name) for name, status in statuses if status.drawn and status.charge and status.charge.population == population}


def keeps_what_it_was_given(site: Site, population: str, rooms: ReleaseWorkspace | Rooms, events: Sequence[Event]) -> bool:
    """Whether the releases that a vault keeps as charged are those that it was given: the table is small, and asked before each
    charge."""
    kept = read_people_sums(site, population, rooms.people_note())
    if kept is None:
        return not list_sealed(events, population)
    return kept.charged == rooms.sum_charged(people_sums_key(site))


def find_people_faults(site: Site, population: str, rooms: Rooms, events: Sequence[Event], *, deep: bool) -> Iterator[str]:
    """What of the people is not as it was sealed; `deep`: the sums are made again, too."""
    try:
        kept = read_people_sums(site, population, rooms.people_note())
    except VaultDamaged as error:
        yield error.what.rstrip(".")
        return
    if kept is None:
        if list_sealed(events, population):
            yield "the note of who was in which release is missing"
    elif deep and kept != rooms.sum_people(people_sums_key(site)):
        yield "who was in which release is not what was written"


def _seal(site: Site, population: str, note: Mapping[str, str]) -> str:
    return site.keyed_hash(json.dumps(["people", population, note], sort_keys=True).encode())
