"""Clocks that were wrong: which events' moments are not to be believed, because the officer has signed that.

Only what is dated later than the officer's own event can be doubted: nothing that was noted in time can be moved. The signature
is looked at when the event is noted, and by `verify`; in between the registry's seal holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from release_pipeline.store.registry import CLOCK_SLACK, Event

CLOCK = "clock"


def find_doubted(events: Sequence[Event]) -> frozenset[int]:
    """The numbers of the events whose moment is not to be believed."""
    return frozenset(find_repairs(events))


def find_repairs(events: Sequence[Event]) -> dict[int, datetime]:
    """By the numbers of these events, the moments at which the officer said so: they happened before."""
    found: dict[int, datetime] = {}
    for event in events:
        if event.kind == CLOCK:
            number: int = event.content["event"]
            if is_ahead(events[number - 1], event.moment.timestamp()):
                found[number] = event.moment
    return found


def is_ahead(event: Event, now: float) -> bool:
    """Whether an event is dated later than the clock is now."""
    return event.moment.timestamp() - now > CLOCK_SLACK


def believed(events: Sequence[Event]) -> list[Event]:
    """The events whose moment is to be believed."""
    doubted = find_doubted(events)
    return [event for event in events if event.number not in doubted] if doubted else list(events)
