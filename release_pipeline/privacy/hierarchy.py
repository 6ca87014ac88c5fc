"""Generalisation hierarchies: what each value of a column becomes, level by level, from itself to the coarsest label.

A hierarchy is declared, never learned from data. It is a table with a row per value: level 0 is the value, every further level a
coarser label. Two values that share a label share all coarser ones too (levels are monotone), so that a more general table has
larger classes: what the search of `lattice` and the trees of `cuts` rest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import IntArray

HierarchyLike: TypeAlias = "Hierarchy | Sequence[Sequence[object]] | Mapping[Any, Sequence[object]]"


@dataclass(frozen=True, slots=True, repr=False)
class Hierarchy:
    """The labels of every level, and for each value (by its number) the number of its label there.

    `labels[level]` are distinct, in order of first appearance; `codes[level, value]` is the place of the value's label in them.
    """

    labels: tuple[tuple[str, ...], ...]
    codes: IntArray

    @classmethod
    def of(cls, rows: HierarchyLike) -> Hierarchy:
        """A hierarchy from rows (value, label of level 1, ...), as its CSV has them, or from {value: (label of level 1, ...)}.

        Refused: no rows, rows of different lengths, a value twice, an empty entry, and levels that are not monotone.

        >>> Hierarchy.of([("a", "vowel", "*"), ("b", "consonant", "*"), ("e", "vowel", "*")]).codes.tolist()
        [[0, 1, 2], [0, 1, 0], [0, 0, 0]]
        """
        if isinstance(rows, Hierarchy):
            return rows
        if isinstance(rows, Mapping):
            _check_not_text(rows.values())
            rows = [(value, *labels) for value, labels in rows.items()]
        rows = list(rows)  # a reader of CSV gives its rows once
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
        """How many levels there are, the values themselves included."""
        return len(self.labels)

    @property
    def values(self) -> tuple[str, ...]:
        """The values, by number."""
        return self.labels[0]

    def encode(self, entries: npt.ArrayLike | Iterable[object]) -> IntArray:
        """The number of each entry's value, matched as text. Missing entries (None, NaN) are refused, and so are those that no
        value covers, by their count alone.
        """
        array = _as_array(entries)
        if array.ndim != 1:
            raise InvalidArgument(f"a column must have one dimension, not {array.ndim}.")
        known: dict[object, int] = {value: number for number, value in enumerate(self.values)}
        inverse = None
        if array.dtype.kind in "iufb":
            array, inverse = np.unique(array, return_inverse=True)
        texts: list[object] = array.tolist()
        numbers = np.fromiter(
            (known.get(text if type(text) is str else _as_text(text), -1) for text in texts), np.int64, len(texts)
        )
        if len(texts) and int(numbers.min()) < 0:
            often = np.ones(len(texts), dtype=np.int64) if inverse is None else np.bincount(inverse)
            _refuse_uncovered(texts, numbers, often)
        return numbers if inverse is None else numbers[inverse]

    def of_values(self, values: npt.NDArray[np.integer[Any]]) -> Hierarchy:
        """The same for some of the values, in this order: what occurs in a table."""
        labels: list[tuple[str, ...]] = []
        codes = np.empty((self.levels, len(values)), dtype=np.int64)
        for level in range(self.levels):
            used, codes[level] = np.unique(self.codes[level, values], return_inverse=True)
            labels.append(tuple(self.labels[level][int(place)] for place in used))
        return Hierarchy(tuple(labels), codes)

    def __repr__(self) -> str:
        return f"<Hierarchy of {len(self.values):,} values in {self.levels} levels>"


def _as_array(entries: npt.ArrayLike | Iterable[object]) -> npt.NDArray[Any]:
    """Entries as they are, one by one: NumPy alone would make texts of numbers beside texts, and floats of whole numbers."""
    if hasattr(entries, "__array__"):
        return np.asarray(cast(npt.ArrayLike, entries))
    given = list(cast(Iterable[object], entries))
    array = np.empty(len(given), dtype=object)
    array[:] = given
    return array


def _as_text(entry: object) -> str | None:
    """The text of an entry, or None if it is missing: None itself, and what is not equal to itself (NaN) or cannot tell (NA)."""
    try:
        return None if entry is None or bool(entry != entry) else str(entry)
    except (TypeError, ValueError):
        return None


def _refuse_uncovered(entries: list[object], numbers: IntArray, often: IntArray) -> None:
    texts = [_as_text(entry) for entry, number in zip(entries, numbers.tolist(), strict=True) if number < 0]
    counts: list[int] = often[numbers < 0].tolist()
    missing = sum(count for text, count in zip(texts, counts, strict=True) if text is None)
    if missing:
        raise InvalidArgument(
            f"{missing:,} missing entries.", remedy="Fill them with a value that the hierarchy declares for them, or remove them."
        )
    raise InvalidArgument(
        f"{sum(counts):,} records have {len(set(texts)):,} different values that the hierarchy does not cover.",
        remedy="Declare every value that may occur, one for missing entries included.",
    )


def find_ambiguous_label(hierarchy: Hierarchy) -> str | None:
    """A label that stands for different sets of values on two levels, where records of both may meet (local recoding); or None.

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
