"""What a look does not show: figures that fewer than ten records stand for."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.flow.exploring.hiding import pick_groups, pick_places, pick_shares


def test_places_have_ten_records_beyond_and_between() -> None:
    """No minimum and no maximum; and no value beside the next."""
    ordered = np.arange(100.0)
    kept = np.flatnonzero(pick_places(ordered, ordered))
    assert (kept[0], kept[-1]) == (9, 89)
    assert np.diff(kept).min() == 10
    assert not pick_places(np.arange(15.0), np.arange(15.0)).any()


def test_an_end_that_many_records_share_is_told() -> None:
    """It is nobody's."""
    ordered = np.array([0.0] * 10 + list(range(1, 31)))
    assert pick_places(np.array([0.0, 1.0, 10.0]), ordered).tolist() == [True, False, True]


def test_quantiles_in_the_middle_come_first() -> None:
    """The order says which of two that are too near stays."""
    ordered = np.arange(25.0)
    places = np.array([2.0, 6.0, 12.0, 18.0, 22.0])
    assert pick_places(places, ordered, [2, 1, 3, 0, 4]).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(("count", "kept"), [(0, True), (1, False), (9, False), (10, True), (90, True), (91, False), (100, True)])
def test_shares_are_of_ten_records_or_of_all_but_ten(count: int, *, kept: bool) -> None:
    """Or of none, or all."""
    assert pick_shares(np.array([count / 100]), 100).tolist() == [kept]


def test_one_small_group_hides_another() -> None:
    """Or the whole less the others would tell it; of two nobody can tell one."""
    assert pick_groups(np.array([40, 9, 12, 30])).tolist() == [True, False, False, True]
    assert pick_groups(np.array([40, 9, 8, 30])).tolist() == [True, False, False, True]
    assert pick_groups(np.array([40, 0, 12, 30])).tolist() == [True, False, True, True]
    assert pick_groups(np.array([5])).tolist() == [False]
