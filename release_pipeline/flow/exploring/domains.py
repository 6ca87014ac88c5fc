"""Domains that cost much: what the noise of a column would be, if its domain ended where its values do.

Only for tables that anybody may see, or in a look: where the values of a column end is told by its values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import PolicyInvalid, ReleasePipelineError
from release_pipeline.flow.exploring.trials import Bench
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.load import parse_changed
from release_pipeline.policy.model import CLAMPED_AT_MOST
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.utility import variance_of
from release_pipeline.stages.measures.subgroups import LEAST
from release_pipeline.stages.simulation import Records, Reference, simulate

LEFT_OUT = (0.0002, 0.001, 0.003, 0.008)  # shares of the records that lie beyond a shorter domain
DRAWS, FEWEST = 15, 50  # simulated releases; values of a column of which something can be told
WORTH = 1.5  # times the squared error, from which on a domain is told
MOST_LOST = 0.02  # of a column's total: clamping moves every sum and mean to one side, by more than two surveys in a row differ,
# and no later look at the release could tell, while the noise that a wide domain costs can be told and averages out


@dataclass(frozen=True, slots=True)
class Shorter:
    """A domain that is shorter than a column's, how many times its squared error the present one has (what clamping adds to it
    included), and what it would take of what the present one leaves: of the records the share that is moved to an end
    (`clamped`), of their absolute values' sum (`total`), and of their variance."""

    column: str
    low: str
    high: str
    times: float
    clamped: float
    total: float
    variance: float


def find_dear_domains(bench: Bench, as_came: Mapping[str, npt.NDArray[np.float64]]) -> Iterator[Shorter]:
    """For every column whose domain costs much: the shorter one that costs least for what it leaves out."""
    if bench.policy.method.family not in ("columns", "by-value"):
        return
    for name, column in bench.policy.noise_columns.items():
        values = as_came.get(name)
        if values is None or len(values) < FEWEST or column.clock is not None:
            continue
        if (own := _with_domain(bench, name, *column.domain)) is None:
            continue
        before = _squares(bench, own, name)
        found: list[Shorter] = []
        for low, high in dict.fromkeys(_shorten(values, column.domain, column.grid, share) for share in LEFT_OUT):
            if (low, high) == column.domain or (policy := _with_domain(bench, name, low, high)) is None:
                continue
            if bench.is_look and _shows_few(values, column.domain, (low, high)):
                continue
            taken = measure_cut(
                np.clip(values, float(column.exact_grid.lo), float(column.exact_grid.hi)), float(low), float(high)
            )
            if taken.total > MOST_LOST:
                continue
            times = before / (_squares(bench, policy, name) + taken.square or math.nan)
            beyond = float(np.mean((values < float(low)) | (values > float(high))))
            found.append(Shorter(name, decimal_text(low), decimal_text(high), times, beyond, taken.total, taken.variance))
        most = float(bench.policy.clamped_at_most.get(name, CLAMPED_AT_MOST))  # with more a release is refused
        worth = [one for one in found if one.times >= WORTH and one.clamped <= most]
        if worth:
            yield max(worth, key=lambda one: one.times)


@dataclass(frozen=True, slots=True)
class Cut:
    """What moving values to the ends of a domain takes: of their absolute values' sum, of their variance, and the mean square of
    how far they are moved."""

    total: float
    variance: float
    square: float


def measure_cut(values: npt.NDArray[np.float64], low: float, high: float) -> Cut:
    """What a domain takes of these values.

    >>> measure_cut(np.array([0.0, 1.0, 1.0, 8.0]), 0, 2)
    Cut(total=0.6, variance=0.9512195121951219, square=9.0)
    """
    left = np.clip(values, low, high)
    moved, total, variance = np.abs(values - left), float(np.abs(values).sum()), variance_of(values)
    return Cut(
        float(moved.sum()) / total if total > 0 else 0.0,
        1 - variance_of(left) / variance if variance > 0 else 0.0,
        float(np.mean(moved * moved)),
    )


