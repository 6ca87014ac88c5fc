"""What settings are tried on, and whether that is a look: which is noted before anything is read.

A look that is noted already, by the same person under the same policy at the same file, comparing the same, is not noted anew as
long as nothing is read for it: what was found then is shown. Before anything is read anew it is noted anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.exploring.looks import On, has_noted, note_look
from release_pipeline.flow.exploring.made_up import make_up
from release_pipeline.flow.exploring.records import Tried, read_like, read_records
from release_pipeline.flow.reading import open_source
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PUBLISHED, SUPERSEDED, read_statuses
from release_pipeline.policy import Policy
from release_pipeline.policy.settings import Axes, Setting
from release_pipeline.verify import examine

Progress = Callable[[str], None]
PUBLIC_STATES = (PUBLISHED, SUPERSEDED)  # of packages whose data anybody may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to know. Exactly one of `like`, `shape` and `source`; `public`: where anybody finds the file `like`;
    `refused`: settings that the ledger would refuse are tried too."""

    like: Path | None = None
    public: str = ""
    shape: bool = False
    source: bool = False
    release: str | None = None
    rows: int | None = None
    axes: Axes = field(default_factory=Axes)
    targets: Sequence[str] = ()
    home: Path | None = None
    by: str = ""
    workers: int | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Ground:
    """What settings are tried on, in `words`. `stamp`: another one where it would be others; empty where only reading tells.
    `read` reads it, and notes the look first where it has to be noted."""

    words: str
    is_look: bool
    stamp: str
    read: Callable[[], Tried]


def find_ground(
    policy: Policy, asked: Asked, site: Site | None, settings: Sequence[Setting], file: Path, progress: Progress
) -> Ground:
    """What is asked for. No record is read yet; a look is noted."""
    if asked.shape:
        return Ground(f"a table made up of the shape in {file.name}", False, "shape", partial(make_up, policy, rows=asked.rows))
    compared = [*(setting.words for setting in settings), *(f"the least epsilon for {text}" for text in asked.targets)]
    if asked.like is not None:
        read = partial(read_like, policy, asked.like, release=asked.release, progress=progress)
        if asked.like.is_dir():
            words, digest = _check_package(site, asked.like)
            read = partial(read_like, policy, asked.like, release=None, progress=progress)
            return Ground(words, False, digest, read)
        if asked.public:
            return Ground(f"{asked.like.name}, which is public: {asked.public}", False, _hash_file(asked.like), read)
        look = _Look(_need_site(site, asked), policy, asked.by, "file", _hash_look(site, asked.like), compared)
        look.note_once()
        return Ground(f"{asked.like.name}, which nobody says is public", True, look.digest, partial(look.read, read))
    if site is None:
        raise WrongUsage(
            "this policy lies in no site: nobody could note the look.",
            where=str(file),
            remedy="Put it in the policies/ of a site, or use --like with a public file, or --shape.",
        )
    release = asked.release or next(iter(policy.release_names), None)
    release = None if policy.source.release_column is None else release
    look = _Look(site, policy, asked.by, "source", "", compared)
    look.note_once()
    source = open_source(site, policy)
    words = f"the source{f', release {release}' if release is not None else ''}"
    read = partial(read_records, policy, source, source.name, release=release, progress=progress)
    return Ground(words, True, source.stamp, partial(look.read, read))


class _Look:
    """A look that is noted when it is taken, and once."""

    def __init__(self, site: Site, policy: Policy, by: str, on: On, digest: str, compared: Sequence[str]) -> None:
        self.digest = digest
        self._has = partial(has_noted, site, policy, by=by, on=on, digest=digest, compared=compared)
        self._note = partial(note_look, site, policy, by=by, on=on, digest=digest, compared=compared)
        self._is_noted = False

    def note_once(self) -> None:
        """The look is in the registry, by now or from before."""
        if not self._has():
            self._note()
            self._is_noted = True

    def read(self, read: Callable[[], Tried]) -> Tried:
        """The records, after the look at them is noted: one from before is none of this reading."""
        if not self._is_noted:
            self._note()
            self._is_noted = True
        return read()


def _check_package(site: Site | None, folder: Path) -> tuple[str, str]:
    """What a folder is, if it is a package of this site, as it was published, and its hash."""
    if site is not None:
        with site.open_registry(read_only=True) as registry:
            statuses = read_statuses(registry.events)
        for release, status in statuses.items():
            if site.package(str(release)).resolve() == folder.resolve() and status.state in PUBLIC_STATES:
                found = examine(folder)
                if found.package_hash == status.package_hash and not found.failed:
                    return f"the published package {release}", found.package_hash or ""
                break
    raise WrongUsage(
        "this folder is no package of this site, as it was published.",
        where=str(folder),
        remedy="Name a folder of releases/, or a file.",
    )


def _need_site(site: Site | None, asked: Asked) -> Site:
    if site is None:
        raise WrongUsage(
            "nobody says that this file is public, and the policy lies in no site that could note the look.",
            where=str(asked.like),
            remedy="Say where anybody finds it with --public WHERE, or put the policy in the policies/ of a site.",
        )
    return site


def _hash_file(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _hash_look(site: Site | None, file: Path) -> str:
    """What tells whoever has the file that it was this one, and nobody else anything: its plain hash would tell guesses apart."""
    return "" if site is None else site.keyed_hash(f"looked at: {_hash_file(file)}".encode())
