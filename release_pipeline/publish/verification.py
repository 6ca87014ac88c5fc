"""Checks of anything that this software made: a package or a dossier, offline; or a site as it is now."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, StoreBusy, WrongUsage
from release_pipeline.ledger.office import Head, read_office
from release_pipeline.ledger.policies import open_population, policy_of, read_caps
from release_pipeline.ledger.states import RETRACTED, SUPERSEDED, ReleaseStatus, list_statuses, read_statuses
from release_pipeline.pipeline.checkpoints import find_faults
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.vaults import find_people_faults, find_uncharged, list_files
from release_pipeline.policy import Policy
from release_pipeline.publish.delivery import TOMBSTONES, package_is_whole
from release_pipeline.publish.package import CARD
from release_pipeline.store.database import is_unfinished
from release_pipeline.store.files import SUMS, is_whole
from release_pipeline.store.ledger import RESERVED, find_budget_faults, list_charges, list_populations
from release_pipeline.store.registry import Event, Registry
from release_pipeline.store.site import Site, find_site
from release_pipeline.store.swap import find_left, is_stopped
from release_pipeline.store.vault_files import VaultReader, open_vault
from release_pipeline.trust.members import read_trust
from release_pipeline.trust.revocation import list_public
from release_pipeline.verifier.command import examine as examine_path
from release_pipeline.verifier.command import verify_events, verify_path
from release_pipeline.verifier.documents import WrongUsage as NotVerifiable
from release_pipeline.verifier.findings import Finding, Verification
from release_pipeline.verifier.office import Office

PATIENCE = 5.0  # seconds that a check waits for a vault that another process works with


def verify(path: Path, officers: Collection[str] = (), *, deep: bool = False) -> list[Finding]:
    """Return the findings about a package or dossier (a folder or a zip), or about a site: its folder, or its registry.duckdb."""
    return examine(path, officers, deep=deep).findings


def examine(
    path: Path,
    officers: Collection[str] = (),
    revocations: str = "",
    succession: str = "",
    *,
    deep: bool = False,
    since: Head | None = None,
    beside: str = "",
) -> Verification:
    """Return the findings, with the kind of what was checked. `revocations`: a file or address of the list of revoked keys, for a
    package or dossier: a site has its own. `succession`: the same for an officers.json. `deep`: hash every table of a site's
    vault again. `since`: an event that somebody outside has witnessed, which a site or a dossier must have. `beside`: another
    package or dossier, for a package or dossier."""
    site, officers = _find_site(path), find_officers(path, officers)
    try:
        if site is None:
            if deep:
                raise WrongUsage("--deep is about a site, and this is none.", where=str(path))
            witnessed = None if since is None else (since.number, since.hash, since.noted)
            return examine_path(path, officers, revocations, succession, witnessed, beside)
        if revocations or succession:
            raise WrongUsage(
                "a site knows its officers and what it revoked.",
                where=str(path),
                remedy="Leave --revocations and --officers out.",
            )
        if beside:
            raise WrongUsage(
                "--beside compares packages and dossiers, and this is a site.",
                where=str(path),
                remedy="Make a dossier of the site's last release, and compare that.",
            )
        findings = list(_verify_site(site, officers, deep=deep, since=since))
        return Verification(str(path), "site", list(officers), _pinned(site), findings=findings)
    except NotVerifiable as error:
        raise WrongUsage(error.what) from None


def _pinned(site: Site) -> list[str]:
    try:
        return [] if site.officer is None else [site.officer]
    except ReleasePipelineError:  # site.yaml cannot be read, which is among the findings
        return []


def find_officers(path: Path, given: Collection[str]) -> Collection[str]:
    """Return the fingerprints that the officer's is compared with: the given ones, or else the one that a site pins."""
    site = None if given else _find_site(path)
    return given if site is None or site.officer is None else [site.officer]


def _find_site(path: Path) -> Site | None:
    """Return the site that a path names, if it is one; in a package, a registry is somebody's trick."""
    home = path.parent if path.name == "registry.duckdb" else path
    if is_stopped(home):
        return find_site(home)  # it raises an error with the reason
    is_begun = any((home / name).exists() for name in ("registry.duckdb", "vault/registry.head"))
    return find_site(home) if is_begun and not (home / SUMS).exists() else None


def write_events(events: Iterable[Event]) -> str:
    """Return the chain as a text, an event in each line, for readers without a registry."""
    return "".join(json.dumps({"body": event.body, "hash": event.hash}) + "\n" for event in events)


