"""What a released column is still good for: closed formulas against the original. All of it is confidential.

Two tables are compared in two ways: record by record (`column_error`, `sse_paper`), for which row i of both belongs to the same
person, and as wholes (distances between distributions, moments, correlations), for which it does not matter whose row is which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.arrays import add_up, pieces
from release_pipeline.privacy.grid import FloatArray, Grid, IntArray
from release_pipeline.privacy.samples import weighted_mean, weighted_quantiles

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TENTHS = (0.1, 0.9)
BEYOND = 10  # records that lie beyond a quantile at least: one with fewer would tell of single persons
CURVE_POINTS = 120
_CHUNK = 1 << 20  # records that are looked at together
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


def measure_clamping(numbers: FloatArray, grid: Grid) -> Clamping:
    """What clamping takes from a column. Outside is what the grid does not bring back to the ends of the domain. NaN, which
    stands for a missing number, is never outside.

    >>> measure_clamping(np.array([0.0, 4.0, 4.0, 8.0]), Grid.declare((0, 6), 1))
    Clamping(share=0.25, variance=0.125)
    """
    low, high, reach = float(grid.lo), float(grid.hi), float(grid.step) / 2

    def lie_outside(part: FloatArray) -> Flags:
        return (part < low - reach) | (part > high + reach)  # NaN never does

    outside = sum(int(np.count_nonzero(lie_outside(numbers[part]))) for part in pieces(len(numbers)))
    if not outside:
        return Clamping(0.0, 0.0)
    there = int(sum(np.count_nonzero(~np.isnan(numbers[part])) for part in pieces(len(numbers))))
    least, most = float(np.fmin.reduce(numbers)), float(np.fmax.reduce(numbers))
    unit = max(abs(least), abs(most))  # squares of the largest numbers would not be finite
    mean = add_up(lambda part: np.nan_to_num(part / unit), numbers) / there

    def square_off(part: FloatArray) -> FloatArray:
        return np.nan_to_num(np.square(part / unit - mean))

    def square_moved(part: FloatArray) -> FloatArray:
        return np.where(lie_outside(part), np.square(part / unit - np.clip(part, low, high) / unit), 0.0)

    variance = add_up(square_off, numbers) / there if most > least else 0.0
    share = outside / len(numbers)
    return Clamping(share, add_up(square_moved, numbers) / there / variance if variance > 0 else 0.0)


def column_error(original: FloatArray, released: FloatArray, *, variance: float | None = None) -> float:
    """Mean squared difference over the variance; 1.0 is no better than publishing the mean. It is the error of a method where
    `original` is what the method saw (`Grid.snap`): what clamping took before is `measure_clamping`'s.

    The variance is that of the original, or is given where these records are some of more: that of all.
    """
    variance = variance_of(original) if variance is None else variance
    if variance <= 0:
        return 0.0
    return add_up(lambda x, y: np.square(x - y), original, released) / len(original) / variance


def variance_of(column: FloatArray) -> float:
    """The variance of the records themselves; exactly 0 where all are equal, however their mean was rounded."""
    if not np.ptp(column) > 0:
        return 0.0
    mean = mean_of(column)
    return add_up(lambda part: np.square(part - mean), column) / len(column)


def mean_of(column: FloatArray) -> float:
    """The mean, the same wherever the column lies."""
    return add_up(np.positive, column) / len(column)


def sse_paper(original: Sequence[FloatArray], released: Sequence[FloatArray]) -> float:
    """IDP24's mean SSE over the columns of two tables: mean of (1/m^2) sum_a ((x_a - y_a) / var_a)^2, literally."""
    if len(original) != len(released):
        raise InvalidArgument("the tables do not have equally many columns.", where="released")
    total = math.fsum(_sse_of_column(original[a], released[a]) for a in range(len(original)))  # no two columns are held at once
    return total / len(original) ** 2


def _sse_of_column(x: FloatArray, y: FloatArray) -> float:
    variance = variance_of(x)
    if variance <= 0:
        return 0.0
    return add_up(lambda one, other: np.square((one - other) / variance), x, y) / len(x)


