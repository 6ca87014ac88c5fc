"""How much of the slope of one column by another rows keep, compared with the noisy counts.

Each cell of an ordered column has a normal score, by how many records it seems to hold. Counts show
only groups of cells, which have the mean of their scores: that makes a slope too flat, by the share of
the scores' variance that lies within groups. The comparison allows for it, and takes columns to go
together within groups as between them. Of a column without an order each group has the mean score
that its rows have in the other column. Only noisy counts are read, and rows that were made of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.whole_table.cells import count_valued
from release_pipeline.privacy.whole_table.design import Pair
from release_pipeline.privacy.whole_table.links import normal_laws
from release_pipeline.privacy.whole_table.measure import Measured, hold_records

_SOME = 1e-9  # of the records, and where a divisor would be 0


@dataclass(frozen=True, slots=True)
class Slope:
    """`kept`: the slope in the rows over that in the noisy counts. `error`: the standard deviation of
    the noise in the latter, over itself."""

    kept: float
    error: float


@dataclass(frozen=True, slots=True)
class _Scores:
    """The scores of the cells of an ordered column, with mean 0 and variance 1, and of its groups."""

    of_cells: FloatArray
    of_groups: FloatArray
    between: float  # share of the variance that is between groups


def find_slope(measured: Measured, pair: Pair, rows: tuple[IntArray, IntArray]) -> Slope | None:
    """How much rows keep of the slope of the first column of a pair by the second; None where counts or
    rows show no slope. `rows`: the entries of both columns. The first column must have an order."""
    of, by = pair
    of_cells, by_cells = (measured.cells[place].find(entries) for place, entries in zip(pair, rows, strict=True))
    scores = _score(measured, of)
    if measured.design.columns[by].nominal:
        valued = of_cells < len(scores.of_cells)
        groups, released = measured.groups[by][by_cells[valued]], scores.of_cells[of_cells[valued]]
        steps = _find_means(groups, released, int(measured.groups[by].max()) + 1)
        positions = steps[groups]
    else:
        by_scores = _score(measured, by)
        valued = (of_cells < len(scores.of_cells)) & (by_cells < len(by_scores.of_cells))
        groups, released = measured.groups[by][by_cells[valued]], scores.of_cells[of_cells[valued]]
        steps, positions = by_scores.of_groups, by_scores.of_cells[by_cells[valued]]
    if not len(groups) or not scores.between or not positions.var():
        return None
    records = np.bincount(groups, minlength=len(steps))
    distances = steps - np.average(steps, weights=records)
    table = min(pair), max(pair)
    counts = measured.pairs[table].T if of < by else measured.pairs[table]
    weights = np.outer(distances, scores.of_groups - released.mean()) / scores.between
    counted = float((counts[: len(steps), : weights.shape[1]] * weights).sum())
    if not counted:
        return None
    slope = float(((positions - positions.mean()) * released).mean() / positions.var())
    noise = measured.noise[table].deviation * math.sqrt(float((weights**2).sum()))
    return Slope(slope * float(records @ distances**2) / counted, noise / abs(counted))


def _score(measured: Measured, place: int) -> _Scores:
    """The normal scores of a column, by how many records its cells seem to hold."""
    cells, groups = measured.cells[place], measured.groups[place]
    held = hold_records(measured.design, cells, measured.margins[place])[: len(cells.edges) - 1]
    share = held / max(float(held.sum()), 1.0) + _SOME
    share /= share.sum()
    scores: FloatArray = normal_laws().ndtri(np.cumsum(share) - share / 2)
    scores -= share @ scores
    scores /= max(math.sqrt(share @ scores**2), _SOME)
    groups, count = groups[: len(share)], count_valued(cells, groups)
    share_of_group = np.bincount(groups, share, count)
    means = np.bincount(groups, share * scores, count) / share_of_group
    return _Scores(scores, means, float(share_of_group @ means**2))


def _find_means(groups: IntArray, values: FloatArray, count: int) -> FloatArray:
    """The mean of each group; of one without any the mean of all."""
    records = np.bincount(groups, minlength=count)
    sums = np.bincount(groups, values, count)
    return np.where(records > 0, sums / np.maximum(records, 1), values.mean() if len(values) else 0.0)
