"""The noisy cells of a table: exact counts or sums, level by level, and one draw of noise on each.

For two tables of n records that differ in one of them, a level of the table loses what `noise` derives for its sensitivity,
whatever the data. The noise of different levels is drawn independently, so that the whole loses at most the sum over its
levels (basic composition). What is made of noisy cells afterwards reads no data, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream
from release_pipeline.privacy.tables.noise import CellNoise
from release_pipeline.privacy.tables.shape import Shape

MOST_SUM = 2**61  # what records can add up to: with noise it still fits into 64 bits


def sum_levels(cell: IntArray, amounts: IntArray | None, shape: Shape) -> list[IntArray]:
    """The exact cells of every level, the coarsest first: how many records are in each, or what their amounts add up to. `cell`
    is that of each record on the finest level."""
    finest = np.zeros(shape.cells[-1], dtype=np.int64)
    if amounts is None:
        finest += np.bincount(cell, minlength=shape.cells[-1])
    else:
        check_sum(len(amounts), int(np.abs(amounts).max(initial=0)))
        np.add.at(finest, cell, amounts)
    levels = [finest]
    for parents, count in zip(reversed(shape.parents), reversed(shape.cells[:-1]), strict=True):
        above = np.zeros(count, dtype=np.int64)
        np.add.at(above, parents, levels[0])
        levels.insert(0, above)
    return levels


def measure_levels(
    cell: IntArray, amounts: IntArray | None, shape: Shape, noise: Sequence[CellNoise], stream: NoiseStream
) -> list[IntArray]:
    """The noisy cells of every level, the coarsest first."""
    exact = sum_levels(cell, amounts, shape)
    return [level + law.draw(len(level), stream) for level, law in zip(exact, noise, strict=True)]


def check_sum(records: int, most: int) -> None:
    """Refuse sums that could leave 64 bits: so many records, none of an amount beyond `most` units."""
    if records * most > MOST_SUM:
        raise InvalidArgument(
            f"the sum of {records:,} records might not fit into 64 bits.", remedy="Use a coarser grid or a narrower domain."
        )
