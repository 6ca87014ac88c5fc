"""Which releases of a policy come next, and when, as the registry has it. Reads no source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from release_pipeline.flow.states import read_state
from release_pipeline.flow.trust.clocks import find_repairs
from release_pipeline.policy import Policy
from release_pipeline.policy.calendar import Upcoming, list_upcoming
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.typed import Plain
from release_pipeline.privacy.figures import count_of
from release_pipeline.store.ledger import charges_of
from release_pipeline.store.registry import Event

MOST_TOLD = 4  # of the releases that come


def next_release(policy: Policy, events: tuple[Event, ...], now: datetime) -> Upcoming | None:
    """The release of a policy that comes next, as the registry's events have it."""
    return next(next_releases(policy, events, now), None)


def next_releases(policy: Policy, events: tuple[Event, ...], now: datetime) -> Iterator[Upcoming]:
    """The releases of a policy that come, in their order; of periods there is no end."""
    first: dict[str, datetime] = {}
    repaired = find_repairs(events)
    for event in events:
        if event.release is not None and event.release.policy == policy.policy:
            first.setdefault(event.release.release, repaired.get(event.number, event.moment))
    charged = {charge.id.release for charge in charges_of(events) if charge.id.policy == policy.policy}
    return list_upcoming(policy, first, charged=charged, seen=_first_seen(policy, events), now=now)


def describe_due(upcoming: Upcoming, policy: Policy) -> str:
    """When a release is due, and what is left out before it."""
    if upcoming.due is None:
        return ""
    due = f"{'not before' if upcoming.earliest else 'due'} {words_of(upcoming.due)}"
    if not (out := upcoming.left_out):
        return due
    names = name_some(out) if len(out) <= MOST_TOLD else f"{out[0]} to {out[-1]} ({count_of(len(out), policy.every or '')})"
    return f"{due}; {names}: before a release that is charged, opened by `release-pipeline run` alone"


def _first_seen(policy: Policy, events: tuple[Event, ...]) -> datetime | None:
    """Since when the site knows of the policy; of a series of periods, since when it is of these periods, from the same `first`
    on: no period that ended before is opened because the policy was once another."""
    seen: datetime | None = None
    series = (policy.every, policy.first)
    repaired = find_repairs(events)
    for event in read_state(events).policies.get(policy.policy, ()):
        goes_on = not policy.every or _series_in(event) == series
        seen = (seen or repaired.get(event.number, event.moment)) if goes_on else None
    return seen


def _series_in(event: Event) -> tuple[Plain, Plain]:
    """The period and the first one of a series, in the policy that an event noted."""
    releases: Plain = json.loads(event.content.get("text", "{}")).get("releases")
    return (releases.get("every"), releases.get("first")) if isinstance(releases, dict) else (None, None)


def words_of(moment: datetime) -> str:
    """A moment for a person."""
    return moment.strftime("%Y-%m-%d %H:%M UTC")
