"""The tables of a policy in words: for the plan, the claim and whoever approves a change."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.formats import exact_text, name_some
from release_pipeline.policy.model import Policy
from release_pipeline.policy.tables import Grouping, Table, Tabulation
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.figures import count_of, show_figure


def describe_table(table: Table) -> str:
    """What a table has in its cells, and what it may lose: "counts of records by state and sex, epsilon 0.25"."""
    what = _describe_cells(table)
    levels = next((len(part.measured) for part in table.by if isinstance(part, Grouping)), 1)
    deep = f" in {levels} levels" if levels > 1 else ""
    return f"{what} by {name_some(table.columns)}{deep}, {describe_share(table)}"


def _describe_cells(table: Table) -> str:
    if table.having is not None:
        weighted = "" if table.weight is None else f" weighted by {table.weight},"
        return f"counts of records with a value in {table.having}{weighted}"
    if table.weight is None:
        return "counts of records" if table.sum is None else f"sums of {table.sum}"
    return f"counts weighted by {table.weight}," if table.sum is None else f"sums of {table.sum} weighted by {table.weight},"


def describe_share(table: Table) -> str:
    """What a table may lose for one record."""
    return f"rho {table.share}" if table.by_rho else f"epsilon {table.share}"


def list_shares(policy: Policy) -> Iterator[str]:
    """What each table may lose, in the unit of the policy."""
    for name, table in policy.tables.items():
        if policy.protect.by_rho and not table.by_rho:
            yield f"{name} epsilon {table.share}, which is rho {format_nano(table.in_rho(1))}"
        else:
            yield f"{name} {table.share}"


def describe_tables(policy: Policy) -> Iterator[str]:
    """Every table in a sentence or two, with its noise from declared facts alone."""
    for name, tabulation in policy.tabulations.items():
        yield f"{name}: {describe_table(tabulation.table)}; {'; '.join(describe_levels(tabulation))}"
    if policy.tables:
        cost, unit = policy.tables_cost or 0, policy.unit
        whose = "household" if policy.of_households else "person"
        people = f", for a {whose} with {policy.records_per_person} records" if policy.records_per_person > 1 else ""
        yield f"together {unit} {format_nano(cost)}{people}, charged beside the rows; all records count, those suppressed too"


def describe_levels(tabulation: Tabulation) -> Iterator[str]:
    """The cells and the noise of each level."""
    unit = f" {tabulation.counted_in}" if tabulation.counted_in else ""
    for number, cells, noise in zip(tabulation.levels, tabulation.shape.cells, tabulation.noise, strict=True):
        level = f"level {number}: " if tabulation.is_deep else ""
        if not noise.amount:
            what = "the number of records" if tabulation.weights is None else "the weight of all records"
            yield f"{level}one cell, {what}, which is public"
            continue
        size = show_figure(noise.magnitude * step_of(tabulation))
        yield f"{level}{count_of(cells, 'cell')}, mean absolute noise of {_describe_noisy(tabulation.table, size)}{unit}"


def _describe_noisy(table: Table, size: str) -> str:
    """What the noise is of, and how large: that of a weighted count is of the population that the sample stands for."""
    if table.sum is not None:
        return f"the sum of {table.sum} {size}" if table.weight is None else f"the weighted sum of {table.sum} {size}"
    return f"a count of records {size}" if table.weight is None else f"a weighted count {size} of the population"


def step_of(tabulation: Tabulation) -> float:
    """What a unit of the noise is in the unit of the cells."""
    return float(tabulation.step)


def step_text(tabulation: Tabulation) -> str:
    """The same as an exact decimal."""
    return exact_text(tabulation.step)
