"""Arrays as long as the table: where they lie, and the few things done to them that look at all of them at once.

Everything else is done piece by piece, by functions that are told which piece and may be asked in any order, so that an array may
lie on disk and its pieces be worked on by other processes: such a function, and what is bound to it, can be pickled. Wherever
arrays lie the numbers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)
Found = TypeVar("Found")
Places: TypeAlias = npt.NDArray[np.intp]
PIECE = 1 << 16  # entries worked on at once: they stay in the cache
SUMMED = 1 << 20  # entries whose sum is one: another number gives sums of other roundings


class Arrays(Protocol):
    """Where arrays lie."""

    def empty(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A new one, with anything in it."""
        ...

    def over(self, function: Callable[[slice], Found], count: int, size: int | None = None) -> Iterator[Found]:
        """What a function gives of every piece of so many entries, in their order."""
        ...

    def chain(
        self, function: Callable[[slice], npt.NDArray[Any]], lengths: Sequence[int], count: int, dtype: npt.DTypeLike
    ) -> npt.NDArray[Any]:
        """An array of what a function makes of every piece of so many entries, one after the other, of so many entries each."""
        ...

    def fill(self, function: Callable[[slice], npt.NDArray[Any]], count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array of so many entries, whose pieces a function makes."""
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

    def put(self, function: Callable[[slice], npt.NDArray[Any]], places: Places, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array whose pieces a function makes, each entry at its place: every place is named once."""
        ...


class InMemory:
    """Arrays of NumPy as they are."""

    def empty(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """In memory."""
        return np.empty(count, dtype=dtype)

    def over(self, function: Callable[[slice], Found], count: int, size: int | None = None) -> Iterator[Found]:
        """One after the other."""
        return map(function, pieces(count, size))

    def chain(
        self, function: Callable[[slice], npt.NDArray[Any]], lengths: Sequence[int], count: int, dtype: npt.DTypeLike
    ) -> npt.NDArray[Any]:
        """Part by part."""
        return join(self, map(function, pieces(count)), sum(lengths), dtype)

    def fill(self, function: Callable[[slice], npt.NDArray[Any]], count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Piece by piece."""
        out = np.empty(count, dtype=dtype)
        for part in pieces(count):
            out[part] = function(part)
        return out

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

    def put(self, function: Callable[[slice], npt.NDArray[Any]], places: Places, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Piece by piece."""
        out = np.empty(len(places), dtype=dtype)
        for part in pieces(len(places)):
            out[places[part]] = function(part)
        return out


IN_MEMORY: Arrays = InMemory()


def pieces(count: int, size: int | None = None) -> Iterator[slice]:
    """All of so many entries, so many at a time (`PIECE` unless it is said), in order.

    >>> list(pieces(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = PIECE if size is None else size
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


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
    return arrays.fill(partial(_apply, function, columns), len(columns[0]), dtype)


def _apply(function: Callable[..., Any], columns: Sequence[npt.NDArray[Any]], part: slice) -> Any:
    """It, of a piece of these columns."""
    return function(*(column[part] for column in columns))


def pick(arrays: Arrays, values: npt.NDArray[Scalar], flags: npt.NDArray[np.bool_]) -> npt.NDArray[Scalar]:
    """The values that are flagged, in their order.

    >>> pick(IN_MEMORY, np.array([5, 6, 7]), np.array([True, False, True])).tolist()
    [5, 7]
    """
    lengths = [int(found) for found in arrays.over(partial(_apply, np.count_nonzero, [flags]), len(flags))]
    return arrays.chain(partial(_apply, _pick, [values, flags]), lengths, len(flags), values.dtype)


def _pick(values: npt.NDArray[Scalar], flags: npt.NDArray[np.bool_]) -> npt.NDArray[Scalar]:
    return values[flags]


def count_where(function: Callable[..., Any], /, *columns: npt.NDArray[Any], arrays: Arrays = IN_MEMORY) -> int:
    """How many entries a function flags that looks at each by itself.

    >>> count_where(np.isnan, np.array([1.0, np.nan]))
    1
    """
    return sum(arrays.over(partial(_count, function, columns), len(columns[0])))


def _count(function: Callable[..., Any], columns: Sequence[npt.NDArray[Any]], part: slice) -> int:
    return int(np.count_nonzero(_apply(function, columns, part)))


def reduce_by(function: np.ufunc, column: npt.NDArray[Any], arrays: Arrays = IN_MEMORY) -> Any:
    """What `function.reduce` gives of a column that has entries: for a function such as `np.minimum`, which does not mind the
    order.

    >>> int(reduce_by(np.maximum, np.array([2, 7, 1])))
    7
    """
    return function.reduce(np.array(list(arrays.over(partial(_reduce, function, column), len(column), SUMMED))))


def _reduce(function: np.ufunc, column: npt.NDArray[Any], part: slice) -> Any:
    return function.reduce(column[part])


def find_ends(
    column: npt.NDArray[Any], arrays: Arrays = IN_MEMORY, ends: tuple[np.ufunc, np.ufunc] = (np.minimum, np.maximum)
) -> tuple[Any, Any]:
    """The least and the greatest entry of a column that has some, in one pass; without those that are NaN by `fmin` and `fmax`.

    >>> [int(end) for end in find_ends(np.array([2, 7, 1]))]
    [1, 7]
    """
    found = list(arrays.over(partial(_find_ends, ends, column), len(column), SUMMED))
    least, most = (end.reduce(np.array([both[place] for both in found])) for place, end in enumerate(ends))
    return least, most


def _find_ends(ends: tuple[np.ufunc, np.ufunc], column: npt.NDArray[Any], part: slice) -> tuple[Any, Any]:
    return ends[0].reduce(column[part]), ends[1].reduce(column[part])


def varies(column: npt.NDArray[Any], arrays: Arrays = IN_MEMORY) -> bool:
    """Whether a column has two values; no, of one where NaN is among them.

    >>> varies(np.array([1.0, 1.0])), varies(np.array([1.0, 2.0]))
    (False, True)
    """
    least, most = find_ends(column, arrays)
    return bool(most > least)


def ascend(arrays: Arrays, column: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The entries in ascending order, and the column as it was.

    >>> ascend(IN_MEMORY, np.array([2, 7, 1])).tolist()
    [1, 2, 7]
    """
    return arrays.sort(make(arrays, np.positive, column, dtype=column.dtype))


def order(arrays: Arrays, column: npt.NDArray[Any]) -> Places:
    """The places of the entries in ascending order, equal ones in the order of their places, and the column as it was.

    >>> order(IN_MEMORY, np.array([2, 7, 1])).tolist()
    [2, 0, 1]
    """
    return arrays.argsort(make(arrays, np.positive, column, dtype=column.dtype))


@overload
def add_up(function: _One, column: npt.NDArray[Any], /, *, arrays: Arrays = ...) -> float: ...
@overload
def add_up(function: _Two, one: npt.NDArray[Any], other: npt.NDArray[Any], /, *, arrays: Arrays = ...) -> float: ...
def add_up(function: Callable[..., Any], /, *columns: npt.NDArray[Any], arrays: Arrays = IN_MEMORY) -> float:
    """The sum over all entries of what a function gives that looks at each by itself: an exact sum of those of pieces, so that it
    is the same wherever the columns lie.

    >>> add_up(np.square, np.array([1.0, 2.0]))
    5.0
    """
    found = list(arrays.over(partial(_sum, function, columns), len(columns[0]), SUMMED))
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers far out there may be no sum
        try:
            return math.fsum(found)
        except (OverflowError, ValueError):
            return float(np.sum(found))


def _sum(function: Callable[..., Any], columns: Sequence[npt.NDArray[Any]], part: slice) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sum(_apply(function, columns, part)))


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
    n = len(ascending)
    lengths = [len(found) for found in arrays.over(partial(_find_starts, ascending), n)]
    starts = arrays.chain(partial(_find_starts, ascending), lengths, n, np.int64)
    found = arrays.chain(partial(_take_starts, ascending), lengths, n, ascending.dtype)
    return found, arrays.fill(partial(_gaps, starts, n), len(starts), np.int64)


def _find_starts(ascending: npt.NDArray[Any], part: slice) -> Places:
    """Where another value begins."""
    begins = np.empty(part.stop - part.start, dtype=np.bool_)
    begins[:1] = part.start == 0 or ascending[part.start] != ascending[part.start - 1]
    np.not_equal(ascending[part.start + 1 : part.stop], ascending[part.start : part.stop - 1], out=begins[1:])
    return np.flatnonzero(begins) + part.start


def _take_starts(ascending: npt.NDArray[Scalar], part: slice) -> npt.NDArray[Scalar]:
    """The values that begin there."""
    return ascending[part][_find_starts(ascending, part) - part.start]


def _gaps(starts: Places, end: int, part: slice) -> npt.NDArray[np.int64]:
    """How far the next one is, or the end."""
    return np.diff(np.append(starts[part.start : part.stop + 1], [] if part.stop < len(starts) else [end]).astype(np.int64))


def repeat(arrays: Arrays, often: npt.NDArray[np.integer[Any]]) -> Places:
    """0 as often as the first of these says, 1 as often as the second, and so on.

    >>> repeat(IN_MEMORY, np.array([2, 0, 1])).tolist()
    [0, 0, 2]
    """
    lengths = [int(found) for found in arrays.over(partial(_apply, np.sum, [often]), len(often))]
    return arrays.chain(partial(_repeat, often), lengths, len(often), np.intp)


def _repeat(often: npt.NDArray[np.integer[Any]], part: slice) -> Places:
    return np.repeat(np.arange(part.start, part.stop, dtype=np.intp), often[part])