def _shows_few(values: npt.NDArray[np.float64], before: tuple[Decimal, Decimal], after: tuple[Decimal, Decimal]) -> bool:
    """Whether a shorter end is where it is for a few values that lie beyond, or for none."""
    below, above = int(np.sum(values < float(after[0]))), int(np.sum(values > float(after[1])))
    return (after[0] != before[0] and below < LEAST) or (after[1] != before[1] and above < LEAST)


def _shorten(
    values: npt.NDArray[np.float64], domain: tuple[Decimal, Decimal], grid: Decimal, share: float
) -> tuple[Decimal, Decimal]:
    """Round ends between which all values lie but for this share; an end that values reach stays."""
    low, high = domain
    top = float(np.quantile(values, 1 - share / (1 if values.min() >= float(low) else 2), method="inverted_cdf"))
    if top < float(high):
        high = min(_round(Decimal(repr(top)), grid, ROUND_CEILING), high)
    if low < 0 or float(np.quantile(values, share / 2)) > float(low) + 0.2 * (float(high) - float(low)):
        bottom = float(np.quantile(values, share / 2, method="inverted_cdf"))
        if bottom > float(low):
            low = max(_round(Decimal(repr(bottom)), grid, ROUND_FLOOR), low)
    return (low, high) if low < high else domain


def _round(value: Decimal, grid: Decimal, how: str) -> Decimal:
    """To two digits, and to the grid."""
    if value == 0:
        return value
    step = max(Decimal(1).scaleb(value.adjusted() - 1), grid)
    steps = math.ceil(step / grid)
    return (value / (grid * steps)).to_integral_value(rounding=how) * grid * steps


def _with_domain(bench: Bench, name: str, low: Decimal, high: Decimal) -> Policy | None:
    """A policy of this column alone, with its own part of epsilon and another domain; None where there is no such."""
    policy, share = bench.policy, bench.policy.column_epsilon[name]

    def change(raw: dict[str, Any]) -> dict[str, Any]:
        columns = cast(dict[str, dict[str, Any]], raw["columns"])
        protect = {
            key: value for key, value in raw["protect"].items() if key not in ("weights", "publish_parts", "amplification")
        }
        return {
            **{key: raw[key] for key in ("policy", "steward", "population", "review", "publish") if key in raw},
            "source": {"path": "of-one-column.csv"},
            "person": "each-row",
            "releases": "once",
            "protect": {**protect, "epsilon": Decimal(format_nano(policy.in_epsilon(share.nano)))},
            "columns": {name: {**columns[name], "domain": [low, high], "outside": "clamp"}},
            "gates": {"min_rows": raw["gates"]["min_rows"]},
        }

    try:
        return parse_changed(bench.written.text, change, name=bench.written.name, read=bench.written.files.__getitem__)
    except PolicyInvalid:
        return None


def _squares(bench: Bench, policy: Policy, name: str) -> float:
    """The mean squared difference of releases of one column, in its own unit; NaN where there would be none."""
    column = policy.noise_columns[name]
    low, high = float(column.exact_grid.lo), float(column.exact_grid.hi)
    numbers = bench.records.columns[name].to_numpy()
    if bench.rows != len(numbers):  # as many as a release has
        numbers = numbers[np.arange(bench.rows) * len(numbers) // bench.rows]
    values = numbers[bench.policy.noise_columns[name].find_reasons(numbers) < 0]  # points of reasons move with the domain
    reference = Reference(Records({name: pa.array(np.clip(values, low, high))}), {name: column}, ())
    try:
        found = simulate(policy, [reference], secret=bench.secret, draws=DRAWS, with_risks=False)
    except ReleasePipelineError:
        return math.nan
    return float(np.median(found.columns[name]["error"])) * variance_of(reference.seen[name])
