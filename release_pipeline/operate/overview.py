"""The document of `status` about a site: its releases by the registry and the clock, and what is broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.ledger.account import Draw
from release_pipeline.ledger.looks import LookView, count_looks_before, describe_looks, group_looks, view_looks
from release_pipeline.ledger.office import believed
from release_pipeline.ledger.policies import Caps, describe_due, next_releases, open_population, policy_of, read_caps
from release_pipeline.ledger.states import Hold, ReleaseStatus, describe_hold, find_hold, read_state, read_statuses
from release_pipeline.operate.alerts.look import find_trouble
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import EpsilonView, Hash, Moment, to_json, view_epsilon
from release_pipeline.policy.plans.calendar import Upcoming
from release_pipeline.policy.plans.loss import Account, next_loss
from release_pipeline.publish.delivery import OutstandingView, list_outstanding, package_is_whole, view_task
from release_pipeline.sentences import STATUS
from release_pipeline.store.files import is_whole
from release_pipeline.store.ledger import charges_of
from release_pipeline.store.registry import CLOCK_SLACK, Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.targets.settings import find_target_faults
from release_pipeline.trust.approvals import check_approved
from release_pipeline.trust.members import Trust, read_trust

MOST_LATE = 12  # periods of a series that are late, listed one by one
State: TypeAlias = Literal[
    "open",
    "waiting",
    "late",
    "reserved",
    "drawn",
    "candidate",
    "approved",
    "returned",
    "rejected",
    "publishing",
    "published",
    "superseded",
    "retracted",
    "blocked",
    "damaged",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The last moments of a release's steps; null for a step that has not happened."""

    opened: Annotated[Moment | None, "it was begun, by hand or by its timetable"] = None
    reserved: Annotated[Moment | None, "its loss was charged"] = None
    drawn: Annotated[Moment | None, "its noise was drawn"] = None
    candidate: Annotated[Moment | None, "its candidate was frozen"] = None
    approved: Annotated[Moment | None, "enough reviewers had approved this candidate"] = None
    returned: Annotated[Moment | None, "all votes on this candidate were in, and somebody had returned it"] = None
    rejected: Annotated[Moment | None, "a reviewer rejected it"] = None
    publishing: Annotated[Moment | None, "its publication was begun"] = None
    published: Annotated[Moment | None, "it was published"] = None
    superseded: Annotated[Moment | None, "it was superseded"] = None
    retracted: Annotated[Moment | None, "it was retracted"] = None
    blocked: Annotated[Moment | None, "it was blocked; later moments say whether it got further"] = None
    pruned: Annotated[Moment | None, "its tables were removed from the vault"] = None


@dataclass(frozen=True, slots=True)
class Approvals:
    """The people who approved the candidate as it is now. They are shown once as many have voted as must approve, since votes are
    blind until then."""

    needed: Annotated[int | None, "how many must, by the policy that it was made under; null where that is not known"]
    by: Annotated[tuple[str, ...], "who has approved it; empty as long as votes are blind"]
    returned_by: Annotated[tuple[str, ...], "who has returned it with reasons; empty as long as votes are blind"] = ()
    voted: Annotated[tuple[str, ...], "who has voted, whatever they said"] = ()
    blind: Annotated[bool, "whether votes are not all in, and so are told to nobody but their voters"] = False


