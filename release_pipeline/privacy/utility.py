"""What a released column is still good for: closed formulas against the original. All of it is confidential.

Two tables are compared in two ways: record by record (`column_error`, `sse_paper`), for which row i of both belongs to the same
person, and as wholes (distances between distributions, moments, correlations), for which it does not matter whose row is which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays, add_up, ascend, count_where, find_ends, order, varies
from release_pipeline.privacy.grid import FloatArray, Grid, IntArray
from release_pipeline.privacy.samples import weighted_mean, weighted_quantiles

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TENTHS = (0.1, 0.9)
BEYOND = 10  # records that lie beyond a quantile at least: one with fewer would tell of single persons
CURVE_POINTS = 120
_CHUNK = 1 << 20  # records that are looked at together
_SIDES: tuple[Literal["right"], Literal["left"]] = "right", "left"
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spread:
    """A column in numbers. Of `QUANTILES` and of `TENTHS` (`deciles`), those with fewer than ten records beyond them are None; so
    are mean and deviation where fewer than ten records differ from the most common value, for they would tell these records'
    values."""

    mean: float | None
    deviation: float | None
    quantiles: tuple[float | None, ...]
    deciles: tuple[float | None, ...] = ()


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


def describe_spread(ascending: FloatArray, arrays: Arrays = IN_MEMORY) -> Spread:
    """Mean, standard deviation (of the records themselves, not of a larger population) and quantiles of a column in ascending
    order."""
    shares = (*QUANTILES, *TENTHS)
    found = quantiles_of_sorted(ascending, shares)
    beyond = [round(min(q, 1 - q), 6) * len(ascending) for q in shares]  # 1 - 0.9 is a bit less than 0.1
    told = tuple(value if more >= BEYOND else None for value, more in zip(found, beyond, strict=True))
    quantiles, deciles = told[: len(QUANTILES)], told[len(QUANTILES) :]
    if _is_nearly_constant(ascending):
        return Spread(None, None, quantiles, deciles)
    return Spread(mean_of(ascending, arrays), math.sqrt(variance_of(ascending, arrays)), quantiles, deciles)


def quantiles_of_sorted(ascending: FloatArray, shares: Sequence[float]) -> list[float]:
    """The quantiles of a column in ascending order, between two values by how far from each.

    >>> quantiles_of_sorted(np.array([0.0, 10.0, 20.0]), [0.25, 1.0])
    [5.0, 20.0]
    """
    found: list[float] = []
    for share in shares:
        rank = share * (len(ascending) - 1)
        low = min(int(rank), len(ascending) - 1)
        pair = ascending[low : low + 2]
        found.append(float(np.quantile(pair, rank - low)) if len(pair) > 1 else float(pair[0]))
    return found


def describe_weighted_spread(column: FloatArray, weights: FloatArray) -> Spread:
    """The same of what the records stand for, those with a weight. A quantile is the least value that so large a share of it does
    not exceed, and None with fewer than ten records up to it or from it on; everything is None where nothing has a weight."""
    counted = weights > 0
    column, weights = column[counted], weights[counted]
    if not len(column):
        return Spread(None, None, (None,) * len(QUANTILES), (None,) * len(TENTHS))
    found, ascending = weighted_quantiles(column, weights, (*QUANTILES, *TENTHS)), np.sort(column)
    up_to = np.searchsorted(ascending, found, side="right")
    from_on = len(column) - np.searchsorted(ascending, found, side="left")
    few = np.minimum(up_to, from_on) < BEYOND
    told = tuple(None if hidden else value for value, hidden in zip(found, few.tolist(), strict=True))
    quantiles, deciles = told[: len(QUANTILES)], told[len(QUANTILES) :]
    if _is_nearly_constant(ascending):
        return Spread(None, None, quantiles, deciles)
    with np.errstate(over="ignore", invalid="ignore"):  # squares that no float holds give no deviation
        mean = weighted_mean(column, weights)
        deviation = math.sqrt(weighted_mean((column - mean) ** 2, weights))
    return Spread(mean, deviation, quantiles, deciles)


def _is_nearly_constant(ascending: FloatArray) -> bool:
    """Whether fewer than ten records differ from the most common value: of more records than that it is the middle one."""
    if len(ascending) <= 2 * BEYOND:
        return len(ascending) - int(np.unique(ascending, return_counts=True)[1].max()) < BEYOND
    middle = float(ascending[len(ascending) // 2])
    first, beyond = (int(np.searchsorted(ascending, middle, side=side)) for side in ("left", "right"))
    return len(ascending) - (beyond - first) < BEYOND


def ks_distance(first: FloatArray, second: FloatArray) -> float:
    """Kolmogorov-Smirnov: the largest difference between the two distribution functions, in [0, 1].

    >>> ks_distance(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0, 5.0, 6.0]))
    0.5
    """
    return ks_of_steps(Steps.of(np.sort(first)), Steps.of(np.sort(second)))


@dataclass(frozen=True, slots=True)
class Steps:
    """A distribution function: its values in ascending order, and how many records are below each, and in all."""

    values: FloatArray
    below: IntArray

    @classmethod
    def of(cls, ascending: FloatArray) -> Steps:
        """That of a column in ascending order."""
        starts = np.flatnonzero(np.append(True, (ascending[1:] != ascending[:-1]) & ~np.isnan(ascending[:-1])))
        return cls(ascending[starts], np.append(starts, len(ascending)))


def ks_of_steps(first: Steps, second: Steps) -> float:
    """The same of two distribution functions. Between two values of one it is constant and the other one rises, so that the
    largest gap is at one of its values or right before: the one with fewer of them is gone through.

    >>> ks_of_steps(Steps.of(np.array([1.0, 2.0, 3.0, 4.0])), Steps.of(np.array([3.0, 3.0])))
    0.5
    """
    if len(second.values) < len(first.values):
        first, second = second, first
    own, others = first.below / first.below[-1], second.below / second.below[-1]
    at = np.abs(own[1:] - others[np.searchsorted(second.values, first.values, side="right")])
    just_before = np.abs(own[:-1] - others[np.searchsorted(second.values, first.values, side="left")])
    return float(max(np.max(at), np.max(just_before)))


def compare_distributions(first: FloatArray, second: FloatArray, arrays: Arrays = IN_MEMORY) -> tuple[float, float]:
    """`ks_distance` and `wasserstein_distance` of two columns in ascending order."""
    return _ks_of_sorted(first, second, arrays), _wasserstein_of_sorted(first, second, arrays)


def _ks_of_sorted(first: FloatArray, second: FloatArray, arrays: Arrays) -> float:
    """The same of two columns in ascending order, slice by slice: as many numbers as records are not held for it."""
    if _count_steps(second, arrays) < _count_steps(first, arrays):
        first, second = second, first
    return max(arrays.over(partial(_find_gap, first, second), len(first), _CHUNK), default=0.0)


def _find_gap(first: FloatArray, second: FloatArray, part: slice) -> float:
    """The largest gap of two distribution functions at some of the values of the first."""
    values = Steps.of(first[part]).values
    at = (
        np.searchsorted(first, values, side=side) / len(first) - np.searchsorted(second, values, side=side) / len(second)
        for side in _SIDES
    )
    return max(float(np.max(np.abs(one))) for one in at)


def _count_steps(ascending: FloatArray, arrays: Arrays) -> int:
    """How many different values a column in ascending order has, less one."""
    return sum(arrays.over(partial(_count_changes, ascending), len(ascending) - 1))


def _count_changes(ascending: FloatArray, part: slice) -> int:
    return int(np.count_nonzero(ascending[part.start + 1 : part.stop + 1] != ascending[part]))


def ks_of_clusters(ascending: FloatArray, values: FloatArray, sizes: IntArray, arrays: Arrays = IN_MEMORY) -> float:
    """The same of a column in ascending order and of one whose values are those of clusters of so many records each.

    The second distribution function is constant from one of its values to the next, and the first one rises, so that the largest
    gap is at such a value or right before the next.

    >>> ks_of_clusters(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 3.0]), np.array([1, 3]))
    0.5
    """
    if not _ascends(values, arrays):
        if varies(sizes, arrays):
            order = np.argsort(values, kind="stable")
            values, sizes = values[order], sizes[order]
        else:
            values = ascend(arrays, values)
    counts = list(arrays.over(partial(_sum_of, sizes), len(values), _CHUNK))
    below = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    gaps = arrays.over(partial(_find_gap_of_clusters, ascending, values, sizes, below), len(values), _CHUNK)
    return max(gaps, default=0.0)


def _sum_of(sizes: IntArray, part: slice) -> int:
    return int(np.sum(sizes[part]))


def _find_gap_of_clusters(ascending: FloatArray, values: FloatArray, sizes: IntArray, below: IntArray, part: slice) -> float:
    """The largest gap at some of the clusters' values. `below`: how many records lie in the slices before each."""
    n, total = len(ascending), int(below[-1])
    places, own = values[part], sizes[part]
    up_to = np.cumsum(own) + int(below[part.start // _CHUNK])
    differs = places[1:] != places[:-1]  # equal values are one step
    is_last = np.append(differs, part.stop == len(values) or values[part.stop] != places[-1])
    is_first = np.append(part.start == 0 or values[part.start - 1] != places[0], differs)
    at_most = np.searchsorted(ascending, places[is_last], side="right") / n
    before = np.searchsorted(ascending, places[is_first], side="left") / n
    return max(
        float(np.max(np.abs(at_most - up_to[is_last] / total), initial=0.0)),
        float(np.max(np.abs(before - (up_to - own)[is_first] / total), initial=0.0)),
    )


def _ascends(values: FloatArray, arrays: Arrays) -> bool:
    return all(arrays.over(partial(_rises, values), len(values) - 1))


def _rises(values: FloatArray, part: slice) -> bool:
    return bool((values[part.start + 1 : part.stop + 1] >= values[part]).all())


def share_at(column: FloatArray, points: FloatArray, sizes: IntArray | None = None, arrays: Arrays = IN_MEMORY) -> FloatArray:
    """The share of records that are each of the points, exactly; of entries that stand for one record each, or for `sizes`."""
    ascending, place = np.unique(points, return_inverse=True)
    counts = np.zeros(len(ascending) + 1, dtype=np.int64)
    for found in arrays.over(partial(_count_at, column, ascending, sizes), len(column)):
        counts += found
    return (counts / (len(column) if sizes is None else int(np.sum(sizes))))[place]


def _count_at(column: FloatArray, points: FloatArray, sizes: IntArray | None, part: slice) -> IntArray:
    counts = np.zeros(len(points) + 1, dtype=np.int64)
    found = np.searchsorted(points, column[part])
    is_there = column[part] == np.append(points, np.nan)[found]
    np.add.at(counts, found[is_there], 1 if sizes is None else sizes[part][is_there])
    return counts


def wasserstein_distance(first: FloatArray, second: FloatArray) -> float:
    """The area between the two distribution functions: how far records lie apart on average when both columns are sorted.

    >>> wasserstein_distance(np.array([0.0, 0.0]), np.array([3.0, 5.0, 3.0, 5.0]))
    4.0
    """
    return _wasserstein_of_sorted(np.sort(first), np.sort(second), IN_MEMORY)


def _wasserstein_of_sorted(first: FloatArray, second: FloatArray, arrays: Arrays) -> float:
    """The mean distance of values of equal ranks. Of two lists of other lengths a rank is a share of each: they are compared from
    one end of either's records to the next, which are whole numbers where all there is counts for len(first) len(second)."""
    n, m = len(first), len(second)
    if n == m:
        return math.fsum(arrays.over(partial(_sum_apart, first, second), n, _CHUNK)) / n
    return math.fsum(arrays.over(partial(_sum_apart_by_share, first, second), n, _CHUNK)) / n / m


def _sum_apart(first: FloatArray, second: FloatArray, part: slice) -> float:
    return float(np.sum(np.abs(first[part] - second[part])))


def _sum_apart_by_share(first: FloatArray, second: FloatArray, part: slice) -> float:
    n, m = len(first), len(second)
    ends = np.arange(part.start + 1, part.stop + 1, dtype=np.int64) * m
    begin, end = part.start * m, int(ends[-1])
    others = np.arange(begin // n + 1, -(-end // n), dtype=np.int64) * n
    edges = np.concatenate([[begin], np.sort(np.concatenate([ends, others]), kind="stable")])
    places = edges[:-1]
    apart = np.abs(first[places // m] - second[places // n])
    return float(np.sum(apart * np.diff(edges)))  # no dot product: its digits depend on the processor


def choose_places(ascending: FloatArray) -> FloatArray:
    """Where to draw a distribution function: at most 120 places, ascending, that depend on the released column alone, so that no
    place is somebody's confidential value: released values, and even steps between the least and the greatest. `ascending`: the
    released column, sorted."""
    ranks = np.linspace(0, 1, 2 * CURVE_POINTS // 3) * (len(ascending) - 1)
    steps = np.linspace(float(ascending[0]), float(ascending[-1]), CURVE_POINTS // 3)
    return np.unique(np.concatenate([ascending[np.rint(ranks).astype(np.intp)], steps]))


def share_at_most(ascending: FloatArray, places: FloatArray) -> FloatArray:
    """The share of records of a column in ascending order that are at most each of the places."""
    return np.searchsorted(ascending, places, side="right") / len(ascending)


def share_of_many(ascending: FloatArray, places: FloatArray) -> list[float | None]:
    """The same, without the shares that tell of fewer than ten records: at most that or above it. None and all are told."""
    counts, n = np.searchsorted(ascending, places, side="right"), len(ascending)
    few = (counts > 0) & (counts < n) & (np.minimum(counts, n - counts) < BEYOND)
    return [None if hidden else count / n for count, hidden in zip(counts.tolist(), few.tolist(), strict=True)]


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
