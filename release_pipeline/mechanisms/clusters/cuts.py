"""Mondrian (MON06): classes by cutting the table again and again, strict and multidimensional, to local labels.

A class is cut in one column. In a column of numbers the cut lies between two different values; it is allowable if both sides have
at least k records. In a column with a hierarchy, the class's label is
the finest one that all its records share, and the cut replaces it by the labels of the next level that occur in the class (of
which there are two or more); it is allowable if every one of them has at least k records.

The columns of a class are tried in order of their share, the largest first, of equal ones the first column. The share of a column
of numbers is its range in the class over its range in the whole table; that of a column with a hierarchy is the number of values
under the class's label over the number of all values. The first column with an allowable cut is cut: numbers at the allowable
place nearest to the median, that is with the least difference between the sides (of two, the lower one). So in the end no class
has an allowable cut in any column. Nothing depends on the order of the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import IntArray, as_matrix
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy, HierarchyLike
from release_pipeline.mechanisms.clusters.rank import as_threshold

_MAX_WHOLE = 2**53  # floats up to here that are whole are as good as integers


class Cuts(NamedTuple):
    """The class of each record, and for each class and column the level of the label that its records share.

    Classes are numbered from 0 in the order of the cuts, lower values and earlier labels first. `level[c, j]` is the finest level
    of column j's hierarchy on which all records of class c have one label, and -1 where column j has no hierarchy: there the
    class's least and greatest value are what describes it.
    """

    label: IntArray
    level: IntArray


def mondrian(
    matrix: npt.ArrayLike,
    k: int,
    *,
    hierarchies: Mapping[int, HierarchyLike] | None = None,
) -> IntArray:
    """The class of each row, as `cut_classes` finds it: every class has at least k rows, and none has an allowable cut left.

    >>> mondrian([[1, 5], [2, 5], [8, 5], [9, 6]], 2).tolist()
    [0, 0, 1, 1]
    """
    return cut_classes(matrix, k, hierarchies=hierarchies).label


def cut_classes(
    matrix: npt.ArrayLike,
    k: int,
    *,
    hierarchies: Mapping[int, HierarchyLike] | None = None,
) -> Cuts:
    """Classes of at least k rows, and the levels of their labels.

    `matrix` has a row for each record and a column for each quasi-identifier: integers or finite floats (-0.0 is 0.0).
    `hierarchies` says which columns, by their place, hold value numbers of a hierarchy; its coarsest level must be one label.
    Shares are compared exactly, floats included. The first call compiles for some seconds.
    """
    k = as_threshold(k, "k")
    array = as_matrix(matrix)
    n, m = array.shape
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one class of {k:,}.", remedy="Lower k or publish more records.")
    kernel = _load_kernel()

    columns = np.empty((m, n), dtype=np.int64)
    kinds, least, most = (np.zeros(m, dtype=np.int64) for _ in range(3))
    trees = [np.empty((0, 0), dtype=np.int64) for _ in range(m)]
    declared = _as_hierarchies(hierarchies, m)
    for place in range(m):
        if place in declared:
            columns[place], trees[place] = _in_tree_order(array[:, place], declared[place], place)
            kinds[place], least[place], most[place] = kernel.LABELS, 0, trees[place].shape[1]
        else:
            columns[place], is_float = _in_order(array[:, place])
            kinds[place] = kernel.FLOAT if is_float else kernel.WHOLE
            least[place], most[place] = columns[place].min(), columns[place].max()

    label = np.empty(n, dtype=np.int64)
    level = np.empty((n // k, m), dtype=np.int64)
    offset = np.cumsum([0, *(tree.size for tree in trees)])
    flat = np.concatenate([tree.reshape(-1) for tree in trees])
    classes = kernel.cut_kernel(columns, kinds, least, most, flat, offset, k, label, level)
    return Cuts(label, level[:classes].copy())


@cache
def _load_kernel() -> ModuleType:
    """The compiled loops; nothing is compiled before a table is cut."""
    from release_pipeline.mechanisms.clusters import cut_kernel

    return cut_kernel


def _as_hierarchies(hierarchies: Mapping[int, HierarchyLike] | None, m: int) -> dict[int, Hierarchy]:
    declared = {place: Hierarchy.of(hierarchy) for place, hierarchy in (hierarchies or {}).items()}
    for place, hierarchy in declared.items():
        if place not in range(m):
            raise InvalidArgument(f"there is a hierarchy for column {place}, and the columns are 0 to {m - 1}.")
        if len(hierarchy.labels[-1]) != 1:
            raise InvalidArgument(
                f"the coarsest level has {len(hierarchy.labels[-1])} labels, so that the whole table shares none.",
                where=f"column {place}",
                remedy="Add a level with one label for all values, like *.",
            )
    return declared


def _in_order(column: npt.NDArray[Any]) -> tuple[IntArray, bool]:
    """int64 that sort like the numbers, and whether they are floats in disguise rather than the numbers themselves."""
    if column.dtype.kind != "f":
        return column.astype(np.int64), False
    floats = column.astype(np.float64) + 0.0  # so that -0.0 is 0.0
    if bool(np.all(np.abs(floats) <= _MAX_WHOLE)) and bool(np.all(floats == np.trunc(floats))):
        return floats.astype(np.int64), False
    words = floats.view(np.int64)
    return np.where(words < 0, words ^ np.int64(2**63 - 1), words), True


def _in_tree_order(column: npt.NDArray[Any], hierarchy: Hierarchy, place: int) -> tuple[IntArray, IntArray]:
    """The values numbered so that those under one label are neighbours on every level, and the labels numbered likewise."""
    numbers, is_float = _in_order(column)
    if is_float or int(numbers.min()) < 0 or int(numbers.max()) >= len(hierarchy.values):
        raise InvalidArgument("there are numbers that the hierarchy does not know.", where=f"column {place}")
    order = np.lexsort(hierarchy.codes)
    codes = hierarchy.codes[:, order]
    labels = np.zeros_like(codes)
    labels[:, 1:] = np.cumsum(codes[:, 1:] != codes[:, :-1], axis=1)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number[numbers], labels