@dataclass(frozen=True, slots=True)
class Line:
    """One release of the site: declared and not begun (`open`, `waiting` for its time, or `late`), or as the registry has it.

    Its claim is that recorded with its candidate, or else that of the policy that it was charged under, or is to be.
    """

    release: Annotated[str, "POLICY/PARTITION/rN, as commands take it; POLICY/PARTITION while it is not begun"]
    state: Annotated[State, "docs/operating.md says what each means"]
    reason: Annotated[
        str, "why it is blocked, returned, rejected, late, damaged and so on, in words; empty where there is nothing to say"
    ] = ""
    rows: Annotated[int | None, "rows of the candidate; the same as rows_out"] = None
    claim: Annotated[str, "the claim of the candidate in words; empty before there is one"] = ""
    since: Annotated[str, "when it came into this state, as in `moments`; empty while it is not begun"] = ""
    id: Annotated[str | None, "POLICY/PARTITION/rN; null while it is not begun"] = None
    policy: Annotated[str, "the name of its policy"] = ""
    partition: Annotated[str, "which release of the policy"] = ""
    revision: Annotated[int | None, "1, or more for a correction; null while it is not begun"] = None
    population: Annotated[str | None, "whose budget it spends"] = None
    reason_code: Annotated[str | None, "why it is blocked, as the code of an error; null otherwise"] = None
    method: Annotated[str | None, "of `protect`"] = None
    definition: Annotated[str | None, "dp, idp, k-epsilon or k-anonymity"] = None
    scope: Annotated[str | None, "centroid, column, table, cluster or class: with definition and epsilon the claim"] = None
    epsilon: Annotated[EpsilonView | None, "null for a method without, and where the registry does not have the policy"] = None
    k: Annotated[int | None, "records per cluster or class, which is not k-anonymity; null without"] = None
    anonymity_k: Annotated[
        int | None, "the smallest group of equal released quasi-identifiers in the candidate; null without"
    ] = None
    rows_in: Annotated[int | None, "records that it was charged for"] = None
    rows_out: Annotated[int | None, "rows of the candidate"] = None
    policy_hash: Annotated[Hash | None, "of the policy that it was charged under; null before that"] = None
    candidate_hash: Annotated[Hash | None, "SHA-256 of the candidate's list of sums: what reviewers sign"] = None
    package_hash: Annotated[Hash | None, "SHA-256 of the package's list of sums: what the service signs"] = None
    approvals: Approvals | None = None
    superseded_by: Annotated[str | None, "the release that its readers are referred to"] = None
    given_up_for: Annotated[str | None, "the revision that was opened after it"] = None
    failed: Annotated[str | None, "how its last run ended, if that broke off; null otherwise"] = None
    late: Annotated[bool, "whether its timetable should have opened it before"] = False
    due: Annotated[Moment | None, "when its timetable opens it; null without one, and for all that need a person"] = None
    has_room: Annotated[bool | None, "whether the ledger has room for it; null where nobody looked: only late ones are"] = None
    moments: Moments = Moments()
    looks: Annotated[int, "looks at the data before it was charged, which its card tells; so far, while it is not charged"] = 0

    def to_json(self) -> dict[str, Any]:
        """Return the line for a script."""
        return to_json(self)


@dataclass(frozen=True, slots=True)
class StatusDocument:
    """The document that `status --json` prints."""

    FORMAT: ClassVar[str] = "release-pipeline/status/1"

    made: Annotated[Moment, "when"]
    releases: Annotated[tuple[Line, ...], "every release that is declared or was begun, each revision by itself"]
    broken: Annotated[tuple[str, ...], "what is wrong at the site beside its releases, in words"]
    held: Annotated[tuple[Hold, ...], "the series that are held, by the names of their policies"]
    looks: Annotated[
        tuple[LookView, ...],
        "every look at confidential records that parameters may be chosen by, and what was called public, in order",
    ] = ()
    outstanding: Annotated[
        tuple[OutstandingView, ...], "what is to be done yet at targets of published packages: `release-pipeline deliver`"
    ] = ()


def _list_holds(events: Sequence[Event]) -> tuple[Hold, ...]:
    """Return the series that are held, by the names of their policies."""
    return tuple(hold for _, hold in sorted(read_state(events).holds.items()))


def view_status(site: Site, *, now: datetime | None = None) -> StatusDocument:
    """Return the releases of a site for a script."""
    now = now or datetime.now(UTC)
    lines, broken = list_releases(site, now=now)
    with site.open_registry(read_only=True) as registry:
        held, looks = _list_holds(registry.events), view_looks(registry.events)
    outstanding = tuple(view_task(task) for task in list_outstanding(site))
    return StatusDocument(now.isoformat(timespec="seconds"), tuple(lines), tuple(broken), held, looks, outstanding)


def list_releases(site: Site, *, now: datetime | None = None) -> tuple[list[Line], list[str]]:
    """Return every release that is declared or was begun, with its state, and sentences on what is broken at the site."""
    now = now or datetime.now(UTC)
    with site.open_registry(read_only=True) as registry:
        events = registry.events
        policies, broken = site.read_policies()
        caps, without = _read_caps(site)
        if caps is not None:
            broken += [*dict.fromkeys(_find_unapproved(site, registry, policies, caps))]
        statuses = read_statuses(events)
        used = _find_policies(registry, statuses.values(), policies)
    broken += _find_broken_clock(events)
    broken += [sentence for sentence in (*find_trouble(site), *find_target_faults(site)) if sentence not in broken]
    revisions: dict[tuple[str, str], list[ReleaseStatus]] = {}
    for id, status in sorted(statuses.items()):
        revisions.setdefault((id.policy, id.release), []).append(status)
    lines: list[Line] = []
    for policy in policies:
        coming = {upcoming.release: upcoming for upcoming in _take_coming(policy, events, now)}
        begun = [release for name, release in revisions if name == policy.policy]
        for release in sorted({*begun, *coming}) if policy.every else policy.release_names:
            if (begun_revisions := revisions.pop((policy.policy, release), None)) is not None:
                lines += [_describe_begun(site, status, used, policy) for status in begun_revisions]
            else:
                lines.append(_describe_coming(policy, release, coming.get(release), events, caps, now))
    lines += [_describe_begun(site, status, used, None) for others in revisions.values() for status in others]
    ids = [ReleaseId(line.policy, line.partition, line.revision or 1) for line in lines]
    looks = count_looks_before(events, ids, {} if caps is None else caps.declared)
    return [replace(line, looks=looks[id]) for line, id in zip(lines, ids, strict=True)], [*broken, *without]


