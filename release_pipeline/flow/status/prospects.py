"""What the next ticks of a timetable will open and charge, what is left after each, and the first that the ledger will refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.cap import open_account
from release_pipeline.flow.lineage import check_lineage
from release_pipeline.flow.policies import Caps, read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import Hold, read_state, read_statuses
from release_pipeline.flow.upcoming import next_releases, words_of
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Amount, Moment
from release_pipeline.policy.loss import Account, depends_on_records, next_loss
from release_pipeline.store.ledger import charges_of
from release_pipeline.store.registry import Event

TICKS = 5
MOST_OF_OTHERS = 1000  # releases of another policy that come before the last of these


@dataclass(frozen=True, slots=True)
class Tick:
    """What a tick of a timetable opens and charges."""

    release: Annotated[str, "its part: the name of the release within the policy"]
    opens: Annotated[Moment, "the tick that opens it, at the earliest: the source may come later"]
    amount: Annotated[Amount, "what it charges, in the cap's unit"]
    at_least: Annotated[bool, "whether more records would charge more: reckoned with the fewest that the policy lets through"]
    fits: Annotated[bool, "whether the ledger will have room for it; after the first that is refused none is opened"]
    left: Annotated[Amount, "what is left under the cap then, with what other timetables of the population charge before"]


@dataclass(frozen=True, slots=True)
class Prospects:
    """What comes of a series by itself."""

    policy: Annotated[str, "the name of its policy"]
    held: Annotated[Hold | None, "null unless it is held"] = None
    ticks: Annotated[
        tuple[Tick, ...], "what the next five releases that ticks open will charge; none while held, or without a timetable"
    ] = ()
    refused: Annotated[str | None, "the first of them that the ledger will refuse"] = None
    unit: Annotated[str, "what the cap counts, in words; empty without ticks"] = ""
    limit: Annotated[str, "the cap, in that unit; empty likewise"] = ""


def read_prospects(site: Site, policy: Policy, *, rows: int | None = None, now: datetime | None = None) -> Prospects:
    """What the next ticks of a policy's timetable open and charge, as registry and caps stand. `rows`: of each of its releases
    (default: the fewest that the policy lets through)."""
    caps, (policies, _) = read_caps(site), site.read_policies()
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    others = [known for known in policies if known.policy != policy.policy]
    return foresee(caps, policy, others, events, rows=rows, now=now or datetime.now(UTC))


def foresee(
    caps: Caps, policy: Policy, others: Sequence[Policy], events: tuple[Event, ...], *, rows: int | None = None, now: datetime
) -> Prospects:
    """`read_prospects` of what was read. What `others` charge to the same population before counts: what is opened and waits, and
    what their timetables open."""
    holds = read_state(events).holds
    if policy.policy in holds or policy.cron is None:
        return Prospects(policy.policy, holds.get(policy.policy))
    charges = list(charges_of(events))
    check_lineage(caps, charges)
    account = open_account(caps, policy, charges)
    sharing = [known for known in others if known.population == policy.population and known.policy not in holds]
    for known in (*sharing, policy):
        account = _with_waiting(account, known, events, rows if known is policy else None)
    mine = _list_ticks(policy, events, now, most=TICKS)
    last = mine[-1][0] if mine else now
    foreign = [(*tick, known) for known in sharing for tick in _list_ticks(known, events, now, until=last, most=MOST_OF_OTHERS)]
    plan = sorted([*foreign, *((*tick, policy) for tick in mine)], key=lambda tick: (tick[0], tick[2] is policy))
    losses = {known.policy: next_loss(known, rows if known is policy else None) for known in (*sharing, policy)}
    ticks, stopped = list[Tick](), set[str]()
    for moment, name, whose in plan:
        loss = losses[whose.policy]
        fits = whose.policy not in stopped and account.admits(loss)
        if fits:
            account = account.plus(loss)
        else:
            stopped.add(whose.policy)
        if whose is policy:
            at_least = rows is None and depends_on_records(policy)
            amount, left = account.words(account.of(loss)), account.words(account.remaining)
            ticks.append(Tick(name, moment.isoformat(), amount, at_least, fits, left))
    refused = next((tick.release for tick in ticks if not tick.fits), None)
    return Prospects(policy.policy, None, tuple(ticks), refused, account.unit, account.limit)


def describe_prospects(found: Prospects) -> Iterator[str]:
    """It in lines for a person."""
    if found.held is not None:
        yield f"{found.held.words.rstrip('.')}; nothing is opened or charged until `release-pipeline resume {found.policy}`"
    for tick in found.ticks:
        amount = f"{'at least ' * tick.at_least}{tick.amount}"
        when = f"{words_of(datetime.fromisoformat(tick.opens))}: {tick.release}"
        if tick.fits:
            yield f"{when} charges {amount}, and leaves {tick.left} of {found.limit} ({found.unit})"
        elif tick.release == found.refused:
            yield f"{when} is refused: it would charge {amount}, and {tick.left} of {found.limit} is left ({found.unit})"
        else:
            yield f"{when} waits for {found.refused}"


def list_prospects(site: Site, *, now: datetime | None = None) -> Iterator[Prospects]:
    """Those of every series of a site that has a timetable or is held, also by a policy that cannot be read; of whose population
    there is no cap the hold alone."""
    now = now or datetime.now(UTC)
    policies, _ = site.read_policies()
    with site.open_registry(read_only=True) as registry:
        holds = read_state(registry.events).holds
    for policy in policies:
        if policy.cron is None and policy.policy not in holds:
            continue
        try:
            yield read_prospects(site, policy, now=now)
        except ReleasePipelineError:  # a cap that is not declared: `status` says so of its releases
            yield Prospects(policy.policy, holds.get(policy.policy))
    known = {policy.policy for policy in policies}
    yield from (Prospects(name, hold) for name, hold in sorted(holds.items()) if name not in known)


def _with_waiting(account: Account, policy: Policy, events: tuple[Event, ...], rows: int | None) -> Account:
    """The account with what is opened and not charged: its run comes before the next tick."""
    statuses = read_statuses(events).values()
    mine = [known for known in statuses if known.id.policy == policy.policy and known.state == "open" and known.replaced is None]
    loss = next_loss(policy, rows)
    for _ in mine:
        account = account.plus(loss) if account.admits(loss) else account
    return account


def _list_ticks(
    policy: Policy, events: tuple[Event, ...], now: datetime, *, most: int, until: datetime | None = None
) -> list[tuple[datetime, str]]:
    """Which tick opens which release: one each, no earlier than it is due, and none before now."""
    found: list[tuple[datetime, str]] = []
    if policy.cron is None:
        return found
    before = now
    for upcoming in next_releases(policy, events, now):
        due = upcoming.due or now
        before = due if due > before else policy.cron.next_after(before)
        if len(found) == most or (until is not None and before > until):
            break
        found.append((before, upcoming.release))
    return found
