"""What opens a release when nobody does: the tick of a timetable, or the arrival of its source. Dagster's daemon calls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.backfill import describe_stop
from release_pipeline.flow.cap import check_cap
from release_pipeline.flow.exploring.origins import list_origins
from release_pipeline.flow.exploring.runs import begin_run
from release_pipeline.flow.holds import find_hold
from release_pipeline.flow.policies import read_caps, record_policy
from release_pipeline.flow.reading import refuse, release_filter
from release_pipeline.flow.site import Site
from release_pipeline.flow.sources import open_source
from release_pipeline.flow.states import OPENED, ReleaseStatus, latest_revision, move, read_statuses
from release_pipeline.flow.trust.approvals import check_may_run
from release_pipeline.flow.upcoming import next_release, words_of
from release_pipeline.policy import Policy
from release_pipeline.policy.periods import end_of
from release_pipeline.stages.checks import match_header, readable_without
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.source import open_raw

HasRun: TypeAlias = Callable[[ReleaseId], bool]  # whether a run of a release was ever begun
AdmitRelease: TypeAlias = Callable[[Policy, str], None]  # raises while the source of a release may not be released
TIMETABLE, ARRIVAL = "its time has come", "its source arrived"


@dataclass(frozen=True, slots=True)
class Tick:
    """What came of a tick: the release to run, or why there is none; `of_source` when only a change of the source can help."""

    release: ReleaseId | None = None
    reason: str = ""
    of_source: bool = False


def tick(site: Site, policy_name: str, *, why: str, has_run: HasRun, admit: AdmitRelease, now: datetime | None = None) -> Tick:
    """Open the next release of a policy, in the registry, or say why not.

    A release that was opened and for which no run was ever begun (`has_run`), because somebody stopped in between, is given once
    more. A period is opened only when it is due; by arrival, so is every release that has a timetable. None is opened or given
    that `admit` refuses.
    """
    now = now or datetime.now(UTC)
    try:
        policy = site.policy(policy_name)
        with site.open_registry() as registry:
            record_policy(site, registry, policy)
            events = registry.events
            if (hold := find_hold(events, policy_name)) is not None:
                return Tick(reason=hold.words)
            check_may_run(site, registry, policy, read_caps(site))  # a reason may say that its source has too few records
        left = [known.id for known in _unfinished(policy, events) if not has_run(known.id)]
        if left:
            admit(policy, left[0].release)
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
        admit(policy, name)
        if (missing := describe_missing(site, policy, name)) != "":
            return Tick(reason=missing, of_source=True)
        with site.open_registry() as registry:
            return _open(site, policy, registry, name, why, now)
    except ReleasePipelineError as error:
        return Tick(reason=error.in_full)


def arrival(site: Site, policy_name: str, *, cursor: str, has_run: HasRun, admit: AdmitRelease) -> tuple[Tick, str]:
    """`tick` for a source that has arrived and stays as it is: changed since the last look, it may still be being written.

    `cursor` is what the last look gave; a source that was judged is not read again until it changes.
    """
    seen, _, judged = cursor.partition("\n")
    try:
        with site.open_registry(read_only=True) as registry:
            hold = find_hold(registry.events, policy_name)
        if hold is not None:
            return Tick(reason=hold.words), ""
        stamp = _stamp(site, site.policy(policy_name), datetime.now(UTC))
    except ReleasePipelineError as error:
        return Tick(reason=error.in_full), ""
    if stamp != seen:
        return Tick(reason="the source is new or was changed; the next look tells whether it stays as it is."), stamp
    if judged:
        return Tick(reason=judged), cursor
    found = tick(site, policy_name, why=ARRIVAL, has_run=has_run, admit=admit)
    return found, f"{stamp}\n{found.reason}" if found.of_source else stamp


def describe_late(site: Site, policy: Policy, *, now: datetime | None = None) -> str:
    """Which release of a policy should have been opened before, in words; empty if none, and while the series is held."""
    now = now or datetime.now(UTC)
    with site.open_registry(read_only=True) as registry:
        hold, upcoming = find_hold(registry.events, policy.policy), next_release(policy, registry.events, now)
    if hold is not None or upcoming is None or upcoming.due is None or not upcoming.is_late(now):
        return ""
    return f"Release {upcoming.release} was due {words_of(upcoming.due)}."


def record_policies(site: Site) -> None:
    """Note the policies of the site that are new or changed: from then on their timetables count."""
    policies, _ = site.read_policies()
    with site.open_registry() as registry:
        for policy in policies:
            record_policy(site, registry, policy)


def count_arrived(site: Site, policy: Policy, release: str) -> int:
    """How many records of a release the source has by now."""
    source = open_source(site, policy)
    names, checks = match_header(source.header, policy)
    refuse(source.name, [check for check in checks if not readable_without(check, policy)])
    column = policy.source.release_column or next(name for name in policy.columns if name in names)
    wanted = release_filter(policy, names, release)
    with open_raw(source, {column: names[column]}, release=wanted) as table:
        return table.count_records()


def describe_missing(site: Site, policy: Policy, release: str) -> str:
    """That the source lacks records of a release, in words without their number; empty if it has enough. The answer is noted
    as a run that read records."""
    if count_arrived(site, policy, release) >= (policy.gates.min_rows or 1):
        return ""
    with site.open_registry() as registry:
        record_policy(site, registry, policy)
        latest = latest_revision(read_statuses(registry.events), policy.policy, release)
    begin_run(site, latest, policy.canonical_hash(), digest="", origins=list_origins(site, policy.source))
    return f"the source has too few records of release {release} yet."


def _stamp(site: Site, policy: Policy, now: datetime) -> str:
    """Changes when the next release, or the source of it, does."""
    with site.open_registry(read_only=True) as registry:
        check_may_run(site, registry, policy, read_caps(site))
        upcoming = next_release(policy, registry.events, now)
    name = "" if upcoming is None else upcoming.release
    source = open_source(site, policy)
    return f"{name} {source.stamp or site.keyed_hash(f'arrived: {count_arrived(site, policy, name)}'.encode())}"


def _unfinished(policy: Policy, events: tuple[Event, ...]) -> list[ReleaseStatus]:
    """Releases that were opened and not begun."""
    statuses = read_statuses(events)
    mine = [status for known, status in statuses.items() if known.policy == policy.policy]
    left = [status for status in mine if status.state == "open" and status.replaced is None]
    return [status for status in left if policy.every or status.id.release in policy.release_names]


def _open(site: Site, policy: Policy, registry: Registry, name: str, why: str, now: datetime) -> Tick:
    statuses = read_statuses(registry.events)
    release = latest_revision(statuses, policy.policy, name)
    if release in statuses:  # by somebody else, between two looks
        return Tick(reason=f"{release} was opened meanwhile.")
    comes = next_release(policy, registry.events, now)
    if comes is None or comes.release != name:  # a later one was charged by hand
        return Tick(reason=f"{release} does not come next any more.")
    check_cap(site, registry, policy, release)
    move(registry, release, OPENED, why=why)
    return Tick(release, why)
