"""A long array in pieces, for work that takes several times the memory of its input; and short ones together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

_Part = TypeVar("_Part", bound=Sized)
PIECE = 1 << 16  # entries worked on at once: they stay in the cache


def pieces(count: int, size: int = PIECE) -> Iterator[slice]:
    """Return slices that cover so many entries, in order, each of at most `size` of them.

    >>> list(pieces(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def gather(parts: Iterable[_Part], together: int) -> Iterator[list[_Part]]:
    """Yield parts one after the other in lists that have so many entries each, or a few more; the last may have less.

    >>> list(gather(["ab", "c", "", "def", "g"], 3))
    [['ab', 'c'], ['', 'def'], ['g']]
    """
    waiting: list[_Part] = []
    count = 0
    for part in parts:
        waiting.append(part)
        count += len(part)
        if count >= together:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting
