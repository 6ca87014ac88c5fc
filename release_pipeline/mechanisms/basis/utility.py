"""The utility of a released column: closed formulas against the original. All of it is confidential.

Two tables are compared in two ways: record by record (`column_error`, `sse_paper`), for which row i of both belongs to the same
person, and as wholes (moments, correlations, distances of distributions), for which it does not matter whose row is which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid, IntArray
from release_pipeline.mechanisms.basis.tally import Tally


@dataclass(frozen=True, slots=True)
class Clamping:
    """The effect of clamping to the declared domain on a column: the `share` of records outside, and the mean square of how far
    they were moved over the `variance` of the raw values (over 1 if nearly all were moved far)."""

    share: float
    variance: float


@np.errstate(over="ignore", invalid="ignore")  # squares may overflow
def measure_clamping(numbers: FloatArray, grid: Grid, counts: IntArray | None = None) -> Clamping:
    """Return what clamping removes from a column. Numbers that the grid does not round to the ends of the domain are outside.
    NaN, a missing number, is never outside. `counts`: how many records have each number, if more than one.

    >>> measure_clamping(np.array([0.0, 4.0, 4.0, 8.0]), Grid.declare((0, 6), 1))
    Clamping(share=0.25, variance=0.125)
    """
    low, high, reach = float(grid.lo), float(grid.hi), float(grid.step) / 2
    is_outside = (numbers < low - reach) | (numbers > high + reach)

    def add(of_numbers: npt.NDArray[Any]) -> float:
        return float(np.sum(of_numbers if counts is None else of_numbers * counts))

    outside, records = add(is_outside), len(numbers) if counts is None else int(counts.sum())
    if not outside:
        return Clamping(0.0, 0.0)
    there = add(~np.isnan(numbers))
    least, most = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    unit = max(abs(least), abs(most))  # squares of the largest numbers would not be finite
    mean = add(np.nan_to_num(numbers / unit)) / there
    variance = add(np.nan_to_num(np.square(numbers / unit - mean))) / there if most > least else 0.0
    if not variance > 0:
        return Clamping(outside / records, 0.0)
    moved = np.square(numbers / unit - np.clip(numbers, low, high) / unit)
    return Clamping(outside / records, add(np.where(is_outside, moved, 0.0)) / there / variance)


@np.errstate(over="ignore", invalid="ignore")
def column_error(original: FloatArray, released: FloatArray, *, variance: float | None = None) -> float:
    """Return the mean squared difference over the variance; 1.0 is no better than publishing the mean. It is the error of a
    method if `original` is what the method saw (`Grid.snap`): `measure_clamping` has the effect of clamping before that.

    The variance is that of the original; if these records are a sample, pass that of all records.
    """
    variance = variance_of(original) if variance is None else variance
    if variance <= 0:
        return 0.0
    return float(np.sum(np.square(original - released))) / len(original) / variance


@np.errstate(over="ignore", invalid="ignore")
def variance_of(column: FloatArray) -> float:
    """Return the variance of the records themselves; exactly 0 if all are equal, however their mean was rounded."""
    if not _varies(column):
        return 0.0
    return float(np.sum(np.square(column - mean_of(column)))) / len(column)


def _varies(column: FloatArray) -> bool:
    """Return whether a column has two different values; False if it contains NaN."""
    return bool(column.max() > column.min())


@np.errstate(over="ignore", invalid="ignore")
def mean_of(column: FloatArray) -> float:
    """Return the mean."""
    return float(np.sum(column)) / len(column)


@np.errstate(over="ignore", invalid="ignore")
def sse_paper(original: Sequence[FloatArray], released: Sequence[FloatArray]) -> float:
    """Return IDP24's mean SSE over the columns of two tables: mean of (1/m^2) sum_a ((x_a - y_a) / var_a)^2, literally."""
    if len(original) != len(released):
        raise InvalidArgument("the tables do not have equally many columns.", where="released")
    each = (_sse_of_column(original[a], released[a]) for a in range(len(original)))  # only two columns are in memory at once
    total = math.fsum(each)
    return total / len(original) ** 2


def _sse_of_column(x: FloatArray, y: FloatArray) -> float:
    variance = variance_of(x)
    return float(np.sum(np.square((x - y) / variance))) / len(x) if variance > 0 else 0.0


