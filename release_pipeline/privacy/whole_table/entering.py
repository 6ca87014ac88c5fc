"""Where in its cell an entry lies: further up the later its row comes, as the density seems to rise from what the cells beside it
hold. Made of noisy counts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.whole_table.cells import Cells

_STEEPEST = 8.0  # e-foldings of density within a cell, between two neighbours
_FLATTEST, _SHARPEST = 1e-3, 0.0004


@dataclass(frozen=True, slots=True)
class Entering:
    """By how many e-foldings the density rises within each cell, and what that makes of the whole cell's: exp of minus it, less
    one."""

    rise: FloatArray
    factor: FloatArray

    @classmethod
    def of(cls, cells: Cells, held: FloatArray) -> Entering:
        """That of cells which hold so many records."""
        is_wide = np.diff(cells.edges) > 1
        rise = np.array([_rise(cells, held, cell) if wide else 0.0 for cell, wide in enumerate(is_wide.tolist())])
        return cls(rise, np.array([math.expm1(-abs(one)) for one in rise.tolist()]))

    def enter(self, cells: Cells, found: IntArray, within: FloatArray) -> IntArray:
        """An entry in the cell of each row, further up the later the row comes in its cell."""
        own = len(cells.edges) - 1
        cell = np.minimum(found, own - 1)
        low, width = cells.edges[cell], np.diff(cells.edges)[cell]
        part = self._place(cell, within)
        entries = low + np.minimum(np.floor(part * width).astype(np.int64), width - 1)
        return np.where(found >= own, cells.column.width + 1 + found - own, entries)

    def share_below(self, cell: int, width: int) -> FloatArray:
        """The share of a cell's rows that have its first entry, its first two, and so on."""
        part = np.arange(1, width + 1) / width
        rise = float(self.rise[cell]) if cell < len(self.rise) else 0.0
        if abs(rise) < _FLATTEST:
            return part
        if rise < 0:
            return np.expm1(rise * part) / math.expm1(rise)
        return (np.exp(rise * (part - 1)) - math.exp(-rise)) / -math.expm1(-rise)

    def _place(self, cell: IntArray, within: FloatArray) -> FloatArray:
        """Where so much of a cell's records lies below, its density being exp(rise x)."""
        part, rise = np.array(within), self.rise[cell]
        falls, rises = np.flatnonzero(rise <= -_FLATTEST), np.flatnonzero(rise >= _FLATTEST)
        part[falls] = np.minimum(np.log1p(within[falls] * self.factor[cell[falls]]) / rise[falls], 1.0)
        part[rises] = np.maximum(1 + np.log1p((1 - within[rises]) * self.factor[cell[rises]]) / rise[rises], 0.0)
        return part


def _rise(cells: Cells, held: FloatArray, cell: int) -> float:
    """By how many e-foldings the density rises within a cell, as it seems from those beside it."""
    width = np.diff(cells.edges)
    density = [
        held[place] / width[place] if 0 <= place < len(width) and width[place] > 1 else 0.0
        for place in (cell - 1, cell, cell + 1)
    ]
    before, own, after = density
    if own <= 0:
        return 0.0
    if before > 0 and after > 0:
        return min(max(math.log(after / before) / 2, -_STEEPEST), _STEEPEST)
    if before > 2 * own and after <= 0:
        return -min(before / own, 1 / _SHARPEST)
    if after > 2 * own and before <= 0:
        return min(after / own, 1 / _SHARPEST)
    return 0.0
