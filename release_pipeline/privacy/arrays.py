"""Arrays as long as the table: where they lie, and the few things done to them that look at all of them at once.

Everything else is done piece by piece, so that an array may lie on disk. Both kinds give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)
Places: TypeAlias = npt.NDArray[np.intp]
PIECE = 1 << 16  # entries worked on at once: they stay in the cache
SUMMED = 1 << 20  # entries whose sum is one: another number gives sums of other roundings


class Arrays(Protocol):
    """Where arrays lie."""

    def empty(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A new one, with anything in it."""
        ...

    def sort(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """These in ascending order; the array itself may be used for it."""
        ...

    def argsort(self, values: npt.NDArray[Any]) -> Places:
        """The places of these in ascending order, equal ones in the order of their places; the array itself may be used for
        it."""
        ...

    def take(self, values: npt.NDArray[Scalar], places: Places) -> npt.NDArray[Scalar]:
        """The values at these places."""
        ...

    def put(self, parts: Iterable[npt.NDArray[Any]], places: Places, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Each value at its place: values come part by part, and every place is named once."""
        ...


class InMemory:
    """Arrays of NumPy as they are."""

    def empty(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """In memory."""
        return np.empty(count, dtype=dtype)

    def sort(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """In its place."""
        values.sort()
        return values

    def argsort(self, values: npt.NDArray[Any]) -> Places:
        """In one."""
        return np.argsort(values, kind="stable")

    def take(self, values: npt.NDArray[Scalar], places: Places) -> npt.NDArray[Scalar]:
        """In one."""
        return values[places]

    def put(self, parts: Iterable[npt.NDArray[Any]], places: Places, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Part by part."""
        out, start = np.empty(len(places), dtype=dtype), 0
        for values in parts:
            out[places[start : start + len(values)]] = values
            start += len(values)
        return out


IN_MEMORY: Arrays = InMemory()


def pieces(count: int, size: int = PIECE) -> Iterator[slice]:
    """All of so many entries, so many at a time, in order.

    >>> list(pieces(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


_One: TypeAlias = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
_Two: TypeAlias = Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[Any]]


@overload
def make(arrays: Arrays, function: _One, column: npt.NDArray[Any], /, *, dtype: npt.DTypeLike = ...) -> npt.NDArray[Any]: ...
@overload
def make(
    arrays: Arrays, function: _Two, one: npt.NDArray[Any], other: npt.NDArray[Any], /, *, dtype: npt.DTypeLike = ...
) -> npt.NDArray[Any]: ...
def make(
    arrays: Arrays, function: Callable[..., Any], /, *columns: npt.NDArray[Any], dtype: npt.DTypeLike = np.float64
) -> npt.NDArray[Any]:
    """What a function gives that looks at each entry of these columns by itself, piece by piece.

    >>> make(IN_MEMORY, np.add, np.array([1.0, 2.0]), np.array([3.0, 4.0])).tolist()
    [4.0, 6.0]
    """
    out = arrays.empty(len(columns[0]), dtype)
    for part in pieces(len(out)):
        out[part] = function(*(column[part] for column in columns))
    return out


def pick(arrays: Arrays, values: npt.NDArray[Scalar], flags: npt.NDArray[np.bool_]) -> npt.NDArray[Scalar]:
    """The values that are flagged, in their order.

    >>> pick(IN_MEMORY, np.array([5, 6, 7]), np.array([True, False, True])).tolist()
    [5, 7]
    """
    found = (values[part][flags[part]] for part in pieces(len(values)))
    return join(arrays, found, int(np.count_nonzero(flags)), values.dtype)


@overload
def add_up(function: _One, column: npt.NDArray[Any], /) -> float: ...
@overload
def add_up(function: _Two, one: npt.NDArray[Any], other: npt.NDArray[Any], /) -> float: ...
def add_up(function: Callable[..., Any], /, *columns: npt.NDArray[Any]) -> float:
    """The sum over all entries of what a function gives that looks at each by itself: an exact sum of those of pieces, so that it
    is the same wherever the columns lie.

    >>> add_up(np.square, np.array([1.0, 2.0]))
    5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers far out there may be no sum
        found = [float(np.sum(function(*(column[part] for column in columns)))) for part in pieces(len(columns[0]), SUMMED)]
        try:
            return math.fsum(found)
        except (OverflowError, ValueError):
            return float(np.sum(found))


def join(arrays: Arrays, parts: Iterable[npt.NDArray[Any]], most: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """One array of parts that come one after the other, with no more than so many entries.

    >>> join(IN_MEMORY, [np.array([1.0]), np.array([2.0, 3.0])], 9).tolist()
    [1.0, 2.0, 3.0]
    """
    out, start = arrays.empty(most, dtype), 0
    for part in parts:
        out[start : start + len(part)] = part
        start += len(part)
    return out[:start]


def distinct(arrays: Arrays, ascending: npt.NDArray[Scalar]) -> tuple[npt.NDArray[Scalar], npt.NDArray[np.int64]]:
    """The different ones of these, which ascend, and how many there are of each.

    >>> [found.tolist() for found in distinct(IN_MEMORY, np.array([3, 3, 5]))]
    [[3, 5], [2, 1]]
    """
    begins = arrays.empty(len(ascending), np.bool_)
    begins[:1] = True
    for part in pieces(len(ascending) - 1):
        begins[part.start + 1 : part.stop + 1] = ascending[part.start + 1 : part.stop + 1] != ascending[part]
    found = pick(arrays, ascending, begins)
    count, number, before = arrays.empty(len(found), np.int64), 0, 0
    for part in pieces(len(begins)):
        starts = np.flatnonzero(begins[part]) + part.start
        if not len(starts):
            continue
        if number:
            count[number - 1] = starts[0] - before
        count[number : number + len(starts) - 1] = np.diff(starts)
        number, before = number + len(starts), int(starts[-1])
    if number:
        count[number - 1] = len(ascending) - before
    return found, count


def repeat(arrays: Arrays, often: npt.NDArray[np.integer[Any]]) -> Places:
    """0 as often as the first of these says, 1 as often as the second, and so on.

    >>> repeat(IN_MEMORY, np.array([2, 0, 1])).tolist()
    [0, 0, 2]
    """
    found = (np.repeat(np.arange(part.start, part.stop, dtype=np.intp), often[part]) for part in pieces(len(often)))
    return join(arrays, found, int(often.sum()), np.intp)