def _find_policies(registry: Registry, statuses: Iterable[ReleaseStatus], policies: Iterable[Policy]) -> dict[str, Policy]:
    """Return the policies that releases were charged under, by hash: those of the site, and earlier ones that the registry
    has."""
    by_hash = {policy.canonical_hash(): policy for policy in policies}
    for digest in {status.policy_hash for status in statuses} - {"", *by_hash}:
        with suppress(ReleasePipelineError):
            by_hash[digest] = policy_of(registry, digest)
    return by_hash


def _view_claim(policy: Policy | None) -> dict[str, Any]:
    """Return a policy's claim and the population whose budget it spends, by the fields of a line."""
    if policy is None:
        return {}
    claim = {"method": policy.protect.method, "definition": policy.definition, "scope": policy.protect.scope}
    return {**claim, "k": policy.protect.k, "epsilon": view_epsilon(policy), "population": policy.population}


def _view_approvals(status: ReleaseStatus, policy: Policy | None) -> Approvals | None:
    """Return who approved and returned its candidate, as far as that may be shown; None without a candidate."""
    if status.candidate_hash is None:
        return None
    needed, voted = None if policy is None else policy.review.reviewers, tuple(status.voters)
    if status.is_blind:
        return Approvals(needed, (), voted=voted, blind=True)
    return Approvals(needed, tuple(status.approvers), tuple(status.returners), voted)


def _read_caps(site: Site) -> tuple[Caps | None, list[str]]:
    """Return the caps; or None, and why they cannot be read."""
    try:
        return read_caps(site), []
    except ReleasePipelineError as error:
        return None, [str(error)]


def describe_status(site: Site, *, now: datetime | None = None, draw: Draw | None = None) -> Iterator[str]:
    """Yield the releases of a site in lines for a person; `draw` draws the table in another way."""
    lines, broken = list_releases(site, now=now)
    rows = [("release", "state", "rows", "what")]
    for line in lines:
        count = "" if line.rows is None else f"{line.rows:,}"
        rows.append((line.release, line.state, count, line.reason or line.claim))
    yield from (draw or _align)(rows)
    with site.open_registry(read_only=True) as registry:
        yield from (f"held {hold.policy}: {describe_hold(hold)}" for hold in _list_holds(registry.events))
        yield from describe_looks(group_looks(registry.events))
    yield from (f"outstanding {task.description}; `release-pipeline deliver` does it" for task in list_outstanding(site))
    for reason in broken:
        yield f"broken: {reason}"


def _align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max(len(release) for release, *_ in rows)
    for release, state, count, what in rows:
        yield f"{release:<{width}}  {state:<10}  {count:>9}  {what}".rstrip()


def _describe_coming(
    policy: Policy, release: str, upcoming: Upcoming | None, events: tuple[Event, ...], caps: Caps | None, now: datetime
) -> Line:
    """Return the line of a release that is declared and not begun."""
    line = Line(f"{policy.policy}/{release}", "open", policy=policy.policy, partition=release, **_view_claim(policy))
    if policy.cron is None or upcoming is None:
        return line
    hold = find_hold(events, policy.policy)
    is_late = hold is None and upcoming.is_late(now)
    account, fits = _find_headroom(caps, policy, events) if is_late and caps is not None else (None, None)
    reason = describe_due(upcoming, policy)
    if account is not None and not fits:
        reason += STATUS("release.refused", left=account.left, limit=account.limit, unit=account.unit)
    return replace(
        line,
        state="late" if is_late else "waiting",
        reason=reason if hold is None else f"{reason}; {hold.description}",
        late=is_late,
        due=None if upcoming.due is None else upcoming.due.isoformat(),
        has_room=fits,
    )


def _take_coming(policy: Policy, events: tuple[Event, ...], now: datetime) -> Iterator[Upcoming]:
    """Yield the coming releases: all of a list; of periods those that are late, the first few, and the next one."""
    for number, upcoming in enumerate(next_releases(policy, events, now), start=1):
        yield upcoming
        if policy.every and (number == MOST_LATE or not upcoming.is_late(now)):
            return


