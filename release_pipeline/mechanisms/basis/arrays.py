"""A long array in pieces, for work that takes several times the memory of its input."""

from __future__ import annotations

from collections.abc import Iterator

PIECE = 1 << 16  # entries worked on at once: they stay in the cache


def pieces(count: int, size: int = PIECE) -> Iterator[slice]:
    """Return slices that cover so many entries, in order, each of at most `size` of them.

    >>> list(pieces(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + size, count)) for start in range(0, count, size))
