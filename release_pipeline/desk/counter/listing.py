"""The releases of a site for lists and pages, looked up at most every few seconds: whether folders are what was frozen takes a
hash of each."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release_pipeline.desk.counter.calls import Document
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.overview import Line, list_releases
from release_pipeline.flow.trust.approvals import NOT_APPROVED
from release_pipeline.policy.documents import to_json
from release_pipeline.sentences import STATUS

_SECONDS = 20.0  # what changed in the registry or the policies shows at once, what became of folders and timetables so late


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


_lock = threading.Lock()
_found: dict[Path, tuple[Any, float, Listing]] = {}


def list_lines(site: Site) -> Listing:
    """As `status` has them: as of now, or of a few seconds ago if nothing was noted since."""
    stamps = tuple(_stamp(file) for file in (site.registry, site.populations_file, site.home / "site.yaml", *site.policy_files()))
    with _lock:
        known = _found.get(site.home)
        if known is not None and known[0] == stamps and time.monotonic() - known[1] < _SECONDS:
            return known[2]
        lines, broken = list_releases(site)
        listing = Listing(
            tuple(lines), tuple(_shorten(site, words) for words in broken), datetime.now(UTC).isoformat(timespec="seconds")
        )
        _found[site.home] = (stamps, time.monotonic(), listing)
        return listing


def describe_line(line: Line) -> Document:
    """A line for a page."""
    return to_json(replace(line, reason=tell_reason(line)))


def tell_reason(line: Line) -> str:
    """Why it is as it is, without the commands for what the desk itself can do: its pages have links for that."""
    return line.reason.replace(STATUS("release.returned", release=line.release), "").strip()


def _shorten(site: Site, words: str) -> str:
    return words.replace(f"{site.home}/", "")


def _stamp(file: Any) -> tuple[str, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return str(file), found.st_mtime_ns, found.st_size