def _find_headroom(caps: Caps, policy: Policy, events: tuple[Event, ...]) -> tuple[Account | None, bool | None]:
    """Return the account of the policy's population, and whether it admits the next release; None if the population is not
    declared."""
    charges = charges_of(events)
    try:
        account = open_population(caps, policy.population, charges)
    except ReleasePipelineError:  # a population that is not declared: a run reports it
        return None, None
    return account, account.admits(next_loss(policy, None))


def _describe_approvals(status: ReleaseStatus, needed: int) -> str:
    """Return how many have approved a candidate that waits for its reviewers, or only how many have voted while votes are
    blind."""
    if status.state not in ("candidate", "approved", "returned") or status.replaced is not None:
        return ""
    names = f": {', '.join(status.voters if status.is_blind else status.approvers)}".removesuffix(": ")
    if status.is_blind:
        return f" ({len(status.voters)} of {needed} votes are in{names})"
    return f" (approved by {len(status.approvers)} of {needed}{names})"


def _describe_begun(site: Site, status: ReleaseStatus, used: Mapping[str, Policy], current: Policy | None) -> Line:
    """Return the line of a release that was begun. `current`: its policy as it is now, if that can be read and has the
    release."""
    id, facts = status.id, status.facts
    state, reason, remark = status.state, status.reason, ""
    if current is None:
        remark = " (its policy cannot be read, or has this release no more)"
    if state == "candidate" and not is_whole(site.candidate(str(id)), status.candidate_hash):
        state, reason = "damaged", "the candidate's folder is not what was frozen"
    elif current is not None:
        remark = _describe_approvals(status, current.review.reviewers)
    if status.package_hash is not None and not package_is_whole(site.package(str(id)), status):
        state, reason = "damaged", f"{state}; the package is not what was published"
    if status.state == "returned" and status.replaced is None:
        reason = f"{reason.removesuffix('.')}. {STATUS('release.returned', release=id)}"
    if status.failed:
        reason = f"{reason} The last run broke off: {status.failed}".strip()
    remark += f" (superseded by {status.successor})" * bool(status.successor)
    remark += f" (given up for {status.replaced})" * (status.replaced is not None)
    policy = used.get(status.policy_hash) if status.policy_hash else current
    claim = _view_claim(policy) | {part: facts[part] for part in ("method", "definition", "scope", "k") if part in facts}
    if status.charge is not None:
        claim |= {"population": status.charge.population}
    records = None if status.charge is None else status.charge.records
    opened = f"opened: {status.why}" if status.state == "open" and status.why else ""
    return Line(
        str(id),
        cast(State, state),
        reason + remark * bool(reason),
        facts.get("rows_out"),
        str(facts.get("claim", "") or opened) + remark,
        status.since,
        id=str(id),
        policy=id.policy,
        partition=id.release,
        revision=id.revision,
        reason_code=status.code or None,
        anonymity_k=facts.get("anonymity_k"),
        rows_in=facts.get("rows_in", records),
        rows_out=facts.get("rows_out"),
        policy_hash=status.policy_hash or None,
        candidate_hash=status.candidate_hash,
        package_hash=status.package_hash,
        approvals=_view_approvals(status, policy),
        superseded_by=status.successor or None,
        given_up_for=None if status.replaced is None else str(status.replaced),
        failed=status.failed or None,
        moments=Moments(**status.moments),
        **claim,
    )


def _find_unapproved(site: Site, registry: Registry, policies: list[Policy], caps: Caps) -> Iterator[str]:
    """Yield a sentence for each file that the officer has not approved as it is now, so that nothing of it runs."""
    try:
        trust = read_trust(site, registry) if policies else None
    except ReleasePipelineError as error:
        yield error.in_full
        return
    for policy in policies if trust is not None else ():
        try:
            check_approved(site, registry, cast(Trust, trust), policy, caps)
        except ReleasePipelineError as error:
            yield error.in_full


def _find_broken_clock(events: tuple[Event, ...]) -> Iterator[str]:
    """Yield a sentence for each place where the clock was set back between two events; only dates depend on it."""
    events = tuple(believed(events))
    for before, after in pairwise(events):
        if (before.moment - after.moment).total_seconds() > CLOCK_SLACK:
            yield f"the clock was set back: event {after.number} is dated {after.noted}, and the one before it {before.noted}."
    if events and (events[-1].moment - datetime.now(UTC)).total_seconds() > CLOCK_SLACK:
        yield f"the clock is behind the registry, whose last event is dated {events[-1].noted}."
