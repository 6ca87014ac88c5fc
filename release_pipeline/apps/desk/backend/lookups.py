"""What takes long to find out of a site's policies and releases, kept until something of the site changes, and for a few seconds
at most; without where the site lies on its machine, which is no reader's business."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from release_pipeline.apps.desk.backend.calls import Document
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.operate.overview import Line, list_releases
from release_pipeline.policy import Policy, load_policy
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.loading.load import check_name
from release_pipeline.sentences import STATUS
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import NOT_APPROVED

Found = TypeVar("Found")
_SECONDS = 20.0  # what depends on the clock, or on files elsewhere, shows so late
_MOST = 200
_lock = threading.Lock()


@dataclass(slots=True)
class _Kept:
    """What was found once, if anything was: for which stamp, and when. Who asks while it is looked for waits for that."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: Any = None
    until: float = float("-inf")
    found: Any = None


_kept: dict[tuple[Path, Hashable], _Kept] = {}


@dataclass(frozen=True, slots=True)
class Read:
    """A policy file: its name, and the policy, or why it cannot be read."""

    name: str
    policy: Policy | None
    faults: tuple[str, ...] = ()


def keep(
    site: Site, key: Hashable, find: Callable[[], Found], *, stamp: Callable[[], Any] | None = None, seconds: float = _SECONDS
) -> Found:
    """What `find` gives, or gave some seconds ago if nothing was changed since: of the site, unless another `stamp` says so."""
    with _lock:
        if len(_kept) >= _MOST:
            _kept.clear()
        known = _kept.setdefault((site.home, key), _Kept())
    with known.lock:
        now = stamp_site(site) if stamp is None else stamp()
        if known.stamp != now or time.monotonic() >= known.until:
            known.found = find()
            known.stamp, known.until = now, time.monotonic() + seconds
        return known.found


def stamp_site(site: Site) -> tuple[tuple[str, int, int, int], ...]:
    """What is another one when a policy, a file beside it, a cap, a setting or the registry is another."""
    files = [site.vault / "registry.head", site.populations_file, site.home / "site.yaml", site.home / "trusted-keys.yaml"]
    found: list[tuple[str, int, int, int]] = []
    for file in (*files, *sorted((site.home / "policies").rglob("*"))):
        try:
            known = file.stat()
        except OSError:
            continue
        found.append((str(file), known.st_ino, known.st_mtime_ns, known.st_size))
    return tuple(found)


def read_policies(site: Site) -> tuple[Read, ...]:
    """Every policy file of the site, by name; one that cannot be read takes no other down."""
    return keep(site, "policies", lambda: tuple(_read(site, file) for file in site.policy_files()))


def _read(site: Site, file: Path) -> Read:
    try:
        return Read(file.stem, check_name(load_policy(file), file))
    except ReleasePipelineError as error:
        told = error.details or (str(error),)
        return Read(file.stem, None, tuple(shorten_place(site, words) for words in told))


@dataclass(frozen=True, slots=True)
class Listing:
    """The lines of `status`, and what is broken."""

    lines: tuple[Line, ...]
    broken: tuple[str, ...]
    made: str

    @property
    def faults(self) -> tuple[str, ...]:
        """What is broken, without what waits for the officer alone: she and its steward are told of that."""
        return tuple(words for words in self.broken if NOT_APPROVED not in words)

    @property
    def unapproved(self) -> tuple[str, ...]:
        """What waits for the officer."""
        return tuple(words for words in self.broken if NOT_APPROVED in words)


def list_lines(site: Site) -> Listing:
    """As `status` has them: as of now, or of a few seconds ago if nothing was changed since."""
    return keep(site, "lines", lambda: _list_lines(site))


def _list_lines(site: Site) -> Listing:
    lines, broken = list_releases(site)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return Listing(tuple(lines), tuple(shorten_place(site, words) for words in broken), made)


def describe_line(line: Line) -> Document:
    """A line for a page."""
    return to_json(replace(line, reason=tell_reason(line)))


def tell_reason(line: Line) -> str:
    """Why it is as it is, without the commands for what the desk itself can do: its pages have links for that."""
    return line.reason.replace(STATUS("release.returned", release=line.release), "").strip()


def shorten_place(site: Site, words: str) -> str:
    """The words with every path of the site as it is from the site's folder."""
    return words.replace(f"{site.home}/", "").replace(str(site.home), "the site")


def shorten_places(site: Site, document: Document) -> Document:
    """Likewise of every text in a document."""
    return {name: _shorten(site, part) for name, part in document.items()}


def _shorten(site: Site, part: Any) -> Any:
    if isinstance(part, str):
        return shorten_place(site, part)
    if isinstance(part, Mapping):
        return {name: _shorten(site, inner) for name, inner in part.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, list | tuple):
        return [_shorten(site, inner) for inner in part]  # pyright: ignore[reportUnknownVariableType]
    return part
