"""Mondrian (MON06): classes by cutting the table again and again, strict and multidimensional, to local labels.

A class is cut in one column. In a column of numbers the cut is between two different values; it is allowable if both sides have
at least k records. In a column with a hierarchy, the class's label is the finest one that all its records share, and the cut
replaces it by the labels of the next level that occur in the class (of which there are two or more); it is allowable if every one
of them has at least k records.

The columns of a class are tried in order of their share, the largest first (ties: the first column). The share of a column of
numbers is its range in the class over its range in the whole table; that of a column with a hierarchy is the number of values
under the class's label over the number of all values. The first column with an allowable cut is cut: numbers at the allowable cut
nearest to the median, that is with the least difference between the sides (ties: the lower one). So in the end no class has an
allowable cut in any column. Nothing depends on the order of the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import IntArray, as_matrix
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from release_pipeline.mechanisms.clusters.rank import as_threshold

Rows: TypeAlias = npt.NDArray[np.intp]


class Cuts(NamedTuple):
    """The class of each record, and for each class and column the level of the label that its records share.

    Classes are numbered from 0 in the order of the cuts, lower values and earlier labels first. `level[c, j]` is the finest level
    of column j's hierarchy on which all records of class c have one label, and -1 if column j has no hierarchy: there the class's
    least and greatest value describe it.
    """

    label: IntArray
    level: IntArray


def mondrian(matrix: npt.ArrayLike, k: int) -> IntArray:
    """Return the class of each row, as `cut_classes` finds it: every class has at least k rows, and none has an allowable cut
    left.

    >>> mondrian([[1, 5], [2, 5], [8, 5], [9, 6]], 2).tolist()
    [0, 0, 1, 1]
    """
    return cut_classes(matrix, k).label


def cut_classes(
    matrix: npt.ArrayLike,
    k: int,
    *,
    hierarchies: Mapping[int, Hierarchy] | None = None,
) -> Cuts:
    """Return classes of at least k rows, and the levels of their labels.

    `matrix` has a row for each record and a column for each quasi-identifier: integers or finite floats (-0.0 is 0.0).
    `hierarchies` says which columns, by position, hold value numbers of a hierarchy; its coarsest level must be one label.
    Shares are compared exactly, floats included.
    """
    k = as_threshold(k, "k")
    array = as_matrix(matrix)
    n, m = array.shape
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one class of {k:,}.", remedy="Lower k or publish more records.")
    declared = hierarchies or {}
    _check_hierarchies(declared, m)
    columns = [
        _Labels(array[:, place], declared[place], place) if place in declared else _Numbers(array[:, place]) for place in range(m)
    ]
    label = np.empty(n, dtype=np.int64)
    level: list[list[int]] = []
    pending: list[Rows] = [np.arange(n)]
    while pending:
        rows = pending.pop()
        if parts := _cut(columns, rows, k):
            pending += reversed(parts)  # so that classes are numbered from the lowest values to the highest
            continue
        label[rows] = len(level)
        level.append([column.level(rows) for column in columns])
    return Cuts(label, np.array(level, dtype=np.int64))


def _cut(columns: Sequence[_Numbers | _Labels], rows: Rows, k: int) -> list[Rows]:
    """Return the parts of a class by its first allowable cut; empty if there is none."""
    if len(rows) < 2 * k:
        return []
    shares = [column.share(rows) for column in columns]
    for place in sorted(range(len(columns)), key=lambda place: -shares[place]):
        side = columns[place].find_sides(rows, k) if shares[place] else None
        if side is not None:
            return [rows[side == number] for number in range(int(side.max()) + 1)]
    return []


class _Numbers:
    """A column of numbers."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values
        self._width = _measure_range(values)

    def level(self, _: Rows) -> int:
        """Return -1: there is no hierarchy."""
        return -1

    def share(self, rows: Rows) -> Fraction:
        """Return the range in the class over that in the table, exactly; 0 if all values are equal."""
        own = _measure_range(self._values[rows])
        return own / self._width if own else own

    def find_sides(self, rows: Rows, k: int) -> npt.NDArray[Any] | None:
        """Return the sides of the cut right before or right after the values equal to the median: the one with more similar
        sides; None if not allowable."""
        values, count = self._values[rows], len(rows)
        median = np.partition(values, (count - 1) // 2)[(count - 1) // 2]
        below, up_to = int(np.count_nonzero(values < median)), int(np.count_nonzero(values <= median))
        allowed = [cut for cut in (below, up_to) if k <= cut <= count - k]
        if not allowed:
            return None
        best = min(allowed, key=lambda cut: abs(count - 2 * cut))
        return np.asarray(values >= median if best == below else values > median).astype(np.int64)


class _Labels:
    """A column of the values of a hierarchy."""

    def __init__(self, values: npt.NDArray[Any], hierarchy: Hierarchy, place: int) -> None:
        self._values, self._labels = _in_tree_order(values, hierarchy, place)

    def level(self, rows: Rows) -> int:
        """Return the finest level on which the class has one label."""
        own = self._values[rows]
        return int(np.argmax(self._labels[:, own.min()] == self._labels[:, own.max()]))

    def share(self, rows: Rows) -> Fraction:
        """Return the values under the label of the class over all; 0 if all records have one value."""
        first, labels = int(self._values[rows].min()), self._labels[self.level(rows)]
        if (self._values[rows] == first).all():
            return Fraction(0)
        return Fraction(int(np.count_nonzero(labels == labels[first])), len(labels))

    def find_sides(self, rows: Rows, k: int) -> npt.NDArray[Any] | None:
        """Return a side for each label of the next level that occurs, if all of them are allowable; else None."""
        below = self._labels[self.level(rows) - 1][self._values[rows]]
        _, side, count = np.unique(below, return_inverse=True, return_counts=True)
        return None if count.min() < k else side


def _measure_range(values: npt.NDArray[Any]) -> Fraction:
    """Return the largest minus the least, exactly."""
    return Fraction(values.max().item()) - Fraction(values.min().item())


def _check_hierarchies(declared: Mapping[int, Hierarchy], m: int) -> None:
    for index, hierarchy in declared.items():
        if index not in range(m):
            raise InvalidArgument(f"there is a hierarchy for column {index}, and the columns are 0 to {m - 1}.")
        if len(hierarchy.labels[-1]) != 1:
            raise InvalidArgument(
                f"the coarsest level has {len(hierarchy.labels[-1])} labels, so that the whole table shares none.",
                where=f"column {index}",
                remedy="Add a level with one label for all values, like *.",
            )


def _in_tree_order(column: npt.NDArray[Any], hierarchy: Hierarchy, place: int) -> tuple[IntArray, IntArray]:
    """Return the values numbered so that those under one label are neighbours on every level, and the labels numbered in the same
    way."""
    if (column != np.trunc(column)).any() or column.min() < 0 or column.max() >= len(hierarchy.values):
        raise InvalidArgument("there are numbers that the hierarchy does not know.", where=f"column {place}")
    numbers = column.astype(np.int64)
    order = np.lexsort(hierarchy.codes)
    codes = hierarchy.codes[:, order]
    labels = np.zeros_like(codes)
    labels[:, 1:] = np.cumsum(codes[:, 1:] != codes[:, :-1], axis=1)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number[numbers], labels
