"""The real stages, run many times on one table: from records to what a reader of the release would have.

Clusters, statistics and scales are made by the policy's own strategy, then noise, shuffle and suppression, as in a release.
Individual differential privacy is claimed for scales that are fixed at the actual data, so the second table gets the scales of
the first; everything else is its own. Limits of a policy on how much may be suppressed are not applied: they would hide outcomes.

For a method that counts by value only the noisy counts are drawn. They are published, and released values are made from them and
from declared facts: anyone who has the counts can make the values, and neither the fit nor a masked table reveals more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from release_pipeline.masking import COUNTS, RECORD, RecordStrategy, Strategy, find_strategy
from release_pipeline.masking.by_value import read_stages
from release_pipeline.masking.parts import PART
from release_pipeline.masking.swapping import SwapStrategy
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.by_value import Stage
from release_pipeline.mechanisms.noise import SECRET_BYTES, derive_key
from release_pipeline.policy import Policy
from release_pipeline.rows.columns import Read, load_table, read_tables, read_with

Tables = dict[str, pa.Table]
GROUPED_EVERY = 25  # draws: a new grouping only changes the order of ties, and sums do not depend on it. Parts matter
ROOT = bytes(SECRET_BYTES)  # of synthetic secrets: every run of an audit draws the same


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of each draw. `values`: by column, draws by records, NaN if a record was not released; `order`: the record in
    each released row, -1 after the last; `cluster`: the cluster of each record in each column, if there is one."""

    values: Mapping[str, FloatArray]
    order: IntArray
    cluster: Mapping[str, IntArray]

    def in_rows(self, name: str) -> FloatArray:
        """Return a column as it was released, row by row; NaN after the last."""
        rows = np.take_along_axis(self.values[name], np.maximum(self.order, 0), axis=1)
        return np.where(self.order >= 0, rows, np.nan)


@dataclass(frozen=True, slots=True)
class Noiseless:
    """The statistics of a table before any noise, by column: one number for each cluster, in units of the column."""

    centroids: Mapping[str, FloatArray]
    scales: Mapping[str, FloatArray]
    size: IntArray


@dataclass(frozen=True, slots=True)
class Counted:
    """The noisy counts of a column in one draw: the `stages` of each part of the release, and the records (`rows`) of that."""

    stages: Sequence[Sequence[Stage]]
    rows: Sequence[IntArray]


def count_both(
    policy: Policy, first: pa.Table, second: pa.Table, *, draws: int, purpose: str
) -> tuple[list[dict[str, Counted]], list[dict[str, Counted]]]:
    """Return the noisy counts, by column, of so many releases of each of two neighbouring tables, each with a separate secret."""
    strategy = _find_lists(policy)
    counted: tuple[list[dict[str, Counted]], list[dict[str, Counted]]] = [], []
    for number, made in _group_each(policy, [first, second], draws=draws, purpose=purpose):
        for side, table in enumerate((first, second)):
            secret = derive_secret(purpose, "noise", side, number)
            measured = strategy.measure(
                read_with(made[side], read_records(table)), secret=secret, context=(), progress=say_nothing
            )
            counted[side].append(_split_counts(policy, measured[COUNTS], made[side], table.num_rows))
    return counted


def release_tables(policy: Policy, table: pa.Table, *, draws: int, purpose: str) -> list[tuple[pa.Table, Tables]]:
    """Return so many released tables, each with the tables that the grouping stored for it."""
    strategy, releases = _find_lists(policy), list[tuple[pa.Table, Tables]]()
    for number in range(draws):
        made = _group(policy, table, derive_secret(purpose, "grouping", number))
        releases.append((_mask(strategy, table, made, derive_secret(purpose, "noise", number)), made))
    return releases


def describe_noiseless(policy: Policy, table: pa.Table) -> Noiseless | None:
    """Return the exact statistics of a table; None if there are none of all records together."""
    if policy.parts > 1:
        return None
    stored = _group(policy, table, derive_secret("noiseless")).get("statistics")
    if stored is None or "statistic" not in stored.column_names:
        return None
    centroids, scales, size = dict[str, FloatArray](), dict[str, FloatArray](), np.zeros(0, dtype=np.int64)
    for name, column in policy.noise_columns.items():
        mine = stored.filter(pa.array(np.array(stored.column("column_name").to_pylist()) == name))
        size = mine.column("size").to_numpy()
        centroids[name] = column.exact_grid.restore(mine.column("statistic").to_numpy() / size)
        scales[name] = mine.column("scale").to_numpy() / size * float(column.exact_grid.step)
    return Noiseless(centroids, scales, size)


