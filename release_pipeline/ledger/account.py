"""The ledger of a population: what was charged for which release, what is planned, what is left, and the exposure of each
person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from release_pipeline.errors import WrongUsage
from release_pipeline.formats.budgets import PopulationView, StepView
from release_pipeline.ledger.exposure import Exposure, Overlap, read_exposure
from release_pipeline.ledger.policies import list_heirs, list_populations, next_releases, open_population, read_caps
from release_pipeline.ledger.states import read_state, read_statuses
from release_pipeline.mechanisms.basis.figures import count_of
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import OPTIONAL, Amount, Delta, Exactly, Moment, to_json
from release_pipeline.policy.plans.loss import Account, depends_on_records, format_amount, next_loss
from release_pipeline.policy.values.formats import decimal_text
from release_pipeline.store.ledger import Charge, find_entered, list_charges
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.store.site import Site

Draw: TypeAlias = Callable[[Sequence[Sequence[str]]], Iterable[str]]  # formats a table of rows, the head first, as lines
MOST_AHEAD = 5  # releases of an endless series that are shown
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Planned:
    """A release that is declared and not charged: what it may spend (with the fewest records that its policy accepts, if that
    matters), and whether there is room for it after all planned releases before it, including those of other policies."""

    release: ReleaseId
    cost: int | None
    fits: bool
    at_least: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of one population, its charges with those of the populations that it carries on, and what its policies plan.
    `endless`: the policies that never end; `declared`: whether populations.yaml has it now; `heirs`: its successor populations,
    so that nothing is charged to it any more; `lost`: releases lost with the site, and when the officer entered their charges
    after the restore (empty if the backup had them). A lost release counts as drawn, because nobody can know that it was not."""

    account: Account
    charges: tuple[Charge, ...]
    undrawn: frozenset[ReleaseId]
    planned: tuple[Planned, ...]
    endless: tuple[str, ...]
    declared: bool = True
    heirs: tuple[str, ...] = ()
    lost: Mapping[ReleaseId, str] = field(default_factory=dict[ReleaseId, str])

    @property
    def reserved(self) -> int | None:
        """Return the part of the spent budget whose noise is not drawn yet; None is infinity."""
        mine = (charge for charge in self.charges if charge.population == self.account.population)
        return self.account.sum_of(charge.loss for charge in mine if charge.id in self.undrawn)


def read_ledgers(
    site: Site, population: str | None = None, *, rows: int | None = None, now: datetime | None = None
) -> list[Ledger]:
    """Return the ledger of every population that is declared or was ever charged, or of one. `rows`: records of a planned release
    (default: its min_rows)."""
    now = now or datetime.now(UTC)
    caps = read_caps(site)
    with site.open_registry(read_only=True) as registry:
        charges, events = list_charges(registry), registry.events
    populations = list_populations(caps, charges)
    if population is not None and population not in populations:
        known = ", ".join(populations) or "none"
        raise WrongUsage(f"this site has no population '{population}'.", where=str(caps.file), remedy=f"There are: {known}.")
    statuses, entered = read_statuses(events), find_entered(events)
    lost = {name: entered.get(name, "") for name, status in statuses.items() if status.lost}
    policies, _ = site.read_policies()  # `status` reports what is wrong with the others
    ledgers: list[Ledger] = []
    for name in populations if population is None else [population]:
        account, heirs = open_population(caps, name, charges), list_heirs(caps, name, charges)
        mine = tuple(charge for charge in charges if charge.population in (name, *account.carries))
        here = [policy for policy in policies if policy.population == name]
        planned = tuple(_plan(here, account, charges, events, rows=rows, now=now, is_closed=bool(heirs)))
        undrawn = frozenset(charge.id for charge in mine if statuses[charge.id].drawn is None and charge.id not in lost)
        endless = tuple(policy.policy for policy in here if policy.every)
        ledgers.append(Ledger(account, mine, undrawn, planned, endless, name in caps.declared, heirs, lost))
    return ledgers


def _plan(
    policies: Sequence[Policy],
    account: Account,
    charges: list[Charge],
    events: tuple[Event, ...],
    *,
    rows: int | None,
    now: datetime,
    is_closed: bool,
) -> Iterator[Planned]:
    """Return what the policies of a population will charge, in order of time. After a release that has no room, the others of its
    series wait."""
    losses = {policy.policy: next_loss(policy, rows) for policy in policies}
    by_rows = {policy.policy for policy in policies if rows is None and depends_on_records(policy)}
    coming = [each for policy in policies for each in _list_coming(policy, charges, events, now)]
    ahead, refused = account, set[str]()
    for _, release in sorted(coming, key=lambda each: each[0]):
        loss = losses[release.policy]
        fits = not is_closed and release.policy not in refused and ahead.admits(loss)
        if fits:
            ahead = ahead.plus(loss)
        else:
            refused.add(release.policy)
        yield Planned(release, account.of(loss), fits, release.policy in by_rows)


