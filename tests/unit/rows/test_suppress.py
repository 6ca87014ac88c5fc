"""Suppression of small groups: against the rule told once more in plain Python, and its promises on any table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.rows.suppress import Suppression, group_sizes, suppress_small_groups

Table = list[list[int]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Up to 40 records of up to 4 columns with few values each, so that groups occur."""
    columns = draw(st.integers(1, 4))
    return draw(st.lists(st.lists(st.integers(0, 2), min_size=columns, max_size=columns), min_size=1, max_size=40))


def released(table: Table, done: Suppression) -> list[tuple[int | None, ...]]:
    """What is left: blanks as None, dropped records gone."""
    return [
        tuple(None if blank else value for value, blank in zip(row, blanks, strict=True))
        for row, blanks, dropped in zip(table, done.blank.tolist(), done.dropped.tolist(), strict=True)
        if not dropped
    ]


def by_the_rule(table: Table, below: int) -> tuple[list[list[bool]], list[bool]]:
    """One cell blank, column by column, for those who then stand in a group of their own kind; else all cells; else dropped."""
    count, columns = len(table), len(table[0])
    blank = [[False] * columns for _ in range(count)]
    sizes = Counter(map(tuple, table))
    waiting = [i for i in range(count) if sizes[tuple(table[i])] < below]
    for column in range(columns):
        rest = {i: tuple(value for place, value in enumerate(table[i]) if place != column) for i in waiting}
        alike = Counter(rest.values())
        for i in waiting:
            blank[i][column] = alike[rest[i]] >= below
        waiting = [i for i in waiting if not blank[i][column]]
    if len(waiting) >= below:
        for i in waiting:
            blank[i] = [True] * columns
        waiting = []
    return blank, [i in waiting for i in range(count)]


@pytest.mark.slow
@given(tables(), st.integers(2, 12))
def test_agrees_with_the_rule_in_plain_python(table: Table, below: int) -> None:
    """The same cells are blanked and the same records dropped."""
    done = suppress_small_groups(np.array(table, dtype=np.int64), below)
    assert (done.blank.tolist(), done.dropped.tolist()) == by_the_rule(table, below)


@given(tables(), st.integers(2, 12))
def test_no_small_group_is_left(table: Table, below: int) -> None:
    """Every group of equal entries that is left, a blank being a value, has at least `below` records."""
    done = suppress_small_groups(np.array(table, dtype=np.int64), below)
    assert all(size >= below for size in Counter(released(table, done)).values())


def test_first_column_that_suffices_is_blanked() -> None:
    """Either cell would do: the first in the policy's order goes, not both."""
    done = suppress_small_groups(np.array([[0, 0]] * 5 + [[1, 1], [1, 1]]), 2)
    assert not done.blank.any()
    done = suppress_small_groups(np.array([[0, 0], [1, 0], [1, 1], [0, 1]]), 2)
    assert done.blank.tolist() == [[True, False]] * 4


def test_rows_count_as_many_records_as_they_stand_for() -> None:
    """Rows of equal codes add up their records, and not themselves."""
    assert group_sizes(np.array([[0], [0], [1]]), np.array([2, 3, 4])).tolist() == [5, 5, 4]


def test_fixed_columns_are_never_blank() -> None:
    """Rows that a blank in the first column would save are blanked in the second, or dropped."""
    done = suppress_small_groups(np.array([[0, 0], [0, 1], [1, 0], [1, 0], [2, 0]]), 2, fixed=1)
    assert done.blank.tolist() == [[False, True], [False, True], [False, False], [False, False], [False, False]]
    assert done.dropped.tolist() == [False, False, False, False, True]
