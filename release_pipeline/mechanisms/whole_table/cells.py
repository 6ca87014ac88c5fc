"""The cells of a column, what noisy counts say they hold, and which of them are put together for the tables of pairs.

All but `Cells.find` reads noisy counts and declared facts only: it is made of what was measured, and loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.counting import GroupsOfEntries
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.tables import level_off
from release_pipeline.mechanisms.whole_table.design import MOST_GROUPS, NARROW_GROUPS, Column

_EMPTY = 2.0  # standard deviations: an atom that holds less is taken to be empty
LEAST_MASS = 1.5  # standard deviations of a pair's count that a group must hold
_SOME = 1e-9  # records


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a column: `edges` of those of its entries, in ascending order, and one for each reason to have none."""

    column: Column
    edges: IntArray

    @classmethod
    def narrow(cls, column: Column) -> Cells:
        """A cell for every entry."""
        return cls(column, np.arange(column.width + 2, dtype=np.int64))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.edges) - 1 + self.column.labels

    def find(self, entries: IntArray) -> IntArray:
        """The cell of each record."""
        found = np.searchsorted(self.edges, entries, side="right") - 1
        beyond = entries - self.column.width - 1
        return np.where(beyond >= 0, len(self.edges) - 1 + beyond, found).astype(np.int64)

    def count_records(self, entries: Tally) -> IntArray:
        """How many records each has."""
        firsts = np.append(self.edges, self.column.width + 2 + np.arange(self.column.labels))
        if len(entries) and entries.entries[-1] >= firsts[-1]:
            raise InvalidArgument("an entry is none of the column's.")
        return entries.count_within(firsts)

    def groups_of_entries(self, groups: IntArray) -> GroupsOfEntries:
        """The group of every entry, by that of its cell."""
        labels = self.column.width + 1 + np.arange(self.column.labels)
        return GroupsOfEntries.of(np.append(self.edges[:-1], labels), groups, self.column.width + 1 + self.column.labels)

    def hold(self, noisy: IntArray | FloatArray, deviation: float, records: int) -> FloatArray:
        """How many records each cell seems to hold: none below 0, all together as many as there are."""
        is_kept = np.ones(self.count, dtype=np.bool_)
        if not self.column.nominal:
            is_kept[: len(self.edges) - 1] = self._not_empty(noisy[: len(self.edges) - 1].astype(np.float64), deviation)
            if not is_kept.any():
                is_kept[:] = True
        held = np.zeros(self.count)
        held[is_kept] = np.maximum(noisy[is_kept] - level_off(noisy[is_kept].astype(np.float64), records), 0.0)
        return held

    def _not_empty(self, noisy: FloatArray, deviation: float) -> npt.NDArray[np.bool_]:
        """Which cells of values are not taken to be empty: atoms, and the cells between two atoms without the tails that noise
        explains. A domain that is declared far too wide would fill with noise otherwise."""
        is_kept = noisy >= _EMPTY * deviation
        atoms = np.flatnonzero(np.isin(self.edges[:-1], self.column.own_cells))
        for before, after in pairwise((-1, *atoms.tolist(), len(noisy))):
            is_kept[before + 1 : after] = _without_tails(noisy[before + 1 : after] / deviation)
        return is_kept


def _without_tails(counts: FloatArray) -> npt.NDArray[np.bool_]:
    """Which of these neighbouring cells are not in a tail. `counts`: noisy counts over the standard deviation of their noise.

    Windows of 1, 2, 4, 8, ... cells that hold more than noise makes of the largest of all of them have records, and so has what
    lies between. What goes on from there needs less: two cells after the other that hold more than noise makes of most."""
    cells = len(counts)
    enough = math.sqrt(2 * math.log(2 * max(cells, 1)))  # about the largest of so many windows of noise
    full = np.zeros(cells, dtype=np.bool_)
    for width in (1 << power for power in range(cells.bit_length())):
        starts = np.arange(0, cells, width)
        for start in starts[np.add.reduceat(counts, starts) >= enough * math.sqrt(width)].tolist():
            window = full[start : start + width]
            window[:] = window if window.any() else True  # smaller windows say more exactly where records are
    if full.any():
        first, last = np.flatnonzero(full)[[0, -1]].tolist()
        full[first - _go_on(counts[:first][::-1]) : last + 1 + _go_on(counts[last + 1 :])] = True
    return full


