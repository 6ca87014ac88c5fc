"""What rows of a column are to be expected, before there are any: by simulated counts of that column alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.tally import Tally
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.cells import Cells
from release_pipeline.privacy.whole_table.design import Design
from release_pipeline.privacy.whole_table.entering import Entering
from release_pipeline.privacy.whole_table.measure import Stream, hold_records, measure_column
from release_pipeline.privacy.whole_table.pool import spread_over


def expect_column(entries: Tally, design: Design, place: int, stream: Stream, random: Random) -> Tally:
    """The tally of a simulated release of a column with these entries. Of a cell with fewer rows than entries every row
    is drawn; of any other each entry has the rows that the cell's density says, so that the work is bounded by the grid."""
    cells, margin = measure_column(entries, design, place, stream)
    held = hold_records(design, cells, margin)
    rows = spread_over(held, design.records, random)
    parts = list(_fill_cells(cells, Entering.of(cells, held), rows, random))
    return Tally.of_counts(np.concatenate([own for own, _ in parts]), np.concatenate([own for _, own in parts]))


def _fill_cells(cells: Cells, entering: Entering, rows: IntArray, random: Random) -> Iterator[tuple[IntArray, IntArray]]:
    """The entries of each cell and how many rows have them, cell after cell."""
    widths = np.append(np.diff(cells.edges), np.ones(cells.column.labels, dtype=np.int64))
    for cell in np.flatnonzero(rows).tolist():
        count, width = int(rows[cell]), int(widths[cell])
        if count < width:
            within = (np.arange(count) + random.random(count)) / count
            yield np.unique(entering.enter(cells, np.full(count, cell), within), return_counts=True)
            continue
        ends = np.floor(entering.share_below(cell, width) * count + random.random()).astype(np.int64)
        ends[-1] = count
        first = int(entering.enter(cells, np.array([cell]), np.zeros(1))[0])
        yield first + np.arange(width), np.diff(np.minimum(ends, count), prepend=0)
