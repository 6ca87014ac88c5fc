"""What rows of a column are to be expected, before there are any: by simulated counts of that column alone."""

from __future__ import annotations

import numpy as np

from release_pipeline.privacy.arrays import pieces
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.cells import Cells
from release_pipeline.privacy.whole_table.design import Design
from release_pipeline.privacy.whole_table.entering import Entering
from release_pipeline.privacy.whole_table.measure import Stream, hold_records, measure_column
from release_pipeline.privacy.whole_table.pool import spread_over

_AT_ONCE = 1 << 20  # entries that are made together


def expect_column(ordered: IntArray, design: Design, place: int, stream: Stream, random: Random) -> IntArray:
    """As many entries as there are records, ascending, of a simulated release. `ordered`: those of the records, ascending."""
    cells, margin = measure_column(ordered, design, place, stream)
    held = hold_records(design, cells, margin)
    each = spread_over(held, design.records, random)
    entering, found = Entering.of(cells, held), np.empty(design.records, dtype=np.int64)
    for part in pieces(design.records, _AT_ONCE):  # one after the other, as random numbers come
        found[part] = _expect_part(cells, entering, each, part, random)
    return found


def _expect_part(cells: Cells, entering: Entering, each: IntArray, part: slice, random: Random) -> IntArray:
    """Some of them: within a cell they ascend, and so they do in all."""
    ends: IntArray = np.cumsum(each)
    rows: IntArray = np.arange(part.start, part.stop, dtype=np.int64)
    found = np.searchsorted(ends, rows, side="right")
    within = (rows - (ends - each)[found] + random.random(len(rows))) / np.maximum(each, 1)[found]
    return np.sort(entering.enter(cells, found, within))
