"""The registry's proofs about the office and about clocks, and the part that witnesses receive.

The office as the registry proves it: who followed whom, and whose keys were revoked from which moment.

The verifier reads it, both for the site and for a stranger, so the two never disagree on who may sign. A site that has always had
one officer, and never revoked a key, has nothing that must be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.store.registry import CLOCK_SLACK, RESTORED, RESTORING, Event, canonical_json
from release_pipeline.store.site import Site
from release_pipeline.verifier.chain import HEAD_FORMAT, has_office
from release_pipeline.verifier.chain import Event as VerifiedEvent
from release_pipeline.verifier.chain import read_head as verifier_read_head
from release_pipeline.verifier.documents import Fault
from release_pipeline.verifier.office import Office
from release_pipeline.verifier.office import read_office as verifier_read_office
from release_pipeline.verifier.succession import Revocation
from release_pipeline.verifier.trees import OFFICERS as VERIFIER_OFFICERS

SUCCESSION, ACCEPT, RECOVERY, RECOVER, REVOKE = "succession", "accept-office", "recovery", "recover", "revoke"
REVOKED = "revoked"
OFFICE = "officer"  # the subject of a succession
OFFICERS = VERIFIER_OFFICERS  # in packages and dossiers, once an officer has followed another


def read_office(events: Sequence[Event], *, revoked: Sequence[tuple[str, datetime]] = ()) -> Office | None:
    """Return the office; None if all that happened is that one officer changed the list. `revoked`: as if the holders of the
    recovery keys had revoked these keys from these moments on."""
    if not revoked and not has_office(events):
        return None
    chain = [
        VerifiedEvent(event.number, event.kind, str(event.release or ""), event.content, event.hash, event.noted)
        for event in events
    ]
    last = len(chain) + 1
    return verifier_read_office(chain, revoked=[Revocation(key, since, last, "", quorum=True) for key, since in revoked])


def write_officers(events: Sequence[Event], office: Office | None, *, upto: str | None = None) -> str:
    """Return the succession from the first officer to the last (or to `upto`) as a text that a stranger can verify; empty if
    there was only one."""
    if office is None or len(office.chain) < 2:
        return ""
    return canonical_json({"officers": list_links(events, office, upto=upto)})


def list_links(events: Sequence[Event], office: Office, *, upto: str | None = None) -> list[Mapping[str, Any]]:
    """Return the events by which officers followed each other."""
    links: list[Mapping[str, Any]] = []
    for number in office.links:
        if number > len(events):
            break
        event = events[number - 1]
        links.append({"kind": event.kind, "content": event.content})
        if upto is not None and event.content.get("officer") == upto:
            break
    return links


# Clocks that were wrong: the events whose moments are not to be believed, because the officer has signed so.
#
# Only what is dated later than the officer's own event can be doubted: nothing that was noted in time can be moved. The signature
# is checked when the event is noted, and by `verify`; in between the registry's seal holds it.


CLOCK = "clock"


def find_doubted(events: Sequence[Event]) -> frozenset[int]:
    """Return the numbers of the events whose moment is not to be believed."""
    return frozenset(find_repairs(events))


def find_repairs(events: Sequence[Event]) -> dict[int, datetime]:
    """Return, by the numbers of these events, the moments of the officer's statements: the events happened before."""
    moments: dict[int, datetime] = {}
    for event in events:
        if event.kind == CLOCK:
            number: int = event.content["event"]
            if is_ahead(events[number - 1], event.moment.timestamp()):
                moments[number] = event.moment
    return moments


def is_ahead(event: Event, now: float) -> bool:
    """Return whether an event is dated later than the clock is now."""
    return event.moment.timestamp() - now > CLOCK_SLACK


def believed(events: Sequence[Event]) -> list[Event]:
    """Return the events whose moment is to be believed."""
    doubted = find_doubted(events)
    return [event for event in events if event.number not in doubted] if doubted else list(events)


# A restored backup waits until the officer has accepted it: until then nothing is charged, drawn or published.


def find_waiting(events: Sequence[Event]) -> Event | None:
    """Return the event of a restored backup that waits for the officer; None if there is none."""
    accepted = {event.content["document"]["event"] for event in events if event.kind == RESTORED}
    return next((event for event in reversed(events) if event.kind == RESTORING and event.number not in accepted), None)


def check_accepted(events: Sequence[Event]) -> None:
    """Refuse to continue before the officer has entered what was charged after the backup."""
    if (waiting := find_waiting(events)) is not None:
        raise Blocked(
            f"a backup of {waiting.content['made']} was put back, and the officer has not entered what was charged after it.",
            where=f"event {waiting.number}",
            remedy="The officer runs: release-pipeline restore --accept --charged FILE (or --nothing-else) --key KEY.",
        )


# The last event of the registry, given to somebody outside: anyone who keeps it can check later that the registry still has it.


@dataclass(frozen=True, slots=True)
class Head:
    """Number and hash of an event, and when it was noted."""

    number: int
    hash: str
    noted: str = ""

    @classmethod
    def of(cls, event: Event) -> Head:
        """Return the head for an event that was the last."""
        return cls(event.number, event.hash, event.noted)

    @property
    def text(self) -> str:
        """Return the head as a line of JSON."""
        content = {"format": HEAD_FORMAT, "event": self.number, "hash": self.hash, "noted": self.noted}
        return json.dumps(content) + "\n"


def read_head(site: Site) -> Head:
    """Return the last event of a site."""
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    if not events:
        raise WrongUsage("nothing has happened at this site that could be witnessed.", where=str(site.home))
    return Head.of(events[-1])


def load_head(file: Path) -> Head:
    """Return the head in a file written by `head export`; raises if the file is not one."""
    try:
        return Head(*verifier_read_head(file.read_bytes()))
    except (OSError, Fault):
        raise WrongUsage(
            "this is not what `head export` writes.", where=str(file), remedy="Name the file that was kept."
        ) from None
