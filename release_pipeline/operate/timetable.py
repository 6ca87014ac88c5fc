"""The timetable: the missed releases, the reasons that stop them, and the ticks that open the next one.

Missed releases, of a series that was held or not run, come oldest first. Each is judged as any other (its data, the differencing
guard, the cap), and the first that is refused ends it: a later one never comes before an earlier one. No release before a charged
one is missed: somebody who ran a later one decided so, and must name an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.ledger.looks import begin_run
from release_pipeline.ledger.policies import next_release, next_releases, read_caps, record_policy, words_of
from release_pipeline.ledger.states import OPENED, ReleaseStatus, find_hold, latest_revision, move, read_statuses
from release_pipeline.pipeline.cap import check_cap
from release_pipeline.pipeline.reading import refuse, release_filter
from release_pipeline.pipeline.sources import list_origins, open_source
from release_pipeline.policy import Policy
from release_pipeline.policy.plans.calendar import Upcoming
from release_pipeline.policy.values.periods import begin_of, end_of
from release_pipeline.rows.checks import match_header, readable_without
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.source import open_raw
from release_pipeline.trust.approvals import check_may_run

BEFORE_CANDIDATE = frozenset({"open", "reserved", "drawn", "blocked"})
MOST_MISSED = 1000  # of an endless series: more are no backfill but a mistaken `first`


def list_missed(policy: Policy, events: tuple[Event, ...], now: datetime | None = None) -> list[str]:
    """Return the releases of a policy that should be made by now and have no candidate, oldest first.

    Of periods those that were due; of a list with a timetable as many as it has fired for; of a list without one all that are
    left. Also those that were begun and not finished, from the last charged one on.
    """
    now = now or datetime.now(UTC)
    latest = _latest_of(policy, read_statuses(events).values())
    unfinished = [name for name, status in latest.items() if status.state in BEFORE_CANDIDATE and not status.lost]
    names = _sort(policy, {*latest, *unfinished, *_list_due(policy, events, now)})
    charged = [name for name in names if name in latest and latest[name].charge is not None]
    since = names.index(charged[-1]) if charged else 0
    return [name for name in names[since:] if name not in latest or name in unfinished]


def describe_stop(policy: Policy, statuses: Iterable[ReleaseStatus], upcoming: Upcoming) -> str:
    """Return why the timetable does not go on with missed releases: an earlier one of them is blocked; empty if none is.

    An earlier one was missed, too, if it was opened after this one had been due. In a series that is on time a blocked release
    does not stop those after it.
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
    """Return `list_missed` by the registry of the site."""
    with site.open_registry(read_only=True) as registry:
        return list_missed(policy, registry.events, now)


def describe_left(missed: Sequence[str]) -> str:
    """Return a text on the releases that a stopped backfill did not open."""
    return f"not opened, for they come after it: {', '.join(missed)}" if missed else "nothing comes after it"


def _sort(policy: Policy, names: Iterable[str]) -> list[str]:
    """Return these releases from the oldest on."""
    every = policy.every
    return sorted(names, key=(lambda name: begin_of(every, name)) if every else policy.release_names.index)


def _latest_of(policy: Policy, statuses: Iterable[ReleaseStatus]) -> Mapping[str, ReleaseStatus]:
    """Return the last revision of every release of the policy that it still has."""
    latest: dict[str, ReleaseStatus] = {}
    for status in sorted(statuses, key=lambda status: status.id):
        name = status.id.release
        if status.id.policy == policy.policy and (name in policy.release_names or _is_period(policy, name)):
            latest[name] = status
    return latest


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


HasRun: TypeAlias = Callable[[ReleaseId], bool]  # whether a run of a release was ever begun
TIMETABLE, ARRIVAL = "its time has come", "its source arrived"


@dataclass(frozen=True, slots=True)
class Tick:
    """The result of a tick: the release to run, or why there is none; `of_source` if only a change of the source can help."""

    release: ReleaseId | None = None
    reason: str = ""
    of_source: bool = False


def tick(site: Site, policy_name: str, *, why: str, has_run: HasRun, now: datetime | None = None) -> Tick:
    """Open the next release of a policy in the registry, or return why not.

    A release that was opened without any run (`has_run`), because of a stop in between, is returned again. A period is opened
    only when it is due; by arrival, so is every release that has a timetable.
    """
    now = now or datetime.now(UTC)
    try:
        policy = site.policy(policy_name)
        with site.open_registry() as registry:
            record_policy(site, registry, policy)
            events = registry.events
            if (hold := find_hold(events, policy_name)) is not None:
                return Tick(reason=hold.description)
            check_may_run(site, registry, policy, read_caps(site))  # a reason may be that its source has too few records
        left = [known.id for known in _unfinished(policy, events) if not has_run(known.id)]
        if left:
            return Tick(left[0], "it was opened before, and no run was begun")
        upcoming = next_release(policy, events, now)
        if upcoming is None:
            return Tick(reason="every release of the policy has been opened.")
        name = upcoming.release
        if policy.every and end_of(policy.every, name) > now:
            return Tick(reason=f"the {policy.every} {name} has not ended yet.")
        if (why == ARRIVAL or policy.every) and upcoming.due is not None and upcoming.due > now:
            return Tick(reason=f"release {name} is due {words_of(upcoming.due)}.")
        if (stopped := describe_stop(policy, read_statuses(events).values(), upcoming)) != "":
            return Tick(reason=stopped)
        if (missing := describe_missing(site, policy, name)) != "":
            return Tick(reason=missing, of_source=True)
        with site.open_registry() as registry:
            return _open(site, policy, registry, name, why, now)
    except ReleasePipelineError as error:
        return Tick(reason=error.in_full)


