"""The tables of a policy in words: for the plan, the claim and whoever approves a change."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.formats import exact_text, name_some, say_unit
from release_pipeline.policy.model import Policy
from release_pipeline.policy.tables import Grouping, Table, Tabulation
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.figures import count_things, show_figure
from release_pipeline.sentences import POLICY


def describe_table(table: Table) -> str:
    """What a table has in its cells, and what it may lose: "counts of records by state and sex, epsilon 0.25"."""
    levels = next((len(part.measured) for part in table.by if isinstance(part, Grouping)), 1)
    kind = f"{_KINDS[table.having is not None, table.sum is not None, table.weight is not None]}{'_in_levels' * (levels > 1)}"
    return POLICY.read_phrases("table")[kind].format(
        columns=name_some(table.columns),
        share=describe_share(table),
        levels=levels,
        sum=table.sum,
        weight=table.weight,
        having=table.having,
    )


_KINDS = {  # by whether records have to have a value, whether one is added up, and whether they are weighted
    (False, False, False): "counts",
    (False, True, False): "sums",
    (False, False, True): "weighted",
    (False, True, True): "weighted_sums",
    (True, False, False): "having",
    (True, False, True): "weighted_having",
}


def describe_share(table: Table) -> str:
    """What a table may lose for one record."""
    amount = str(table.share)
    return POLICY("table.rho", amount=amount) if table.by_rho else POLICY("table.epsilon", amount=amount)


def list_shares(policy: Policy) -> Iterator[str]:
    """What each table may lose, in the unit of the policy."""
    for name, table in policy.tables.items():
        share = str(table.share)
        if policy.protect.by_rho and not table.by_rho:
            yield POLICY("amount.table_in_rho", table=name, epsilon=share, rho=format_nano(table.in_rho(1)))
        else:
            yield POLICY("amount.table", table=name, amount=share)


def describe_tables(policy: Policy) -> Iterator[str]:
    """Every table in a sentence or two, with its noise from declared facts alone."""
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
    """The cells and the noise of each level."""
    for number, cells, noise in zip(tabulation.levels, tabulation.shape.cells, tabulation.noise, strict=True):
        if noise.amount:
            size = f"{show_figure(noise.magnitude * step_of(tabulation))} {tabulation.counted_in}".rstrip()
            words = _describe_noisy(tabulation.table, count_things(cells, "cell"), size)
        else:
            words = POLICY("table.public_count") if tabulation.weights is None else POLICY("table.public_weight")
        yield POLICY("table.level", level=number, words=words) if tabulation.is_deep else words


def _describe_noisy(table: Table, cells: str, noise: str) -> str:
    """What the noise is of, and how large: that of a weighted count is of the population that the sample stands for."""
    if table.sum is not None and table.weight is not None:
        return POLICY("table.noise_of_weighted_sum", cells=cells, sum=table.sum, noise=noise)
    if table.sum is not None:
        return POLICY("table.noise_of_sum", cells=cells, sum=table.sum, noise=noise)
    if table.weight is not None:
        return POLICY("table.noise_of_weighted_count", cells=cells, noise=noise)
    return POLICY("table.noise_of_count", cells=cells, noise=noise)


def step_of(tabulation: Tabulation) -> float:
    """What a unit of the noise is in the unit of the cells."""
    return float(tabulation.step)


def step_text(tabulation: Tabulation) -> str:
    """The same as an exact decimal."""
    return exact_text(tabulation.step)
