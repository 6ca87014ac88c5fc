"""What becomes of shares at declared values, by hand."""

from __future__ import annotations

import numpy as np

from release_pipeline.audit.columns import measure_atoms
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.policy.kinds import NoiseColumn
from tests.unit.audit.test_served import COLUMNS, make


def test_shares_at_atoms() -> None:
    """Of values on the declared grid; what tells of few records is hidden."""
    column = make(columns=COLUMNS.replace("why: known}", "why: known, atoms: [0, 50]}")).columns["income"]
    assert isinstance(column, NoiseColumn)
    original = np.array([0.0] * 12 + [50.4] * 3 + [70.0] * 15)  # 50.4 is 50 on the grid
    released = np.array([0.0] * 6 + [50.0] * 4 + [71.0] * 20)
    plain = {"original": [12 / 30, None], "released": [6 / 30, 4 / 30]}
    assert measure_atoms(column, Tally.of(column.coded_grid.snap(original)), Tally.of(released)) == plain
