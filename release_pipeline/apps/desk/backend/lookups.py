"""Policies and releases of a site, kept for some seconds while the site is unchanged, since reading them takes long.

No text has the site's path on its machine, which is no reader's business.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
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

Answer = TypeVar("Answer")
_SECONDS = 20.0  # changes of the clock, or of files elsewhere, show after at most this time
_lock = threading.Lock()


@dataclass(slots=True)
class _Cached:
    """An answer, the stamp of the site that it is for, and its expiry. Other calls wait while it is computed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: Any = None
    until: float = float("-inf")
    answer: Any = None


_cache: dict[tuple[Path, str], _Cached] = {}


@dataclass(frozen=True, slots=True)
class Read:
    """A policy file: its name, and the policy, or the reason why it cannot be read."""

    name: str
    policy: Policy | None
    faults: tuple[str, ...] = ()


def _cached(site: Site, key: str, compute: Callable[[], Answer]) -> Answer:
    """Return the result of `compute`, or that of some seconds ago if the site is unchanged since."""
    with _lock:
        known = _cache.setdefault((site.home, key), _Cached())
    with known.lock:
        stamp = _stamp_site(site)
        if known.stamp != stamp or time.monotonic() >= known.until:
            known.answer = compute()
            known.stamp, known.until = stamp, time.monotonic() + _SECONDS
        return known.answer


def _stamp_site(site: Site) -> tuple[tuple[str, int, int, int], ...]:
    """Return a stamp that changes when a policy, a file next to it, a cap, a setting or the registry does."""
    files = [site.vault / "registry.head", site.populations_file, site.home / "site.yaml", site.home / "trusted-keys.yaml"]
    stamps: list[tuple[str, int, int, int]] = []
    for file in (*files, *sorted((site.home / "policies").rglob("*"))):
        with suppress(OSError):
            status = file.stat()
            stamps.append((str(file), status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def read_policies(site: Site) -> tuple[Read, ...]:
    """Return every policy file of the site, by name; an unreadable one does not affect the others."""
    return _cached(site, "policies", lambda: tuple(_read(site, file) for file in site.policy_files()))


def _read(site: Site, file: Path) -> Read:
    try:
        return Read(file.stem, check_name(load_policy(file), file))
    except ReleasePipelineError as error:
        faults = error.details or (str(error),)
        return Read(file.stem, None, tuple(shorten_path(site, fault) for fault in faults))


@dataclass(frozen=True, slots=True)
class Listing:
    """The lines of `status`, what is broken except what only waits for the officer, and the moment."""

    lines: tuple[Line, ...]
    faults: tuple[str, ...]
    made: str


def list_lines(site: Site) -> Listing:
    """Return the releases as `status` has them, now or some seconds ago if the site is unchanged since."""
    return _cached(site, "lines", lambda: _list_lines(site))


def _list_lines(site: Site) -> Listing:
    lines, broken = list_releases(site)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    faults = tuple(shorten_path(site, fault) for fault in broken if NOT_APPROVED not in fault)
    return Listing(tuple(lines), faults, made)


def describe_line(line: Line) -> Document:
    """Return a line of `status` for a page."""
    return to_json(replace(line, reason=describe_reason(line)))


def describe_reason(line: Line) -> str:
    """Return the reason for a release's state, without commands for which the desk's pages have links."""
    return line.reason.replace(STATUS("release.returned", release=line.release), "").strip()


def shorten_path(site: Site, text: str) -> str:
    """Return the text with every path of the site relative to the site's folder."""
    return text.replace(f"{site.home}/", "").replace(str(site.home), "the site")


def shorten_paths(site: Site, document: Document) -> Document:
    """Return the document with every path of the site relative to the site's folder."""
    return {name: _shorten(site, part) for name, part in document.items()}


def _shorten(site: Site, part: Any) -> Any:
    if isinstance(part, str):
        return shorten_path(site, part)
    if isinstance(part, Mapping):
        return {name: _shorten(site, inner) for name, inner in part.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, list | tuple):
        return [_shorten(site, inner) for inner in part]  # pyright: ignore[reportUnknownVariableType]
    return part
