"""Slots that no record fills. Such a slot is empty in every column: that is declared and no fact of the data, so
that rows are made as it says. All here is made of noisy counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.measure import Measured


def count_empty(measured: Measured) -> int:
    """How many slots seem to be empty: the mean of what all columns say, whose noise is alike."""
    said = float(np.mean([margin[-1] for margin in measured.margins]))
    return int(min(max(round(said), 0), measured.design.records))


def leave_empty(measured: Measured, empty: int) -> Measured:
    """What was measured of the slots that are not empty, as if there were no others. The tables of several columns have the empty
    ones in a group of their own, the last: who is in another one has a value in all columns of a table."""
    columns = tuple(replace(column, labels=column.labels - 1, in_slots=False) for column in measured.design.columns)
    return Measured(
        replace(measured.design, columns=columns, records=measured.design.records - empty),
        tuple(replace(cells, column=column) for cells, column in zip(measured.cells, columns, strict=True)),
        tuple(margin[:-1] for margin in measured.margins),
        tuple(groups[:-1] for groups in measured.groups),
        {columns: replace(own, counts=own.counts[(slice(-1),) * len(columns)]) for columns, own in measured.tables.items()},
    )


def add_empty(
    measured: Measured, filled: Iterator[list[IntArray]], empty: int, random: Random, blocks: int
) -> Iterator[list[IntArray]]:
    """The rows of so many blocks, and those that are empty in every column, as many in each, in random order."""
    for number, block in enumerate(filled):
        own = empty * (number + 1) // blocks - empty * number // blocks
        order = random.permutation(len(block[0]) + own)
        yield [
            np.concatenate([one, np.full(own, column.width + column.labels, dtype=np.int64)])[order]
            for column, one in zip(measured.design.columns, block, strict=True)
        ]
