"""The ledger of a population: what was charged for which release, what is planned, and what is left. And person by person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.cap import NEEDS_RELEASES
from release_pipeline.flow.exposure import Exposure, Overlap, format_amount, read_exposure
from release_pipeline.flow.lineage import check_lineage, list_heirs, list_populations, open_population
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.series import find_series
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import read_statuses
from release_pipeline.flow.upcoming import MOST_TOLD, describe_timetable, next_releases
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import OPTIONAL, Amount, Exactly, Hash, Moment, to_json
from release_pipeline.policy.loss import Account, Loss, depends_on_records
from release_pipeline.policy.populations import find_population
from release_pipeline.privacy.figures import count_of
from release_pipeline.store.ledger import Charge, find_entered, list_charges, list_next_losses
from release_pipeline.store.registry import Event, ReleaseId

DEFINITIONS: tuple[Literal["dp", "idp"], ...] = ("dp", "idp")
SCOPES: tuple[Literal["centroid", "column", "table"], ...] = ("centroid", "column", "table")
MOST_AHEAD = 5  # releases of an endless series that are shown


@dataclass(frozen=True, slots=True)
class Planned:
    """A release that is declared and not charged: what it may spend (with the fewest records that its policy lets through, where
    that matters), and whether there is room for it after the ones before it."""

    release: str
    cost: int | None
    fits: bool
    at_least: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of one population, its charges with those of the populations that it carries on, and what its policies plan.
    `endless`: the policies that never end; `declared`: whether populations.yaml has it now; `heirs`: the populations that carry
    it on, so that nothing is charged to it any more; `lost`: what was lost with the site, and when the officer entered its
    charge after the restore (empty where the backup had it). What was lost counts as drawn: nobody knows that it was not."""

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
        """The part of what is spent whose noise is not drawn yet."""
        mine = [charge for charge in self.charges if charge.population == self.account.population]
        return self.account.sum_of(charge.loss for charge in mine if charge.id in self.undrawn)


def read_ledgers(site: Site, population: str | None = None, *, rows: int | None = None) -> list[Ledger]:
    """The ledger of every population that is declared or was ever charged, or of one. `rows`: of a planned release (default: its
    min_rows)."""
    caps = read_caps(site)
    with site.open_registry(read_only=True) as registry:
        charges, events = list_charges(registry), registry.events
    populations = list_populations(caps, charges)
    if population is not None and population not in populations:
        known = ", ".join(populations) or "none"
        raise WrongUsage(f"this site has no population '{population}'.", where=str(caps.file), remedy=f"There are: {known}.")
    statuses, entered = read_statuses(events), find_entered(events)
    lost = {name: entered.get(name, "") for name, status in statuses.items() if status.lost}
    policies, _ = site.read_policies()  # `status` tells what is wrong with the others
    ledgers: list[Ledger] = []
    for name in populations if population is None else [population]:
        account, heirs = open_population(caps, name, charges), list_heirs(caps, name, charges)
        mine = tuple(charge for charge in charges if charge.population in (name, *account.carries))
        planned, ahead = list[Planned](), account
        for policy in policies:
            if policy.population == name:
                releases = _ahead(policy, charges, events)
                losses = _losses(policy, releases, charges, rows=rows)
                for release, loss in zip(releases, losses, strict=True):
                    ahead = ahead.plus(loss, cohort=account.cap.cohort_of(release.split("/")[1]))
                    by_rows = depends_on_records(policy) and rows is None
                    planned.append(Planned(release, account.of(loss), ahead.admits() and not heirs, by_rows))
        undrawn = frozenset(charge.id for charge in mine if statuses[charge.id].drawn is None and charge.id not in lost)
        endless = tuple(policy.policy for policy in policies if policy.population == name and policy.every)
        ledgers.append(Ledger(account, mine, undrawn, tuple(planned), endless, name in caps.declared, heirs, lost))
    return ledgers


