"""What rows of a column are to be expected, before there are any: by simulated counts of that column alone."""

from __future__ import annotations

import numpy as np

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.design import Design
from release_pipeline.privacy.whole_table.measure import Stream, hold_records, measure_column
from release_pipeline.privacy.whole_table.pool import spread_over
from release_pipeline.privacy.whole_table.rows import enter_cells


def expect_column(entries: IntArray, design: Design, place: int, stream: Stream, random: Random) -> IntArray:
    """As many entries as there are records, ascending, of a simulated release."""
    cells, margin = measure_column(entries, design, place, stream)
    held = hold_records(design, cells, margin)
    each = spread_over(held, design.records, random)
    found = np.repeat(np.arange(len(each)), each)
    starts = np.repeat(np.cumsum(each) - each, each)
    within = (np.arange(len(found)) - starts + random.random(len(found))) / np.repeat(np.maximum(each, 1), each)
    return np.sort(enter_cells(cells, held, found, within))
