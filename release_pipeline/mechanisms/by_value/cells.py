"""Cells: intervals of grid units that together are 0..width. Which cells are counted follows from declared facts, and from the
noisy counts of earlier cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.by_value.noise_laws import Noise

FINE = 4  # cells in an octave where masses are fitted


def first_edges(width: int, *, centre: int, atoms: Iterable[int] = (), per_octave: int = 1) -> IntArray:
    """Return the edges of the cells that are counted first: {c}, {c + 1}, [c + 2, c + 4), [c + 4, c + 8), ... up to the width,
    the same mirrored below the centre c, and every atom as a separate cell. Cell j is edges[j] .. edges[j + 1] - 1.

    >>> first_edges(20, centre=0).tolist()
    [0, 1, 2, 4, 8, 16, 21]
    >>> first_edges(9, centre=4, atoms=[7]).tolist()
    [0, 1, 3, 4, 5, 6, 7, 8, 10]
    """
    edges = {0, width + 1}
    for atom in (centre, *atoms):
        edges |= {atom, atom + 1}
    for offset in _offsets(width, per_octave):
        edges |= {centre + offset, centre + 1 - offset}
    return np.array(sorted(edge for edge in edges if 0 <= edge <= width + 1), dtype=np.int64)


def _offsets(width: int, per_octave: int) -> Iterable[int]:
    """Yield 1, 2, 4, 8, ... with so many cells from each to the next, as far as there are whole numbers between them."""
    start = 1
    while start <= width:
        yield from (start + start * step // per_octave for step in range(per_octave))
        start *= 2


def cut_cells(edges: IntArray, pieces: IntArray) -> IntArray:
    """Return the edges after each cell is cut into so many equal pieces, as far as whole numbers allow, but at most one for each
    number.

    >>> cut_cells(np.array([0, 1, 11]), np.array([3, 4])).tolist()
    [0, 1, 3, 6, 8, 11]
    """
    begin, end = edges[:-1], edges[1:]
    width = end - begin
    pieces = np.clip(pieces, 1, width)
    place = np.repeat(np.arange(len(width)), pieces)
    step = np.arange(len(place)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    whole, rest = np.divmod(width[place], pieces[place])  # width * step / pieces, without its product leaving 64 bits
    return np.append(begin[place] + whole * step + rest * step // pieces[place], end[-1])


def join_edges(parts: Iterable[IntArray]) -> IntArray:
    """Return the edges of all parts."""
    return np.unique(np.concatenate(list(parts)))


def find_cells(edges: IntArray, points: IntArray) -> npt.NDArray[np.intp]:
    """Return the cell that contains each point."""
    return np.searchsorted(edges, points, side="right") - 1


# The public facts about a column before anything is counted, and the counts of one stage.


@dataclass(frozen=True, slots=True)
class Facts:
    """Declared facts, and how many records there are. Values are grid units in 0..width. `atoms`: values that many records may
    share. `centre`: where cells are finest. `labels`: how many reasons there are for a record to have no value; they come after
    the values, as width + 1, width + 2, ..."""

    width: int
    records: int
    centre: int = 0
    atoms: tuple[int, ...] = ()
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """Noisy counts of cells, which contain nothing else of the data."""

    edges: IntArray
    counts: IntArray
    noise: Noise
