"""What a released column is still good for: closed formulas against the original. All of it is confidential.

Two tables are compared in two ways: record by record (`column_error`, `sse_paper`), for which row i of both belongs to the same
person, and as wholes (moments, correlations; `distributions` has distances of these), for which it does not matter whose row is
which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import FloatArray, Grid, IntArray


@dataclass(frozen=True, slots=True)
class Clamping:
    """What moving values into the declared domain took from a column: the `share` of records that lay outside, and the mean
    square of how far they were moved over the `variance` of the values as they came (over 1 where nearly all were moved far)."""

    share: float
    variance: float


@np.errstate(over="ignore", invalid="ignore")  # squares that no float holds
def measure_clamping(numbers: FloatArray, grid: Grid, counts: IntArray | None = None) -> Clamping:
    """What clamping takes from a column. Outside is what the grid does not bring back to the ends of the domain. NaN, which
    stands for a missing number, is never outside. `counts`: how many records have each number, where they are more than one.

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
    """Mean squared difference over the variance; 1.0 is no better than publishing the mean. It is the error of a method where
    `original` is what the method saw (`Grid.snap`): what clamping took before is `measure_clamping`'s.

    The variance is that of the original, or is given where these records are some of more: that of all.
    """
    variance = variance_of(original) if variance is None else variance
    if variance <= 0:
        return 0.0
    return float(np.sum(np.square(original - released))) / len(original) / variance


@np.errstate(over="ignore", invalid="ignore")
def variance_of(column: FloatArray) -> float:
    """The variance of the records themselves; exactly 0 where all are equal, however their mean was rounded."""
    if not _varies(column):
        return 0.0
    return float(np.sum(np.square(column - mean_of(column)))) / len(column)


def _varies(column: FloatArray) -> bool:
    """Whether a column has two values; no, of one where NaN is among them."""
    return bool(column.max() > column.min())


@np.errstate(over="ignore", invalid="ignore")
def mean_of(column: FloatArray) -> float:
    """The mean."""
    return float(np.sum(column)) / len(column)


@np.errstate(over="ignore", invalid="ignore")
def sse_paper(original: Sequence[FloatArray], released: Sequence[FloatArray]) -> float:
    """IDP24's mean SSE over the columns of two tables: mean of (1/m^2) sum_a ((x_a - y_a) / var_a)^2, literally."""
    if len(original) != len(released):
        raise InvalidArgument("the tables do not have equally many columns.", where="released")
    each = (_sse_of_column(original[a], released[a]) for a in range(len(original)))  # no two columns are held at once
    total = math.fsum(each)
    return total / len(original) ** 2


def _sse_of_column(x: FloatArray, y: FloatArray) -> float:
    variance = variance_of(x)
    return float(np.sum(np.square((x - y) / variance))) / len(x) if variance > 0 else 0.0


@np.errstate(over="ignore", invalid="ignore")  # numbers whose squares no float holds have no covariance
def covariance_matrix(columns: Sequence[FloatArray]) -> FloatArray:
    """Covariances of the records themselves, column by column: no matrix of all records is made."""
    m = len(columns)
    means = [mean_of(column) for column in columns]
    found = np.zeros((m, m))
    varied = [a for a in range(m) if _varies(columns[a])]
    for a in varied:
        off = columns[a] - means[a]
        for b in varied[: varied.index(a) + 1]:
            found[a, b] = found[b, a] = float(np.sum(off * (columns[b] - means[b]))) / len(off)
    return found


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
    _, place, often = np.unique(values, return_inverse=True, return_counts=True)
    beyond = np.cumsum(often)
    return ((2 * beyond - often - 1) / 2)[place]


def rank_correlation_matrix(columns: Sequence[FloatArray]) -> FloatArray:
    """Spearman's correlations: those of ranks; NaN where a column is constant."""
    return correlation_matrix(covariance_matrix([rank_values(column) for column in columns]))


def f_measure(truth: np.ndarray, said: np.ndarray) -> float:
    """The harmonic mean of precision and recall of saying yes; 0 where neither is defined.

    >>> f_measure(np.array([True, True, False, False]), np.array([True, False, True, False]))
    0.5
    """
    hits = int(np.count_nonzero(truth & said))
    both = int(np.count_nonzero(truth)) + int(np.count_nonzero(said))
    return 2 * hits / both if both else 0.0