def arrival(site: Site, policy_name: str, *, cursor: str, has_run: HasRun) -> tuple[Tick, str]:
    """Return a `tick` once the source has arrived and is the same at two checks (before, somebody may still be writing it),
    with the cursor for the next check.

    `cursor`: that of the last check; a source that was judged is not read again until it changes.
    """
    seen, _, judged = cursor.partition("\n")
    try:
        with site.open_registry(read_only=True) as registry:
            hold = find_hold(registry.events, policy_name)
        if hold is not None:
            return Tick(reason=hold.description), ""
        stamp = _stamp(site, site.policy(policy_name), datetime.now(UTC))
    except ReleasePipelineError as error:
        return Tick(reason=error.in_full), ""
    if stamp != seen:
        return Tick(reason="the source is new or was changed; the next look tells whether it stays as it is."), stamp
    if judged:
        return Tick(reason=judged), cursor
    opened = tick(site, policy_name, why=ARRIVAL, has_run=has_run)
    return opened, f"{stamp}\n{opened.reason}" if opened.of_source else stamp


def describe_late(site: Site, policy: Policy, *, now: datetime | None = None) -> str:
    """Return which release of a policy should have been opened before; empty if none, and while the series is held."""
    now = now or datetime.now(UTC)
    with site.open_registry(read_only=True) as registry:
        hold, upcoming = find_hold(registry.events, policy.policy), next_release(policy, registry.events, now)
    if hold is not None or upcoming is None or upcoming.due is None or not upcoming.is_late(now):
        return ""
    return f"Release {upcoming.release} was due {words_of(upcoming.due)}."


def record_policies(site: Site) -> None:
    """Record the policies of the site that are new or changed: their timetables count from then on."""
    policies, _ = site.read_policies()
    with site.open_registry() as registry:
        for policy in policies:
            record_policy(site, registry, policy)


def count_arrived(site: Site, policy: Policy, release: str) -> int:
    """Return how many records of a release the source has now."""
    source = open_source(site, policy)
    names, checks = match_header(source.header, policy)
    refuse(source.name, [check for check in checks if not readable_without(check, policy)])
    column = policy.source.release_column or next(name for name in policy.columns if name in names)
    wanted = release_filter(policy, names, release)
    with open_raw(source, {column: names[column]}, release=wanted) as table:
        return table.count_records()


def describe_missing(site: Site, policy: Policy, release: str) -> str:
    """Return a sentence if the source lacks records of a release, without their number; else empty. That answer is recorded as a
    run that read records."""
    if count_arrived(site, policy, release) >= (policy.gates.min_rows or 1):
        return ""
    with site.open_registry() as registry:
        record_policy(site, registry, policy)
        latest = latest_revision(read_statuses(registry.events), policy.policy, release)
    begin_run(site, latest, policy.canonical_hash(), digest="", origins=list_origins(site, policy.source))
    return f"the source has too few records of release {release} yet."


def _stamp(site: Site, policy: Policy, now: datetime) -> str:
    """Return a text that changes when the next release or its source does."""
    with site.open_registry(read_only=True) as registry:
        check_may_run(site, registry, policy, read_caps(site))
        upcoming = next_release(policy, registry.events, now)
    name = "" if upcoming is None else upcoming.release
    source = open_source(site, policy)
    return f"{name} {source.stamp or site.keyed_hash(f'arrived: {count_arrived(site, policy, name)}'.encode())}"


def _unfinished(policy: Policy, events: tuple[Event, ...]) -> list[ReleaseStatus]:
    """Return the releases that were opened and not begun."""
    statuses = read_statuses(events)
    mine = [status for known, status in statuses.items() if known.policy == policy.policy]
    left = [status for status in mine if status.state == "open" and status.replaced is None]
    return [status for status in left if policy.every or status.id.release in policy.release_names]


def _open(site: Site, policy: Policy, registry: Registry, name: str, why: str, now: datetime) -> Tick:
    statuses = read_statuses(registry.events)
    release = latest_revision(statuses, policy.policy, name)
    if release in statuses:  # opened by another process, between two checks
        return Tick(reason=f"{release} was opened meanwhile.")
    comes = next_release(policy, registry.events, now)
    if comes is None or comes.release != name:  # a later one was charged by hand
        return Tick(reason=f"{release} does not come next any more.")
    check_cap(site, registry, policy, release)
    move(registry, release, OPENED, why=why)
    return Tick(release, why)
