"""Generalisation hierarchies: the labels of each value of a column, level by level, from the value itself to the coarsest label.

A hierarchy is declared, never learned from data. It is a table with a row per value: level 0 is the value, every further level a
coarser label. Two values that share a label share all coarser ones too (levels are monotone), so a more general table has larger
classes: the search of `lattice` and the trees of `cuts` depend on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import IntArray, as_numbers


@dataclass(frozen=True, slots=True, repr=False)
class Hierarchy:
    """The labels of every level, and for each value (by its number) the number of its label there.

    `labels[level]` are distinct, in order of first appearance; `codes[level, value]` is the position of the value's label in
    them.
    """

    labels: tuple[tuple[str, ...], ...]
    codes: IntArray

    @classmethod
    def of(cls, rows: Iterable[Sequence[object]]) -> Hierarchy:
        """Return a hierarchy from rows (value, label of level 1, ...).

        Refused: no rows, rows of different lengths, a value twice, an empty entry, and levels that are not monotone.

        >>> Hierarchy.of([("a", "vowel", "*"), ("b", "consonant", "*"), ("e", "vowel", "*")]).codes.tolist()
        [[0, 1, 2], [0, 1, 0], [0, 0, 0]]
        """
        rows = list(rows)
        _check_not_text(rows)
        table = [tuple(str(entry) for entry in row) for row in rows]
        _check_rows(table)
        labels: list[tuple[str, ...]] = []
        codes = np.empty((len(table[0]), len(table)), dtype=np.int64)
        for level, column in enumerate(zip(*table, strict=True)):
            known = {label: place for place, label in enumerate(dict.fromkeys(column))}
            labels.append(tuple(known))
            codes[level] = [known[label] for label in column]
        hierarchy = cls(tuple(labels), codes)
        _check_monotone(hierarchy)
        return hierarchy

    @property
    def levels(self) -> int:
        """Return how many levels there are, including the values themselves."""
        return len(self.labels)

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values, by number."""
        return self.labels[0]

    def encode(self, entries: Iterable[object]) -> IntArray:
        """Return the number of each entry's value. Entries that are not texts of values, including missing ones and numbers, are
        refused, with only their count in the message.
        """
        known: dict[object, int] = {value: number for number, value in enumerate(self.values)}
        texts = list(entries)
        uncovered = [text for text in texts if text not in known]
        if uncovered:
            raise InvalidArgument(
                f"{len(uncovered):,} records have {len(set(uncovered)):,} different values that the hierarchy does not cover.",
                remedy="Declare every value that may occur, one for missing entries included.",
            )
        return np.array([known[text] for text in texts], dtype=np.int64)

    def __repr__(self) -> str:
        return f"<Hierarchy of {len(self.values):,} values in {self.levels} levels>"


def find_ambiguous_label(hierarchy: Hierarchy) -> str | None:
    """Return a label with different sets of values on two levels, if records of both may meet (local recoding); None if there is
    none.

    >>> find_ambiguous_label(Hierarchy.of([("Other", "Other", "*"), ("Sales", "Other", "*")]))
    'Other'
    """
    seen: dict[str, frozenset[int]] = {}
    for level in range(hierarchy.levels):
        for place, label in enumerate(hierarchy.labels[level]):
            values = frozenset(np.flatnonzero(hierarchy.codes[level] == place).tolist())
            if seen.setdefault(label, values) != values:
                return label
    return None


def _check_not_text(rows: Iterable[object]) -> None:
    if any(isinstance(row, str | bytes) for row in rows):
        raise InvalidType("a hierarchy has a text where a sequence of labels should be, one for each level.")


def _check_rows(table: list[tuple[str, ...]]) -> None:
    if not table or not table[0]:
        raise InvalidArgument("a hierarchy has no values.")
    for row in table:
        if len(row) != len(table[0]):
            raise InvalidArgument(f"the value '{row[0] if row else ''}' has {len(row)} levels, and others {len(table[0])}.")
        if not all(row):
            raise InvalidArgument(f"the value '{row[0]}' has an empty entry.", remedy="Write * for the coarsest label.")
    seen: set[str] = set()
    for value, *_ in table:
        if value in seen:
            raise InvalidArgument(f"the value '{value}' stands in the hierarchy twice.")
        seen.add(value)


def _check_monotone(hierarchy: Hierarchy) -> None:
    for level in range(1, hierarchy.levels - 1):
        fine, coarse = hierarchy.codes[level], hierarchy.codes[level + 1]
        parent = np.empty(len(hierarchy.labels[level]), dtype=np.int64)
        parent[fine] = coarse
        torn = np.flatnonzero(parent[fine] != coarse)
        if len(torn):
            label = hierarchy.labels[level][int(fine[torn[0]])]
            raise InvalidArgument(
                f"the levels are not monotone: values that share '{label}' on level {level} have different labels on level "
                f"{level + 1}.",
                remedy="Give them the same labels from there on, or different ones below.",
            )


# Groups of records with equal codes in any columns.


def group_by(columns: Iterable[npt.ArrayLike]) -> IntArray:
    """Return the group of each record, from 0: two records share one if all their columns (integer codes) are equal. Columns are
    read one after the other, so they need not be in memory together.

    >>> group_by([[1, 1, 2, 1], [5, 6, 5, 5]]).tolist()
    [0, 1, 2, 0]
    """
    key, span = None, 1  # equal records have equal keys, in 0..span-1
    for column in columns:
        code = _as_signed(column)
        if key is not None and len(code) != len(key):
            raise InvalidArgument("the columns do not have equally many records.", where="columns")
        if not len(code):
            key = code.astype(np.int64)
            continue
        digits, width = _number(code, most=len(code))
        if key is None:
            key = digits
        else:
            key *= width
            key += digits
        span *= width
        del code, digits
        if span > len(key):
            key, span = _number(key, most=len(key))
    if key is None:
        raise InvalidArgument("there is no column to group by.", where="columns")
    if not len(key):
        return key
    number: IntArray = np.cumsum(np.bincount(key, minlength=span) > 0) - 1
    return number[key]


def _number(column: npt.NDArray[Any], *, most: int) -> tuple[IntArray, int]:
    """Return equal numbers for equal entries, in order, and their upper bound: at most `most`, so that products fit 64 bits."""
    lowest, highest = int(column.min()), int(column.max())
    width = highest - lowest + 1
    if width <= most:
        return column.astype(np.int64) - lowest, width
    different, numbers = np.unique(column, return_inverse=True)
    return numbers.astype(np.int64, copy=False), len(different)


def _as_signed(column: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return whole numbers in their own width; anything else is refused."""
    if type(column) is not np.ndarray or column.dtype.kind != "i" or column.ndim != 1:  # a masked array is another type
        return as_integers(column, "groups")
    return column


def as_integers(numbers: npt.ArrayLike, name: str) -> IntArray:
    """Return whole numbers as 64-bit ones; anything else is refused. `name`: their name in messages."""
    array = as_numbers(numbers, name=name) if np.size(numbers) else np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidType(f"{name} must be integers.")
    return array.astype(np.int64, copy=False)