def describe_spread(ascending: FloatArray) -> Spread:
    """Mean, standard deviation (of the records themselves, not of a larger population) and quantiles of a column in ascending
    order."""
    shares = (*QUANTILES, *TENTHS)
    found = quantiles_of_sorted(ascending, shares)
    beyond = [round(min(q, 1 - q), 6) * len(ascending) for q in shares]  # 1 - 0.9 is a bit less than 0.1
    told = tuple(value if more >= BEYOND else None for value, more in zip(found, beyond, strict=True))
    quantiles, deciles = told[: len(QUANTILES)], told[len(QUANTILES) :]
    if _is_nearly_constant(ascending):
        return Spread(None, None, quantiles, deciles)
    return Spread(mean_of(ascending), math.sqrt(variance_of(ascending)), quantiles, deciles)


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


def compare_distributions(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """`ks_distance` and `wasserstein_distance` of two columns in ascending order."""
    return _ks_of_sorted(first, second), _wasserstein_of_sorted(first, second)


def _ks_of_sorted(first: FloatArray, second: FloatArray) -> float:
    """The same of two columns in ascending order, slice by slice: as many numbers as records are not held for it."""
    if _count_steps(second) < _count_steps(first):
        first, second = second, first
    largest = 0.0
    for start in range(0, len(first), _CHUNK):
        values = Steps.of(first[start : start + _CHUNK]).values
        for side in ("right", "left"):
            at = np.searchsorted(first, values, side=side) / len(first) - np.searchsorted(second, values, side=side) / len(second)
            largest = max(largest, float(np.max(np.abs(at))))
    return largest


def _count_steps(ascending: FloatArray) -> int:
    """How many different values a column in ascending order has, less one."""
    steps = (
        np.count_nonzero(ascending[part.start + 1 : part.stop + 1] != ascending[part]) for part in pieces(len(ascending) - 1)
    )
    return int(sum(steps))


def ks_of_clusters(ascending: FloatArray, values: FloatArray, sizes: IntArray) -> float:
    """The same of a column in ascending order and of one whose values are those of clusters of so many records each.

    The second distribution function is constant from one of its values to the next, and the first one rises, so that the largest
    gap is at such a value or right before the next.

    >>> ks_of_clusters(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 3.0]), np.array([1, 3]))
    0.5
    """
    if not _ascends(values):
        order = np.argsort(values, kind="stable")
        values, sizes = values[order], sizes[order]
    n, total, below, largest = len(ascending), int(np.sum(sizes)), 0, 0.0
    for part in pieces(len(values), _CHUNK):
        places, own = values[part], sizes[part]
        up_to = below + np.cumsum(own)
        differs = places[1:] != places[:-1]  # equal values are one step
        is_last = np.append(differs, part.stop == len(values) or values[part.stop] != places[-1])
        is_first = np.append(part.start == 0 or values[part.start - 1] != places[0], differs)
        at_most = np.searchsorted(ascending, places[is_last], side="right") / n
        before = np.searchsorted(ascending, places[is_first], side="left") / n
        largest = max(
            largest,
            float(np.max(np.abs(at_most - up_to[is_last] / total), initial=0.0)),
            float(np.max(np.abs(before - (up_to - own)[is_first] / total), initial=0.0)),
        )
        below = int(up_to[-1])
    return largest


def _ascends(values: FloatArray) -> bool:
    return all(bool((values[part.start + 1 : part.stop + 1] >= values[part]).all()) for part in pieces(len(values) - 1))


def share_at(column: FloatArray, points: FloatArray, sizes: IntArray | None = None) -> FloatArray:
    """The share of records that are each of the points, exactly; of entries that stand for one record each, or for `sizes`."""
    ascending, place = np.unique(points, return_inverse=True)
    counts = np.zeros(len(ascending) + 1, dtype=np.int64)
    for part in pieces(len(column)):
        found = np.searchsorted(ascending, column[part])
        is_there = column[part] == np.append(ascending, np.nan)[found]
        np.add.at(counts, found[is_there], 1 if sizes is None else sizes[part][is_there])
    return (counts / (len(column) if sizes is None else int(np.sum(sizes))))[place]


def wasserstein_distance(first: FloatArray, second: FloatArray) -> float:
    """The area between the two distribution functions: how far records lie apart on average when both columns are sorted.

    >>> wasserstein_distance(np.array([0.0, 0.0]), np.array([3.0, 5.0, 3.0, 5.0]))
    4.0
    """
    return _wasserstein_of_sorted(np.sort(first), np.sort(second))


def _wasserstein_of_sorted(first: FloatArray, second: FloatArray) -> float:
    """The mean distance of values of equal ranks. Of two lists of other lengths a rank is a share of each: they are compared from
    one end of either's records to the next, which are whole numbers where all there is counts for len(first) len(second)."""
    n, m = len(first), len(second)
    if n == m:
        parts = (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))
        return math.fsum(float(np.sum(np.abs(first[part] - second[part]))) for part in parts) / n
    sums: list[float] = []
    for start in range(0, n, _CHUNK):
        ends = np.arange(start + 1, min(start + _CHUNK, n) + 1, dtype=np.int64) * m
        begin, end = start * m, int(ends[-1])
        others = np.arange(begin // n + 1, -(-end // n), dtype=np.int64) * n
        edges = np.concatenate([[begin], np.sort(np.concatenate([ends, others]), kind="stable")])
        places = edges[:-1]
        apart = np.abs(first[places // m] - second[places // n])
        sums.append(float(np.dot(apart, np.diff(edges).astype(np.float64))))
    return math.fsum(sums) / n / m


def choose_places(ascending: FloatArray) -> FloatArray:
    """Where to draw a distribution function: at most 120 places, ascending, that depend on the released column alone, so that no
    place is somebody's confidential value: released values, and even steps between the least and the greatest. `ascending`: the
    released column, sorted."""
    ranks = np.linspace(0, 1, 2 * CURVE_POINTS // 3) * (len(ascending) - 1)
    steps = np.linspace(float(ascending[0]), float(ascending[-1]), CURVE_POINTS // 3)
    return np.unique(np.concatenate([ascending[np.rint(ranks).astype(np.intp)], steps]))


def share_at_most(column: FloatArray, places: FloatArray) -> FloatArray:
    """The share of records that are at most each of the ascending places."""
    return _count_at_most(column, places) / len(column)


def share_of_many(column: FloatArray, places: FloatArray) -> list[float | None]:
    """The same, without the shares that tell of fewer than ten records: at most that or above it. None and all are told."""
    counts, n = _count_at_most(column, places), len(column)
    few = (counts > 0) & (counts < n) & (np.minimum(counts, n - counts) < BEYOND)
    return [None if hidden else count / n for count, hidden in zip(counts.tolist(), few.tolist(), strict=True)]


def _count_at_most(column: FloatArray, places: FloatArray) -> IntArray:
    counts = np.zeros(len(places) + 1, dtype=np.int64)
    for start in range(0, len(column), _CHUNK):
        found = np.searchsorted(places, column[start : start + _CHUNK], side="left")
        counts += np.bincount(found, minlength=len(counts))
    return np.cumsum(counts[:-1])


def covariance_matrix(columns: Sequence[FloatArray]) -> FloatArray:
    """Covariances of the records themselves, column by column: no matrix of all records is made."""
    m = len(columns)
    means = [mean_of(column) for column in columns]
    found = np.zeros((m, m))
    varied = [a for a in range(m) if np.ptp(columns[a]) > 0]
    with np.errstate(over="ignore", invalid="ignore"):  # numbers whose squares no float holds have no covariance
        for a in varied:
            one = columns[a]
            for b in varied[: varied.index(a) + 1]:
                found[a, b] = found[b, a] = _covary(one, columns[b], means[a], means[b])
    return found


def _covary(one: FloatArray, other: FloatArray, mean: float, mean_of_other: float) -> float:
    return add_up(lambda x, y: (x - mean) * (y - mean_of_other), one, other) / len(one)


def correlation_matrix(covariances: FloatArray) -> FloatArray:
    """Correlations of covariances; NaN where a column is constant."""
    variances = np.diagonal(covariances)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
        return np.clip(covariances / np.outer(deviations, deviations), -1, 1)


def rank_values(values: FloatArray) -> FloatArray:
    """The rank of each value, from 0; equal ones have the mean of theirs.

    >>> rank_values(np.array([5.0, 1.0, 5.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count + 1) / 2)[place]


def rank_correlation_matrix(columns: Sequence[FloatArray]) -> FloatArray:
    """Spearman's correlations: those of ranks; NaN where a column is constant."""
    return correlation_matrix(covariance_matrix([rank_values(column) for column in columns]))


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