def describe_ledger(ledger: Ledger, *, draw: Draw | None = None) -> Iterator[str]:
    """Yield the lines of a ledger as text; `draw` formats the table in another way."""
    account = ledger.account
    yield f"population {account.population}: cap {account.limit} ({account.unit}), for each person in the worst case"
    reserved = f", of it {account.format(ledger.reserved)} reserved for noise not drawn yet" if ledger.undrawn else ""
    at_delta = f"; {account.at_delta}" if account.at_delta else ""
    yield f"  spent      {account.spent}{reserved}{at_delta}"
    yield f"  remaining  {account.left}"
    if not account.admits():
        yield "  overdrawn  more is spent than the cap allows: nothing is charged until the officer raises it"
    if account.carries:
        yield f"  carries    what its people were charged in {', '.join(account.carries)}"
    if ledger.heirs:
        yield f"  closed     carried on by {', '.join(ledger.heirs)}; nothing is charged to it any more"
    elif not ledger.declared:
        yield "  forgotten  not declared in populations.yaml any more, and carried on by none: every run is refused until it is"
    if draw is not None:
        yield from draw([("release", account.unit, "what"), *_tabulate(ledger)])
    else:
        width = max([7, *(len(release) for release, _, _ in _tabulate(ledger))])
        yield from (f"  {release:<{width}}  {amount:>10}  {what}" for release, amount, what in _tabulate(ledger))
    if ledger.endless:
        yield f"  without end: {', '.join(ledger.endless)} (the next {MOST_AHEAD} are shown)"


def _tabulate(ledger: Ledger) -> Iterator[tuple[str, str, str]]:
    """Yield for each release its name, the amount that it spent or will spend, and its state."""
    account = ledger.account
    for charge in ledger.charges:
        what = "reserved" if charge.id in ledger.undrawn else "spent"
        remark = f"; {words}" if (words := describe_lost(ledger, charge)) else ""
        where = f" in {charge.population}" * (charge.population != account.population)
        yield str(charge.id), account.format(account.of(charge.loss)), f"{what} {charge.noted[:10]}{where}{remark}"
    for plan in ledger.planned:
        what = "planned" if plan.fits else "planned: will be refused"
        least = " at least, more with more rows" if plan.at_least else ""
        yield str(plan.release), account.format(plan.cost), f"{what}{least}"


def describe_lost(ledger: Ledger, charge: Charge) -> str:
    """Return what happened to a charge whose release was lost with the site; empty for any other charge."""
    if charge.id not in ledger.lost:
        return ""
    moment = ledger.lost[charge.id]
    if not moment:
        return "lost with the site, after it was charged"
    return f"lost with the site; charged as of {count_of(charge.records, 'record')} by the officer on {moment[:10]}"


def describe_exposure(site: Site, ledger: Ledger) -> Iterator[str]:
    """Yield how many people were exposed to how much, exactly. Confidential: it shows who took part how often."""
    exposure = read_exposure(site, ledger.account)
    if nobody := sorted(str(charge.id) for charge in ledger.charges if ledger.lost.get(charge.id)):
        yield f"  without {', '.join(nobody)}: lost with the site, and with it who was in it"
    if ledger.account.carries:
        yield f"  without what they were exposed to in {', '.join(ledger.account.carries)}: `ledger --overlap` adds that up"
    yield "  confidential: how many people were exposed to how much (policies with a person column)"
    for amount, people in exposure.in_order:
        yield f"  {ledger.account.format(amount):>10}  {count_of(people, 'person')}".replace("persons", "people")


def list_ahead(policy: Policy, charges: list[Charge], events: tuple[Event, ...]) -> list[ReleaseId]:
    """Return the releases of a policy that are still to be charged, opened revisions included; for an endless series the next
    ones."""
    return [release for _, release in _list_coming(policy, charges, events, datetime.now(UTC))]


def _list_coming(
    policy: Policy, charges: list[Charge], events: tuple[Event, ...], now: datetime
) -> Iterator[tuple[datetime, ReleaseId]]:
    """Yield those releases, each with the moment from which it may be charged: first the opened ones (now), then one at each time
    of the timetable. The latest possible moment stands for a release that only a person opens, or a series on hold."""
    state, charged, waiting = read_state(events), {charge.id for charge in charges}, 0
    is_held = policy.policy in state.holds
    moment = _LAST if is_held else now
    for known, status in state.releases.items():
        if known.policy == policy.policy and status.replaced is None and known not in charged:
            waiting += 1
            yield moment, known
    coming = next_releases(policy, events, now)
    for upcoming in islice(coming, max(1, MOST_AHEAD - waiting)) if policy.every else coming:
        if policy.cron is None or is_held:
            moment = _LAST
        else:
            moment = upcoming.due if upcoming.due is not None and upcoming.due > moment else policy.cron.next_after(moment)
        yield moment, ReleaseId(policy.policy, upcoming.release)