def describe_ledger(ledger: Ledger) -> Iterator[str]:
    """A ledger in lines for a person."""
    account = ledger.account
    yield f"population {account.population}: cap {account.limit} ({account.unit}), for each person in the worst case"
    reserved = f", of it {account.words(ledger.reserved)} reserved for noise not drawn yet" if ledger.undrawn else ""
    yield f"  spent      {account.spent}{reserved}"
    yield f"  remaining  {account.left}"
    if not account.admits():
        yield "  overdrawn  more is spent than the cap allows: nothing is charged until the officer raises it"
    if account.carries:
        yield f"  carries    what its people were charged in {', '.join(account.carries)}"
    if ledger.heirs:
        yield f"  closed     carried on by {', '.join(ledger.heirs)}; nothing is charged to it any more"
    elif not ledger.declared:
        yield "  forgotten  not declared in populations.yaml any more, and carried on by none: every run is refused until it is"
    if account.cap.cohorts is not None:
        yield "  cohorts    disjoint: releases of other names are about other people, and what is spent is the most of one"
    width = max([7, *(len(str(charge.id)) for charge in ledger.charges), *(len(plan.release) for plan in ledger.planned)])
    for charge in ledger.charges:
        what = "reserved" if charge.id in ledger.undrawn else "spent"
        remark = f"; {words}" if (words := describe_lost(ledger, charge)) else ""
        where = f" in {charge.population}" * (charge.population != account.population)
        where += f" of cohort {charge.cohort}" * bool(charge.cohort)
        yield f"  {charge.id!s:<{width}}  {account.words(account.of(charge.loss)):>10}  {what} {charge.noted[:10]}{where}{remark}"
    for plan in ledger.planned:
        what = "planned" if plan.fits else "planned: will be refused"
        least = " at least, more with more rows" if plan.at_least else ""
        yield f"  {plan.release:<{width}}  {account.words(plan.cost):>10}  {what}{least}"
    if ledger.endless:
        yield f"  without end: {', '.join(ledger.endless)} (the next {MOST_AHEAD} are shown)"


def describe_lost(ledger: Ledger, charge: Charge) -> str:
    """What became of a charge whose release was lost with the site; empty for any other."""
    if charge.id not in ledger.lost:
        return ""
    moment = ledger.lost[charge.id]
    if not moment:
        return "lost with the site, after it was charged"
    return f"lost with the site; charged as of {count_of(charge.records, 'record')} by the officer on {moment[:10]}"


def describe_exposure(site: Site, ledger: Ledger) -> Iterator[str]:
    """How many people were exposed to how much, exactly. Confidential: it says who took part how often."""
    exposure = read_exposure(site, ledger.account)
    if nobody := sorted(str(charge.id) for charge in ledger.charges if ledger.lost.get(charge.id)):
        yield f"  without {', '.join(nobody)}: lost with the site, and with it who was in it"
    yield "  confidential: how many people were exposed to how much (policies with a person column)"
    for amount, people in exposure.in_order:
        yield f"  {ledger.account.words(amount):>10}  {count_of(people, 'person')}".replace("persons", "people")


@dataclass(frozen=True, slots=True)
class Headroom:
    """What the population of a policy has spent, and what the policy's next releases (`ahead`) would make of it: their `losses`,
    or None where those depend on a number of rows that nobody named. `begun`: the hash of the policy that its series of parts
    began under, where that is another one."""

    policy: Policy
    account: Account
    ahead: tuple[str, ...]
    losses: tuple[Loss, ...] | None
    begun: str = ""

    @property
    def fitting(self) -> int:
        """How many of those that are ahead fit, one after the other."""
        account = self.account
        for fitting, (release, loss) in enumerate(zip(self.ahead, self.losses or (), strict=False)):
            account = account.plus(loss, cohort=self.cohort_of(release))
            if not account.admits():
                return fitting
        return len(self.losses or ())

    def cohort_of(self, release: str) -> str:
        """The cohort that a release (POLICY/PARTITION/rN) would be charged to; empty where releases add up."""
        return self.account.cap.cohort_of(release.split("/")[1])

    @property
    def needs(self) -> str:
        """What has to be otherwise before anything fits; empty where something could."""
        if not self.losses or self.account.of(self.losses[0]) is not None:
            return ""
        return _explain_infinity(self.policy, self.account)


def read_headroom(site: Site, policy: Policy, *, rows: int | None) -> Headroom:
    """The room that the ledger of its population has for a policy."""
    caps = read_caps(site)
    find_population(caps.declared, policy.population, file=caps.file)
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
        events = registry.events
    check_lineage(caps, charges)
    [ledger] = read_ledgers(site, policy.population, rows=rows)
    ahead = _ahead(policy, charges, events)
    unknown = rows is None and depends_on_records(policy)
    losses = None if unknown else tuple(_losses(policy, ahead, charges, rows=rows))
    series = find_series(events, policy.policy) if policy.publishes_parts else None
    begun = "" if series is None or series.policy_hash == policy.canonical_hash() else series.policy_hash
    return Headroom(policy, ledger.account, tuple(ahead), losses, begun)


