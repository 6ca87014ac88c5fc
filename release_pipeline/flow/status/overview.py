"""What `status` and the demo's table tell of a site: from the registry, the clock, and the evidence of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.alerts.report import find_trouble
from release_pipeline.flow.cap import open_account
from release_pipeline.flow.exploring.trials import LookView, count_looks_before, describe_looks, group_looks, view_looks
from release_pipeline.flow.holds import find_hold
from release_pipeline.flow.policies import Caps, policy_of, read_caps
from release_pipeline.flow.publication.deliveries import OutstandingView, view_task
from release_pipeline.flow.publication.delivery import list_outstanding
from release_pipeline.flow.publication.published import package_is_whole
from release_pipeline.flow.publication.targets import find_target_faults
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseStatus, read_statuses
from release_pipeline.flow.status.ledger import Draw
from release_pipeline.flow.status.prospects import SeriesStatus, describe_prospects, list_prospects, view_prospects
from release_pipeline.flow.sums import is_whole
from release_pipeline.flow.trust.approvals import check_approved
from release_pipeline.flow.trust.clocks import believed
from release_pipeline.flow.trust.members import Trust, read_trust
from release_pipeline.flow.upcoming import describe_due, next_releases
from release_pipeline.policy import Policy
from release_pipeline.policy.calendar import Upcoming
from release_pipeline.policy.documents import INNER, EpsilonView, Hash, Moment, to_json, view_epsilon
from release_pipeline.policy.loss import Account
from release_pipeline.sentences import STATUS
from release_pipeline.store.ledger import charges_of, list_next_losses
from release_pipeline.store.registry import CLOCK_SLACK, Event, Registry, ReleaseId

MOST_LATE = 12  # periods of a series that are late, told one by one
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
    """When something last happened to a release; null where it did not."""

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
    """Who approved the candidate as it is now: told once as many have voted as must approve, for votes are blind until then."""

    needed: Annotated[int | None, "how many must, by the policy that it was made under; null where that is not known"]
    by: Annotated[tuple[str, ...], "who has approved it; empty as long as votes are blind"]
    returned_by: Annotated[tuple[str, ...], "who has returned it with reasons; empty as long as votes are blind"] = ()
    voted: Annotated[tuple[str, ...], "who has voted, whatever they said"] = ()
    blind: Annotated[bool, "whether votes are not all in, and so are told to nobody but their voters"] = False


@dataclass(frozen=True, slots=True)
class Line:
    """One release of the site: declared and not begun (`open`, `waiting` for its time, or `late`), or as the registry has it.

    What it claims is what its candidate was noted with, or else what the policy says that it was charged under, or is to be.
    """

    release: Annotated[str, "POLICY/PARTITION/rN, as commands take it; POLICY/PARTITION while it is not begun"]
    state: Annotated[State, "docs/operating.md says what each means"]
    reason: Annotated[
        str, "why it is blocked, returned, rejected, late, damaged and so on, in words; empty where there is nothing to say"
    ] = ""
    rows: Annotated[int | None, "rows of the candidate; the same as rows_out"] = None
    claim: Annotated[str, "the claim of the candidate in words; empty before there is one"] = ""
    since: Annotated[str, "when it came into this state, as in `moments`; empty while it is not begun"] = ""
    note: str = field(default="", metadata=INNER)  # reason and claim have it, among what a page shows in columns of its own
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
        """The line for a script."""
        return to_json(self)


@dataclass(frozen=True, slots=True)
class StatusDocument:
    """What `status --json` prints."""

    FORMAT: ClassVar[str] = "release-pipeline/status/1"

    made: Annotated[Moment, "when"]
    releases: Annotated[tuple[Line, ...], "every release that is declared or was begun, each revision by itself"]
    broken: Annotated[tuple[str, ...], "what is wrong at the site beside its releases, in words"]
    series: Annotated[tuple[SeriesStatus, ...], "every series with a timetable, or that is held: what its next ticks charge"]
    looks: Annotated[
        tuple[LookView, ...],
        "every look at confidential records that parameters may be chosen by, and what was called public, in order",
    ] = ()
    outstanding: Annotated[
        tuple[OutstandingView, ...], "what is to be done yet at targets of published packages: `release-pipeline deliver`"
    ] = ()


def view_status(site: Site, *, now: datetime | None = None) -> StatusDocument:
    """The releases of a site for a script."""
    now = now or datetime.now(UTC)
    lines, broken = list_releases(site, now=now)
    series = tuple(view_prospects(found) for found in list_prospects(site, now=now))
    with site.open_registry(read_only=True) as registry:
        looks = view_looks(registry.events)
    outstanding = tuple(view_task(task) for task in list_outstanding(site))
    return StatusDocument(now.isoformat(timespec="seconds"), tuple(lines), tuple(broken), series, looks, outstanding)


def list_releases(site: Site, *, now: datetime | None = None) -> tuple[list[Line], list[str]]:
    """Every release that is declared or was begun, with its state; and what is broken at the site, in words."""
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
    broken += [words for words in (*find_trouble(site), *find_target_faults(site), *site.upstream_faults) if words not in broken]
    lines = [line for policy in policies for line in _lines_of(site, policy, statuses, events, caps, now)]
    listed = {line.release for line in lines}
    unread = " (its policy cannot be read, or has this release no more)"
    lines += [_line(site, known, unread) for name, known in sorted(statuses.items()) if str(name) not in listed]
    current = {policy.policy: policy for policy in policies}
    lines = [_with_facts(line, statuses, used, current) for line in lines]
    return _with_looks(lines, events, caps), [*broken, *without]


def _with_looks(lines: list[Line], events: tuple[Event, ...], caps: Caps | None) -> list[Line]:
    """The lines with how many looks at the data concern each release."""
    ids = [_id_of(line) or ReleaseId(line.policy, line.partition) for line in lines]
    counts = count_looks_before(events, ids, {} if caps is None else caps.declared)
    return [replace(line, looks=counts[id]) if counts[id] else line for line, id in zip(lines, ids, strict=True)]


def _id_of(line: Line) -> ReleaseId | None:
    """The release of a line, if it is begun."""
    name, partition, *revision = line.release.split("/")
    return ReleaseId(name, partition, int(revision[0][1:])) if revision else None


def _find_policies(registry: Registry, statuses: Iterable[ReleaseStatus], policies: Iterable[Policy]) -> dict[str, Policy]:
    """By hash the policies that releases were charged under: those of the site, and earlier ones as far as the registry has
    them."""
    found = {policy.canonical_hash(): policy for policy in policies}
    for digest in {status.policy_hash for status in statuses} - {"", *found}:
        with suppress(ReleasePipelineError):
            found[digest] = policy_of(registry, digest)
    return found


def _with_facts(
    line: Line, statuses: Mapping[ReleaseId, ReleaseStatus], used: Mapping[str, Policy], current: Mapping[str, Policy]
) -> Line:
    """The line with what registry and policy say of its release in figures; nothing where neither knows."""
    name, partition, *_ = line.release.split("/")
    id = _id_of(line)
    known = ReleaseStatus(ReleaseId(name, partition)) if id is None else statuses[id]
    policy = used.get(known.policy_hash) if known.policy_hash else current.get(name)
    facts: dict[str, Any] = {}
    if policy is not None:
        claim = {"method": policy.protect.method, "definition": policy.definition, "scope": policy.protect.scope}
        facts = {**claim, "k": policy.protect.k, "epsilon": view_epsilon(policy), "population": policy.population}
    if known.charge is not None:
        facts |= {"population": known.charge.population, "rows_in": known.charge.records}
    facts |= {part: known.facts[part] for part in ("method", "definition", "scope", "k", "rows_in") if part in known.facts}
    needed = None if policy is None else policy.review.reviewers
    return replace(
        line,
        id=None if id is None else str(id),
        policy=name,
        partition=partition,
        revision=None if id is None else id.revision,
        reason_code=known.code or None,
        anonymity_k=known.facts.get("anonymity_k"),
        rows_out=known.facts.get("rows_out"),
        policy_hash=known.policy_hash or None,
        candidate_hash=known.candidate_hash,
        package_hash=known.package_hash,
        approvals=None if known.candidate_hash is None else _view_approvals(known, needed),
        superseded_by=known.successor or None,
        given_up_for=None if known.replaced is None else str(known.replaced),
        failed=known.failed or None,
        moments=Moments(**known.moments),
        **facts,
    )


def _view_approvals(known: ReleaseStatus, needed: int | None) -> Approvals:
    """Who approved and returned it, as far as that may be told."""
    voted = tuple(known.voters)
    if known.is_blind:
        return Approvals(needed, (), voted=voted, blind=True)
    return Approvals(needed, tuple(known.approvers), tuple(known.returners), voted)


def _read_caps(site: Site) -> tuple[Caps | None, list[str]]:
    """The caps, or in words why there are none."""
    try:
        return read_caps(site), []
    except ReleasePipelineError as error:
        return None, [str(error)]


def describe_status(site: Site, *, now: datetime | None = None, draw: Draw | None = None) -> Iterator[str]:
    """The releases of a site in lines for a person; `draw` draws the table in another way."""
    lines, broken = list_releases(site, now=now)
    rows = [("release", "state", "rows", "what")]
    for line in lines:
        count = "" if line.rows is None else f"{line.rows:,}"
        rows.append((line.release, line.state, count, line.reason or line.claim))
    yield from (draw or _align)(rows)
    for found in list_prospects(site, now=now):
        yield from (f"{'held' if found.hold else 'ticks'} {found.policy}: {line}" for line in describe_prospects(found))
    with site.open_registry(read_only=True) as registry:
        yield from describe_looks(group_looks(registry.events))
    yield from (f"outstanding {task.words}; `release-pipeline deliver` does it" for task in list_outstanding(site))
    for reason in broken:
        yield f"broken: {reason}"


def _align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max(len(release) for release, *_ in rows)
    for release, state, count, what in rows:
        yield f"{release:<{width}}  {state:<10}  {count:>9}  {what}".rstrip()


def _lines_of(
    site: Site,
    policy: Policy,
    statuses: Mapping[ReleaseId, ReleaseStatus],
    events: tuple[Event, ...],
    caps: Caps | None,
    now: datetime,
) -> Iterator[Line]:
    """The releases of one policy: those that it names in its order, or by period as they were opened; and the next one."""
    begun = [known.release for known in statuses if known.policy == policy.policy]
    coming = {upcoming.release: upcoming for upcoming in _take_coming(policy, events, now)}
    names = sorted({*begun, *coming}) if policy.every else policy.release_names
    hold = find_hold(events, policy.policy)
    revisions: dict[str, list[ReleaseStatus]] = {}
    for id, known in sorted(statuses.items()):
        if id.policy == policy.policy:
            revisions.setdefault(id.release, []).append(known)
    for name in names:
        if name in revisions:
            yield from (_line(site, known, approvals=_say_approvals(policy, known)) for known in revisions[name])
        elif policy.cron is not None:
            upcoming = coming[name]
            late = hold is None and upcoming.is_late(now)
            account, fits = _find_headroom(caps, policy, name, events) if late and caps is not None else (None, None)
            refused = "" if account is None or fits else _say_refusal(account)
            yield Line(
                f"{policy.policy}/{name}",
                "late" if late else "waiting",
                f"{describe_due(upcoming, policy)}{refused}" + (f"; {hold.words}" if hold is not None else ""),
                late=late,
                due=None if upcoming.due is None else upcoming.due.isoformat(),
                has_room=fits,
            )
        else:
            yield Line(f"{policy.policy}/{name}", "open")


def _take_coming(policy: Policy, events: tuple[Event, ...], now: datetime) -> Iterator[Upcoming]:
    """The releases that come: all of a list; of periods those that are late, the first few, and the next one."""
    for place, upcoming in enumerate(next_releases(policy, events, now), start=1):
        yield upcoming
        if policy.every and (place == MOST_LATE or not upcoming.is_late(now)):
            return


def _find_headroom(caps: Caps, policy: Policy, release: str, events: tuple[Event, ...]) -> tuple[Account | None, bool | None]:
    """The account of the policy's population, and whether it has room for the next release; nothing if nobody can tell."""
    charges = charges_of(events)
    try:
        account = open_account(caps, policy, charges)
    except ReleasePipelineError:  # a population that is not declared: a run says so
        return None, None
    return account, account.admits(*list_next_losses(charges, policy, [release]), cohort=account.cap.cohort_of(release))


