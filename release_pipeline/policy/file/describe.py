"""Sentences on the gates of a policy, with what passing them reveals; and on its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias

from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.basis.figures import count_things, format_most, percent, show_figure
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import ByValueOptions, ColumnOptions
from release_pipeline.policy.file.sections import Gates
from release_pipeline.policy.file.tables import Grouping, Table, Tabulation
from release_pipeline.policy.values.formats import name_some, say_unit
from release_pipeline.sentences import POLICY

Limits: TypeAlias = Mapping[str, Decimal | int] | int | Decimal | None  # of a gate: for each column, or a single one

RISKY = Decimal("0.1")  # share of linked rows: more is "excessively risky" (KEA18)
# The number of rows is public, and a limit on the released table follows from what was released.
ON_RECORDS = sorted(  # of this release, then of two
    Gates.model_fields.keys() - {"min_rows", *Gates.ON_RELEASED},
    key=lambda name: (name == "differencing_below", list(Gates.model_fields).index(name)),
)


def describe_record_gates(policy: Policy) -> Iterator[str]:
    """Yield each gate that is judged on the records before the charge, with the columns of the same limit together: a published
    release reveals that the records passed it."""
    below = policy.differencing_below if policy.differencing_below > 1 else 0  # one person may always join
    effective = {"clamped_at_most": policy.clamped_at_most, "differencing_below": below}
    for name in ON_RECORDS:
        limits: Limits = effective.get(name, getattr(policy.gates, name))
        is_set = bool(limits)
        if name == "linkage":  # a limit of 0 means that no row may be linked
            is_set = policy.gates.linkage is not None and not keeps_linkage(policy, policy.gates.linkage)
        if is_set:
            yield from _describe_limits(name, limits)


def describe_released_gates(policy: Policy) -> Iterator[str]:
    """Yield each gate that is judged after the charge, on the released table."""
    for number, name in enumerate(policy.gates.on_released):
        if not number:
            yield POLICY("limit.after_charge")
        yield from _describe_limits(name, getattr(policy.gates, name), within="" if policy.swap is None else "_in_blocks")


def _describe_limits(name: str, limits: Limits, *, within: str = "") -> Iterator[str]:
    """Yield the sentences of one gate, with the columns of the same limit together."""
    phrases = POLICY.read_phrases("limit")
    of_columns = limits if isinstance(limits, Mapping) else {"": Decimal(limits or 0)}
    for limit in dict.fromkeys(of_columns.values()):
        columns = name_some(column for column, known in of_columns.items() if column and known == limit)
        key = f"{name}_of" if columns else name
        phrase = phrases.get(f"{key}{within}", phrases[key])
        yield phrase.format(columns=columns, limit=f"{limit:f}", share=percent(Decimal(limit)))


def explain_linkage_gate(policy: Policy) -> Iterator[str]:
    """Yield why linkage is not tried, or how swapping would keep its limit; nothing without such a limit."""
    limit = policy.gates.linkage
    if limit is None:
        return
    if policy.protect.is_synthetic:
        yield POLICY("criteria.synthetic")
    elif policy.swap is not None and keeps_linkage(policy, limit):
        yield POLICY("criteria.swapped", share=format_most(1 / policy.swap.k))
    elif proposal := propose_swap(policy, limit):
        yield POLICY("criteria.proposed", proposal=proposal.rstrip("."))


def keeps_linkage(policy: Policy, limit: Decimal) -> bool:
    """Return whether a limit on linkage holds for all possible records: no row of a synthetic table has an original, and with
    swapping a value of a row belongs to the person identified by the rest of it in at most one of k cases
    (docs/guarantees.md)."""
    return policy.protect.is_synthetic or (policy.swap is not None and limit * policy.swap.k >= 1)


def propose_swap(policy: Policy, limit: Decimal | None) -> str:
    """Return the blocks with which swapping would keep a limit on linkage; empty if the method cannot swap, or there is no limit
    that blocks could keep."""
    if not limit or not isinstance(policy.protect, ColumnOptions | ByValueOptions) or policy.parts > 1:
        return ""
    k = max(math.ceil(1 / limit), 2)
    return POLICY("criteria.propose", k=k, limit=percent(limit))


def tell_linkage(policy: Policy) -> Iterator[str]:
    """Yield what passing the limit on linkage reveals, and what does not follow; nothing without one, or if the method keeps
    it."""
    limit = policy.gates.linkage
    if limit is not None and not keeps_linkage(policy, limit):
        yield POLICY("uncovered.linkage", limit=percent(limit))


# Sentences on the tables of a policy: for the plan, the claim and the person who approves a change.


def describe_table(table: Table) -> str:
    """Return what the cells of a table contain, and what it may lose: "counts of records by state and sex, epsilon 0.25"."""
    amount = str(table.share)
    share = POLICY("table.rho", amount=amount) if table.by_rho else POLICY("table.epsilon", amount=amount)
    levels = next((len(part.measured) for part in table.by if isinstance(part, Grouping)), 1)
    kind = f"{_KINDS[table.having is not None, table.sum is not None, table.weight is not None]}{'_in_levels' * (levels > 1)}"
    return POLICY.read_phrases("table")[kind].format(
        columns=name_some(table.columns),
        share=share,
        levels=levels,
        sum=table.sum,
        weight=table.weight,
        having=table.having,
    )


_KINDS = {  # by whether records must have a value, whether one is added up, and whether they are weighted
    (False, False, False): "counts",
    (False, True, False): "sums",
    (False, False, True): "weighted",
    (False, True, True): "weighted_sums",
    (True, False, False): "having",
    (True, False, True): "weighted_having",
}


def list_shares(policy: Policy) -> Iterator[str]:
    """Yield what each table may lose, in the unit of the policy."""
    for name, table in policy.tables.items():
        share = str(table.share)
        if policy.protect.by_rho and not table.by_rho:
            yield POLICY("amount.table_in_rho", table=name, epsilon=share, rho=format_nano(table.in_rho(1)))
        else:
            yield POLICY("amount.table", table=name, amount=share)


def describe_tables(policy: Policy) -> Iterator[str]:
    """Yield a sentence or two for every table, with its noise from declared facts only."""
    for name, tabulation in policy.tabulations.items():
        yield f"{name}: {describe_table(tabulation.table)}; {'; '.join(describe_levels(tabulation))}"
    if policy.tables:
        amount, unit, records = format_nano(policy.tables_cost or 0), say_unit(policy.unit), policy.records_per_person
        if records == 1:
            yield POLICY("table.together", unit=unit, amount=amount)
        else:
            whose = policy.privacy_unit
            yield POLICY("table.together_several", unit=unit, amount=amount, whose=whose, records=records)


def describe_levels(tabulation: Tabulation) -> Iterator[str]:
    """Yield the cells and the noise of each level."""
    for number, cells, noise in zip(tabulation.levels, tabulation.shape.cells, tabulation.noise, strict=True):
        if noise.amount:
            size = f"{show_figure(noise.magnitude * float(tabulation.step))} {tabulation.counted_in}".rstrip()
            sentence = _describe_noisy(tabulation.table, count_things(cells, "cell"), size)
        else:
            sentence = POLICY("table.public_count") if tabulation.weights is None else POLICY("table.public_weight")
        yield POLICY("table.level", level=number, words=sentence) if tabulation.is_deep else sentence


def _describe_noisy(table: Table, cells: str, noise: str) -> str:
    """Return what the noise is on, and how large it is: for a weighted count it is on the population that the sample
    represents."""
    if table.sum is not None and table.weight is not None:
        return POLICY("table.noise_of_weighted_sum", cells=cells, sum=table.sum, noise=noise)
    if table.sum is not None:
        return POLICY("table.noise_of_sum", cells=cells, sum=table.sum, noise=noise)
    if table.weight is not None:
        return POLICY("table.noise_of_weighted_count", cells=cells, noise=noise)
    return POLICY("table.noise_of_count", cells=cells, noise=noise)