def describe_headroom(headroom: Headroom) -> Iterator[str]:
    """It in lines for a person."""
    policy, account, ahead, losses = headroom.policy, headroom.account, headroom.ahead, headroom.losses
    if losses is None:
        yield "depends on the number of rows: name it with --rows"
        return
    spent = f"population {account.population} has spent {account.spent} of {account.limit} ({account.unit})"
    if not losses:
        yield f"{spent}; every release of this policy is charged already, and a rerun costs nothing"
        return
    loss, cohort = losses[0], headroom.cohort_of(ahead[0])
    verdict = "fits" if account.admits(loss, cohort=cohort) else "is refused"
    yield f"{spent}; the next release {verdict}: {account.after(loss, cohort=cohort)} after it"
    if headroom.needs:
        yield headroom.needs
    if headroom.begun:
        yield f"its series began under another policy ({headroom.begun}): a run is refused until that one is restored"
    if policy.every or len(ahead) > 1:
        which = f"of the next {len(ahead)} releases" if policy.every else f"of its {len(ahead)} releases not charged yet"
        take = f"take {account.words(account.of(loss))} each"
        if policy.publishes_parts:
            take = f"are parts of one table and take {account.words(account.sum_of(losses))} together"
        yield f"{which}, which {take}, {headroom.fitting if headroom.fitting < len(ahead) else 'all'} fit"


@dataclass(frozen=True, slots=True)
class CapView:
    """A cap as populations.yaml declares it: an epsilon in one definition and scope, or a number of releases."""

    epsilon: Annotated[Exactly | None, "null for a cap of releases"]
    definition: Annotated[Literal["dp", "idp"] | None, "what epsilon is counted in; null likewise"]
    scope: Annotated[Literal["centroid", "column", "table"] | None, "what it is counted for; null likewise"]
    releases: Annotated[int | None, "null for a cap of epsilon"]


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
    cohort: Annotated[str | None, "of disjoint people, the one that it was charged to"] = field(default=None, metadata=OPTIONAL)
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
    exposure: Annotated[tuple[ExposureView, ...] | None, "with --exposure; confidential"] = field(default=None, metadata=OPTIONAL)
    is_declared: Annotated[bool, "whether populations.yaml has it now; if not, the cap is that of its last charge"] = True
    carries: Annotated[tuple[str, ...], "the populations that its people were in before: what was charged there counts here"] = ()
    carried_on_by: Annotated[tuple[str, ...], "the populations that its people are in now: nothing is charged here any more"] = ()
    cohorts: Annotated[Literal["disjoint"] | None, "releases with other names are about other people: they do not add up"] = None


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

    definition: Annotated[Literal["dp", "idp"], "what epsilon is counted in"]
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


@dataclass(frozen=True, slots=True)
class NextView:
    """The next release of a policy in the ledger."""

    release: Annotated[str, "POLICY/PARTITION/rN"]
    amount: Annotated[Amount, "what it takes"]
    fits: Annotated[bool, "whether the ledger has room for it"]
    after: Annotated[Amount, "what is charged to the population with it"]


@dataclass(frozen=True, slots=True)
class HeadroomView:
    """The ledger before and after the next release of a policy."""

    population: Annotated[str, "its name"]
    unit: Annotated[str, "what is counted, in words"]
    cap: Annotated[Amount, "the most that may be spent"]
    declared: Annotated[CapView, "the cap in parts"]
    spent: Annotated[Amount, "what is charged already"]
    remaining: Annotated[Amount, "what may still be charged"]
    rows_needed: Annotated[bool, "whether what a release takes depends on its rows, and none are named: see --rows"]
    next: Annotated[NextView | None, "null where every release is charged already, or rows are needed"]
    ahead: Annotated[tuple[str, ...], "the releases that are not charged yet; of a series without end the next few"]
    fitting: Annotated[int | None, "how many of them fit, one after the other; null where rows are needed"]
    needs: Annotated[str | None, "why nothing can ever fit under this cap, and what would; null where something can"]
    series_policy_hash: Annotated[
        Hash | None,
        "of the policy that its series of parts began under, if that is another: a run is refused until it is restored",
    ]


