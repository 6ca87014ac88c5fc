"""Which release of a policy comes next, and since when it is due. From the policy, the clock and what was opened; no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.model import Policy
from release_pipeline.policy.periods import begin_of, end_of, last_ended, next_period


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The release that comes next, and when it is due by the timetable; None where there is none, or no timetable."""

    release: str
    due: datetime | None

    def is_late(self, now: datetime) -> bool:
        """Whether it should have been opened before."""
        return self.due is not None and self.due < now


def find_upcoming(policy: Policy, opened: Mapping[str, datetime], *, seen: datetime | None, now: datetime) -> Upcoming | None:
    """The first release that is not in `opened` (name: when), or None when there is none left.

    A list's next release is due at the first time of the timetable after the one before it was opened, or after the policy was
    first seen; a period's at the first one after its end. A site that has not seen the policy yet sees it now.
    """
    if policy.every:
        return _find_period(policy, opened, seen or now)
    left = [name for name in policy.release_names if name not in opened]
    if not left:
        return None
    dates = [seen or now, *(opened[name] for name in policy.release_names if name in opened)]
    anchor = max(min(date, now) for date in dates)  # a clock that was ahead must not stop the series
    return Upcoming(left[0], None if policy.cron is None else policy.cron.next_after(anchor))


def _find_period(policy: Policy, opened: Mapping[str, datetime], seen: datetime) -> Upcoming:
    assert policy.every is not None  # noqa: S101  for the type checker
    assert policy.cron is not None  # noqa: S101
    known = sorted((name for name in opened if _is_period(policy, name)), key=lambda name: begin_of(policy.every or "day", name))
    if not known:
        due = policy.cron.next_after(seen)
        return Upcoming(last_ended(policy.every, due), due)
    name = known[0]
    while name in opened:
        name = next_period(policy.every, name)
    return Upcoming(name, policy.cron.next_after(end_of(policy.every, name) - timedelta(seconds=1)))


def _is_period(policy: Policy, name: str) -> bool:
    try:
        return bool(begin_of(policy.every or "day", name))
    except InvalidArgument:
        return False