# The ledger for a script (the document of `ledger --json`, and of a dossier), and for a chart.


DEFINITIONS: tuple[Literal["dp", "idp"], ...] = ("dp", "idp")
SCOPES: tuple[Literal["centroid", "column", "table"], ...] = ("centroid", "column", "table")


@dataclass(frozen=True, slots=True)
class CapView:
    """A cap as populations.yaml declares it: an epsilon in one definition and scope, or a number of releases."""

    epsilon: Annotated[Exactly | None, "null for a cap of releases, or of rho alone"]
    definition: Annotated[Literal["dp", "idp", "zcdp"] | None, "what epsilon is counted in; null likewise"]
    scope: Annotated[Literal["centroid", "column", "table"] | None, "what it is counted for; null likewise"]
    releases: Annotated[int | None, "null for a cap of epsilon or rho"]
    delta: Annotated[Delta | None, "under zcdp: the delta of that epsilon"] = field(default=None, metadata=OPTIONAL)
    rho: Annotated[Exactly | None, "under zcdp: the most rho, which is what is added up"] = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class ChargeView:
    """What was charged for a release. Charges are never given back."""

    release: Annotated[str, "POLICY/PARTITION/rN"]
    amount: Annotated[Amount, "in the cap's unit"]
    state: Annotated[Literal["reserved", "spent"], "reserved until the noise is drawn"]
    drawn: Annotated[bool, "whether the noise is drawn; what was lost with the site counts as drawn, for nobody knows"]
    charged: Annotated[Moment, "when"]
    population: Annotated[str | None, "which one it was charged to, where that is one that this population carries on"] = field(
        default=None, metadata=OPTIONAL
    )
    lost: Annotated[str | None, "in words, what became of it, where it was lost with the site and a backup was put back"] = field(
        default=None, metadata=OPTIONAL
    )


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A release that is declared and not charged."""

    release: Annotated[str, "POLICY/PARTITION/rN"]
    amount: Annotated[Amount, "in the cap's unit"]
    fits: Annotated[bool, "whether there is room for it after the ones before it"]
    at_least: Annotated[bool, "whether it grows with the rows: `amount` is for the fewest that its policy lets through"]


@dataclass(frozen=True, slots=True)
class ExposureView:
    """How many people were exposed to how much, exactly. Confidential."""

    amount: Annotated[Amount, "in the cap's unit"]
    people: Annotated[int, "how many"]


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The account of one population: amounts are for each person in the worst case, as if everybody were in every release."""

    population: Annotated[str, "its name"]
    unit: Annotated[str, "what is counted, in words: releases, or epsilon with definition and scope"]
    cap: Annotated[Amount, "the most that may be spent, in that unit"]
    declared: Annotated[CapView, "the cap in parts"]
    spent: Annotated[Amount, "what is charged, `reserved` included"]
    reserved: Annotated[Amount, "the part of it whose noise is not drawn yet"]
    remaining: Annotated[Amount, "what may still be charged"]
    charges: Annotated[tuple[ChargeView, ...], "in their order"]
    planned: Annotated[tuple[PlannedView, ...], "what its policies plan; of a series without end the next few"]
    without_end: Annotated[tuple[str, ...], "the policies whose releases never end"]
    exposure: Annotated[tuple[ExposureView, ...] | None, "with --exposure, of it alone; confidential"] = field(
        default=None, metadata=OPTIONAL
    )
    is_declared: Annotated[bool, "whether populations.yaml has it now; if not, the cap is that of its last charge"] = True
    carries: Annotated[tuple[str, ...], "the populations that its people were in before: what was charged there counts here"] = ()
    carried_on_by: Annotated[tuple[str, ...], "the populations that its people are in now: nothing is charged here any more"] = ()


@dataclass(frozen=True, slots=True)
class InBothView:
    """How many people are in two populations, or in two policies, exactly. Confidential."""

    population: Annotated[str, "one population"]
    policy: Annotated[str | None, "a policy of it; null where all of them are meant"]
    other_population: Annotated[str, "the other population, or the same one"]
    other_policy: Annotated[str | None, "a policy of that; null likewise"]
    people: Annotated[int, "how many are in both"]


@dataclass(frozen=True, slots=True)
class WorstView:
    """The most that one person was charged for in all, exactly. Confidential."""

    definition: Annotated[Literal["dp", "idp", "zcdp"], "what is counted: epsilon, or rho under zcdp"]
    scope: Annotated[Literal["centroid", "column", "table"], "what it is counted for"]
    amount: Annotated[Amount, "over all populations and policies"]


