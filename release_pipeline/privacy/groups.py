"""Records with equal codes as one group: how many there are of each, in whatever columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays, ascend, distinct, find_ends, make, reduce_by
from release_pipeline.privacy.grid import IntArray, as_numbers

_AT_ONCE = 1 << 20  # numbers that are counted together


def group_by(columns: Iterable[npt.ArrayLike], arrays: Arrays = IN_MEMORY) -> IntArray:
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
        digits = _Digits.of(code, most=len(code), arrays=arrays)
        if key is None:
            key = make(arrays, digits.take, code, dtype=np.int64)
        else:
            key = make(arrays, digits.follow, key, code, dtype=np.int64)
        span *= digits.width
        del code
        if span > len(key):
            digits = _Digits.of(key, most=len(key), arrays=arrays)
            key, span = make(arrays, digits.take, key, dtype=np.int64), digits.width
    if key is None:
        raise InvalidArgument("there is no column to group by.", where="columns")
    if not len(key):
        return key
    number = np.cumsum(count_numbers(key, arrays, span) > 0) - 1
    return make(arrays, partial(np.take, number), key, dtype=np.int64)


def count_numbers(numbers: IntArray, arrays: Arrays = IN_MEMORY, below: int | None = None) -> IntArray:
    """How many of these are 0, 1 and so on, as `numpy.bincount` has it; `below`: what all are below, where it is known.

    >>> count_numbers(np.array([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    most = int(reduce_by(np.maximum, numbers, arrays)) + 1 if below is None else below
    counts = np.zeros(most, dtype=np.int64)
    for found in arrays.over(partial(_count, numbers, most), len(numbers), max(_AT_ONCE, most)):
        counts += found
    return counts


def _count(numbers: IntArray, most: int, part: slice) -> IntArray:
    return np.bincount(numbers[part], minlength=most)


@dataclass(frozen=True, slots=True)
class _Digits:
    """Equal numbers for equal entries, in their order, in 0..width-1. `different`: the entries, where these lie far apart."""

    width: int
    lowest: int
    different: npt.NDArray[Any] | None

    @classmethod
    def of(cls, column: npt.NDArray[Any], *, most: int, arrays: Arrays) -> _Digits:
        """With a width of at most `most`, so that products stay within 64 bits."""
        lowest, highest = map(int, find_ends(column, arrays))
        width = highest - lowest + 1
        if width <= most:
            return cls(width, lowest, None)
        different, _ = distinct(arrays, ascend(arrays, column))
        return cls(len(different), 0, different)

    def take(self, part: npt.NDArray[Any]) -> IntArray:
        """Those of some entries."""
        if self.different is None:
            return part.astype(np.int64) - self.lowest
        return np.searchsorted(self.different, part)

    def follow(self, key: IntArray, part: npt.NDArray[Any]) -> IntArray:
        """They behind the digits that entries have already."""
        return key * self.width + self.take(part)


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
