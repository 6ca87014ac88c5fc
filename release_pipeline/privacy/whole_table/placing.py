"""Cells of the rows of a group, and entries in them: a group's cells as they hold records, in the order of the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.cells import Cells
from release_pipeline.privacy.whole_table.entering import Entering
from release_pipeline.privacy.whole_table.pool import spread_over

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True, repr=False)
class Placing:
    """One column of rows that are made in blocks, in any order. `groups`: that of each cell; `rows`: how many rows each
    cell has, in all blocks together."""

    cells: Cells
    groups: IntArray
    entering: Entering
    rows: IntArray

    @classmethod
    def of(cls, cells: Cells, held: FloatArray, groups: IntArray, rows: IntArray, random: Random) -> Placing:
        """That of cells which hold so many records, and are in these groups, each of which has so many rows."""
        each = np.zeros(len(groups), dtype=np.int64)
        for group, count in enumerate(rows.tolist()):
            own = np.flatnonzero(groups == group)
            each[own] = spread_over(held[own], count, random)
        return cls(cells, groups, Entering.of(cells, held), each)

    def place(self, chosen: IntArray, before: IntArray, scores: FloatArray | None, random: Random) -> IntArray:
        """An entry for each row of a block, whose group is chosen. `before`: how many rows of each group come in blocks
        before it.

        Row r of a group has the cell that lies at r m modulo the group's rows, m being coprime to them: each of its rows
        once, so that all blocks together have every cell as often as they should, and each block about its share."""
        found, within = np.zeros(len(chosen), dtype=np.int64), np.zeros(len(chosen))
        for group, first in enumerate(before.tolist()):
            rows, own = np.flatnonzero(chosen == group), np.flatnonzero(self.groups == group)
            if not len(rows):
                continue
            rows = random.permutation(rows) if scores is None else rows[np.argsort(scores[rows])]
            ends = np.cumsum(self.rows[own])
            total = int(ends[-1])
            places: IntArray = np.arange(first, first + len(rows), dtype=np.int64) * find_stride(total) % total
            each = np.bincount(np.searchsorted(ends, places, side="right"), minlength=len(own))
            found[rows] = np.repeat(own, each)
            starts = np.repeat(np.cumsum(each) - each, each)
            within[rows] = (np.arange(len(rows)) - starts + random.random(len(rows))) / np.repeat(np.maximum(each, 1), each)
        return self.entering.enter(self.cells, found, within)


def find_stride(count: int) -> int:
    """About the golden part of a number, and coprime to it: multiples of it modulo the number are spread evenly.

    >>> find_stride(10), find_stride(1)
    (7, 1)
    """
    stride = max(round(count * _GOLDEN), 1)
    while math.gcd(stride, count) > 1:
        stride += 1
    return stride
