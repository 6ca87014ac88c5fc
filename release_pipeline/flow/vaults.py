"""Whether the vaults and the registry know of the same releases: else one of them is an older copy, and people would be charged
less than they were exposed to.

Every population has a vault of its own, which keeps what releases were charged to it: so an older registry is found out. Whoever
puts one back can take the young vault of a population away with it, but not those of the populations whose charges it carries:
these are asked too, before each charge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseStatus, list_statuses
from release_pipeline.policy.populations import list_ancestors
from release_pipeline.store.connections import WAIT_SECONDS, is_unfinished
from release_pipeline.store.holdings import RESTORE, VaultDamaged
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.vault import ReleaseWorkspace, open_rooms


def find_uncharged(population: str, kept: Collection[str], statuses: Mapping[ReleaseId, ReleaseStatus]) -> list[str]:
    """The releases that the vault of a population keeps as charged, and that the registry has not charged to it."""
    charged = {str(name): status.charge.population for name, status in statuses.items() if status.charge is not None}
    return sorted(name for name in kept if charged.get(name) != population)


def find_forgotten(population: str, kept: Collection[str], statuses: Mapping[ReleaseId, ReleaseStatus]) -> list[str]:
    """The releases of a population whose noise was drawn, and that its vault does not keep."""
    mine = {name: status.charge for name, status in statuses.items() if status.drawn is not None and status.charge is not None}
    return sorted(str(name) for name, charge in mine.items() if charge.population == population and str(name) not in kept)


def check_vaults(site: Site, population: str, workspace: ReleaseWorkspace) -> None:
    """Refuse to go on where the vault of the population (open as `workspace`), or of one whose charges it carries, and the
    registry do not know of the same releases."""
    before = list_statuses(site)
    kept = {population: workspace.charged(), **_read_carried(site, population)}
    after = list_statuses(site)  # a charge is noted before a vault keeps it, and a draw after: others may be at work
    for name, releases in kept.items():
        file = str(site.vault / f"{name}.duckdb")
        if unknown := find_uncharged(name, releases, after):
            what = f"the vault knows of the charged release {unknown[0]}, and the registry does not."
            remedy = (
                "Was an older registry put back? Restore the last one, together with the vault; until then nothing is charged."
            )
            raise VaultDamaged(what, where=file, remedy=remedy)
        if forgotten := find_forgotten(name, releases, before):
            raise VaultDamaged(f"the vault does not know of {forgotten[0]}, whose noise was drawn.", where=file, remedy=RESTORE)


def list_files(vault: Path) -> list[str]:
    """The populations that have a vault, whether or not the registry knows of them."""
    return sorted(file.stem for file in vault.glob("*.duckdb") if not is_unfinished(file))


def _read_carried(site: Site, population: str) -> dict[str, Mapping[str, bool]]:
    """What the vaults of the populations keep whose charges this one carries; of one that never was charged there may be none."""
    found: dict[str, Mapping[str, bool]] = {}
    for name in sorted(list_ancestors(read_caps(site).declared, population) & set(list_files(site.vault))):
        with open_rooms(site.vault, name, wait=WAIT_SECONDS) as rooms:
            found[name] = rooms.charged()
    return found
