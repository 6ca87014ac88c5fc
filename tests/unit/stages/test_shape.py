"""What becomes of shares at declared values, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.privacy.tally import Tally
from release_pipeline.stages.shape import measure_atoms, weigh_atoms
from tests.unit.stages.test_served import COLUMNS, make


def test_shares_at_atoms_with_weights() -> None:
    """A record of weight 3 counts as three; what tells of few records is hidden with weights as without."""
    column = make(columns=COLUMNS.replace("why: known}", "why: known, atoms: [0, 50]}")).columns["income"]
    assert isinstance(column, NoiseColumn)
    original = np.array([0.0] * 12 + [50.4] * 3 + [70.0] * 15)  # 50.4 is 50 on the grid
    released = np.array([0.0] * 6 + [50.0] * 4 + [71.0] * 20)
    weights = np.array([3.0] * 12 + [1.0] * 16 + [0.0, np.nan])
    plain = {"original": [12 / 30, None], "released": [6 / 30, 4 / 30]}
    seen = column.coded_grid.snap(original)
    assert measure_atoms(column, Tally.of(seen), Tally.of(released)) == plain
    found = weigh_atoms(column, (seen, released), (weights, weights))
    assert found["weighted_original"] == [pytest.approx(36 / 52), None]
    assert found["weighted_released"] == pytest.approx([18 / 52, 12 / 52])
    nothing = np.zeros(30)
    assert weigh_atoms(column, (seen, released), (nothing, nothing))["weighted_released"] == [None, None]
