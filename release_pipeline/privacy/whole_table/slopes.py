"""How much of the slope of one column by another the rows keep, of what the noisy counts show.

Columns with an order have normal scores, by how many records each cell seems to hold. Counts show only the mean scores of groups of
cells. If columns go together within groups as between them, the slope by these is less than that by the scores themselves, by the
share of the variance that is between groups. A column without an order has the mean score of the other in each of its groups. All
of it reads noisy counts, and rows that were made of them.
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

_SOME = 1e-9  # records, and where a divisor would be 0


@dataclass(frozen=True, slots=True)
class Slope:
    """`kept`: the slope in the rows over that in the noisy counts. `error`: the standard deviation of the noise in the latter, over
    itself."""

    kept: float
    error: float


@dataclass(frozen=True, slots=True)
class _Scores:
    """The scores of the cells of an ordered column, with mean 0 and variance 1, and the mean score of each group."""

    of_cells: FloatArray
    of_groups: FloatArray
    between: float  # share of the variance that is between groups


def find_slope(measured: Measured, pair: Pair, rows: tuple[IntArray, IntArray]) -> Slope | None:
    """How much rows with these entries keep of the slope of the first column of a pair, which has an order, by the second one. None
    where counts or rows show none at all."""
    of, by = pair
    own, its = (measured.cells[place].find(entries) for place, entries in zip(pair, rows, strict=True))
    scores = _score(measured, of)
    if measured.design.columns[by].nominal:
        valued = own < len(scores.of_cells)
        groups, released = measured.groups[by][its[valued]], scores.of_cells[own[valued]]
        steps = _find_means(groups, released, int(measured.groups[by].max()) + 1)
        positions = steps[groups]
    else:
        by_scores = _score(measured, by)
        valued = (own < len(scores.of_cells)) & (its < len(by_scores.of_cells))
        groups, released = measured.groups[by][its[valued]], scores.of_cells[own[valued]]
        steps, positions = by_scores.of_groups, by_scores.of_cells[its[valued]]
    if not len(groups) or not scores.between or not positions.var():
        return None
    records = np.bincount(groups, minlength=len(steps))
    distances = steps - np.average(steps, weights=records)
    counts = measured.pairs[min(pair), max(pair)]
    counts = (counts.T if of < by else counts)[: len(steps), : len(scores.of_groups)]
    weights = np.outer(distances, scores.of_groups - released.mean()) / scores.between
    counted = float((counts * weights).sum()) / max(float(records @ distances**2), _SOME)
    if not counted:
        return None
    slope = float(((positions - positions.mean()) * released).mean() / positions.var())
    noise = measured.noise[min(pair), max(pair)].deviation * math.sqrt(float((weights**2).sum()))
    return Slope(slope / counted, noise / abs(float((counts * weights).sum())))


def _score(measured: Measured, place: int) -> _Scores:
    """The normal scores of a column, by how many records its cells seem to hold."""
    cells, groups = measured.cells[place], measured.groups[place]
    held = hold_records(measured.design, cells, measured.margins[place])[: len(cells.edges) - 1] + _SOME
    share = held / held.sum()
    scores: FloatArray = normal_laws().ndtri(np.cumsum(share) - share / 2)
    scores = scores - share @ scores
    scores = scores / max(math.sqrt(share @ scores**2), _SOME)
    count = count_valued(cells, groups)
    of_groups = np.bincount(groups[: len(share)], share * scores, count) / np.bincount(groups[: len(share)], share, count)
    return _Scores(scores, of_groups, float(np.bincount(groups[: len(share)], share, count) @ of_groups**2))


def _find_means(groups: IntArray, values: FloatArray, count: int) -> FloatArray:
    """The mean of each group; of one without any the mean of all."""
    records = np.bincount(groups, minlength=count)
    sums = np.bincount(groups, values, count)
    return np.where(records > 0, sums / np.maximum(records, 1), values.mean() if len(values) else 0.0)
