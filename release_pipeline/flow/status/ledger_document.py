"""The ledger for a script (the document of `ledger --json`, and of a dossier), and for the picture of a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from release_pipeline.flow.exposure import Exposure, Overlap, read_exposure
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.ledger import Ledger, describe_lost
from release_pipeline.policy.documents import OPTIONAL, Amount, Delta, Exactly, Moment, to_json
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.loss import Account, format_amount
from release_pipeline.report.budgets import PopulationView, StepView

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
    """The ledger for a script; amounts are texts, exact, and "infinity"."""
    account = ledger.account
    people = None if exposure is None else tuple(ExposureView(account.words(amount), n) for amount, n in exposure.in_order)
    return LedgerView(
        population=account.population,
        unit=account.unit,
        cap=account.limit,
        declared=view_cap(account),
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
                lost=describe_lost(ledger, charge) or None,
            )
            for charge in ledger.charges
        ),
        planned=tuple(
            PlannedView(str(plan.release), account.words(plan.cost), plan.fits, plan.at_least) for plan in ledger.planned
        ),
        without_end=ledger.endless,
        exposure=people,
        is_declared=ledger.declared,
        carries=account.carries,
        carried_on_by=ledger.heirs,
    )


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


def view_cap(account: Account) -> CapView:
    """The cap of a population, in parts."""
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
    """A population for a page: charges and plans as steps."""
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
