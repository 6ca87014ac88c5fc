"""The cells of a table: every combination of declared labels, level by level. Nothing of them follows from data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import IntArray

MOST_CELLS = 100_000  # of one table, over all of its levels
MOST_LEVELS = 8


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """`cells`: how many each level has, the coarsest first; `parents`: for each level but the first, the cell of the level before
    that each of its cells lies in. A record is in one cell of every level."""

    cells: tuple[int, ...]
    parents: tuple[IntArray, ...]

    @classmethod
    def of(cls, axes: Sequence[Sequence[Sequence[int]]]) -> Shape:
        """The shape of a table by axes: for each of them, level by level from the coarsest, the label that each value of its
        column has. One axis at the most has several levels. Cells are numbered as the labels are, the last axis first.

        >>> Shape.of([[[0, 0, 1], [0, 1, 2]], [[0, 1]]]).cells
        (4, 6)
        >>> Shape.of([[[0, 0, 1], [0, 1, 2]], [[0, 1]]]).parents[0].tolist()
        [0, 1, 0, 1, 2, 3]
        """
        deep = [place for place, axis in enumerate(axes) if len(axis) > 1]
        if len(deep) > 1:
            raise InvalidArgument("one column of a table has several levels at the most.", where="by")
        place = deep[0] if deep else 0
        sizes = [[int(max(level)) + 1 for level in axis] for axis in axes]
        levels = [
            tuple(size[number if axis == place else 0] for axis, size in enumerate(sizes)) for number in range(len(sizes[place]))
        ]
        parents: list[IntArray] = []
        for number, (above, below) in enumerate(pairwise(levels)):
            into = np.zeros(below[place], dtype=np.int64)
            into[np.array(axes[place][number + 1])] = np.array(axes[place][number])
            found = list(np.unravel_index(np.arange(math.prod(below)), below))
            found[place] = into[found[place]]
            parents.append(np.ravel_multi_index(found, above).astype(np.int64))
        return cls(tuple(math.prod(level) for level in levels), tuple(parents))

    @property
    def total(self) -> int:
        """How many cells all levels have."""
        return sum(self.cells)