def _go_on(counts: FloatArray) -> int:
    """How many of these cells are not empty, from the first one on, by two at a time."""
    twos = counts[: len(counts) // 2 * 2].reshape(-1, 2).sum(axis=1) < math.sqrt(2)
    return 2 * int(np.argmax(np.append(twos, True)))


def group_cells(cells: Cells, held: FloatArray, groups: int, deviation: float) -> IntArray:
    """The group of each cell in the table of a pair: neighbours together until they hold about as many records as the others, or,
    where entries have no order, the rare ones together. `deviation`: of the noise of a cell of that table."""
    least = max(LEAST_MASS * deviation, 1.0)
    if cells.column.nominal:
        return _rare_together(held, MOST_GROUPS, least)
    if not cells.column.is_wide:
        groups = max(groups, NARROW_GROUPS)
    values = len(cells.edges) - 1
    groups_of_cells = np.zeros(cells.count, dtype=np.int64)
    if values <= groups and bool((held[:values] >= least).all()):
        groups_of_cells[:values] = np.arange(values)
    else:
        groups_of_cells[:values] = list(_runs(held[:values], groups, least))
    labels = _rare_together(held[values:], max(groups - 1, 1), least) if cells.column.labels else groups_of_cells[:0]
    groups_of_cells[values:] = groups_of_cells[:values].max() + 1 + labels
    return groups_of_cells


def count_valued(cells: Cells, groups: IntArray) -> int:
    """How many groups of an ordered column have values, by the group of each cell: the first ones. The others have reasons."""
    return int(groups[: len(cells.edges) - 1].max()) + 1


def _rare_together(held: FloatArray, groups: int, least: float) -> IntArray:
    """A group for each of those that hold enough, the most first to be kept, and one for the others."""
    order = np.argsort(-held, kind="stable")
    room = groups if len(held) <= groups else max(groups - 1, 1)
    frequent = np.sort([place for place in order.tolist() if held[place] >= least][:room]).astype(np.int64)
    rare = np.ones(len(held), dtype=np.bool_)
    rare[frequent] = False
    found = np.zeros(len(held), dtype=np.int64)
    found[frequent] = np.arange(len(frequent))
    found[rare] = len(frequent)
    return found


def _runs(held: FloatArray, groups: int, least: float) -> Iterator[int]:
    """The group of each cell in order, each as near to its share of what is left as whole cells can be."""
    left, group, mass = float(held.sum()), 0, 0.0
    target = max(left / groups, least)
    ends = [0] * len(held)
    for index, records in enumerate(held.tolist()):
        if mass >= max(least, _SOME) and group < groups - 1 and (mass + records / 2 >= target or records >= target):
            left -= mass
            group, mass = group + 1, 0.0
            target = max(left / (groups - group), least)
        ends[index] = group
        mass += records
    if mass < least and group > 0:
        ends = [min(end, group - 1) for end in ends]
    yield from ends


# Where in its cell an entry lies: further up the later its row comes, as the density seems to rise
# from what its neighbours hold. Made of noisy counts only.


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

    def enter(self, cells: Cells, cells_of_rows: IntArray, within: FloatArray) -> IntArray:
        """An entry in the cell of each row, further up the later the row comes in its cell."""
        values = len(cells.edges) - 1
        cell = np.minimum(cells_of_rows, values - 1)
        low, width = cells.edges[cell], np.diff(cells.edges)[cell]
        part = self._place(cell, within)
        entries = low + np.minimum(np.floor(part * width).astype(np.int64), width - 1)
        return np.where(cells_of_rows >= values, cells.column.width + 1 + cells_of_rows - values, entries)

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
    """By how many e-foldings the density rises within a cell, as it seems from its neighbours."""
    width = np.diff(cells.edges)
    density = [
        held[place] / width[place] if 0 <= place < len(width) and width[place] > 1 else 0.0
        for place in (cell - 1, cell, cell + 1)
    ]
    before, here, after = density
    if here <= 0:
        return 0.0
    if before > 0 and after > 0:
        return min(max(math.log(after / before) / 2, -_STEEPEST), _STEEPEST)
    if before > 2 * here and after <= 0:
        return -min(before / here, 1 / _SHARPEST)
    if after > 2 * here and before <= 0:
        return min(after / here, 1 / _SHARPEST)
    return 0.0
