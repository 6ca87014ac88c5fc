"""Cells that hold no more than noise at the ends of a column are taken to be empty, where there is a cell for each number too."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.privacy.grid import FloatArray
from release_pipeline.privacy.whole_table.cells import Cells
from release_pipeline.privacy.whole_table.design import Column

RECORDS, DEVIATION = 4_000, 11.0


def draw_means(counts: FloatArray, width: int) -> tuple[float, list[float]]:
    """The mean of a column, and those of what noisy counts of it seem to hold."""
    cells, random, found = Cells.narrow(Column(width)), np.random.default_rng(4), list[float]()
    values = np.arange(width + 1)
    for _ in range(60):
        noisy = counts + np.rint(random.normal(0, DEVIATION, width + 1))
        held = cells.hold(noisy, DEVIATION, RECORDS)
        assert held.sum() == pytest.approx(RECORDS)
        found.append(float(values @ held) / RECORDS)
    return float(values @ counts) / RECORDS, found


def test_hospital_stays_are_not_many_times_as_many() -> None:
    """92% have none, and cells up to 60 are declared: noise in empty cells had made the mean two to four times too high."""
    counts = np.zeros(61)
    counts[:6] = [3_680, 200, 70, 30, 15, 5]
    true, found = draw_means(counts, 60)
    assert np.median(found) == pytest.approx(true, rel=0.25)
    assert np.mean(found) < 1.6 * true
