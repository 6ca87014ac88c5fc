"""The next releases of a policy, and since when each is due: from the policy, the clock and the opened releases; no data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.values.periods import Every, begin_of, end_of, name_period, next_period

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A coming release, and when it is due by the timetable (None without one). If `earliest`, that is the earliest possible
    time, because another release comes first. `left_out`: earlier periods that only a person can open, because a later one is
    charged."""

    release: str
    due: datetime | None
    earliest: bool = False
    left_out: tuple[str, ...] = ()

    def is_late(self, now: datetime) -> bool:
        """Return whether it should have been opened before."""
        return self.due is not None and self.due < now and not self.earliest


def list_upcoming(
    policy: Policy, opened: Mapping[str, datetime], *, charged: Collection[str] = (), seen: datetime | None, now: datetime
) -> Iterator[Upcoming]:
    """Yield the releases that are not in `opened` (name: when), in the order in which they are opened; periods have no end.

    A list's next release is due at the first time of the timetable after the one before it was opened, or after the policy was
    first seen; a period's at the first one after its end, and after the series was first seen. A site that has not seen the
    policy yet sees it now.

    A series of periods begins with the `first` that the policy names, or else with the period in which it was first seen: only a
    person can open periods that had ended before, or that are earlier than a `charged` release.
    """
    if policy.every:
        return _list_periods(policy, policy.every, opened, charged, seen or now)
    return _list_names(policy, opened, seen or now, now)


def begin_of_series(policy: Policy, seen: datetime) -> str:
    """Return the period that a series begins with; `seen`: when a site first knew of it."""
    assert policy.every is not None  # noqa: S101  for the type checker
    return policy.first or name_period(policy.every, seen)


def _list_names(policy: Policy, opened: Mapping[str, datetime], seen: datetime, now: datetime) -> Iterator[Upcoming]:
    dates = [seen, *(opened[name] for name in policy.release_names if name in opened)]
    anchor = max(min(date, now) for date in dates)  # a clock that was ahead must not stop the series
    left = [name for name in policy.release_names if name not in opened]
    for place, name in enumerate(left):
        due = None if policy.cron is None else policy.cron.next_after(anchor)
        yield Upcoming(name, due, earliest=place > 0)
        anchor = max(now, due or now)


def _list_periods(
    policy: Policy, every: Every, opened: Mapping[str, datetime], charged: Collection[str], seen: datetime
) -> Iterator[Upcoming]:
    assert policy.cron is not None  # noqa: S101  for the type checker
    begin = begin_of_series(policy, seen)
    spent = max((name for name in charged if _is_period(every, name)), key=lambda name: begin_of(every, name), default=None)
    left_out: tuple[str, ...] = ()
    name = begin
    if spent is not None and begin_of(every, spent) >= begin_of(every, begin):
        left_out = tuple(_not_in(opened, every, begin, spent))
        name = next_period(every, spent)
    while True:
        if name not in opened:
            yield Upcoming(name, policy.cron.next_after(max(end_of(every, name) - _SECOND, seen)), left_out=left_out)
            left_out = ()
        name = next_period(every, name)


def _not_in(opened: Mapping[str, datetime], every: Every, begin: str, end: str) -> Iterator[str]:
    """Yield the periods from `begin` to before `end` that nobody has opened."""
    name = begin
    while name != end:
        if name not in opened:
            yield name
        name = next_period(every, name)


def _is_period(every: Every, name: str) -> bool:
    try:
        return bool(begin_of(every, name))
    except InvalidArgument:
        return False
