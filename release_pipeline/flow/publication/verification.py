"""What can be checked of anything that this software made: a package or a dossier, offline; or a site as it is now."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.cap import open_account
from release_pipeline.flow.policies import policy_of, read_caps
from release_pipeline.flow.publication.package import CARD
from release_pipeline.flow.publication.published import TOMBSTONES, package_is_whole
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.states import RETRACTED, SUPERSEDED, ReleaseStatus, read_statuses
from release_pipeline.flow.sums import SUMS, is_whole
from release_pipeline.flow.trust.members import read_trust
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.registry import Event, Registry
from release_pipeline.verify import Finding, Verification, verify_events, verify_path
from release_pipeline.verify import WrongUsage as NotVerifiable
from release_pipeline.verify import examine as examine_path

__all__ = ["examine", "find_officers", "verify", "write_events"]


def verify(path: Path, officers: Collection[str] = ()) -> list[Finding]:
    """The findings about a package or dossier (a folder or a zip), or about a site: its folder, or its registry.duckdb."""
    return examine(path, officers).findings


def examine(path: Path, officers: Collection[str] = ()) -> Verification:
    """Likewise, with what it is that was checked."""
    site, officers = _find_site(path), find_officers(path, officers)
    try:
        if site is None:
            return examine_path(path, officers)
        findings = list(_verify_site(site, officers))
        return Verification(str(path), "site", list(officers), _pinned(site), findings=findings)
    except NotVerifiable as error:
        raise WrongUsage(error.what) from None


def _pinned(site: Site) -> list[str]:
    try:
        return [] if site.officer is None else [site.officer]
    except ReleasePipelineError:  # site.yaml cannot be read, which is among the findings
        return []


def find_officers(path: Path, given: Collection[str]) -> Collection[str]:
    """The fingerprints that the officer's is compared with: those that were given, or else the one that a site pins."""
    site = None if given else _find_site(path)
    return given if site is None or site.officer is None else [site.officer]


def _find_site(path: Path) -> Site | None:
    """The site that a path names, if it is one; in a package, a registry is somebody's trick."""
    home = path.parent if path.name == "registry.duckdb" else path
    return find_site(home) if (home / "registry.duckdb").exists() and not (home / SUMS).exists() else None


def write_events(events: Iterable[Event]) -> str:
    """The chain as a text, an event in each line, for whoever has no registry."""
    return "".join(json.dumps({"body": event.body, "hash": event.hash}) + "\n" for event in events)


def _verify_site(site: Site, officers: Collection[str]) -> Iterator[Finding]:
    """The chain against the vault, what is signed in it, the sums, and every candidate and package against its event."""
    try:
        with site.open_registry(read_only=True) as registry:
            events = registry.events
            yield Finding("ok", f"registry.duckdb: {len(events)} events, sealed by this site; the last is the vault's")
            yield from verify_events(write_events(events).splitlines(), officers)
            yield from _verify_trust(site, registry, officers)
            yield from _verify_sums(site, registry)
    except ReleasePipelineError as error:
        yield Finding("FAIL", error.in_full)
        return
    statuses = read_statuses(events)
    for _, status in sorted(statuses.items()):
        yield from _verify_folders(site, status, events, officers)
    out = [name for name, status in statuses.items() if status.package_hash is not None]
    for path in _find_strangers(site.releases, {site.package(str(name)) for name in out}):
        yield Finding("FAIL", f"releases/{path.relative_to(site.releases)}: no event published it")


def _find_strangers(folder: Path, packages: Collection[Path]) -> Iterator[Path]:
    """What lies in the folder and neither is a package nor a folder of packages."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and any(path in package.parents for package in packages):
            yield from _find_strangers(path, packages)
        elif path not in packages:
            yield path


def _verify_trust(site: Site, registry: Registry, officers: Collection[str]) -> Iterator[Finding]:
    trust = read_trust(site, registry)
    if trust is None:
        yield Finding("FAIL" if officers else "note", "site.yaml: no privacy officer is named, so nothing can be published")
    else:
        yield Finding("ok", f"trusted-keys.yaml: {len(trust.members)} keys, the last list that {trust.officer.name} signed")


def _verify_sums(site: Site, registry: Registry) -> Iterator[Finding]:
    charges = list_charges(registry)
    if not charges:
        return
    caps = read_caps(site)
    for name in sorted({charge.population for charge in charges}):
        last = next(charge for charge in reversed(charges) if charge.population == name)
        account = open_account(caps, policy_of(registry, last.policy_hash), charges)
        words = f"{account.spent} of {account.limit} ({account.unit}) is spent"
        yield Finding("ok" if account.admits() else "FAIL", f"population {name}: {words}")


def _verify_folders(site: Site, status: ReleaseStatus, events: Sequence[Event], officers: Collection[str]) -> Iterator[Finding]:
    if status.candidate_hash is not None:
        whole = is_whole(site.candidate(str(status.id)), status.candidate_hash)
        words = "is what was frozen" if whole else "is not there, or not what was frozen"
        yield Finding("ok" if whole else "FAIL", f"vault/candidates/{status.id}: {words}")
    if status.package_hash is not None:
        folder = site.package(str(status.id))
        whole = package_is_whole(folder, status)
        name = f"releases/{status.id}"
        words = f"is what was published ({status.state})" if whole else "is not there, or not what was published"
        yield Finding("ok" if whole else "FAIL", f"{name}: {words}")
        yield from (Finding("FAIL", f"{name}: {fault}") for fault in _find_faults(folder, status, officers))
        if whole:
            yield from _verify_head(name, folder, events)


def _find_faults(folder: Path, status: ReleaseStatus, officers: Collection[str]) -> Iterator[str]:
    """What is wrong with a package and its tombstones, if it is there."""
    if not folder.is_dir():
        return
    for state in [RETRACTED] * (status.state == RETRACTED) + [SUPERSEDED] * bool(status.successor):
        if not (folder / f"{TOMBSTONES[state]}.json").exists():
            yield f"there is no {TOMBSTONES[state]}.json in it, and it was {state}: the command again puts it back"
    try:
        faults = [found.words for found in verify_path(folder, officers) if found.level == "FAIL"]
    except NotVerifiable:  # nothing of a package is left in it
        return
    yield from (fault for fault in faults if status.state != RETRACTED or ": RETRACTED: " not in fault)


def _verify_head(name: str, folder: Path, events: Sequence[Event]) -> Iterator[Finding]:
    """Whether the event that a package names is in the chain: else that was written anew after the package was made."""
    head = json.loads((folder / CARD).read_text(encoding="utf-8"))["registry_head"]
    if [event.hash for event in events[head["event"] - 1 : head["event"]]] != [head["hash"]]:
        words = f"event {head['event']} is not the one that the package names: the chain was written anew"
        yield Finding("FAIL", f"{name}: {words}")
