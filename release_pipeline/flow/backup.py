"""A backup: one file with all that a site cannot do without, as it was at one moment, while runs go on.

Its manifest finds damage. It proves nothing against whoever can write to the file, for the vault's key is in it: a backup is as
trusted as where it was kept, or as its SHA-256, when that was kept elsewhere. So only what `backup` writes is taken from it, and
nothing that anybody would run.

Every vault and the registry are held open for the time of the copy, so nothing is written to any of them meanwhile. Their files
are closed only after the databases are: closing a file frees the locks that this process has on it, those of DuckDB too.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.files import appearing, check_output
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import TOOL, Site
from release_pipeline.flow.sums import hash_of_content
from release_pipeline.flow.witness import Head
from release_pipeline.plain_files import open_below, open_plain
from release_pipeline.policy.populations import Population, list_ancestors
from release_pipeline.store.connections import open_database
from release_pipeline.store.folders import locked, make_folder, sync
from release_pipeline.store.registry import Registry
from release_pipeline.store.registry_copies import write_copy
from release_pipeline.store.registry_server import Server

FORMAT, MANIFEST = "release-pipeline/backup/1", "manifest.json"
_FILES = ("populations.yaml", "site.yaml", "trusted-keys.yaml", "trusted-keys.sig", "registry.duckdb", "registry.duckdb.wal")
_FOLDERS = ("policies", "vault", "releases")
_CODE = frozenset({".py", ".pyc", ".pyd", ".so", ".pth"})  # nothing of a site is that, whoever has put it there
_PATIENCE = 600.0  # seconds to wait for a run that has a vault open
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Backup:
    """What the manifest of a backup says: when it was made, the last event then, and the SHA-256 of every file; and that of the
    backup itself."""

    made: str
    head: Head
    files: Mapping[str, str]
    sha256: str


def write_backup(site: Site, output: Path, *, overwrite: bool = False) -> Backup:
    """Write a backup of the site, whole or not at all. Confidential: it has the vault, its key, and the secrets of noise that is
    not drawn yet."""
    check_output(output, endings=(".tar",), overwrite=overwrite)
    if not site.has_registry:
        raise WrongUsage("nothing has happened at this site that could be lost.", where=str(site.home))
    with ExitStack() as files, ExitStack() as held:  # what is held is let go first
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
    """Heirs before those whose charges they carry, as a run opens them: else it and the backup wait for each other."""
    try:
        declared = read_caps(site).declared
    except ReleasePipelineError:  # a site whose caps cannot be read is worth a backup too
        declared = dict[str, Population]()
    return sorted(site.vault.glob("*.duckdb"), key=lambda file: (-len(list_ancestors(declared, file.stem)), file.name))


def read_backup(file: Path, *, sha256: str | None = None) -> Backup:
    """The manifest, when every file in the backup is what it says, and nothing is there that no backup has. `sha256`: what was
    told when it was made, if somebody kept that."""
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
            found = {member.name: hash_of_content(_open(archive, member)) for member in listed}
            plain = all(member.isreg() and _is_plain(member.name) for member in members)
            if plain and (strange := [member.name for member in listed if not _belongs(member.name)]):
                raise WrongUsage(
                    f"it has a file that no backup has: {strange[0]!a}.",
                    where=str(file),
                    remedy="Somebody changed it: find out who could. Take another one. Nothing was changed.",
                )
            if (last.name, manifest["format"]) != (MANIFEST, FORMAT) or not plain or len(found) != len(listed) or found != sums:
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
    """The files of a backup in a new folder, as they were when it was read."""
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
    """The files that belong to a backup, by their names in the site; what somebody is just writing is hidden."""
    yield from (name for name in _FILES if (home / name).is_file())
    for folder in _FOLDERS:
        for path in sorted((home / folder).rglob("*")):
            name = path.relative_to(home).as_posix()
            if path.is_file() and not path.is_symlink() and _belongs(name):
                yield name


def _belongs(name: str) -> bool:
    """Whether `backup` writes files of that name: no code among them."""
    parts = PurePosixPath(name).parts
    if PurePosixPath(name).suffix.lower() in _CODE:
        return False
    hidden = any(part.startswith(".") and part != ".gitignore" for part in parts)
    return name in _FILES or (len(parts) > 1 and parts[0] in _FOLDERS and not hidden)


def _add(archive: tarfile.TarFile, home: Path, name: str, files: ExitStack) -> str:
    """Put a file into the archive, and give its hash."""
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
    """Put the registry of a server into the archive as a file, and give its hash."""
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
    """Whether a name stays within the folder that it is unpacked into."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.as_posix() == name and "\\" not in name
