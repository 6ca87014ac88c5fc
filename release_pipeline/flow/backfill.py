"""Releases that were missed, because their series was held or nobody ran them: which, in which order, and what stops them.

Oldest first, one after the other; each is judged as any other (its data, the differencing guard, the cap), and the first that is
refused ends it: a later one never comes before an earlier one. What lies before a release that is charged is a person's to name,
for whoever published a later one decided so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from release_pipeline.errors import InvalidArgument
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import OPENED, ReleaseStatus, read_statuses
from release_pipeline.flow.upcoming import next_releases
from release_pipeline.policy import Policy
from release_pipeline.policy.calendar import Upcoming
from release_pipeline.policy.periods import begin_of
from release_pipeline.store.registry import Event

BEFORE_CANDIDATE = frozenset({"open", "reserved", "drawn", "blocked"})
MOST_MISSED = 1000  # of an endless series: more are no backfill but a mistaken `first`


def list_missed(policy: Policy, events: tuple[Event, ...], now: datetime | None = None) -> list[str]:
    """The releases of a policy that should be made by now and have no candidate, oldest first.

    Of periods those that were due; of a list with a timetable as many as it has fired for; of one without all that are left. And
    what was begun and not finished, from the last that is charged on.
    """
    now = now or datetime.now(UTC)
    latest = _latest_of(policy, read_statuses(events).values())
    unfinished = [name for name, status in latest.items() if status.state in BEFORE_CANDIDATE and not status.lost]
    names = _sort(policy, {*latest, *unfinished, *_list_due(policy, events, now)})
    charged = [name for name in names if name in latest and latest[name].charge is not None]
    since = names.index(charged[-1]) if charged else 0
    return [name for name in names[since:] if name not in latest or name in unfinished]


def describe_stop(policy: Policy, statuses: Iterable[ReleaseStatus], upcoming: Upcoming) -> str:
    """Why the timetable does not go on with what was missed: an earlier one of them is blocked; empty if none is.

    An earlier one was missed, too, when it was opened after this one had been due. In a series that is on time each release
    is judged by itself: a blocked one then does not hold up those after it.
    """
    if policy.every is None or upcoming.due is None:
        return ""
    for name, status in sorted(_latest_of(policy, statuses).items()):
        opened = status.moments.get(OPENED, "")
        if status.state != "blocked" or status.charge is not None or not opened:
            continue
        earlier = begin_of(policy.every, name) < begin_of(policy.every, upcoming.release)
        if earlier and datetime.fromisoformat(opened) > upcoming.due:
            return (
                f"release {name} was missed, too, comes before {upcoming.release}, and is blocked: {status.reason} "
                f"Run it once that is repaired, or leave it out by running {upcoming.release} by hand."
            )
    return ""


def read_missed(site: Site, policy: Policy, *, now: datetime | None = None) -> list[str]:
    """`list_missed` as the registry of the site stands."""
    with site.open_registry(read_only=True) as registry:
        return list_missed(policy, registry.events, now)


def describe_left(missed: Sequence[str]) -> str:
    """What a backfill that stopped has not come to, in words."""
    return f"not opened, for they come after it: {', '.join(missed)}" if missed else "nothing comes after it"


def _sort(policy: Policy, names: Iterable[str]) -> list[str]:
    """These releases from the oldest on."""
    every = policy.every
    return sorted(names, key=(lambda name: begin_of(every, name)) if every else policy.release_names.index)


def _latest_of(policy: Policy, statuses: Iterable[ReleaseStatus]) -> Mapping[str, ReleaseStatus]:
    """The last revision of every release of the policy that it still has."""
    found: dict[str, ReleaseStatus] = {}
    for status in sorted(statuses, key=lambda status: status.id):
        name = status.id.release
        if status.id.policy == policy.policy and (name in policy.release_names or _is_period(policy, name)):
            found[name] = status
    return found


def _list_due(policy: Policy, events: tuple[Event, ...], now: datetime) -> list[str]:
    coming = next_releases(policy, events, now)
    if policy.every:
        names: list[str] = []
        for upcoming in coming:
            if upcoming.due is None or upcoming.due > now or len(names) == MOST_MISSED:
                return names
            names.append(upcoming.release)
    names = [upcoming.release for upcoming in coming]
    first = next(next_releases(policy, events, now), None)
    if policy.cron is None or first is None or first.due is None:
        return names
    fired, moment = 0, first.due
    while moment <= now and fired < len(names):
        fired, moment = fired + 1, policy.cron.next_after(moment)
    return names[:fired]


def _is_period(policy: Policy, name: str) -> bool:
    try:
        return policy.every is not None and bool(begin_of(policy.every, name))
    except InvalidArgument:
        return False
