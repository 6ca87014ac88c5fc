"""Records with equal codes as one group: how many there are of each, in whatever columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import IntArray, as_numbers


def group_by(columns: Iterable[npt.ArrayLike]) -> IntArray:
    """The group of each record, from 0: two records share one if all their columns (integer codes) are equal. Columns are looked
    at one after the other, so that they need not be there together.

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
    """Equal numbers for equal entries, in their order, and what all are below: at most `most`, so that products stay within 64
    bits."""
    lowest, highest = int(column.min()), int(column.max())
    width = highest - lowest + 1
    if width <= most:
        return column.astype(np.int64) - lowest, width
    different, numbers = np.unique(column, return_inverse=True)
    return numbers.astype(np.int64, copy=False), len(different)


def _as_signed(column: npt.ArrayLike) -> npt.NDArray[Any]:
    """Whole numbers, as narrow as they came; anything else is refused."""
    if type(column) is not np.ndarray or column.dtype.kind != "i" or column.ndim != 1:  # a masked array is another type
        return as_integers(column, "groups")
    return column


def as_integers(numbers: npt.ArrayLike, name: str) -> IntArray:
    """Whole numbers as 64-bit ones; anything else is refused. `name` is how messages call them."""
    array = as_numbers(numbers, name=name) if np.size(numbers) else np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidType(f"{name} must be integers.")
    return array.astype(np.int64, copy=False)