def release_each(policy: Policy, tables: Sequence[pa.Table], *, draws: int, purpose: str) -> list[Seen]:
    """Return the outcomes of so many releases of each of these tables, each release with a separate secret."""
    names = list(policy.noise_columns)
    rows = tables[0].num_rows
    values = [{name: np.full((draws, rows), np.nan) for name in names} for _ in tables]
    order = [np.full((draws, rows), -1, dtype=np.int64) for _ in tables]
    made: list[Tables] = []
    strategy = _find_lists(policy)
    for number, made in _group_each(policy, tables, draws=draws, purpose=purpose):
        for side, table in enumerate(tables):
            released = _mask(strategy, table, made[side], derive_secret(purpose, "noise", side, number))
            records = released.column(RECORD).to_numpy()
            order[side][number, : len(records)] = records
            for name in names:
                values[side][name][number, records] = released.column(name).to_numpy()
    return [Seen(values[side], order[side], _clusters(policy, made[side])) for side in range(len(tables))]


def _group_each(policy: Policy, tables: Sequence[pa.Table], *, draws: int, purpose: str) -> Iterator[tuple[int, list[Tables]]]:
    """Yield the number of each draw, and what the grouping of each table stored for it."""
    made: list[Tables] = []
    every = 1 if policy.parts > 1 else GROUPED_EVERY
    for number in range(draws):
        if number % every == 0:
            secret = derive_secret(purpose, "grouping", number)
            made = [_group(policy, table, secret) for table in tables]
            if policy.definition == "idp":
                made[1:] = [_fix_scales(made[0], its) for its in made[1:]]
        yield number, made


def _find_lists(policy: Policy) -> Strategy:
    """Return the strategy that makes the lists of columns. Swapping moves their values to other rows, which does not affect a
    record's own noise: the promises of swapping are tested separately (`groups`)."""
    strategy = find_strategy(policy)
    return strategy.strategy if isinstance(strategy, SwapStrategy) else strategy


def _group(policy: Policy, table: pa.Table, secret: bytes) -> Tables:
    strategy = _find_lists(policy)
    if isinstance(strategy, RecordStrategy):  # `mask` reads nothing of it, but an attacker knows it anyway
        return dict(strategy.spell_out(read_records(table), secret=secret, context=(), progress=say_nothing))
    return dict(strategy.group(read_records(table), secret=secret, context=(), progress=say_nothing).tables)


def _mask(strategy: Strategy, table: pa.Table, made: Tables, secret: bytes) -> pa.Table:
    measured = strategy.measure(read_with(made, read_records(table)), secret=secret, context=(), progress=say_nothing)
    read = read_with(made | dict(measured), read_records(table))
    return load_table(strategy.suppress(read, strategy.mask(read, secret=secret, context=(), progress=say_nothing)).table)


def _fix_scales(actual: Tables, neighbour: Tables) -> Tables:
    """Return the neighbour's tables with the noise scales of the actual data."""
    mine, its = actual["statistics"], neighbour["statistics"]
    return neighbour | {"statistics": its.set_column(its.column_names.index("scale"), "scale", mine.column("scale"))}


def _clusters(policy: Policy, made: Tables) -> dict[str, IntArray]:
    if policy.parts > 1 or "membership" not in made:
        return {}
    membership = made["membership"]
    named = {name: name if name in membership.column_names else membership.column_names[0] for name in policy.noise_columns}
    return {name: membership.column(column).to_numpy().astype(np.int64) for name, column in named.items()}


def _split_counts(policy: Policy, counts: pa.Table, made: Tables, records: int) -> dict[str, Counted]:
    """Return the counts of each column, part by part if records were put into random parts."""
    if "parts" not in made:
        everybody = [np.arange(records)]
        return {name: Counted([read_stages(counts, name)], everybody) for name in policy.noise_columns}
    part, of_part = made["parts"].column(PART).to_numpy(), counts.column(PART).to_numpy()
    numbers = range(int(part.max()) + 1)
    rows = [np.flatnonzero(part == number) for number in numbers]
    counts_by_part = [counts.filter(pa.array(of_part == number)) for number in numbers]
    return {name: Counted([read_stages(part, name) for part in counts_by_part], rows) for name in policy.noise_columns}


def read_records(table: pa.Table) -> Read:
    """Return the reader by which stages read the records of a table."""
    return read_tables({"records": table})


def derive_secret(*context: str | int) -> bytes:
    """Return a synthetic secret, a different one for each purpose."""
    return derive_key(ROOT, "audit of claims", *context)


def say_nothing(_: str) -> None:
    """Report no progress."""
