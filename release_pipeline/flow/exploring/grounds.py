"""What settings are tried on, and whether that is a look: which is noted before anything is read.

A look that is noted already, by the same person under the same policy at the same file, comparing the same, is not noted anew as
long as nothing is read for it: what was found then is shown. Before anything is read anew it is noted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from release_pipeline.errors import SourceError, WrongUsage
from release_pipeline.flow.exploring.looks import On, has_noted, note_look, note_public, say_compared
from release_pipeline.flow.exploring.made_up import make_up
from release_pipeline.flow.exploring.origins import (
    find_home,
    find_look_site,
    find_source_file,
    find_source_like,
    hash_content,
    hash_file,
    list_file_origins,
    list_origins,
)
from release_pipeline.flow.exploring.records import Tried, find_data, read_like, read_records
from release_pipeline.flow.site import Site, find_site
from release_pipeline.flow.sources import open_source
from release_pipeline.flow.states import PUBLISHED, SUPERSEDED, read_statuses
from release_pipeline.policy import Policy
from release_pipeline.policy.settings import Axes, Setting
from release_pipeline.verify import examine

Progress = Callable[[str], None]
PUBLIC_STATES = (PUBLISHED, SUPERSEDED)  # of packages whose data anybody may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to know. Exactly one of `like`, `shape` and `source`; `public`: where anybody finds the file `like`;
    `refused`: settings that the ledger would refuse are tried too; `output`: the page that will be written."""

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
    output: Path | None = None
    overwrite: bool = False

    @property
    def is_look(self) -> bool:
        """Whether it is one at confidential records: at the source, or at a file that nobody says is public."""
        return self.source or (self.like is not None and not self.public and not self.like.is_dir())


@dataclass(frozen=True, slots=True)
class Ground:
    """What settings are tried on, in `words`. `stamp`: another one where it would be others; empty where only reading tells.
    `read` reads it, and notes the look first where it has to be noted."""

    words: str
    is_look: bool
    stamp: str
    read: Callable[[], Tried]


def find_site_of(policy: Policy, asked: Asked, site: Site | None, file: Path) -> Site | None:
    """The site that is asked, and in which a look is noted: of a look the one that the policy in `file`, and what is looked at,
    lie in. `site`: the one that the ledger is asked of."""
    if not asked.is_look:
        return site
    if asked.like is not None:
        found = find_look_site([file, asked.like], asked.home)
        remedy = "Say where anybody finds it with --public WHERE, or put the policy in the policies/ of a site."
        what, where = "nobody says that this file is public, and the policy lies in no site that could note the look.", asked.like
    else:
        found = find_look_site([file], asked.home)
        source = None if found is None else find_source_file(found, policy.source)
        found = found if source is None else find_look_site([file, source], asked.home)
        remedy = "Put it in the policies/ of a site, or use --like with a public file, or --shape."
        what, where = "this policy lies in no site: nobody could note the look.", file
    if found is None:
        raise WrongUsage(what, where=str(where), remedy=remedy)
    return found


def find_ground(
    policy: Policy, asked: Asked, site: Site | None, settings: Sequence[Setting], file: Path, progress: Progress
) -> Ground:
    """What is asked for. No record is read yet; a look is noted, and so is that somebody says that a file is public."""
    if asked.shape:
        return Ground(f"a table made up of the shape in {file.name}", False, "shape", partial(make_up, policy, rows=asked.rows))
    compared = say_compared([setting.words for setting in settings], asked.targets)
    if asked.like is not None:
        read = partial(read_like, policy, asked.like, release=asked.release, progress=progress)
        if asked.like.is_dir():
            data = find_data(asked.like)
            seen = _see(data)
            words, digest = _check_package(site, asked.like)
            read = partial(read_like, policy, asked.like, release=None, progress=progress)
            return Ground(words, False, digest, partial(_read_seen, data, seen, read))
        seen = _see(asked.like)
        read = partial(_read_seen, asked.like, seen, read)
        if asked.public:
            digest = _note_public(policy, asked, asked.like, site, file, compared)
            return Ground(f"{asked.like.name}, which is public, as {asked.by} said: {asked.public}", False, digest, read)
        assert site is not None  # noqa: S101  for the type checker: a look has one
        origins = list_file_origins(site, asked.like)
        look = _Look(site, policy, asked.by, "file", origins, compared, digest=origins[-1])
        look.note_once()
        return Ground(f"{asked.like.name}, which nobody says is public", True, look.digest, partial(look.read, read))
    assert site is not None  # noqa: S101  likewise
    release = asked.release or next(iter(policy.release_names), None)
    release = None if policy.source.release_column is None else release
    look = _Look(site, policy, asked.by, "source", list_origins(site, policy.source), compared)
    look.note_once()
    source = open_source(site, policy)
    words = f"the source{f', release {release}' if release is not None else ''}"
    read = partial(read_records, policy, source, source.name, release=release, progress=progress)
    return Ground(words, True, source.stamp, partial(look.read, read))


def _see(file: Path) -> tuple[object, ...]:
    """What a file has, and what it is: by it another one in its place is known, and one that was changed."""
    known = file.stat()
    return known.st_dev, known.st_ino, known.st_mtime_ns, known.st_ctime_ns, hash_file(file)


def _read_seen(file: Path, seen: tuple[object, ...], read: Callable[[], Tried]) -> Tried:
    """The records of a file that is the one which was seen before: what was noted or examined is what was read."""
    tried = read()
    if _see(file) != seen:
        raise SourceError("the file was changed while it was read.", where=str(file), remedy="Run it again.")
    return tried


def _note_public(policy: Policy, asked: Asked, like: Path, site: Site | None, file: Path, compared: Sequence[str]) -> str:
    """The hash of a file that is public, as somebody says: refused where a site of the policy, of the file or of the ledger knows
    better, and noted where the policy lies, and where the ledger is."""
    homes = [None if site is None else site.home, find_home(file), find_home(like)]
    sites = {home.resolve(): find_site(home) for home in homes if home is not None}
    for known in sites.values():
        check_public(known, like)
    noting = {home.resolve() for home in homes[:2] if home is not None}
    for home, known in sites.items():
        if home in noting:
            digest = hash_content(known, like)
            note_public(known, policy, by=asked.by, where=asked.public, digest=digest, compared=compared)
    return hash_file(like)


def check_public(site: Site, file: Path) -> None:
    """Refuse to take a file for public that this site knows as confidential."""
    if why := find_source_like(site, file, strict=True):
        raise WrongUsage(
            f"this file is not public: {why}. Nothing was read.",
            where=str(file),
            remedy="Leave --public out: then it is a look, which is noted and told.",
        )


class _Look:
    """A look that is noted when it is taken, and once."""

    def __init__(
        self, site: Site, policy: Policy, by: str, on: On, origins: Sequence[str], compared: Sequence[str], *, digest: str = ""
    ) -> None:
        self.digest = digest
        self._has = partial(has_noted, site, policy, by=by, on=on, digest=digest, compared=compared, origins=origins)
        self._note = partial(note_look, site, policy, by=by, on=on, digest=digest, compared=compared, origins=origins)
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
