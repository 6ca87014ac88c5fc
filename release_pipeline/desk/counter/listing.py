"""The releases of a site for lists and pages, looked up at most every few seconds: whether folders are what was frozen takes a
hash of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from release_pipeline.desk.counter.calls import Document
from release_pipeline.desk.counter.kept import keep
from release_pipeline.desk.counter.places import shorten_place
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.overview import Line, list_releases
from release_pipeline.flow.trust.approvals import NOT_APPROVED
from release_pipeline.policy.documents import to_json
from release_pipeline.sentences import STATUS


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
