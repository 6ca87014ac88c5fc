"""Distributions of a column: in numbers, compared with another one, and as a curve. Against the original that is confidential.

It does not matter whose row is which. A column comes in ascending order where that is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.samples import weighted_mean, weighted_quantiles
from release_pipeline.privacy.utility import mean_of, variance_of

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TENTHS = (0.1, 0.9)
BEYOND = 10  # records that lie beyond a quantile at least: one with fewer would tell of single persons
CURVE_POINTS = 120


@dataclass(frozen=True, slots=True)
class Spread:
    """A column in numbers. Of `QUANTILES` and of `TENTHS` (`deciles`), those with fewer than ten records beyond them are None; so
    are mean and deviation where fewer than ten records differ from the most common value, for they would tell these records'
    values."""

    mean: float | None
    deviation: float | None
    quantiles: tuple[float | None, ...]
    deciles: tuple[float | None, ...] = ()


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
    return ks_of_steps(Steps.of(first), Steps.of(second)), _wasserstein_of_sorted(first, second)


def ks_of_clusters(ascending: FloatArray, values: FloatArray, sizes: IntArray) -> float:
    """The same of a column in ascending order and of one whose values are those of clusters of so many records each.

    The second distribution function is constant from one of its values to the next, and the first one rises, so that the largest
    gap is at such a value or right before the next.

    >>> ks_of_clusters(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 3.0]), np.array([1, 3]))
    0.5
    """
    if not (values[1:] >= values[:-1]).all():
        order = np.argsort(values, kind="stable")
        values, sizes = values[order], sizes[order]
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))  # equal values are one step
    values, up_to = values[ends], np.cumsum(sizes)[ends]
    below = np.append(0, up_to[:-1])
    at_most = np.searchsorted(ascending, values, side="right") / len(ascending)
    before = np.searchsorted(ascending, values, side="left") / len(ascending)
    gaps = np.max(np.abs(at_most - up_to / up_to[-1])), np.max(np.abs(before - below / up_to[-1]))
    return float(max(gaps))


def share_at(column: FloatArray, points: FloatArray, sizes: IntArray | None = None) -> FloatArray:
    """The share of records that are each of the points, exactly; of entries that stand for one record each, or for `sizes`."""
    ascending, place = np.unique(points, return_inverse=True)
    found = np.searchsorted(ascending, column)
    is_there = column == np.append(ascending, np.nan)[found]
    counts = np.zeros(len(ascending), dtype=np.int64)
    np.add.at(counts, found[is_there], 1 if sizes is None else sizes[is_there])
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
        return float(np.sum(np.abs(first - second))) / n
    ends, others = np.arange(n + 1, dtype=np.int64) * m, np.arange(1, m, dtype=np.int64) * n
    edges = np.sort(np.concatenate([ends, others]), kind="stable")
    places = edges[:-1]
    apart = np.abs(first[places // m] - second[places // n])
    return float(np.sum(apart * np.diff(edges))) / n / m  # no dot product: its digits depend on the processor


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
