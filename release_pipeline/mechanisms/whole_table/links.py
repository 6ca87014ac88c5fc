"""What noisy tables of pairs say of how two columns go together, without most of their noise.

Two columns whose entries have an order: a Gaussian copula of the records that have a value in both, its correlation the mean of
what the noisy table leaves likely. Reasons to have no value have no order: who has one is independent of the values of the other
column. Other columns: independence. What the noisy table has besides is partly noise. Two ways to tell them apart are mixed:
how much of a cell is likely to be more than noise, given how many records are expected there and how far all cells are off
together (empirical Bayes); and, as far as there is more than noise, which singular values noise alone would not have (GD17). The
first finds what is weak, the second what is strong and simple. Then the margins are put right (IPF). It all reads noisy counts
only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.whole_table.design import deviation
from release_pipeline.mechanisms.whole_table.measure import Measured

_ANGLES = np.linspace(-1, 1, 121) * (math.pi / 2 * 0.985)
_RHOS: FloatArray = np.sin(_ANGLES)
_PRIOR = 0.2  # standard deviation of a correlation before anything is known
_FINE = 241
_FURTHEST = 6.0  # standard deviations
_PASSES = 60
_SOME = 1e-9


@dataclass(frozen=True, slots=True)
class Link:
    """How two columns go together. `table` adds up to the records, with the margins of both; `correlation`: of the normal scores
    of records with a value in both, where both have an order; `strength`: how many records are in other cells than if nothing
    linked the columns; `deviation`: of the noise of each cell that was counted."""

    table: FloatArray
    correlation: float | None
    strength: float
    deviation: float


def link_columns(
    noisy: FloatArray,
    rows: FloatArray,
    columns: FloatArray,
    deviation: float,
    *,
    valued: tuple[int, int] | None,
) -> Link:
    """The link of two columns whose groups hold `rows` and `columns` records, by the noisy counts of both.
    `valued`: how many groups of each have values, the first ones; None unless both have an order."""
    base, correlation = np.outer(rows, columns) / rows.sum(), None
    if valued is not None:
        base, correlation = _fit_copula(noisy, rows, columns, deviation, valued)
    beside = noisy - base
    beside = beside - beside.mean(axis=1, keepdims=True) - beside.mean(axis=0, keepdims=True) + beside.mean()
    table = _fit_margins(base + _denoise(beside, base, deviation), rows, columns)
    return Link(table, correlation, find_strength(table), deviation)


def _fit_copula(
    noisy: FloatArray, rows: FloatArray, columns: FloatArray, deviation: float, valued: tuple[int, int]
) -> tuple[FloatArray, float | None]:
    """The table of two columns by a Gaussian copula of the records with a value in both, and its
    correlation, None where a column has one group of values. Who has a reason is independent of the
    values of the other column."""
    valued_rows, valued_columns = valued
    of_rows = _split_valued(noisy, rows, columns, deviation, valued_columns)
    of_columns = _split_valued(noisy.T, columns, rows, deviation, valued_rows)
    base = np.zeros(noisy.shape)
    for own, of_own in ((slice(valued_rows), 0), (slice(valued_rows, None), 1)):
        for its, of_its in ((slice(valued_columns), 0), (slice(valued_columns, None), 1)):
            held, beside = of_rows[own, of_its], of_columns[its, of_own]
            base[own, its] = np.outer(held, beside) / max(math.sqrt(held.sum() * beside.sum()), _SOME)
    base = _fit_margins(base, rows, columns)
    block = base[:valued_rows, :valued_columns]
    if min(block.shape) < 2:
        return base, None
    both = float(block.sum())
    tables = _copula_tables(block.sum(axis=1) / both, block.sum(axis=0) / both) * both
    off = ((tables - noisy[:valued_rows, :valued_columns]) ** 2).sum(axis=(1, 2))
    unlikely = off / (2 * deviation**2) + _RHOS**2 / (2 * _PRIOR**2)
    likely = np.exp(unlikely.min() - unlikely) * np.gradient(_RHOS)
    likely /= likely.sum()
    base[:valued_rows, :valued_columns] = np.tensordot(likely, tables, axes=1)
    return base, float(likely @ _RHOS)


def _split_valued(noisy: FloatArray, rows: FloatArray, columns: FloatArray, deviation: float, valued: int) -> FloatArray:
    """How many records of each group of one column have a value in the other, and how many a reason.
    `valued`: how many groups of the other have values, the first ones."""
    if valued == len(columns):
        return np.stack([rows, np.zeros(len(rows))], axis=1)
    sums, held = (np.stack([own[..., :valued].sum(axis=-1), own[..., valued:].sum(axis=-1)], axis=-1) for own in (noisy, columns))
    spread = deviation * math.sqrt(len(columns) / 2)  # on average of the two sums
    return link_columns(sums, rows, held, spread, valued=None).table


def find_strength(table: FloatArray) -> float:
    """How many records are in other cells than if nothing linked the columns."""
    apart = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(np.abs(table - apart).sum())


def _denoise(noisy: FloatArray, expected: FloatArray, deviation: float) -> FloatArray:
    """What of a matrix without margins is likely to be there, given that each entry has noise of this deviation. What a cell has
    besides what is `expected` in it is taken to vary, before anything is known, as much as that is."""
    short, long = noisy.shape
    variance = deviation**2 * (short - 1) * (long - 1) / noisy.size  # what is left of it without margins
    squares = float((noisy**2).sum())
    if squares <= variance * noisy.size:
        return np.zeros(noisy.shape)
    share = 1 - variance * noisy.size / squares  # of all that is seen
    prior = expected * (share * squares / float(expected.sum()))
    likely: FloatArray = noisy * prior / (prior + variance)
    return likely + share / 2 * (_shrink(noisy, deviation) - likely)


def _shrink(noisy: FloatArray, deviation: float) -> FloatArray:
    """The matrix whose expected squared error is least, given that each entry has noise of this deviation (GD17, Frobenius)."""
    short, long = sorted(noisy.shape)
    left, values, right = np.linalg.svd(noisy, full_matrices=False)
    ratio, unit = short / long, deviation * math.sqrt(long)
    scaled = values / unit
    inside = np.maximum((scaled**2 - ratio - 1) ** 2 - 4 * ratio, 0.0)
    kept = np.where(scaled > 1 + math.sqrt(ratio), np.sqrt(inside) / np.maximum(scaled, _SOME), 0.0)
    shrunk: FloatArray = (left * (kept * unit)) @ right
    return shrunk


def _fit_margins(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Scaled row by row and column by column until it has these margins."""
    fitted = np.maximum(table, 0.0) + 1e-12 * rows.sum()
    for _ in range(_PASSES):
        fitted *= (rows / np.maximum(fitted.sum(axis=1), 1e-300))[:, None]
        fitted *= (columns / np.maximum(fitted.sum(axis=0), 1e-300))[None, :]
    return fitted