@np.errstate(over="ignore", invalid="ignore")  # numbers whose squares overflow have no covariance
def covariance_matrix(columns: Sequence[FloatArray]) -> FloatArray:
    """Return the covariances of the records themselves, column by column: no matrix of all records is made."""
    m = len(columns)
    means = [mean_of(column) for column in columns]
    covariances = np.zeros((m, m))
    varied = [a for a in range(m) if _varies(columns[a])]
    for a in varied:
        off = columns[a] - means[a]
        for b in varied[: varied.index(a) + 1]:
            covariances[a, b] = covariances[b, a] = float(np.sum(off * (columns[b] - means[b]))) / len(off)
    return covariances


def correlation_matrix(covariances: FloatArray) -> FloatArray:
    """Return the correlations for these covariances; NaN for a constant column."""
    variances = np.diagonal(covariances)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
        return np.clip(covariances / np.outer(deviations, deviations), -1, 1)


def rank_values(values: FloatArray) -> FloatArray:
    """Return the rank of each value, from 0; equal ones have their mean rank.

    >>> rank_values(np.array([5.0, 1.0, 5.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    _, place, often = np.unique(values, return_inverse=True, return_counts=True)
    beyond = np.cumsum(often)
    return ((2 * beyond - often - 1) / 2)[place]


def rank_correlation_matrix(columns: Sequence[FloatArray]) -> FloatArray:
    """Return Spearman's correlations, those of ranks; NaN for a constant column."""
    return correlation_matrix(covariance_matrix([rank_values(column) for column in columns]))