def _verify_site(site: Site, officers: Collection[str], *, deep: bool, since: Head | None) -> Iterator[Finding]:
    """Yield the checks of the chain against the vault, its signatures and sums, and every candidate and package against its
    event."""
    try:
        with site.open_registry(read_only=True) as registry:
            events = registry.events
            yield Finding("ok", f"{site.registry.name}: {len(events)} events, sealed by this site; the last is the vault's")
            yield from verify_events(write_events(events).splitlines(), officers)
            yield from _verify_trust(site, registry, officers)
            yield from _verify_public(site, events)
            office = read_office(events)
            officers = _with_chain(officers, office)
            yield from _verify_sums(site, registry)
            name = site.registry.name
            yield from (Finding("FAIL", f"{name}: {fault}") for fault in find_budget_faults(registry))
            if since is not None:
                yield _verify_witnessed(name, events, since)
            hashes = {event.content["policy_hash"] for event in events if event.kind == RESERVED}
            charged = {digest: policy_of(registry, digest) for digest in sorted(hashes)}
    except ReleasePipelineError as error:
        yield Finding("FAIL", error.in_full)
        return
    if (left := find_left(site.home)).exists():
        words = "left of a restore that was stopped, and as confidential as the vault: the same `restore` again clears it away"
        yield Finding("note", f"{left.name}: {words}")
    statuses = read_statuses(events)
    for population in list_populations(events):
        yield from _verify_vault(site, population, events, charged, deep=deep)
    for population in sorted(set(list_files(site.vault)) - set(list_populations(events))):
        yield from _verify_stranger(site, population)
    for _, status in sorted(statuses.items()):
        yield from _verify_folders(site, status, events, officers)
    out = [name for name, status in statuses.items() if status.package_hash is not None]
    known = {site.package(str(name)) for name in out} | {site.releases / name for name in list_public(events)}
    for path in _find_strangers(site.releases, known):
        yield Finding("FAIL", f"releases/{path.relative_to(site.releases)}: no event published it")


def _verify_witnessed(name: str, events: Sequence[Event], since: Head) -> Finding:
    if [event.hash for event in events[since.number - 1 : since.number]] == [since.hash]:
        return Finding("ok", f"{name}: event {since.number} is the one that was witnessed")
    words = f"event {since.number} is not the one that was witnessed: the registry was written anew, or an older copy put back"
    return Finding("FAIL", f"{name}: {words}")


def _verify_vault(
    site: Site, population: str, events: Sequence[Event], charged: Mapping[str, Policy], *, deep: bool
) -> Iterator[Finding]:
    """Yield the checks of a population's file: that it exists, and has what the events record of each release that was not
    pruned."""
    name = f"vault/{population}.duckdb"
    if not (site.vault / f"{population}.duckdb").is_file() or is_unfinished(site.vault / f"{population}.duckdb"):
        yield Finding("FAIL", f"{name}: it is missing, or cut short: restore it from a backup")
        return
    statuses = read_statuses(events).values()
    drawn = [status for status in statuses if status.drawn and status.charge and status.charge.population == population]
    try:
        with open_vault(site.vault, population, wait=PATIENCE) as reader:
            kept, faults = reader.charged(), list(find_people_faults(site, population, reader, events, deep=deep))
            faults += _find_uncharged(site, population, kept)
            for status in drawn:
                if str(status.id) not in kept:
                    faults.append(f"{status.id}: who was in it is missing")
                if not status.pruned:
                    faults += [
                        f"{status.id}: {fault}" for fault in _find_workspace_faults(site, reader, status, charged, deep=deep)
                    ]
    except StoreBusy:
        yield Finding("note", f"{name}: another process is working with it, so its tables were not looked at")
        return
    except ReleasePipelineError as error:
        yield Finding("FAIL", f"{name}: {error.what} Restore it from a backup.")
        return
    yield from (Finding("FAIL", f"{name}: {fault}") for fault in faults)
    if not faults:
        looked = "every table is what its sealed note says" if deep else "notes sealed by this site, and their tables there"
        yield Finding("ok", f"{name}: {len(drawn)} releases; {looked}")


def _verify_stranger(site: Site, population: str) -> Iterator[Finding]:
    """Yield the check of a population's file without charges in the registry: a release may have begun there, and no more."""
    name = f"vault/{population}.duckdb"
    try:
        with open_vault(site.vault, population, wait=PATIENCE) as reader:
            yield from (Finding("FAIL", f"{name}: {fault}") for fault in _find_uncharged(site, population, reader.charged()))
    except StoreBusy:
        yield Finding("note", f"{name}: another process is working with it, so it was not looked at")
    except ReleasePipelineError as error:
        yield Finding("FAIL", f"{name}: {error.what} Restore it from a backup.")


def _find_uncharged(site: Site, population: str, kept: Collection[str]) -> Iterator[str]:
    """Yield the releases that a vault has and the registry does not, as it is now: a run may have charged one meanwhile."""
    for release in find_uncharged(population, kept, list_statuses(site)) if kept else ():
        yield f"{release}: it was charged, and the registry does not know that: an older registry was put back"


