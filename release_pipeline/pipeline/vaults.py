"""Comparison of the vaults of a site with its registry: their releases, and who was in which.

Who was in which charged release is under a seal of the vault's key: sums over rows that outlive the schemas of their releases,
which the sealed notes of stages do not cover.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from release_pipeline.ledger.policies import read_caps
from release_pipeline.ledger.states import ReleaseStatus, list_statuses, read_statuses
from release_pipeline.policy.loading.populations import list_ancestors
from release_pipeline.store.database import WAIT_SECONDS, is_unfinished
from release_pipeline.store.exposed import Sums
from release_pipeline.store.ledger import RESTORE, VaultDamaged
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.vault import ReleaseWorkspace
from release_pipeline.store.vault_files import VaultReader, open_vault


def people_sums_key(site: Site) -> bytes:
    """Return the key of the hashes that are summed."""
    return bytes.fromhex(site.keyed_hash(b"the sums of who was in which release"))


def seal_people_sums(site: Site, population: str, sums: Sums) -> dict[str, Any]:
    """Return the sums as the vault records them."""
    note = {name: str(amount) for name, amount in asdict(sums).items()}
    return {**note, "seal": _seal(site, population, note)}


def read_people_sums(site: Site, population: str, note: Mapping[str, Any] | None) -> Sums | None:
    """Return the recorded sums; refused where this site has not sealed them."""
    if note is None:
        return None
    content = {name: amount for name, amount in note.items() if name != "seal"}
    if not hmac.compare_digest(str(note.get("seal", "")).encode(), _seal(site, population, content).encode()):
        file = site.vault / f"{population}.duckdb"
        raise VaultDamaged("the note of who was in which release is not what was written.", where=str(file), remedy=RESTORE)
    return Sums(**{name: int(amount) for name, amount in content.items()})


def list_sealed(events: Sequence[Event], population: str) -> set[str]:
    """Return the drawn releases of a population: who is in them is recorded under a seal since their clusters were made."""
    statuses = read_statuses(events).items()
    return {str(name) for name, status in statuses if status.drawn and status.charge and status.charge.population == population}


def find_people_faults(site: Site, population: str, reader: VaultReader, events: Sequence[Event], *, deep: bool) -> Iterator[str]:
    """Yield the records of people that are not as they were sealed; `deep`: the sums are computed again, too."""
    try:
        sums = read_people_sums(site, population, reader.people_note())
    except VaultDamaged as error:
        yield error.what.rstrip(".")
        return
    if sums is None:
        if list_sealed(events, population):
            yield "the note of who was in which release is missing"
    elif deep and sums != reader.sum_people(people_sums_key(site)):
        yield "who was in which release is not what was written"


def _seal(site: Site, population: str, note: Mapping[str, str]) -> str:
    return site.keyed_hash(json.dumps(["people", population, note], sort_keys=True).encode())


# The check that vaults and registry have the same releases: otherwise one of them is an older copy, and people would be charged
# less than they were exposed to. Every population has a separate vault, which records the releases charged to it, so that an
# older registry is detected. Anyone who restores an older one can remove the young vault of a population with it, but not those
# of the populations whose charges it carries: these are asked too, before each charge.


def find_uncharged(population: str, kept: Collection[str], statuses: Mapping[ReleaseId, ReleaseStatus]) -> list[str]:
    """Return the releases that are charged by the vault of a population, and not by the registry."""
    charged = {str(name): status.charge.population for name, status in statuses.items() if status.charge is not None}
    return sorted(name for name in kept if charged.get(name) != population)


def check_vaults(site: Site, population: str, workspace: ReleaseWorkspace) -> None:
    """Refuse to go on where the vault of the population (open as `workspace`), or of one whose charges it carries, and the
    registry do not have the same releases."""
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    before = read_statuses(events)
    vaults = {population: _read_charged(site, population, workspace, events)}
    for name in sorted(list_ancestors(read_caps(site).declared, population) & set(list_files(site.vault))):
        with open_vault(site.vault, name, wait=WAIT_SECONDS) as reader:
            vaults[name] = _read_charged(site, name, reader, events)
    # a charge is recorded before a vault has it, and a draw after; in the vaults of other populations other processes may be at
    # work
    after = list_statuses(site) if len(vaults) > 1 else before
    for name, (charged, is_sealed) in vaults.items():
        file = str(site.vault / f"{name}.duckdb")
        if unknown := find_uncharged(name, charged, after):
            what = f"the vault knows of the charged release {unknown[0]}, and the registry does not."
            remedy = (
                "Was an older registry put back? Restore the last one, together with the vault; until then nothing is charged."
            )
            raise VaultDamaged(what, where=file, remedy=remedy)
        if forgotten := sorted(list_sealed(events, name) - set(charged)):
            raise VaultDamaged(f"the vault does not know of {forgotten[0]}, whose noise was drawn.", where=file, remedy=RESTORE)
        if not is_sealed:
            raise VaultDamaged("which releases were charged is not what was written.", where=file, remedy=RESTORE)


def list_files(vault: Path) -> list[str]:
    """Return the populations that have a vault, whether or not the registry has them."""
    return sorted(file.stem for file in vault.glob("*.duckdb") if not is_unfinished(file))


def _read_charged(
    site: Site, population: str, reader: ReleaseWorkspace | VaultReader, events: Sequence[Event]
) -> tuple[Collection[str], bool]:
    """Return the releases that a vault records as charged, and whether these are the original records: the table is small, and
    asked before each charge."""
    sums = read_people_sums(site, population, reader.people_note())
    if sums is None:
        return reader.charged(), not list_sealed(events, population)
    return reader.charged(), sums.charged == reader.sum_charged(people_sums_key(site))
