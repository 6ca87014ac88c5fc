"""A table that is made up of what a steward believes (`shape` in a policy): no confidential record is looked at."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import WrongUsage
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.policy.sketch import ColumnSketch
from release_pipeline.privacy.unclaimed import Random, make_random
from release_pipeline.stages.simulation import Records

Numbers = npt.NDArray[np.float64]
KEY = bytes(32)  # of choices that protect nothing: the same table every time
NOTHING = ColumnSketch()
TAIL = 3.0  # e-foldings over which values beyond the last quantile reach the end of the domain


def make_up(policy: Policy, *, rows: int | None) -> tuple[Records, tuple[str, ...]]:
    """A table that is as the policy's `shape` says, and what to keep in mind of it."""
    sketch = policy.shape
    if sketch is None:
        raise WrongUsage(
            "the policy has no shape: nothing says what the data may look like.",
            where=policy.policy,
            remedy="Add one, like shape: {rows: 20000, columns: {income: {at: {0: 12%}, quantiles: {50%: 21000, 90%: 62000}}}}.",
        )
    if policy.generalised_columns:
        raise WrongUsage(
            f"{name_some(policy.generalised_columns)}: no table is made up of columns that are generalised.",
            where=policy.policy,
            remedy="Use --like with a file.",
        )
    count, random = rows or sketch.rows, make_random(KEY, policy.policy, "made up")
    numbers = {name: column for name, column in policy.released_columns.items() if isinstance(column, NoiseColumn)}
    scores = random.standard_normal((len(numbers), count))  # which of the records have the low values of each column
    columns: dict[str, pa.Array] = {}
    for name, column in policy.released_columns.items():
        said = sketch.columns.get(name, NOTHING)
        if isinstance(column, NoiseColumn):
            columns[name] = pa.array(make_numbers(column, said, scores[list(numbers).index(name)], random))
        elif isinstance(column, ListedColumn):
            columns[name] = _make_entries(column, said, count, random)
    unsaid = [name for name in columns if name not in sketch.columns]
    if unsaid:
        return Records(columns), (f"of {name_some(unsaid)} the shape says nothing: values are even over what is declared",)
    return Records(columns), ()


def make_numbers(column: NoiseColumn, said: ColumnSketch, scores: Numbers, random: Random) -> Numbers:
    """Numbers of a column in the order of these scores; points beyond the domain where there is no value."""
    count = len(scores)
    missing = [round(float(share) * count) for share in said.missing.values()]
    order = np.argsort(scores, kind="stable")
    lost = random.permutation(count)[: sum(missing)]
    made = np.empty(count)
    made[order] = _values_in_order(column, said, count)
    points = dict(zip(column.reasons, column.reason_points, strict=True))
    starts = np.cumsum([0, *missing])
    for (reason, first), last in zip(zip(said.missing, starts, strict=False), starts[1:], strict=True):
        made[lost[first:last]] = points[reason]
    return made


def _values_in_order(column: NoiseColumn, said: ColumnSketch, count: int) -> Numbers:
    """As many values as there are records, ascending, on the grid."""
    share_valued = 1 - float(sum(said.missing.values(), Decimal(0)))
    heaps = {float(value): round(count * float(share) / max(share_valued, 1e-9)) for value, share in said.at.items()}
    others = max(count - sum(heaps.values()), 0)
    places = (np.arange(others) + 0.5) / max(others, 1)
    spread = quantile_function(said, (float(column.domain[0]), float(column.domain[1])))(places)
    found = np.sort(np.concatenate([column.exact_grid.snap(spread), *(np.full(many, value) for value, many in heaps.items())]))
    return np.resize(found, count) if len(found) != count else found


def quantile_function(said: ColumnSketch, domain: tuple[float, float]) -> Callable[[Numbers], Numbers]:
    """The values at shares of the records: lines between those that are said; beyond the last one values grow by e-foldings to
    the end of the domain, which hardly any reaches."""
    shares = [float(share) for share in said.quantiles]
    values = [float(value) for value in said.quantiles.values()]
    if not shares or shares[0] > 0:
        shares, values = [0.0, *shares], [domain[0], *values]
    last, top = shares[-1], values[-1]

    def find(places: Numbers) -> Numbers:
        inner = np.interp(places, shares, values)
        if last >= 1:
            return inner
        if len(shares) == 1:  # nothing is said: even
            return domain[0] + (domain[1] - domain[0]) * places
        beyond = np.clip((places - last) / (1 - last), 0, 1)
        grown = top + (domain[1] - top) * np.expm1(TAIL * beyond) / math.expm1(TAIL)
        return np.where(places > last, grown, inner)

    return find


def _make_entries(column: ListedColumn, said: ColumnSketch, count: int, random: Random) -> pa.Array:
    known: list[str] = [*map(str, column.values), *(() if column.integers else column.reasons)]
    left = 1 - float(sum(said.shares.values(), Decimal(0)))
    unsaid = [value for value in map(str, column.values) if value not in said.shares]
    each = left / len(unsaid) if unsaid else 0.0
    shares = np.array([float(said.shares[value]) if value in said.shares else each * (value in unsaid) for value in known])
    ends = np.cumsum(np.maximum(shares, 0)) / max(float(np.maximum(shares, 0).sum()), 1e-12)
    drawn = np.minimum(np.searchsorted(ends, random.random(count), side="right"), len(known) - 1)
    entries = pa.array(known, pa.string()).take(pa.array(drawn))
    return entries.cast(pa.int64()) if column.integers else entries
