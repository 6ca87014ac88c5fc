"""The edges of neighbours, linkage and groups: empty, single, constant, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.linkage import record_linkage
from release_pipeline.mechanisms.risk.neighbours import Neighbours


def count(known: Any, points: Any, power: int = 2) -> tuple[list[float], list[int]]:
    distance, number = Neighbours(np.array(known, dtype=np.float64), power=power).count(np.array(points, dtype=np.float64))
    return distance.tolist(), number.tolist()


def test_ties_are_not_broken_by_the_last_bit() -> None:
    """0.3 is as far from 0.1 as from 0.5, though not in floats; and a millionth is a difference."""
    assert abs(0.3 - 0.1) != abs(0.5 - 0.3)
    assert count([[0.1], [0.5]], [[0.3]])[1] == [2]
    assert count([[0.1], [0.5 + 1e-6]], [[0.3]])[1] == [1]


def test_ties_of_large_numbers_are_not_broken_by_rounding() -> None:
    """Scaled, numbers about 10^9 lose more than one part in 10^9 of a difference of one."""
    known = np.array([[10**9 + 1.0], [10**9 - 1.0]]) / 7e5
    assert count(known, [[10**9 / 7e5]])[1] == [2]


def test_linkage_within_groups_looks_at_the_own_group_only() -> None:
    """The nearest original is another's, but not one of the own group; a group of one gives its record away."""
    original, released = [[0.0], [10], [11], [50]], [[9.0], [10], [11], [20]]
    assert record_linkage(original, released, [0, 1, 2, 3], positions=[0, 1, 2, 3]).value == 0.5
    groups = [7, 3, 3, -1]
    assert record_linkage(original, released, [0, 1, 2, 3], positions=[0, 1, 2, 3], groups=groups).value == 1
