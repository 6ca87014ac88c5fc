"""The office as the registry proves it: who followed whom, whose keys were revoked from when on.

The verifier reads it, for the site as for a stranger, so that the two never disagree on who may sign. A site where one officer
has always been the officer, and no key was revoked, has nothing that must be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from release_pipeline import verify
from release_pipeline.store.registry import Event, canonical_json
from release_pipeline.verify import Office, Revocation

SUCCESSION, ACCEPT, RECOVERY, RECOVER, REVOKE = "succession", "accept-office", "recovery", "recover", "revoke"
REVOKED = "revoked"
OFFICE = "officer"  # the subject of a succession
OFFICERS = verify.OFFICERS  # of packages and dossiers, once an officer has followed another


def read_office(events: Sequence[Event], *, revoked: Sequence[tuple[str, datetime]] = ()) -> Office | None:
    """The office, where more happened to it than that one officer changed the list; `revoked`: as if the holders of the recovery
    keys had revoked these keys from these moments on."""
    if not revoked and not verify.has_office(events):
        return None
    chain = [
        verify.Event(event.number, event.kind, str(event.release or ""), event.content, event.hash, event.noted)
        for event in events
    ]
    last = len(chain) + 1
    return verify.read_office(chain, revoked=[Revocation(key, since, last, "", quorum=True) for key, since in revoked])


def write_officers(events: Sequence[Event], office: Office | None, *, upto: str | None = None, always: bool = False) -> str:
    """The way from the first officer to the last (or to `upto`) as a text that a stranger verifies; empty where there was one
    alone, unless it is to be written `always`."""
    if office is None or (len(office.chain) < 2 and not always):
        return ""
    return canonical_json({"officers": list_links(events, office, upto=upto)})


def list_links(events: Sequence[Event], office: Office, *, upto: str | None = None) -> list[Mapping[str, Any]]:
    """The events by which officers followed each other."""
    links: list[Mapping[str, Any]] = []
    for number in office.links:
        if number > len(events):
            break
        event = events[number - 1]
        links.append({"kind": event.kind, "content": event.content})
        if upto is not None and event.content.get("officer") == upto:
            break
    return links