def _copula_tables(rows: FloatArray, columns: FloatArray) -> FloatArray:
    """The probability of each two groups under each correlation of a Gaussian copula with these margins."""
    below = _normal_below(_scores(rows), _scores(columns))
    padded = np.zeros((len(_RHOS), len(rows) + 1, len(columns) + 1))
    padded[:, 1:, -1] = np.cumsum(rows)
    padded[:, -1, 1:] = np.cumsum(columns)
    padded[:, 1:-1, 1:-1] = below
    return np.maximum(np.diff(np.diff(padded, axis=1), axis=2), 0.0)


def _scores(shares: FloatArray) -> FloatArray:
    """The normal scores between groups."""
    laws = normal_laws()
    scores: FloatArray = np.clip(laws.ndtri(np.clip(np.cumsum(shares)[:-1], _SOME, 1 - _SOME)), -_FURTHEST, _FURTHEST)
    return scores


def _normal_below(row_scores: FloatArray, column_scores: FloatArray) -> FloatArray:
    """P[X < h, Y < k] of two normal numbers for each correlation: their derivative by its arc sine is a density."""
    laws = normal_laws()
    h, k = row_scores[:, None, None], column_scores[None, :, None]
    angles: FloatArray = np.linspace(0, float(_ANGLES[-1]), _FINE)
    step = float(angles[1] - angles[0])
    sines, cosines = np.sin(angles), np.cos(angles) ** 2
    sums: list[FloatArray] = []
    for sign in (1, -1):
        density = np.exp(-(h * h + k * k - 2 * sign * h * k * sines) / (2 * cosines)) / (2 * math.pi)
        inside = np.cumsum((density[..., 1:] + density[..., :-1]) / 2 * step, axis=-1)
        sums.append(sign * np.concatenate([np.zeros((len(row_scores), len(column_scores), 1)), inside], axis=-1))
    place = np.abs(_ANGLES) / step
    low = np.minimum(place.astype(np.int64), _FINE - 2)
    part = place - low
    moved = np.where(_ANGLES >= 0, *(total[..., low] * (1 - part) + total[..., low + 1] * part for total in sums))
    return np.moveaxis(laws.ndtr(h) * laws.ndtr(k) + moved, -1, 0)


@lru_cache(maxsize=1)
def normal_laws() -> Any:
    """The module with the normal law and its inverse."""
    import scipy.special  # 0.1 s to import: only where it is used

    return scipy.special


# What all counts together say of a column: its own, and the tables of its pairs, whose rows add up
# to its groups.
#
# Least squares on the noisy counts, each weighed by one over its variance, so that a column of many
# pairs is known better than by its own counts only. The groups follow from the counts of the
# column, and are taken as they are.


def combine_margins(measured: Measured) -> list[FloatArray]:
    """The counts of the cells of every column."""
    sums: list[list[tuple[FloatArray, float]]] = [[] for _ in measured.cells]
    for columns, table in measured.tables.items():
        counts = table.counts
        even = counts - (counts.sum() - measured.design.records) / counts.size
        for axis, place in enumerate(columns):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            sums[place].append((even.sum(axis=others), table.deviation**2 * (counts.size // counts.shape[axis])))
    variance = deviation(measured.design.margins) ** 2
    return [
        _combine(margin, groups, variance, of_pairs)
        for margin, groups, of_pairs in zip(measured.margins, measured.groups, sums, strict=True)
    ]


def _combine(margin: IntArray, groups: IntArray, variance: float, of_pairs: list[tuple[FloatArray, float]]) -> FloatArray:
    cells = np.bincount(groups)
    mine: FloatArray = np.bincount(groups, margin.astype(np.float64)).astype(np.float64)
    certain = 1 / (cells * variance)
    found = mine * certain
    for sums, unsure in of_pairs:
        found, certain = found + sums / unsure, certain + 1 / unsure
    missing: FloatArray = (found / certain - mine) / cells
    return margin + missing[groups]