def _find_workspace_faults(
    site: Site, reader: VaultReader, status: ReleaseStatus, charged: Mapping[str, Policy], *, deep: bool
) -> Iterator[str]:
    workspace = reader.open_workspace(status.id.workspace)
    if workspace is None:
        yield "its tables are missing, and no event says that they were pruned"
        return
    context = StageContext(site, charged[status.policy_hash], status.id)
    yield from find_faults(context, workspace, str(status.drawn), deep=deep)


def _find_strangers(folder: Path, packages: Collection[Path]) -> Iterator[Path]:
    """Yield the paths in the folder that are neither a package nor a folder of packages."""
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


def _with_chain(officers: Collection[str], office: Office | None) -> Collection[str]:
    """Return the officers with those who came before and after them: a package names the one of its day."""
    chain = office.chain if office is not None and not office.faults else ()
    return {*officers, *chain} if set(chain) & set(officers) else officers


def _verify_public(site: Site, events: Sequence[Event]) -> Iterator[Finding]:
    """Yield the checks that the public files of the office are as they were last signed."""
    for name, text in list_public(events).items():
        file = site.releases / name
        try:
            same = file.read_bytes() == text.encode()
        except OSError:
            same = False
        words = "is the last that was signed" if same else "is not there, or not the last that was signed: `officer revoke` again"
        yield Finding("ok" if same else "FAIL", f"releases/{name}: {words}")


def _verify_sums(site: Site, registry: Registry) -> Iterator[Finding]:
    charges = list_charges(registry)
    if not charges:
        return
    caps = read_caps(site)
    for name in sorted({charge.population for charge in charges}):
        last = next(charge for charge in reversed(charges) if charge.population == name)
        account = open_population(caps, policy_of(registry, last.policy_hash).population, charges)
        words = f"{account.spent} of {account.limit} ({account.unit}) is spent"
        words += ": over the cap, so nothing more is charged" * (not account.admits())
        yield Finding("ok" if account.admits() else "FAIL", f"population {name}: {words}")


def _verify_folders(site: Site, status: ReleaseStatus, events: Sequence[Event], officers: Collection[str]) -> Iterator[Finding]:
    yield from _verify_candidate(site, status)
    if status.package_hash is not None:
        folder, name, whole = site.package(str(status.id)), f"releases/{status.id}", _verify_package(site, status)
        yield whole
        yield from (Finding("FAIL", f"{name}: {fault}") for fault in _find_faults(folder, status, officers))
        if whole.level == "ok":
            yield from _verify_head(name, folder, events)


def _verify_candidate(site: Site, status: ReleaseStatus) -> Iterator[Finding]:
    if status.candidate_hash is not None:
        whole = is_whole(site.candidate(str(status.id)), status.candidate_hash)
        words = "is what was frozen" if whole else "is not there, or not what was frozen"
        yield Finding("ok" if whole else "FAIL", f"vault/candidates/{status.id}: {words}")


def _verify_package(site: Site, status: ReleaseStatus) -> Finding:
    whole = package_is_whole(site.package(str(status.id)), status)
    words = f"is what was published ({status.state})" if whole else "is not there, or not what was published"
    return Finding("ok" if whole else "FAIL", f"releases/{status.id}: {words}")


def _find_unburied(folder: Path, status: ReleaseStatus) -> Iterator[str]:
    """Yield the tombstones that are missing in a package, if it is there."""
    if folder.is_dir():
        for state in [RETRACTED] * (status.state == RETRACTED) + [SUPERSEDED] * bool(status.successor):
            if not (folder / f"{TOMBSTONES[state]}.json").exists():
                yield f"there is no {TOMBSTONES[state]}.json in it, and it was {state}: the command again puts it back"


def _find_faults(folder: Path, status: ReleaseStatus, officers: Collection[str]) -> Iterator[str]:
    """Yield the faults of a package and its tombstones, if it is there."""
    if not folder.is_dir():
        return
    yield from _find_unburied(folder, status)
    try:
        faults = [finding.words for finding in verify_path(folder, officers) if finding.level == "FAIL"]
    except NotVerifiable:  # nothing of a package is left in it
        return
    yield from (fault for fault in faults if status.state != RETRACTED or ": RETRACTED: " not in fault)


def _verify_head(name: str, folder: Path, events: Sequence[Event]) -> Iterator[Finding]:
    """Yield the check that the event that a package names is in the chain: otherwise the chain was written again after the
    package was made."""
    head = json.loads((folder / CARD).read_text(encoding="utf-8"))["registry_head"]
    if [event.hash for event in events[head["event"] - 1 : head["event"]]] != [head["hash"]]:
        words = f"event {head['event']} is not the one that the package names: the chain was written anew"
        yield Finding("FAIL", f"{name}: {words}")