def f_measure(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Return the harmonic mean of precision and recall of answering yes; 0 if neither is defined.

    >>> f_measure(np.array([True, True, False, False]), np.array([True, False, True, False]))
    0.5
    """
    hits = int(np.count_nonzero(truth & predicted))
    both = int(np.count_nonzero(truth)) + int(np.count_nonzero(predicted))
    return 2 * hits / both if both else 0.0


# Distributions of a column: as figures, compared with another one, and as a curve. Comparisons with the original are
# confidential.
#
# It does not matter whose row is which: a column is its tally.


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TENTHS = (0.1, 0.9)
BEYOND = 10  # records beyond a quantile, at least: one with fewer would reveal single persons
CURVE_POINTS = 120


@dataclass(frozen=True, slots=True)
class Spread:
    """Summary figures of a column. `QUANTILES` and `TENTHS` (`deciles`) with fewer than ten records beyond them are None; so are
    mean and deviation if fewer than ten records differ from the most common value, because they would reveal these records'
    values."""

    mean: float | None
    deviation: float | None
    quantiles: tuple[float | None, ...]
    deciles: tuple[float | None, ...] = ()


def describe_spread(column: Tally) -> Spread:
    """Return mean, standard deviation (of the records themselves, not of a larger population) and quantiles of a column."""
    shares = (*QUANTILES, *TENTHS)
    found = find_quantiles(column, shares)
    beyond = [round(min(q, 1 - q), 6) * len(column) for q in shares]  # 1 - 0.9 is a bit less than 0.1
    shown = tuple(value if more >= BEYOND else None for value, more in zip(found, beyond, strict=True))
    quantiles, deciles = shown[: len(QUANTILES)], shown[len(QUANTILES) :]
    if _is_nearly_constant(column):
        return Spread(None, None, quantiles, deciles)
    return Spread(find_mean(column), math.sqrt(find_variance(column)), quantiles, deciles)


def find_quantiles(column: Tally, shares: Sequence[float]) -> list[float]:
    """Return the quantiles of a column, interpolated between two values.

    >>> find_quantiles(Tally.of(np.array([0.0, 10.0, 20.0])), [0.25, 1.0])
    [5.0, 20.0]
    """
    ranks = np.array(shares) * (len(column) - 1)
    low = np.minimum(ranks.astype(np.int64), len(column) - 1)
    pairs = np.stack([column.at(low), column.at(np.minimum(low + 1, len(column) - 1))], axis=1)
    return [float(np.quantile(pair, part)) for pair, part in zip(pairs, (ranks - low).tolist(), strict=True)]


def find_mean(column: Tally) -> float:
    """Return the mean of all records."""
    return float(np.sum(column.entries * column.counts)) / len(column)


def find_variance(column: Tally) -> float:
    """Return the variance of the records themselves; exactly 0 if all are equal, however their mean was rounded."""
    if len(column.entries) < 2:
        return 0.0
    return float(np.sum(np.square(column.entries - find_mean(column)) * column.counts)) / len(column)


def _is_nearly_constant(column: Tally) -> bool:
    """Return whether fewer than ten records differ from the most common value."""
    return len(column) - int(column.counts.max()) < BEYOND


def find_gap(first: Tally, second: Tally) -> float:
    """Return the Kolmogorov-Smirnov distance: the largest difference between the two distribution functions, in [0, 1]. Between
    two values of the column with fewer values, its function is constant and the other rises: the largest difference is at such a
    value, or just below it.

    >>> find_gap(Tally.of(np.array([1.0, 2.0, 3.0, 4.0])), Tally.of(np.array([3.0, 4.0, 5.0, 6.0])))
    0.5
    """
    few, many = sorted((first, second), key=lambda column: len(column.entries))
    at = share_at_most(many, few.entries) - few.ends / len(few)
    below = many.count_below(few.entries) / len(many) - (few.ends - few.counts) / len(few)
    return float(max(np.max(np.abs(at)), np.max(np.abs(below))))


def find_distance(first: Tally, second: Tally) -> float:
    """Return the Wasserstein distance: how far records are apart on average if both columns are sorted, with ranks as shares.

    >>> find_distance(Tally.of(np.array([0.0, 0.0])), Tally.of(np.array([3.0, 5.0, 3.0, 5.0])))
    4.0
    """
    return _sum_over_ranks(first, second, np.abs)


def compare_ranks(first: Tally, second: Tally) -> float:
    """Return the mean squared difference of values of equal ranks, over the variance of the first; 0 if all are equal."""
    variance = find_variance(first)
    return square_ranks(first, second) / variance if variance > 0 else 0.0


def square_ranks(first: Tally, second: Tally) -> float:
    """The mean squared difference of values of equal ranks."""
    return _sum_over_ranks(first, second, np.square)


def _sum_over_ranks(first: Tally, second: Tally, measure: Callable[[FloatArray], FloatArray]) -> float:
    """What a measure makes of the difference of the values of equal ranks, over all runs of ranks in which neither column
    changes, each by its share of all ranks."""
    ends = [first.ends * len(second), second.ends * len(first)]  # whole numbers: both columns have as many ranks
    both = _merge(*ends)
    terms = np.empty(len(both))
    for part in pieces(len(both)):
        runs = both[part]
        one, other = (
            column.entries[np.searchsorted(own, runs)].astype(np.float64)
            for column, own in zip((first, second), ends, strict=True)
        )
        before = both[part.start - 1] if part.start else 0
        terms[part] = np.diff(runs, prepend=before) / both[-1] * measure(one - other)
    return float(np.sum(terms))


def _merge(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the different numbers of both, ascending, as those of each are: NumPy's own union cannot use that."""
    both = np.concatenate([first, second])
    both.sort(kind="stable")
    return both[np.append(True, both[1:] != both[:-1])]


def share_at(column: Tally, points: npt.NDArray[Any]) -> FloatArray:
    """Return the exact share of records at each of the points."""
    return (column.count_up_to(points) - column.count_below(points)) / len(column)


def choose_places(column: Tally) -> FloatArray:
    """Return where to draw a distribution function: at most 120 values, ascending, that depend only on the released column, so
    that none is a confidential value: released values, and even steps between the least and the greatest. `column`: the released
    one."""
    ranks = np.linspace(0, 1, 2 * CURVE_POINTS // 3) * (len(column) - 1)
    steps = np.linspace(float(column.entries[0]), float(column.entries[-1]), CURVE_POINTS // 3)
    return np.unique(np.concatenate([column.at(np.rint(ranks).astype(np.int64)), steps]))


def share_at_most(column: Tally, places: FloatArray) -> FloatArray:
    """Return the share of records that are at most each of these values."""
    return column.count_up_to(places) / len(column)


def share_of_many(column: Tally, places: FloatArray) -> list[float | None]:
    """Return `share_at_most`, with None for a share that would reveal fewer than ten records. Shares of none and of all are
    shown."""
    counts, n = column.count_up_to(places), len(column)
    few = (counts > 0) & (counts < n) & (np.minimum(counts, n - counts) < BEYOND)
    return [None if hidden else count / n for count, hidden in zip(counts.tolist(), few.tolist(), strict=True)]
