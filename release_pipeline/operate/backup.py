"""A backup: one file with all that a site needs, as it was at one moment, while runs go on; and its restoration.

Its manifest finds damage. It proves nothing against somebody who can write to the file, since the vault's key is in it: trust a
backup as you trust the place where it was kept, or its SHA-256, if that was kept elsewhere. So only what `backup` writes is taken
from it, and no code.

Every vault and the registry are held open during the copy, so that no process writes to them meanwhile. Their files are closed
only after the databases are: closing a file frees the locks that this process has on it, including DuckDB's.

The ledger of a backup knows nothing of later charges. A release that it does not know would be drawn again, with other noise for
the same people: a second answer without a charge. So a restore records what it finds of later releases. Nothing is charged, drawn
or published until the officer has signed what must be entered (`survivors.accept`), and no lost release is made under its name
again. A release whose secret is in the backup, and which was not seen published, goes on: the same secret and the same records
give the same bits. When a restored site is replaced again, it passes on what was found then.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.ledger.looks import keep_looks, list_looked
from release_pipeline.ledger.office import CLOCK, REVOKED, Head
from release_pipeline.ledger.policies import read_caps, record_policy
from release_pipeline.ledger.states import (
    APPROVED,
    POLICY,
    PRUNED,
    PUBLISHED,
    PUBLISHING,
    REJECTED,
    REMARKED,
    RETRACTED,
    RETURNED,
    SUPERSEDED,
    ReleaseStatus,
    read_statuses,
)
from release_pipeline.operate.survivors import Card, Survivor, list_later, read_release, read_server, read_survivors
from release_pipeline.plain_files import open_below, open_plain
from release_pipeline.policy.loading.populations import Population, list_ancestors
from release_pipeline.store.database import open_database
from release_pipeline.store.files import appearing, check_output, hash_of_content, locked, make_folder, sync
from release_pipeline.store.ledger import LOST, RESERVED
from release_pipeline.store.registry import RESTORED, RESTORING, Event, Registry, ReleaseId
from release_pipeline.store.registry_copies import write_copy
from release_pipeline.store.registry_server import Server
from release_pipeline.store.site import TOOL, Site
from release_pipeline.store.swap import swapping
from release_pipeline.trust.members import TRUSTED

FORMAT, MANIFEST = "release-pipeline/backup/1", "manifest.json"
_FILES = ("populations.yaml", "site.yaml", "trusted-keys.yaml", "trusted-keys.sig", "registry.duckdb", "registry.duckdb.wal")
_FOLDERS = ("policies", "vault", "releases")
_CODE = frozenset({".py", ".pyc", ".pyd", ".so", ".pth"})  # a site has no such file, however it got there
_PATIENCE = 600.0  # seconds to wait for a run that has a vault open
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Backup:
    """The manifest of a backup: when it was made, the last event then, the SHA-256 of every file, and that of the backup."""

    made: str
    head: Head
    files: Mapping[str, str]
    sha256: str


def write_backup(site: Site, output: Path, *, overwrite: bool = False) -> Backup:
    """Write a backup of the site, whole or not at all, and return its manifest. It is confidential:
    it has the vault, its key, and the secrets of noise that is not drawn yet."""
    check_output(output, endings=(".tar",), overwrite=overwrite)
    if not site.has_registry:
        raise WrongUsage("nothing has happened at this site that could be lost.", where=str(site.home))
    with ExitStack() as files, ExitStack() as held:  # `held` is released first
        held.enter_context(site.publishing_alone())
        for file in _list_vaults(site):
            held.enter_context(open_database(file, wait=_PATIENCE))
        held.enter_context(locked(site.vault / "secrets"))
        registry = held.enter_context(site.open_registry())
        head = Head.of(registry.events[-1])
        made = datetime.now(UTC).isoformat(timespec="seconds")
        with appearing(output) as partial:
            with tarfile.open(fileobj=partial, mode="w") as archive:
                sums = {name: _add(archive, site.home, name, files) for name in _list_files(site.home)}
                if isinstance(site.registry, Server):
                    sums[site.registry_file.name] = _add_copy(archive, registry, site.registry_file.name)
                content = {"format": FORMAT, "made": made, "software": TOOL, "head": json.loads(head.text), "files": sums}
                manifest = (json.dumps(content, indent=2) + "\n").encode()
                info = tarfile.TarInfo(MANIFEST)
                info.size, info.mode = len(manifest), 0o600
                archive.addfile(info, io.BytesIO(manifest))
            partial.seek(0)
            sha256 = hash_of_content(partial)
    return Backup(made, head, sums, sha256)


def _list_vaults(site: Site) -> list[Path]:
    """Return the vaults, successor populations first, in the order in which a run opens them: otherwise it and the backup wait
    for each other."""
    try:
        declared = read_caps(site).declared
    except ReleasePipelineError:  # a site whose caps cannot be read is worth a backup too
        declared = dict[str, Population]()
    return sorted(site.vault.glob("*.duckdb"), key=lambda file: (-len(list_ancestors(declared, file.stem)), file.name))


def read_backup(file: Path, *, sha256: str | None = None) -> Backup:
    """Return the manifest; raises `WrongUsage` unless every file in the backup is as recorded, and none is missing. `sha256`: the
    hash that was printed when it was made, if somebody kept it."""
    try:
        with open_plain(file) as whole, ExitStack() as held:
            digest = hash_of_content(whole)
            if sha256 is not None and digest != sha256.strip().lower():
                raise WrongUsage(
                    f"this is not the backup that was named: its SHA-256 is {digest}.",
                    where=str(file),
                    remedy="Somebody changed it, or it is another one. Nothing was changed.",
                )
            whole.seek(0)
            archive = held.enter_context(tarfile.open(fileobj=whole, mode="r:"))
            members = archive.getmembers()
            *listed, last = members
            manifest: Any = json.loads(_open(archive, last).read())
            sums: dict[str, str] = manifest["files"]
            head = Head(manifest["head"]["event"], manifest["head"]["hash"], manifest["head"]["noted"])
            hashes = {member.name: hash_of_content(_open(archive, member)) for member in listed}
            plain = all(member.isreg() and _is_plain(member.name) for member in members)
            if plain and (strange := [member.name for member in listed if not _belongs(member.name)]):
                raise WrongUsage(
                    f"it has a file that no backup has: {strange[0]!a}.",
                    where=str(file),
                    remedy="Somebody changed it: find out who could. Take another one. Nothing was changed.",
                )
            if (last.name, manifest["format"]) != (MANIFEST, FORMAT) or not plain or len(hashes) != len(listed) or hashes != sums:
                raise ValueError
            return Backup(manifest["made"], head, sums, digest)
    except OSError as error:
        raise WrongUsage(f"the backup cannot be read: {error.strerror or 'it is cut short'}.", where=str(file)) from None
    except (tarfile.TarError, ValueError, KeyError, TypeError):
        raise WrongUsage(
            "this is no backup, or not whole: its files are not those of its manifest.",
            where=str(file),
            remedy="Take another one. Nothing was changed.",
        ) from None


def unpack(file: Path, folder: Path, backup: Backup) -> None:
    """Write the files of a backup to a new folder; raises `WrongUsage` unless they are as they were when it was read."""
    make_folder(folder, mode=0o755)
    with tarfile.open(file, "r:") as archive:
        for member in archive.getmembers()[:-1]:
            _unpack(archive, member, folder / member.name, backup)


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, backup: Backup) -> None:
    make_folder(target.parent, mode=0o700 if member.name.startswith("vault/") else 0o755)
    content, digest = _open(archive, member), hashlib.sha256()
    with os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
        while piece := content.read(_PIECE):
            digest.update(piece)
            new.write(piece)
    if digest.hexdigest() != backup.files.get(member.name):
        raise WrongUsage("the backup was changed while it was read.", where=member.name, remedy="Nothing was changed. Try again.")
    target.chmod(member.mode & 0o666)
    sync(target)


def _list_files(home: Path) -> Iterator[str]:
    """Yield the files that belong to a backup, by their names in the site; files that are just being written have hidden
    names."""
    yield from (name for name in _FILES if (home / name).is_file())
    for folder in _FOLDERS:
        for path in sorted((home / folder).rglob("*")):
            name = path.relative_to(home).as_posix()
            if path.is_file() and not path.is_symlink() and _belongs(name):
                yield name


def _belongs(name: str) -> bool:
    """Return whether `backup` writes files of that name: no code among them."""
    parts = PurePosixPath(name).parts
    if PurePosixPath(name).suffix.lower() in _CODE:
        return False
    hidden = any(part.startswith(".") and part != ".gitignore" for part in parts)
    return name in _FILES or (len(parts) > 1 and parts[0] in _FOLDERS and not hidden)


def _add(archive: tarfile.TarFile, home: Path, name: str, files: ExitStack) -> str:
    """Put a file into the archive, and return its hash."""
    path, (folder, _, inside) = home / name, name.partition("/")
    is_database = ".duckdb" in path.suffixes
    with ExitStack() as now:
        try:
            opened = open_below(home / folder, inside) if inside else open_plain(path)
            content = (files if is_database else now).enter_context(opened)
        except FileNotFoundError:
            what = "this was removed while it was to be copied."
            raise ReleasePipelineError(what, where=str(path), remedy="Take the backup again.") from None
        return _copy(archive, content, name)


def _add_copy(archive: tarfile.TarFile, registry: Registry, name: str) -> str:
    """Put the registry of a server into the archive as a file, and return its hash."""
    with tempfile.TemporaryDirectory() as folder:
        write_copy(registry, file := Path(folder, name))
        with file.open("rb") as content:
            return _copy(archive, content, name)


def _copy(archive: tarfile.TarFile, content: IO[bytes], name: str) -> str:
    status = os.fstat(content.fileno())
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = status.st_size, status.st_mode & 0o666, int(status.st_mtime)
    archive.addfile(info, content)
    content.seek(0)
    return hash_of_content(content)


def _open(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(member)
    if content is None:
        raise ValueError
    return content


def _is_plain(name: str) -> bool:
    """Return whether a name stays within the folder that it is unpacked into."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.as_posix() == name and "\\" not in name


