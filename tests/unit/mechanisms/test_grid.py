"""Declared grids, exact integers, and the way back."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.basis.grid import as_numbers

DECIMALS = st.decimals(min_value=-1000, max_value=1000, places=2, allow_nan=False)


@given(
    DECIMALS,
    st.sampled_from(["0.01", "0.1", "0.25", "1", "2.5"]),
    st.integers(1, 10**6),
    st.lists(st.floats(-1e6, 1e6), min_size=1),
)
def test_quantise_is_the_nearest_grid_point_of_the_clamped_value(lo: Decimal, step: str, width: int, values: list[float]) -> None:
    """Within half a step (plus rounding in the last bit) of the clamped value, always in 0..W, and the same one by one."""
    grid = Grid(Fraction(lo), Fraction(step), width)
    q = grid.quantise(np.array(values))
    assert q.tolist() == [int(grid.quantise(np.array([value]))[0]) for value in values]
    for value, units in zip(values, q.tolist(), strict=True):
        clamped = min(max(Fraction(value), grid.lo), grid.hi)
        assert 0 <= units <= width
        assert abs(grid.lo + units * grid.step - clamped) <= grid.step / 2 + Fraction(1, 10**6)


@given(DECIMALS, st.sampled_from(["0.01", "0.1", "1", "0.05"]), st.lists(st.integers(0, 10**6), min_size=1))
def test_whole_units_come_back_as_the_exact_decimal(lo: Decimal, step: str, units: list[int]) -> None:
    """lo + q g as the float nearest to the exact decimal, so that 0.3 is 0.3."""
    grid = Grid(Fraction(lo), Fraction(step), 10**6)
    restored = grid.restore(np.array(units, dtype=np.float64))
    assert restored.tolist() == [float(lo + q * Decimal(step)) for q in units]
    assert grid.quantise(restored).tolist() == units


@pytest.mark.parametrize(
    ("domain", "step", "width"),
    [
        ((0, 100), 1, 100),
        (("0", "0.3"), "0.1", 3),
        ((0.0, 0.3), 0.1, 3),
        ((Fraction(1, 3), Fraction(4, 3)), Fraction(1, 3), 3),
        ((0, 2**52), 1, 2**52),
    ],
)
def test_declared_grids(domain: Any, step: Any, width: int) -> None:
    """Exact for exact numbers, tolerant of rounding error for floats."""
    assert Grid.declare(domain, step).width == width


@pytest.mark.parametrize(
    ("domain", "step"),
    [
        ((0, 1), "0.3"),
        ((0, 1), 0),
        ((1, 1), 1),
        ((0, 2**53), 1),
        ((0, float("inf")), 1),
        ((0, float("nan")), 1),
        ((0, "0.30000001"), "0.1"),
    ],
)
def test_impossible_grids_are_refused(domain: Any, step: Any) -> None:
    """In words."""
    with pytest.raises(InvalidArgument):
        Grid.declare(domain, step)


@pytest.mark.parametrize("values", [[1.0, float("nan")], [float("inf")], [[1.0]], [[1, 2], [3, 4]]])
def test_values_that_are_not_finite_or_flat_are_refused_with_counts_only(values: Any) -> None:
    """NaN, infinity and tables."""
    with pytest.raises(InvalidArgument):
        as_numbers(values)


@pytest.mark.parametrize("values", [["a"], [None], [True], [1 + 2j], np.array(["2020-01-01"], dtype="datetime64[D]")])
def test_values_that_are_no_numbers_are_refused(values: Any) -> None:
    """Texts, nothing, booleans, complex numbers, dates."""
    with pytest.raises(InvalidType):
        as_numbers(values)