@dataclass(frozen=True, slots=True)
class OverlapView:
    """Who is in two populations or policies, in counts. Confidential."""

    both: Annotated[tuple[InBothView, ...], "each two populations, then each two policies, that have people in common"]
    worst: Annotated[tuple[WorstView, ...], "for each definition and scope"]
    unknown: Annotated[tuple[str, ...], "charged releases whose people, or some of them, cannot be found in other populations"]
    identifiers: Annotated[dict[str, tuple[str, ...]], "by person column: the populations. Across columns nobody is compared"]


@dataclass(frozen=True, slots=True)
class LedgerDocument:
    """What `ledger --json` prints."""

    FORMAT: ClassVar[str] = "release-pipeline/ledger/1"

    populations: Annotated[tuple[LedgerView, ...], "those that are declared or were ever charged, or the one that was named"]
    overlap: Annotated[OverlapView | None, "with --overlap; confidential"] = field(default=None, metadata=OPTIONAL)


def view_ledger(ledger: Ledger, exposure: Exposure | None = None) -> LedgerView:
    """Return the ledger for a script; amounts are exact texts, or "infinity"."""
    account = ledger.account
    people = None if exposure is None else tuple(ExposureView(account.format(amount), n) for amount, n in exposure.in_order)
    return LedgerView(
        population=account.population,
        unit=account.unit,
        cap=account.limit,
        declared=view_cap(account),
        spent=account.spent,
        reserved=account.format(ledger.reserved),
        remaining=account.left,
        charges=tuple(
            ChargeView(
                release=str(charge.id),
                amount=account.format(account.of(charge.loss)),
                state="reserved" if charge.id in ledger.undrawn else "spent",
                drawn=charge.id not in ledger.undrawn,
                charged=charge.noted,
                population=None if charge.population == account.population else charge.population,
                lost=describe_lost(ledger, charge) or None,
            )
            for charge in ledger.charges
        ),
        planned=tuple(
            PlannedView(str(plan.release), account.format(plan.cost), plan.fits, plan.at_least) for plan in ledger.planned
        ),
        without_end=ledger.endless,
        exposure=people,
        is_declared=ledger.declared,
        carries=account.carries,
        carried_on_by=ledger.heirs,
    )


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as a script, or a dossier, has it."""
    return to_json(view_ledger(ledger))


def view_ledgers(site: Site, ledgers: Iterable[Ledger], *, exposure: bool, overlap: Overlap | None = None) -> LedgerDocument:
    """Return the document of several ledgers, with the exposure of each person if requested."""
    return LedgerDocument(
        tuple(view_ledger(ledger, read_exposure(site, ledger.account) if exposure else None) for ledger in ledgers),
        None if overlap is None else _view_overlap(overlap),
    )


def _view_overlap(overlap: Overlap) -> OverlapView:
    both = [InBothView(one, None, other, None, people) for one, other, people in overlap.populations]
    both += [InBothView(one, policy, other, second, people) for one, policy, other, second, people in overlap.policies]
    worst = [
        WorstView(definition, scope, format_amount(overlap.worst[what]))
        for definition in DEFINITIONS
        for scope in SCOPES
        if (what := f"{definition}_{scope}") in overlap.worst
    ]
    return OverlapView(tuple(both), tuple(worst), overlap.unknown, dict(overlap.identifiers))


def view_cap(account: Account) -> CapView:
    """Return the cap of a population, in parts."""
    cap = account.cap.cap
    return CapView(
        None if cap.epsilon is None else str(cap.epsilon),
        cap.definition,
        cap.scope,
        cap.releases,
        None if cap.delta is None else decimal_text(cap.delta),
        None if cap.rho is None else str(cap.rho),
    )


def view_population(ledger: Ledger) -> PopulationView:
    """Return a population for a page: charges and plans as steps."""
    account = ledger.account
    charges = [
        StepView(
            str(charge.id),
            account.of(charge.loss),
            "reserved" if charge.id in ledger.undrawn else "spent",
            charge.noted[:10],
            remark=describe_lost(ledger, charge),
        )
        for charge in ledger.charges
    ]
    plans = [
        StepView(
            str(plan.release),
            plan.cost,
            "planned" if plan.fits else "refused",
            remark="at least, more with more rows" if plan.at_least else "",
        )
        for plan in ledger.planned
    ]
    return PopulationView(
        name=account.population,
        unit=account.unit,
        in_releases=account.cap.cap.releases is not None,
        cap=account.most,
        spent=account.total,
        reserved=ledger.reserved,
        remaining=account.remaining,
        steps=(*charges, *plans),
        endless=ledger.endless,
    )