def _say_refusal(account: Account) -> str:
    """That the ledger has no room for a release, in words."""
    return STATUS("release.refused", left=account.left, limit=account.limit, unit=account.unit)


def _say_approvals(policy: Policy, known: ReleaseStatus) -> str:
    """How many have approved what waits for its reviewers, or voted on it, as long as that is all that may be told."""
    if known.state not in ("candidate", "approved", "returned") or known.replaced is not None:
        return ""
    if known.is_blind:
        voters = f": {', '.join(known.voters)}" if known.voters else ""
        return f" ({len(known.voters)} of {policy.review.reviewers} votes are in{voters})"
    names = f": {', '.join(known.approvers)}" if known.approvers else ""
    return f" (approved by {len(known.approvers)} of {policy.review.reviewers}{names})"


def _line(site: Site, known: ReleaseStatus, remark: str = "", *, approvals: str = "") -> Line:
    shown, folder, words = known.state, site.candidate(str(known.id)), known.reason
    if shown == "candidate" and not is_whole(folder, known.candidate_hash):
        shown, remark, approvals = "damaged", " (the candidate's folder is not what was frozen)", ""
    if known.package_hash is not None and not package_is_whole(site.package(str(known.id)), known):
        shown, remark = "damaged", f" ({shown}; the package is not what was published)"
    elsewhere = approvals
    if known.successor:
        elsewhere += f" (superseded by {known.successor})"
    if known.replaced is not None:
        elsewhere += f" (given up for {known.replaced})"
    if known.state == "returned" and known.replaced is None:
        words = f"{words.removesuffix('.')}. {STATUS('release.returned', release=known.id)}"
    if known.failed:
        words = f"{words} The last run broke off: {known.failed}".strip()
    opened = f"opened: {known.why}" if known.state == "open" and known.why else ""
    claim, aside = str(known.facts.get("claim", "")) or opened, remark + elsewhere
    return Line(
        str(known.id),
        cast(State, shown),
        words + aside * bool(words),
        known.facts.get("rows_out"),
        claim + aside,
        known.since,
        note=(words or opened) + remark,
    )


def _find_unapproved(site: Site, registry: Registry, policies: list[Policy], caps: Caps) -> Iterator[str]:
    """What the officer has not approved as it is now, so that nothing of it runs; in words."""
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
    """Where the clock was set back between two events: nothing of a release depends on it, but its dates do."""
    events = tuple(believed(events))
    for before, after in pairwise(events):
        if (before.moment - after.moment).total_seconds() > CLOCK_SLACK:
            yield f"the clock was set back: event {after.number} is dated {after.noted}, and the one before it {before.noted}."
    if events and (events[-1].moment - datetime.now(UTC)).total_seconds() > CLOCK_SLACK:
        yield f"the clock is behind the registry, whose last event is dated {events[-1].noted}."
