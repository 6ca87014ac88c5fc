"""The edges of neighbours, linkage and groups: empty, single, constant, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.groups import group_by
from release_pipeline.privacy.neighbours import Neighbours
from release_pipeline.privacy.risk import (
    distinct_diversity,
    record_linkage,
)


def count(known: Any, points: Any, power: int = 2) -> tuple[list[float], list[int]]:
    distance, number = Neighbours(np.array(known, dtype=np.float64), power=power).count(np.array(points, dtype=np.float64))
    return distance.tolist(), number.tolist()


def test_nobody_is_near_where_nobody_is() -> None:
    assert count(np.empty((0, 2)), [[1, 2], [3, 4]]) == ([np.inf, np.inf], [0, 0])
    assert count([[1, 2]], np.empty((0, 2))) == ([], [])


def test_one_record_is_the_nearest() -> None:
    assert count([[1, 2]], [[1, 2], [4, 6]]) == ([0, 5], [1, 1])
    assert count([[1, 2]], [[4, 6]], power=1) == ([7], [1])


def test_without_columns_all_are_equally_near() -> None:
    assert count(np.empty((3, 0)), np.empty((2, 0))) == ([0, 0], [3, 3])


def test_equal_records_count_each() -> None:
    assert count([[5.0]] * 4 + [[7]], [[5], [6], [8]]) == ([0, 1, 1], [4, 5, 1])


def test_ties_are_not_broken_by_the_last_bit() -> None:
    """0.3 is as far from 0.1 as from 0.5, though not in floats; and a millionth is a difference."""
    assert abs(0.3 - 0.1) != abs(0.5 - 0.3)
    assert count([[0.1], [0.5]], [[0.3]])[1] == [2]
    assert count([[0.1], [0.5 + 1e-6]], [[0.3]])[1] == [1]


def test_ties_of_large_numbers_are_not_broken_by_rounding() -> None:
    """Scaled, numbers about 10^9 lose more than one part in 10^9 of a difference of one."""
    known = np.array([[10**9 + 1.0], [10**9 - 1.0]]) / 7e5
    assert count(known, [[10**9 / 7e5]])[1] == [2]


def test_neighbours_refuse_what_they_cannot_mean() -> None:
    with pytest.raises(InvalidArgument, match="power"):
        Neighbours(np.zeros((2, 1)), power=3)
    with pytest.raises(InvalidArgument, match="power 1"):
        Neighbours(np.zeros((2, 1)), power=2, codes=np.zeros((2, 1), dtype=np.int64))
    with pytest.raises(InvalidType, match="float64"):
        Neighbours(np.zeros((2, 1), dtype=np.int64), power=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match="missing"):
        Neighbours(np.array([[np.nan]]), power=1)
    with pytest.raises(InvalidType, match="codes"):
        Neighbours(np.zeros((2, 1)), power=1, codes=np.zeros((3, 1), dtype=np.int64))
    with pytest.raises(InvalidArgument, match=r"2\^53"):
        Neighbours(np.zeros((2, 1)), power=1, codes=np.full((2, 1), 2**53))
    with pytest.raises(InvalidArgument, match="other columns"):
        list(Neighbours(np.zeros((2, 1)), power=1).search(np.zeros((2, 2))))


def test_linkage_of_equal_and_of_constant_tables() -> None:
    """Released as it is: everybody; all equal: one in n; constant columns count in their own unit."""
    table = np.arange(12.0).reshape(6, 2)
    own = np.arange(6)
    assert record_linkage(table, table, own, positions=own).value == 1
    assert record_linkage(np.ones((4, 2)), np.ones((4, 2)), np.arange(4), positions=[0, 3]).value == 0.25
    assert record_linkage(np.ones((4, 2)), np.zeros((4, 2)), np.arange(4), positions=np.arange(4)).value == 0.25
    assert record_linkage([[5.0]], [[9.0]], [0], positions=[0]).value == 1


def test_linkage_within_groups_looks_at_the_own_group_only() -> None:
    """The nearest original is another's, but not one of the own group; a group of one gives its record away."""
    original, released = [[0.0], [10], [11], [50]], [[9.0], [10], [11], [20]]
    assert record_linkage(original, released, [0, 1, 2, 3], positions=[0, 1, 2, 3]).value == 0.5
    groups = [7, 3, 3, -1]
    assert record_linkage(original, released, [0, 1, 2, 3], positions=[0, 1, 2, 3], groups=groups).value == 1


def test_numbers_of_groups_do_not_blur_what_is_near() -> None:
    """A hundred thousand groups, the last of two originals that differ by a billionth of a deviation: one is the nearest."""
    n = 100_000
    original = np.concatenate([np.arange(n) % 7, [3.0, 3.000000002]])[:, np.newaxis]
    groups = np.append(np.arange(n), [n, n])
    share = record_linkage(original, [[3.0], [3.000000002]], [n, n + 1], positions=[0, 1], groups=groups)
    assert share.value == 1


def test_linkage_of_nothing_tried_is_unknown() -> None:
    share = record_linkage([[1.0]], [[1.0]], [0], positions=[])
    assert (share.tried, share.low, share.high) == (0, 0, 1)


@pytest.mark.parametrize(
    ("own", "positions", "message"),
    [
        ([0], [0], "one original for each"),
        ([0, 2], [0], "does not have"),
        ([0, -1], [0], "does not have"),
        ([0, 1], [2], "does not have"),
        ([0, 1], [1, 1], "twice"),
    ],
)
def test_linkage_refuses_rows_that_are_not_there(own: list[int], positions: list[int], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        record_linkage([[1.0], [2]], [[1.0], [2]], own, positions=positions)


def test_linkage_refuses_other_columns_and_groups() -> None:
    with pytest.raises(InvalidArgument, match="other columns"):
        record_linkage([[1.0, 2]], [[1.0]], [0], positions=[0])
    with pytest.raises(InvalidArgument, match="one group"):
        record_linkage([[1.0], [2]], [[1.0], [2]], [0, 1], positions=[0], groups=[1])
    with pytest.raises(InvalidType, match="integers"):
        record_linkage([[1.0], [2]], [[1.0], [2]], [0.0, 1.0], positions=[0])


def test_records_are_grouped_by_all_columns() -> None:
    assert group_by([[2, 2, -1, 2], [0, 1, 0, 0]]).tolist() == [1, 2, 0, 1]
    assert group_by([[7, 7, 3]]).tolist() == [1, 1, 0]
    with pytest.raises(InvalidArgument, match="no column"):
        group_by([])
    with pytest.raises(InvalidArgument, match="equally many"):
        group_by([[1], [1, 2]])
    with pytest.raises(InvalidType, match="integers"):
        group_by([[1.5]])


def test_groups_without_records_values_or_differences() -> None:
    assert distinct_diversity([], []) == 0
    with pytest.raises(InvalidArgument, match="one value"):
        distinct_diversity([1, 2], [1])
    with pytest.raises(InvalidArgument, match="missing"):
        distinct_diversity([1, 2], [1, np.nan])
