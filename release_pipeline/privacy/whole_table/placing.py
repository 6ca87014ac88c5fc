"""Cells of the rows of a group, and entries in them: a group's cells as they hold records, in the order of the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.cells import Cells
from release_pipeline.privacy.whole_table.entering import Entering
from release_pipeline.privacy.whole_table.pool import spread_over

_NOT_YET = -1


@dataclass(frozen=True, slots=True)
class Placing:
    """One column of rows that come block by block. `rows`: how many there will be of each group; `left`: how many each cell will
    still be given, once the first of its group has come."""

    cells: Cells
    held: FloatArray
    groups: IntArray
    rows: IntArray
    entering: Entering
    left: IntArray

    @classmethod
    def of(cls, cells: Cells, held: FloatArray, groups: IntArray, rows: IntArray) -> Placing:
        """That of cells which hold so many records, and are in these groups."""
        return cls(cells, held, groups, rows, Entering.of(cells, held), np.full(len(groups), _NOT_YET, dtype=np.int64))

    def place(self, chosen: IntArray, scores: FloatArray | None, random: Random) -> IntArray:
        """An entry for each row of a block, whose group is chosen."""
        found = np.zeros(len(chosen), dtype=np.int64)
        within = np.zeros(len(chosen))
        for group in range(int(self.groups.max()) + 1):
            rows, own = np.flatnonzero(chosen == group), np.flatnonzero(self.groups == group)
            if not len(rows):
                continue
            rows = random.permutation(rows) if scores is None else rows[np.argsort(scores[rows], kind="stable")]
            each = self._deal(group, own, len(rows), random)
            found[rows] = np.repeat(own, each)
            starts = np.repeat(np.cumsum(each) - each, each)
            within[rows] = (np.arange(len(rows)) - starts + random.random(len(rows))) / np.repeat(np.maximum(each, 1), each)
        return self.entering.enter(self.cells, found, within)

    def _deal(self, group: int, own: IntArray, count: int, random: Random) -> IntArray:
        """How many of so many rows of a group each of its cells is given: of all blocks together its share, rounded."""
        if self.left[own[0]] == _NOT_YET:
            self.left[own] = spread_over(self.held[own], int(self.rows[group]), random)
        left = self.left[own]
        total = int(left.sum())
        if count == total:
            return left
        ends = (np.cumsum(left) * count + random.integers(total)) // total  # whole numbers: no cell is given more than is left
        each = np.diff(ends, prepend=0)
        self.left[own] -= each
        return each
