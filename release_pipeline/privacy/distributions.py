"""Distributions of a column: in numbers, compared with another one, and as a curve. Against the original that is confidential.

It does not matter whose row is which: a column is its tally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.grid import FloatArray
from release_pipeline.privacy.tally import Tally

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


def describe_spread(column: Tally) -> Spread:
    """Mean, standard deviation (of the records themselves, not of a larger population) and quantiles of a column."""
    shares = (*QUANTILES, *TENTHS)
    found = find_quantiles(column, shares)
    beyond = [round(min(q, 1 - q), 6) * len(column) for q in shares]  # 1 - 0.9 is a bit less than 0.1
    told = tuple(value if more >= BEYOND else None for value, more in zip(found, beyond, strict=True))
    quantiles, deciles = told[: len(QUANTILES)], told[len(QUANTILES) :]
    if _is_nearly_constant(column):
        return Spread(None, None, quantiles, deciles)
    return Spread(find_mean(column), math.sqrt(find_variance(column)), quantiles, deciles)


def find_quantiles(column: Tally, shares: Sequence[float]) -> list[float]:
    """The quantiles of a column, between two values by how far from each.

    >>> find_quantiles(Tally.of(np.array([0.0, 10.0, 20.0])), [0.25, 1.0])
    [5.0, 20.0]
    """
    ranks = np.array(shares) * (len(column) - 1)
    low = np.minimum(ranks.astype(np.int64), len(column) - 1)
    pairs = np.stack([column.at(low), column.at(np.minimum(low + 1, len(column) - 1))], axis=1)
    return [float(np.quantile(pair, part)) for pair, part in zip(pairs, (ranks - low).tolist(), strict=True)]


def find_mean(column: Tally) -> float:
    """The mean of all records."""
    return float(np.sum(column.entries * column.counts)) / len(column)


def find_variance(column: Tally) -> float:
    """The variance of the records themselves; exactly 0 where all are equal, however their mean was rounded."""
    if len(column.entries) < 2:
        return 0.0
    return float(np.sum(np.square(column.entries - find_mean(column)) * column.counts)) / len(column)


def _is_nearly_constant(column: Tally) -> bool:
    """Whether fewer than ten records differ from the most common value."""
    return len(column) - int(column.counts.max()) < BEYOND


def find_gap(first: Tally, second: Tally) -> float:
    """Kolmogorov-Smirnov: the largest difference between the two distribution functions, in [0, 1]. From one value of the one
    with fewer of them to the next it is constant and the other rises: the largest is at such a value, or just below it.

    >>> find_gap(Tally.of(np.array([1.0, 2.0, 3.0, 4.0])), Tally.of(np.array([3.0, 4.0, 5.0, 6.0])))
    0.5
    """
    few, many = sorted((first, second), key=lambda column: len(column.entries))
    at = share_at_most(many, few.entries) - few.ends / len(few)
    below = many.count_below(few.entries) / len(many) - (few.ends - few.counts) / len(few)
    return float(max(np.max(np.abs(at)), np.max(np.abs(below))))


def find_distance(first: Tally, second: Tally) -> float:
    """Wasserstein: how far records lie apart on average when both columns are sorted, a rank being a share of each.

    >>> find_distance(Tally.of(np.array([0.0, 0.0])), Tally.of(np.array([3.0, 5.0, 3.0, 5.0])))
    4.0
    """
    shares, one, other = _match_ranks(first, second)
    return float(np.sum(shares * np.abs(one - other)))


def compare_ranks(first: Tally, second: Tally) -> float:
    """The mean squared difference of values of equal ranks, over the variance of the first; 0 where they are all alike."""
    variance = find_variance(first)
    return square_ranks(first, second) / variance if variance > 0 else 0.0


def square_ranks(first: Tally, second: Tally) -> float:
    """The mean squared difference of values of equal ranks."""
    shares, one, other = _match_ranks(first, second)
    return float(np.sum(shares * np.square(one - other)))


def _match_ranks(first: Tally, second: Tally) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Runs of ranks in which neither column changes: the share of each of all ranks, and the values of both columns."""
    ends = [first.ends * len(second), second.ends * len(first)]  # whole numbers: both columns have as many ranks
    both = _merge(*ends)
    one, other = (
        column.entries[np.searchsorted(own, both)].astype(np.float64) for column, own in zip((first, second), ends, strict=True)
    )
    return np.diff(both, prepend=0) / both[-1], one, other


def _merge(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different numbers of both, ascending, as those of each are: NumPy's own union does not know that they are."""
    both = np.concatenate([first, second])
    both.sort(kind="stable")
    return both[np.append(True, both[1:] != both[:-1])]


def share_at(column: Tally, points: npt.NDArray[Any]) -> FloatArray:
    """The share of records that are each of the points, exactly."""
    return (column.count_up_to(points) - column.count_below(points)) / len(column)


def choose_places(column: Tally) -> FloatArray:
    """Where to draw a distribution function: at most 120 places, ascending, that depend on the released column alone, so that no
    place is somebody's confidential value: released values, and even steps between the least and the greatest. `column`: the
    released one."""
    ranks = np.linspace(0, 1, 2 * CURVE_POINTS // 3) * (len(column) - 1)
    steps = np.linspace(float(column.entries[0]), float(column.entries[-1]), CURVE_POINTS // 3)
    return np.unique(np.concatenate([column.at(np.rint(ranks).astype(np.int64)), steps]))


def share_at_most(column: Tally, places: FloatArray) -> FloatArray:
    """The share of records that are at most each of the places."""
    return column.count_up_to(places) / len(column)


def share_of_many(column: Tally, places: FloatArray) -> list[float | None]:
    """The same, without the shares that tell of fewer than ten records: at most that or above it. None and all are told."""
    counts, n = column.count_up_to(places), len(column)
    few = (counts > 0) & (counts < n) & (np.minimum(counts, n - counts) < BEYOND)
    return [None if hidden else count / n for count, hidden in zip(counts.tolist(), few.tolist(), strict=True)]
