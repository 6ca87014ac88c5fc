"""Whether a backup was put back that the officer has not accepted: until then nothing is charged, drawn or published."""

from __future__ import annotations

from collections.abc import Sequence

from release_pipeline.errors import Blocked
from release_pipeline.store.registry import Event

RESTORING, RESTORED = "restoring", "restored"


def find_waiting(events: Sequence[Event]) -> Event | None:
    """The event of a backup that was put back and waits for the officer, if there is one."""
    accepted = {event.content["document"]["event"] for event in events if event.kind == RESTORED}
    return next((event for event in reversed(events) if event.kind == RESTORING and event.number not in accepted), None)


def is_restore_over(events: Sequence[Event], head: tuple[int, str]) -> bool:
    """Whether a backup was put back that replaces the registry with this last event: nothing came to it since it was read."""
    last = {"event": head[0], "hash": head[1]}
    return any(event.kind == RESTORING and event.content.get("replaces") == last for event in events)


def check_accepted(events: Sequence[Event]) -> None:
    """Refuse to go on before the officer has entered what was charged after the backup."""
    if (waiting := find_waiting(events)) is not None:
        raise Blocked(
            f"a backup of {waiting.content['made']} was put back, and the officer has not entered what was charged after it.",
            where=f"event {waiting.number}",
            remedy="The officer runs: release-pipeline restore --accept --charged FILE (or --nothing-else) --key KEY.",
        )
