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
from release_pipeline.privacy.whole_table.scores import Groups

_KEYS = 1 << 16  # by which the rows of a block are put in an order: about as many as there are rows
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True, repr=False)
class Placing:
    """One column of rows that are made in blocks, in any order. `groups`: that of each cell; `rows`: how many rows each
    cell has, in all blocks together."""

    cells: Cells
    groups: IntArray
    entering: Entering
    rows: IntArray

    @property
    def order(self) -> IntArray:
        """The cells, group by group."""
        return np.argsort(self.groups, kind="stable")

    @classmethod
    def of(cls, cells: Cells, held: FloatArray, groups: IntArray, rows: IntArray, random: Random) -> Placing:
        """That of cells which hold so many records, and are in these groups, each of which has so many rows."""
        each = np.zeros(len(groups), dtype=np.int64)
        for group, count in enumerate(rows.tolist()):
            own = np.flatnonzero(groups == group)
            each[own] = spread_over(held[own], count, random)
        return cls(cells, groups, Entering.of(cells, held), each)

    def place(self, groups: Groups, before: IntArray, located: FloatArray | None, random: Random) -> IntArray:
        """An entry for each row of a block. `groups`: of the rows, which are in random order; `before`: how many rows of each
        group come in blocks before it; `located`: how far up in its group each row lies, None where that is all one."""
        keys = groups if located is None else ((groups + located) * (_KEYS // len(before))).astype(np.uint16)
        order = np.argsort(keys, kind="stable")  # of keys so short several times faster
        times = self._count_cells(before, np.bincount(groups, minlength=len(before)))[self.order]
        within = np.arange(len(order)) - np.repeat(np.cumsum(times) - times, times) + random.random(len(order))
        within /= np.repeat(times, times)
        entries = np.empty(len(order), dtype=np.int64)
        entries[order] = self.entering.enter(self.cells, np.repeat(self.order, times), within)
        return entries

    def _count_cells(self, before: IntArray, rows: IntArray) -> IntArray:
        """How many of so many rows of each group each cell has, after those before.

        Row r of a group has the cell that lies at r m modulo the group's rows, m being coprime to them: each of its rows
        once, so that all blocks together have every cell as often as they should, and each block about its share."""
        times = np.zeros(len(self.groups), dtype=np.int64)
        for group in np.flatnonzero(rows).tolist():
            cells, first = self.groups == group, int(before[group])
            ends = np.cumsum(self.rows[cells])
            total = int(ends[-1])
            places: IntArray = np.arange(first, first + int(rows[group]), dtype=np.int64) * find_stride(total) % total
            times[cells] = np.bincount(np.searchsorted(ends, places, side="right"), minlength=len(ends))
        return times


def find_stride(count: int) -> int:
    """About the golden part of a number, and coprime to it: multiples of it modulo the number are spread evenly.

    >>> find_stride(10), find_stride(1)
    (7, 1)
    """
    stride = max(round(count * _GOLDEN), 1)
    while math.gcd(stride, count) > 1:
        stride += 1
    return stride
