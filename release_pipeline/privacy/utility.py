"""What a released column is still good for: closed formulas against the original. All of it is confidential.

Two tables are compared in two ways: record by record (`column_error`, `sse_paper`), for which row i of both belongs to the same
person, and as wholes (moments, correlations; `distributions` has distances of these), for which it does not matter whose row is
which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays, add_up, ascend, count_where, find_ends, order, varies
from release_pipeline.privacy.grid import FloatArray, Grid

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Clamping:
    """What moving values into the declared domain took from a column: the `share` of records that lay outside, and the mean
    square of how far they were moved over the `variance` of the values as they came (over 1 where nearly all were moved far)."""

    share: float
    variance: float


def measure_clamping(numbers: FloatArray, grid: Grid, arrays: Arrays = IN_MEMORY) -> Clamping:
    """What clamping takes from a column. Outside is what the grid does not bring back to the ends of the domain. NaN, which
    stands for a missing number, is never outside.

    >>> measure_clamping(np.array([0.0, 4.0, 4.0, 8.0]), Grid.declare((0, 6), 1))
    Clamping(share=0.25, variance=0.125)
    """
    clamp = _Clamp(float(grid.lo), float(grid.hi), float(grid.step) / 2)
    outside = count_where(clamp.lie_outside, numbers, arrays=arrays)
    if not outside:
        return Clamping(0.0, 0.0)
    there = len(numbers) - count_where(np.isnan, numbers, arrays=arrays)
    least, most = map(float, find_ends(numbers, arrays, (np.fmin, np.fmax)))
    unit = max(abs(least), abs(most))  # squares of the largest numbers would not be finite
    mean = add_up(partial(_over, unit), numbers, arrays=arrays) / there
    variance = add_up(partial(_square_off, unit, mean), numbers, arrays=arrays) / there if most > least else 0.0
    moved = add_up(partial(clamp.square_moved, unit), numbers, arrays=arrays) / there if variance > 0 else 0.0
    return Clamping(outside / len(numbers), moved / variance if variance > 0 else 0.0)


@dataclass(frozen=True, slots=True)
class _Clamp:
    """A domain, and how far from its ends numbers still are brought back to them. NaN is nowhere outside."""

    low: float
    high: float
    reach: float

    def lie_outside(self, part: FloatArray) -> Flags:
        """Which numbers are moved."""
        return (part < self.low - self.reach) | (part > self.high + self.reach)

    def square_moved(self, unit: float, part: FloatArray) -> FloatArray:
        """How far, in squares of this unit."""
        moved = np.square(part / unit - np.clip(part, self.low, self.high) / unit)
        return np.where(self.lie_outside(part), moved, 0.0)


def _over(unit: float, part: FloatArray) -> FloatArray:
    return np.nan_to_num(part / unit)


def _square_off(unit: float, mean: float, part: FloatArray) -> FloatArray:
    return np.nan_to_num(np.square(part / unit - mean))


def column_error(
    original: FloatArray, released: FloatArray, *, variance: float | None = None, arrays: Arrays = IN_MEMORY
) -> float:
    """Mean squared difference over the variance; 1.0 is no better than publishing the mean. It is the error of a method where
    `original` is what the method saw (`Grid.snap`): what clamping took before is `measure_clamping`'s.

    The variance is that of the original, or is given where these records are some of more: that of all.
    """
    variance = variance_of(original, arrays) if variance is None else variance
    if variance <= 0:
        return 0.0
    return add_up(_square_apart, original, released, arrays=arrays) / len(original) / variance


def _square_apart(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.square(x - y)


def variance_of(column: FloatArray, arrays: Arrays = IN_MEMORY) -> float:
    """The variance of the records themselves; exactly 0 where all are equal, however their mean was rounded."""
    if not varies(column, arrays):
        return 0.0
    return add_up(partial(square_from, mean_of(column, arrays)), column, arrays=arrays) / len(column)


def square_from(centre: float, part: FloatArray) -> FloatArray:
    """How far numbers are from a centre, squared."""
    return np.square(part - centre)


def mean_of(column: FloatArray, arrays: Arrays = IN_MEMORY) -> float:
    """The mean, the same wherever the column lies."""
    return add_up(np.positive, column, arrays=arrays) / len(column)


def sse_paper(original: Sequence[FloatArray], released: Sequence[FloatArray], arrays: Arrays = IN_MEMORY) -> float:
    """IDP24's mean SSE over the columns of two tables: mean of (1/m^2) sum_a ((x_a - y_a) / var_a)^2, literally."""
    if len(original) != len(released):
        raise InvalidArgument("the tables do not have equally many columns.", where="released")
    each = (_sse_of_column(original[a], released[a], arrays) for a in range(len(original)))  # no two columns are held at once
    total = math.fsum(each)
    return total / len(original) ** 2


