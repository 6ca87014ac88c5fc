"""What the noisy counts of two columns say of the mean of one in the groups of the other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from release_pipeline.analyst.counts import Counts
from release_pipeline.analyst.means import Interval
from release_pipeline.analyst.pairs import Group, Pair
from release_pipeline.privacy.grid import Grid

GRID = Grid.declare((0, 10_000), 1)
NONE = np.zeros(0, dtype=np.int64)


def ask(*groups: tuple[int, int]) -> dict[str, Interval]:
    """Means by sex of a column with these groups, 100 records of each sex in every group."""
    law = Counts(GRID, 400, NONE, NONE, NONE, laplace=1)
    counts = np.full((2, len(groups)), 100, dtype=np.int64)
    others = tuple(Group(f"{first} to {last}", first, last) for first, last in groups)
    return Pair("sex", "income", (Group("0"), Group("1")), others, counts, law, GRID, 400).means()


def test_means_of_wide_groups_have_no_estimate() -> None:
    """Whoever took the middle of a group for one was far off: the counts do not show where in it records are."""
    for mean in ask((0, 99), (100, 10_000)).values():
        assert math.isnan(mean.estimate)
        assert 0 <= mean.low < 100 < 5_000 < mean.high
        assert "no estimate" in mean.words


def test_means_of_single_values_have_one() -> None:
    """Each group is a value, so that noise is all that an estimate is off."""
    for mean in ask((0, 0), (10, 10)).values():
        assert mean.estimate == pytest.approx(5)
        assert mean.low < 5 < mean.high
        assert "no estimate" not in mean.words