_OUT = (PUBLISHING, PUBLISHED, REJECTED, RETRACTED, SUPERSEDED, LOST)  # the release was judged before, seen by others, or lost
_AGAIN = (TRUSTED, "recovery", REVOKED, CLOCK, REJECTED, REMARKED, RETRACTED, SUPERSEDED, PRUNED)  # people must do these again
_VOTES = (APPROVED, RETURNED)  # the same for candidates; which of the two is not shown, since votes may be blind
_KNOWN = ("policy_hash", "records", "loss", "source")  # recorded of a lost charge


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored; where the former site is now; which releases are lost; which are known only from packages that are not
    believed; what people must do again; and whether all that happened after the backup is known."""

    backup: Backup
    aside: Path | None
    lost: Sequence[Mapping[str, Any]]
    doubted: Sequence[Mapping[str, Any]]
    again: Sequence[str]
    all_known: bool


def describe_restored(done: Restored, home: Path) -> Iterator[str]:
    """Yield lines for a person: what was restored and what the officer does next."""
    yield f"{home}: as it was at {done.backup.made}, up to event {done.backup.head.number}"
    if done.aside is not None:
        yield f"{done.aside}: what was there before; confidential, and yours to delete"
    yield from (f"{entry['release']}: lost; it is never made under this name again" for entry in done.lost)
    yield from (f"done after the backup, and to be done again: {deed}" for deed in done.again)
    if not done.all_known:
        yield "What was charged after the backup is not known from the registry: the officer must find out, and name it."
        yield "Looks at the data after the backup may be lost with it: the cards of later releases say so."
    for entry in done.doubted:
        yield f"{entry['release']}: it may have been charged, but its evidence is not believed: {entry['why']}"
        yield "  The officer decides whether it was charged, in the file that --charged names."
    yield "Nothing is charged or published until the officer has run `restore --accept`."


@dataclass(slots=True)
class _LaterReleases:
    """The known releases after the backup: `lost` ones, and `doubted` ones without a valid signature."""

    lost: dict[ReleaseId, Mapping[str, Any]] = field(default_factory=dict[ReleaseId, Mapping[str, Any]])
    doubted: dict[ReleaseId, Mapping[str, Any]] = field(default_factory=dict[ReleaseId, Mapping[str, Any]])


def restore(
    file: Path, home: Path, *, survived: Iterable[Path] = (), witnessed: Head | None = None, sha256: str | None = None
) -> Restored:
    """Restore a backup to a folder that is new or empty, or in place of a site, which is moved
    aside and never deleted. If it is stopped at any moment, the same command does all of it again.

    `survived`: other folders with a site or packages; `witnessed`: the last event that somebody
    outside knows of; `sha256`: the hash of the backup when it was made."""
    backup, home = read_backup(file, sha256=sha256), home.resolve()
    with swapping(home) as swap:
        if swap.aside is not None:
            _check_site(home)
        unpack(file, swap.staged, backup)
        site = Site(swap.staged, dict(os.environ), in_file=True)
        folders = [*([home] if swap.aside else []), *(folder.resolve() for folder in survived)]
        survivors = read_survivors(site, folders, backup.head)
        replaced = read_server(site, swap.staged, survivors, backup.head)
        later_releases, all_known = _note(site, backup, survivors, witnessed, replaced)
        try:
            swap.finish()
        except OSError as error:
            raise ReleasePipelineError(
                f"the backup cannot be put into its place: {error.strerror}.",
                where=str(home),
                remedy="Nothing was changed. Name a folder whose parent folder may be written to.",
            ) from None
    later = [event for events in list_later(survivors, backup.head) for event in events if _is_done_again(event)]
    again = [
        f"votes on {event.release}" if event.kind in _VOTES else f"{event.kind}{f' of {event.release}' if event.release else ''}"
        for event in later
    ]
    lost, doubted = [*later_releases.lost.values()], [*later_releases.doubted.values()]
    return Restored(backup, swap.aside, lost, doubted, list(dict.fromkeys(again)), all_known)


def _is_done_again(event: Event) -> bool:
    """Return whether people must do again what an event records, since it came after the backup."""
    return event.kind in _AGAIN or (event.kind in _VOTES and event.release is not None)


def _check_site(home: Path) -> None:
    if not any((home / name).exists() for name in ("registry.duckdb", "vault", "policies")):
        raise WrongUsage("something lies here that is no site.", where=str(home), remedy="Name a new folder.")


def _note(
    site: Site, backup: Backup, survivors: Sequence[Survivor], witnessed: Head | None, replaced: Head | None
) -> tuple[_LaterReleases, bool]:
    """Record the restore and what is known of later releases, and return the latter, with whether all is known. `replaced`: the
    last event on the server whose registry goes back to the backup."""
    chains = [survivor.events for survivor in survivors if survivor.events is not None]
    chain = max(chains, key=len, default=())
    with site.open_registry() as registry:
        if (registry.events[-1].number, registry.events[-1].hash) != (backup.head.number, backup.head.hash):
            raise WrongUsage("the registry in the backup does not end as its manifest says.", remedy="Take another backup.")
        later = list_later(survivors, backup.head)
        releases = _find_lost(registry, later, [card for survivor in survivors for card in survivor.cards])
        unexplained = _add_from_vaults(registry, releases, later, survivors)
        for events in chains:
            _note_policies(registry, events, _list_policies(releases) | list_looked(events))
        _note_files(site, registry, survivors, _list_policies(releases))
        for events in later:
            keep_looks(registry, events)
        last, all_known = Head.of(chain[-1]) if chain else backup.head, _is_all_known(survivors, later)
        if witnessed is not None and [event.hash for event in chain[witnessed.number - 1 : witnessed.number]] != [witnessed.hash]:
            last, all_known = max(last, witnessed, key=lambda head: head.number), False
        all_known = all_known and not unexplained
        head = {"event": last.number, "hash": last.hash}
        lost = [*releases.lost.values()]
        content: dict[str, Any] = {"made": backup.made, "last": head, "releases": lost, "all_known": all_known}
        content |= {"doubted": [*releases.doubted.values()]} if releases.doubted else {}
        content |= {"replaces": {"event": replaced.number, "hash": replaced.hash}} if replaced is not None else {}
        registry.add(RESTORING, None, **content)
    return releases, all_known


def _is_all_known(survivors: Sequence[Survivor], later: Sequence[Sequence[Event]]) -> bool:
    """Return whether the events have all that happened: they can be read, their vault records that they are the last, and no
    restore of their own lost some."""
    whole = [len(survivor.events or ()) for survivor in survivors if survivor.is_last]
    longest = max((len(survivor.events or ()) for survivor in survivors), default=0)
    is_gapless = bool(later) and all(event.content["all_known"] for event in later[0] if event.kind == RESTORING)
    return is_gapless and longest in whole


def _add_from_vaults(
    registry: Registry, releases: _LaterReleases, later: Iterable[Sequence[Event]], survivors: Iterable[Survivor]
) -> bool:
    """Add releases that only a vault has: the officer must enter what was charged for them, since vaults are not signed. Returns
    whether there are any."""
    known = {name for name, status in read_statuses(registry.events).items() if status.charge is not None}
    known |= {event.release for events in later for event in events if event.kind == RESERVED and event.release is not None}
    unexplained = {name for survivor in survivors for name in survivor.in_vault} - known
    for name in sorted(unexplained - set(releases.lost) - set(releases.doubted)):
        why = "a vault knows of it, and no registry that is left does"
        releases.doubted[name] = {"release": str(name), "why": why}
    return bool(unexplained)


def _find_lost(registry: Registry, later: Iterable[Sequence[Event]], cards: Iterable[Card]) -> _LaterReleases:
    """Return the releases that must not be made under their names again, with what is known of their charges."""
    statuses, releases = read_statuses(registry.events), _LaterReleases()
    for name, status in statuses.items():
        if status.charge is not None and status.secret is None and status.replaced is None and not status.lost:
            releases.lost[name] = {"release": str(name)}  # another secret may have been made for it since
    for events in later:
        _add_events(releases, events, statuses)
    for card in cards:
        if _is_news(statuses, card.release) and card.release not in releases.lost:
            (releases.doubted if card.doubt else releases.lost).setdefault(card.release, card.entry)
    for name in releases.lost:
        releases.doubted.pop(name, None)
    return releases


def _add_events(releases: _LaterReleases, events: Sequence[Event], statuses: Mapping[ReleaseId, ReleaseStatus]) -> None:
    """Add what the events of one chain record, those of an earlier restore included."""
    for event in events:
        if event.kind == RESTORING:
            for kind in ("releases", "doubted"):
                entries = {read_release(entry["release"]): entry for entry in event.content.get(kind, ())}
                known = releases.lost if kind == "releases" else releases.doubted
                known |= {name: entry for name, entry in entries.items() if name not in known and _is_news(statuses, name)}
        elif event.kind == RESTORED:  # the officer is not asked again about what they denied
            for name in event.content["document"].get("denied", ()):
                releases.doubted.pop(read_release(name), None)
        elif event.release is not None and event.kind == RESERVED:
            charge = {name: event.content[name] for name in _KNOWN if name in event.content}
            if "loss" not in releases.lost.get(event.release, {}):
                releases.lost[event.release] = {"release": str(event.release), **charge}
        elif event.release is not None and event.kind in _OUT and event.release in statuses and _is_news(statuses, event.release):
            releases.lost.setdefault(event.release, {"release": str(event.release)})


def _is_news(statuses: Mapping[ReleaseId, ReleaseStatus], name: ReleaseId) -> bool:
    """Return whether the backup does not know that a release was published, or lost before."""
    return name not in statuses or (statuses[name].package_hash is None and not statuses[name].lost)


def _list_policies(releases: _LaterReleases) -> set[str]:
    """Return the hashes of the policies that lost releases were charged under."""
    return {entry["policy_hash"] for entry in releases.lost.values() if "policy_hash" in entry}


def _list_unknown(registry: Registry, wanted: set[str]) -> set[str]:
    return wanted - {event.content["hash"] for event in registry.events if event.kind == POLICY}


def _note_policies(registry: Registry, chain: Sequence[Event], wanted: set[str]) -> None:
    """Record the policies of lost charges that the backup lacks, as a chain of events has them."""
    for event in chain:
        if event.kind == POLICY and event.content["hash"] in _list_unknown(registry, wanted):
            registry.add(POLICY, **event.content)


def _note_files(site: Site, registry: Registry, survivors: Sequence[Survivor], wanted: set[str]) -> None:
    """Record the policies of lost charges that no chain of events has, as their files are."""
    for survivor in survivors if _list_unknown(registry, wanted) else ():
        other = Site(survivor.home, site.environment)
        for policy in other.read_policies()[0]:
            if policy.canonical_hash() in _list_unknown(registry, wanted):
                record_policy(other, registry, policy)