def _sse_of_column(x: FloatArray, y: FloatArray, arrays: Arrays) -> float:
    variance = variance_of(x, arrays)
    if variance <= 0:
        return 0.0
    return add_up(partial(_square_apart_over, variance), x, y, arrays=arrays) / len(x)


def _square_apart_over(variance: float, one: FloatArray, other: FloatArray) -> FloatArray:
    return np.square((one - other) / variance)


def covariance_matrix(columns: Sequence[FloatArray], arrays: Arrays = IN_MEMORY) -> FloatArray:
    """Covariances of the records themselves, column by column: no matrix of all records is made."""
    m = len(columns)
    means = [mean_of(column, arrays) for column in columns]
    found = np.zeros((m, m))
    varied = [a for a in range(m) if varies(columns[a], arrays)]
    with np.errstate(over="ignore", invalid="ignore"):  # numbers whose squares no float holds have no covariance
        for a in varied:
            one = columns[a]
            for b in varied[: varied.index(a) + 1]:
                product = partial(_multiply_off, means[a], means[b])
                found[a, b] = found[b, a] = add_up(product, one, columns[b], arrays=arrays) / len(one)
    return found


def _multiply_off(mean: float, mean_of_other: float, x: FloatArray, y: FloatArray) -> FloatArray:
    return (x - mean) * (y - mean_of_other)


def correlation_matrix(covariances: FloatArray) -> FloatArray:
    """Correlations of covariances; NaN where a column is constant."""
    variances = np.diagonal(covariances)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
        return np.clip(covariances / np.outer(deviations, deviations), -1, 1)


def rank_values(values: FloatArray, arrays: Arrays = IN_MEMORY) -> FloatArray:
    """The rank of each value, from 0; equal ones have the mean of theirs.

    >>> rank_values(np.array([5.0, 1.0, 5.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    return arrays.put(partial(_mean_ranks, ascend(arrays, values)), order(arrays, values), np.float64)


def _mean_ranks(ascending: FloatArray, part: slice) -> FloatArray:
    """Those of some of these."""
    found, place = np.unique(ascending[part], return_inverse=True)
    first, beyond = (np.searchsorted(ascending, found, side=side) for side in ("left", "right"))
    return ((first + beyond - 1) / 2)[place]


def rank_correlation_matrix(columns: Sequence[FloatArray], arrays: Arrays = IN_MEMORY) -> FloatArray:
    """Spearman's correlations: those of ranks; NaN where a column is constant."""
    return correlation_matrix(covariance_matrix([rank_values(column, arrays) for column in columns], arrays))


def pmse(propensity: FloatArray, share: float) -> float:
    """The mean squared distance of propensity scores from the share of released records among both: 0 where released records
    cannot be told from original ones, `share (1 - share)` at most on average where they always can (WOO09, SNO18)."""
    return float(np.mean((propensity - share) ** 2))


def pmse_by_chance(parameters: int, share: float, records: int) -> float:
    """What pMSE a logistic regression with so many parameters, its constant included, has by chance: the expectation for two
    independent samples of one population.

    With scores p = share + share (1 - share) x'b near the share, and b of mean 0 and covariance (share (1 - share) X'X)^-1, the
    sum of the squares of p - share is share (1 - share) times a chi-square of parameters - 1. SNO18 take the original records as
    fixed, which makes it 1 - share times that.
    """
    return (parameters - 1) * share * (1 - share) / records


def f_measure(truth: np.ndarray, said: np.ndarray) -> float:
    """The harmonic mean of precision and recall of saying yes; 0 where neither is defined.

    >>> f_measure(np.array([True, True, False, False]), np.array([True, False, True, False]))
    0.5
    """
    hits = int(np.count_nonzero(truth & said))
    both = int(np.count_nonzero(truth)) + int(np.count_nonzero(said))
    return 2 * hits / both if both else 0.0
