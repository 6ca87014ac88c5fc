"""Counts of records in each combination of groups of columns, from their entries. Nothing here has noise: all of it is
confidential.

This module imports nothing of ours, so that it can be sent to another machine. Tables of few columns are sums of tables of
more, so fewer are counted: the pairs of 20 columns are sums of about 40 tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Columns = tuple[int, ...]  # the positions of columns, ascending
AT_ONCE = 1 << 16  # records whose groups stay in the cache
DENSE = 1 << 24  # columns with at most so many entries are counted in one array
_DENSE_GROUPS = 1 << 20  # columns with at most so many entries have their groups in one array


class Encoder(Protocol):
    """The rule by which cells of a column become entries, 0 .. `size` - 1."""

    @property
    def size(self) -> int:
        """Return how many entries there may be."""
        ...

    def find(self, cells: Any) -> Ints:
        """Return the entry of each cell."""
        ...


@dataclass(frozen=True, slots=True)
class NumberEncoder:
    """Numbers on a grid of `width` steps of numerator / denominator from `low` to `high`: those outside are moved to its
    ends. Correctly rounded operations only, so that every processor gives the same entries."""

    low: float
    high: float
    numerator: float
    denominator: float
    width: int

    @property
    def size(self) -> int:
        """Return the number of points, one for each end of a step."""
        return self.width + 1

    def find(self, cells: Any) -> Ints:
        """Return the nearest point of the grid to each number."""
        steps = np.clip(_as_numpy(cells), self.low, self.high)
        steps -= self.low
        if self.denominator != 1.0:
            steps *= self.denominator
        if self.numerator != 1.0:
            steps /= self.numerator
        np.rint(steps, out=steps)
        entries = steps.astype(np.int64)
        return np.clip(entries, 0, self.width, out=entries)


def _as_numpy(cells: Any) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[Any] = cells if hasattr(cells, "astype") else cells.to_numpy(zero_copy_only=False)
    return numbers.astype(np.float64)


@dataclass(frozen=True, slots=True, repr=False)
class GroupsOfEntries:
    """The group of every entry of a column: that of the last of `firsts` that is not above it."""

    firsts: Ints
    groups: npt.NDArray[np.uint16]
    dense: npt.NDArray[np.uint16] | None = field(default=None)

    @classmethod
    def of(cls, firsts: Ints, groups: Ints, size: int) -> GroupsOfEntries:
        """Return the groups from the first entry of each cell, ascending, and the group of the cell; there are `size` entries."""
        small = groups.astype(np.uint16)
        begins = np.append(True, small[1:] != small[:-1])
        made = cls(firsts[begins], small[begins])
        return cls(made.firsts, made.groups, made.find(np.arange(size))) if size <= _DENSE_GROUPS else made

    def find(self, entries: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint16]:
        """Return the group of each of these entries."""
        if self.dense is not None:
            return self.dense[entries]
        return self.groups[np.searchsorted(self.firsts, entries, side="right") - 1]


@dataclass(frozen=True, slots=True, repr=False)
class TablePlan:
    """The wanted tables, the larger tables of which they are sums, and the groups of the columns' entries."""

    groups: tuple[GroupsOfEntries, ...]
    sizes: tuple[int, ...]
    wanted: tuple[Columns, ...]
    counted: tuple[Columns, ...]

    def cells(self, columns: Columns) -> int:
        """Return how many cells the table of these columns has."""
        return math.prod(self.sizes[column] for column in columns)

    def split(self, counts: Ints) -> list[Ints]:
        """Return the wanted tables, given all their counts one after the other."""
        shapes = [tuple(self.sizes[column] for column in columns) for columns in self.wanted]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(counts, ends[:-1]), shapes, strict=True)]


def plan_tables(
    groups: Iterable[GroupsOfEntries], sizes: Iterable[int], wanted: Iterable[Columns], cover: Iterable[Columns]
) -> TablePlan:
    """Return a plan for the wanted tables: each is a sum of one of `cover`, or is counted by itself."""
    tables, counted = tuple(wanted), list[Columns]()
    for larger in (*cover, *sorted(tables, key=len, reverse=True)):
        missing = (table for table in tables if not any(set(table) <= set(other) for other in counted))
        if any(set(table) <= set(larger) for table in missing):
            counted.append(larger)
    return TablePlan(tuple(groups), tuple(sizes), tables, tuple(sorted(counted)))


def count_tables(plan: TablePlan, parts: Iterable[Sequence[npt.NDArray[np.integer[Any]]]]) -> Ints:
    """Return the counts of all wanted tables, one after the other. Each of `parts` has the entries of some records, by column."""
    counts = {columns: np.zeros(plan.cells(columns), dtype=np.int64) for columns in plan.counted}
    for part in parts:
        for start in range(0, len(part[0]), AT_ONCE):
            groups = [
                own.find(entries[start : start + AT_ONCE]).astype(np.int64)
                for own, entries in zip(plan.groups, part, strict=True)
            ]
            known: dict[Columns, Ints] = {}
            for columns, held in counts.items():
                held += np.bincount(_combine(columns, groups, plan.sizes, known), minlength=len(held))
    return sum_tables(plan, counts)


def sum_tables(plan: TablePlan, counts: Mapping[Columns, Ints]) -> Ints:
    """Return the counts of all wanted tables, one after the other, from those of each table that was counted."""
    tables = {columns: held.reshape([plan.sizes[column] for column in columns]) for columns, held in counts.items()}
    summed = [np.empty(0, dtype=np.int64)]
    for wanted in plan.wanted:
        home = min((columns for columns in tables if set(wanted) <= set(columns)), key=lambda columns: tables[columns].size)
        others = tuple(axis for axis, column in enumerate(home) if column not in wanted)
        summed.append(tables[home].sum(axis=others).ravel())
    return np.concatenate(summed)


def _combine(columns: Columns, groups: Sequence[Ints], sizes: Sequence[int], known: dict[Columns, Ints]) -> Ints:
    """Return the combination of groups of each record. `known`: those of the first of these columns, which tables share."""
    if len(columns) == 1:
        return groups[columns[0]]
    if columns not in known:
        last = columns[-1]
        known[columns] = _combine(columns[:-1], groups, sizes, known) * sizes[last] + groups[last]
    return known[columns]


def add_counts(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Return the entries and counts of all parts together, ascending."""
    if len(parts) == 1:
        return parts[0]
    return sum_counts(np.concatenate([own for own, _ in parts]), np.concatenate([own for _, own in parts]))


def sum_counts(entries: npt.NDArray[Any], counts: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[Any], Ints]:
    """Return the different entries, ascending, and the sum of the counts of each."""
    different, places = np.unique(entries, return_inverse=True)
    sums = np.zeros(len(different), dtype=np.int64)
    np.add.at(sums, places, counts)
    return different, sums
