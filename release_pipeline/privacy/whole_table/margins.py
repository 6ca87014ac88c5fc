"""What all counts together say of a column: its own, and the tables of its pairs, whose rows add up to its groups.

Least squares on the noisy counts, each weighed by one over its variance, so that a column of many pairs is known better than by
its own counts alone. The groups follow from the counts of the column, and are taken as they are.
"""

from __future__ import annotations

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.whole_table.design import deviation
from release_pipeline.privacy.whole_table.measure import Measured


def combine_margins(measured: Measured) -> list[FloatArray]:
    """The counts of the cells of every column."""
    sums: list[list[tuple[FloatArray, float]]] = [[] for _ in measured.cells]
    for columns, own in measured.tables.items():
        counts = own.counts
        even = counts - (counts.sum() - measured.design.records) / counts.size
        for axis, place in enumerate(columns):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            sums[place].append((even.sum(axis=others), own.deviation**2 * (counts.size // counts.shape[axis])))
    own = deviation(measured.design.margins) ** 2
    return [
        _combine(margin, groups, own, said) for margin, groups, said in zip(measured.margins, measured.groups, sums, strict=True)
    ]


def _combine(margin: IntArray, groups: IntArray, variance: float, said: list[tuple[FloatArray, float]]) -> FloatArray:
    cells = np.bincount(groups)
    mine: FloatArray = np.bincount(groups, margin.astype(np.float64)).astype(np.float64)
    certain = 1 / (cells * variance)
    found = mine * certain
    for sums, unsure in said:
        found, certain = found + sums / unsure, certain + 1 / unsure
    missing: FloatArray = (found / certain - mine) / cells
    return margin + missing[groups]
