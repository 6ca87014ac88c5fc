"""Records with equal codes as one group: how many there are of each, in whatever columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays, pieces
from release_pipeline.privacy.grid import IntArray, as_numbers


def group_by(columns: Iterable[npt.ArrayLike], arrays: Arrays = IN_MEMORY) -> IntArray:
    """The group of each record, from 0: two records share one if all their columns (integer codes) are equal. Columns are looked
    at one after the other, so that they need not be there together.

    >>> group_by([[1, 1, 2, 1], [5, 6, 5, 5]]).tolist()
    [0, 1, 2, 0]
    """
    key, span = None, 1  # equal records have equal keys, in 0..span-1
    for column in columns:
        code = _as_signed(column)
        if key is None:
            key = arrays.empty(len(code), np.int64)
            key[:] = 0
        if len(code) != len(key):
            raise InvalidArgument("the columns do not have equally many records.", where="columns")
        if not len(key):
            continue
        digits = _Digits.of(code, most=len(key))
        for part in pieces(len(key)):
            key[part] *= digits.width
            key[part] += digits.take(code[part])
        span *= digits.width
        del code
        if span > len(key):
            span = _renumber(key)
    if key is None:
        raise InvalidArgument("there is no column to group by.", where="columns")
    number = np.cumsum(np.bincount(key, minlength=span) > 0) - 1
    for part in pieces(len(key)):
        key[part] = number[key[part]]
    return key


@dataclass(frozen=True, slots=True)
class _Digits:
    """Equal numbers for equal entries, in their order, in 0..width-1. `different`: the entries, where these lie far apart."""

    width: int
    lowest: int
    different: npt.NDArray[Any] | None

    @classmethod
    def of(cls, column: npt.NDArray[Any], *, most: int) -> _Digits:
        """With a width of at most `most`, so that products stay within 64 bits."""
        lowest = int(column.min())
        width = int(column.max()) - lowest + 1
        if width <= most:
            return cls(width, lowest, None)
        different = np.unique(column)
        return cls(len(different), 0, different)

    def take(self, part: npt.NDArray[Any]) -> IntArray:
        """Those of some entries."""
        if self.different is None:
            return part.astype(np.int64) - self.lowest
        return np.searchsorted(self.different, part)


def _renumber(key: IntArray) -> int:
    """Make keys as small as they can be, in their order; how many different ones there are."""
    digits = _Digits.of(key, most=len(key))
    for part in pieces(len(key)):
        key[part] = digits.take(key[part])
    return digits.width


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