def view_ledger(ledger: Ledger, exposure: Exposure | None = None) -> LedgerView:
    """The ledger for a script; amounts are texts, exact, and "infinity"."""
    account = ledger.account
    people = None if exposure is None else tuple(ExposureView(account.words(amount), n) for amount, n in exposure.in_order)
    return LedgerView(
        population=account.population,
        unit=account.unit,
        cap=account.limit,
        declared=_view_cap(account),
        spent=account.spent,
        reserved=account.words(ledger.reserved),
        remaining=account.left,
        charges=tuple(
            ChargeView(
                release=str(charge.id),
                amount=account.words(account.of(charge.loss)),
                state="reserved" if charge.id in ledger.undrawn else "spent",
                drawn=charge.id not in ledger.undrawn,
                charged=charge.noted,
                population=None if charge.population == account.population else charge.population,
                cohort=charge.cohort or None,
                lost=describe_lost(ledger, charge) or None,
            )
            for charge in ledger.charges
        ),
        planned=tuple(PlannedView(plan.release, account.words(plan.cost), plan.fits, plan.at_least) for plan in ledger.planned),
        without_end=ledger.endless,
        exposure=people,
        is_declared=ledger.declared,
        carries=account.carries,
        carried_on_by=ledger.heirs,
        cohorts=account.cap.cohorts,
    )


@dataclass(frozen=True, slots=True)
class ComingView:
    """A release that a timetable opens."""

    release: Annotated[str, "its part: the name of the release within the policy"]
    due: Annotated[Moment, "when it is opened, or if `earliest` not before then"]
    earliest: Annotated[bool, "whether another one comes first, so that it may be later"]
    left_out: Annotated[tuple[str, ...], "periods before it that only `run` opens, since one after them is charged"]


def view_coming(site: Site, policy: Policy) -> Iterator[ComingView]:
    """The first few of what the timetable of a policy opens, for a script."""
    if policy.cron is None:
        return
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    for upcoming in islice(next_releases(policy, events, datetime.now(UTC)), MOST_TOLD):
        if upcoming.due is not None:
            yield ComingView(upcoming.release, upcoming.due.isoformat(), upcoming.earliest, upcoming.left_out)


def describe_coming(site: Site, policy: Policy) -> Iterator[str]:
    """What the timetable of a policy opens when, as the site's registry stands; nothing where there is none."""
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    yield from describe_timetable(policy, events, datetime.now(UTC))


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """It as a script, or a dossier, has it."""
    return to_json(view_ledger(ledger))


def view_ledgers(site: Site, ledgers: Iterable[Ledger], *, exposure: bool, overlap: Overlap | None = None) -> LedgerDocument:
    """Several, person by person too if that is asked for."""
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


def view_headroom(headroom: Headroom) -> HeadroomView:
    """The room for a script."""
    account, first = headroom.account, None
    if headroom.losses:
        loss, cohort = headroom.losses[0], headroom.cohort_of(headroom.ahead[0])
        fits, after = account.admits(loss, cohort=cohort), account.after(loss, cohort=cohort)
        first = NextView(headroom.ahead[0], account.words(account.of(loss)), fits=fits, after=after)
    return HeadroomView(
        population=account.population,
        unit=account.unit,
        cap=account.limit,
        declared=_view_cap(account),
        spent=account.spent,
        remaining=account.left,
        rows_needed=headroom.losses is None,
        next=first,
        ahead=headroom.ahead,
        fitting=None if headroom.losses is None else headroom.fitting,
        needs=headroom.needs or None,
        series_policy_hash=headroom.begun or None,
    )


def _view_cap(account: Account) -> CapView:
    cap = account.cap.cap
    return CapView(None if cap.epsilon is None else str(cap.epsilon), cap.definition, cap.scope, cap.releases)


def _explain_infinity(policy: Policy, account: Account) -> str:
    """Why nothing fits under the cap, and what would."""
    if not policy.adds_up:
        return NEEDS_RELEASES
    kept = " or fewer kept columns" if policy.kept_columns and account.cap.cap.scope == "table" else ""
    return f"nothing bounds this policy in {account.unit}: it needs a cap in its own definition and scope, another method{kept}"


def _losses(policy: Policy, releases: list[str], charges: list[Charge], *, rows: int | None) -> list[Loss]:
    return list_next_losses(charges, policy, [release.split("/")[1] for release in releases], records=rows)


def _ahead(policy: Policy, charges: list[Charge], events: tuple[Event, ...]) -> list[str]:
    """The releases of a policy that are still to be charged, opened revisions included; of an endless series the next ones."""
    statuses = read_statuses(events)
    charged = {charge.id for charge in charges}
    opened = [known for known, status in statuses.items() if known.policy == policy.policy and status.replaced is None]
    waiting = [str(known) for known in opened if known not in charged]
    begun = {known.release for known in statuses if known.policy == policy.policy}
    names = [name for name in policy.release_names if name not in begun]
    if policy.every:
        coming = islice(next_releases(policy, events, datetime.now(UTC)), max(1, MOST_AHEAD - len(waiting)))
        names = [upcoming.release for upcoming in coming]
    return [*waiting, *(f"{policy.policy}/{name}/r1" for name in names)]
