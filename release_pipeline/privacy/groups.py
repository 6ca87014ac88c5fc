"""Records with equal codes as one group: how many there are of each, in whatever columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import IntArray, as_numbers


def group_by(columns: Sequence[npt.ArrayLike]) -> IntArray:
    """The group of each record, from 0: two records share one if all their columns (integer codes) are equal.

    >>> group_by([[1, 1, 2, 1], [5, 6, 5, 5]]).tolist()
    [0, 1, 2, 0]
    """
    if not columns:
        raise InvalidArgument("there is no column to group by.", where="columns")
    codes = [as_integers(column, "groups") for column in columns]
    records = len(codes[0])
    if any(len(code) != records for code in codes):
        raise InvalidArgument("the columns do not have equally many records.", where="columns")
    key, span = np.zeros(records, dtype=np.int64), 1  # equal records have equal keys, in 0..span-1
    for code in codes if records else ():
        digits, width = _compact(code, most=records)
        key, span = key * width + digits, span * width
        if span > records:
            key, span = _compact(key, most=records)
    used = np.bincount(key, minlength=span) > 0
    return (np.cumsum(used) - 1)[key]


def as_integers(numbers: npt.ArrayLike, name: str) -> IntArray:
    """Whole numbers as 64-bit ones; anything else is refused. `name` is how messages call them."""
    array = as_numbers(numbers, name=name) if np.size(numbers) else np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidType(f"{name} must be integers.")
    return array.astype(np.int64, copy=False)


def _compact(column: IntArray, *, most: int) -> tuple[IntArray, int]:
    """Equal numbers for equal entries, in their order, in 0..width-1, and the width: at most `most`, so that products stay within
    64 bits."""
    lowest = int(column.min())
    width = int(column.max()) - lowest + 1
    if width <= most:
        return column - lowest, width
    values, digits = np.unique(column, return_inverse=True)
    return digits, len(values)
