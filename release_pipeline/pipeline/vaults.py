"""What the vaults of a site hold, and who was in which charged release, held against the registry.

Who was in which charged release, under the seal of the vault's key: sums over rows that outlive the schemas of their releases,
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


def find_people_faults(site: Site, population: str, reader: VaultReader, events: Sequence[Event], *, deep: bool) -> Iterator[str]:
    """What of the people is not as it was sealed; `deep`: the sums are made again, too."""
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


# Whether the vaults and the registry know of the same releases: else one of them is an older copy,
# and people would be charged less than they were exposed to.
#
# Every population has a vault of its own, which keeps what releases were charged to it: so an older
# registry is found out. Whoever puts one back can take the young vault of a population away with
# it, but not those of the populations whose charges it carries: these are asked too, before each
# charge.


def find_uncharged(population: str, kept: Collection[str], statuses: Mapping[ReleaseId, ReleaseStatus]) -> list[str]:
    """The releases that the vault of a population keeps as charged, and that the registry has not charged to it."""
    charged = {str(name): status.charge.population for name, status in statuses.items() if status.charge is not None}
    return sorted(name for name in kept if charged.get(name) != population)


def check_vaults(site: Site, population: str, workspace: ReleaseWorkspace) -> None:
    """Refuse to go on where the vault of the population (open as `workspace`), or of one whose charges it carries, and the
    registry do not know of the same releases."""
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    before = read_statuses(events)
    vaults = {population: _read_charged(site, population, workspace, events)}
    for name in sorted(list_ancestors(read_caps(site).declared, population) & set(list_files(site.vault))):
        with open_vault(site.vault, name, wait=WAIT_SECONDS) as reader:
            vaults[name] = _read_charged(site, name, reader, events)
    # a charge is noted before a vault keeps it, and a draw after; in the vaults of other populations others may be at work
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
    """The populations that have a vault, whether or not the registry knows of them."""
    return sorted(file.stem for file in vault.glob("*.duckdb") if not is_unfinished(file))


def _read_charged(
    site: Site, population: str, reader: ReleaseWorkspace | VaultReader, events: Sequence[Event]
) -> tuple[Collection[str], bool]:
    """The releases that a vault keeps as charged, and whether these are the ones that it was given: the table is small, and
    asked before each charge."""
    sums = read_people_sums(site, population, reader.people_note())
    if sums is None:
        return reader.charged(), not list_sealed(events, population)
    return reader.charged(), sums.charged == reader.sum_charged(people_sums_key(site))
