"""Declared atoms through the masking kernel: zeros and heaps of ages stay, and released values lie on the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.atoms import FIVES, INCOMES, Column, make_heaped_ages, make_zero_heavy, measure
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import Grid, mask_column
from release_pipeline.mechanisms.columns.consistency import isotonic

SECRET = bytes(31) + b"\x07"
KEPT = ("idp-ls", "idp-cbls")
ZEROS = Column("zeros", make_zero_heavy(20_000, zeros=0.936), INCOMES, 1, (0,))


def mask(column: Column, method: str, **options: Any) -> np.ndarray:
    """The released values at epsilon 0.5 and k 50."""
    fixed = {"domain": column.domain, "grid": column.grid, "epsilon": "0.5", "k": 50, "secret": SECRET}
    return mask_column(column.values, method=method, **fixed | options).values


@pytest.mark.parametrize("method", KEPT)
def test_zeros_of_a_column_of_zeros_stay(method: str) -> None:
    """93.6% of them, among losses and a heavy tail; order alone moves nearly all of them away."""
    share = np.mean(ZEROS.values == 0)
    assert abs(share - 0.936) < 0.01
    for number in range(6):
        secret = bytes([number] * 32)
        assert abs(np.mean(mask(ZEROS, method, atoms=[0], secret=secret) == 0) - share) < 0.02
    assert measure(ZEROS, method, "column", "isotonic", secrets=6).share > 0.5


@pytest.mark.parametrize("method", KEPT)
@pytest.mark.parametrize("column", [ZEROS, Column("ages", make_heaped_ages(30_000), (0, 99), 1, FIVES)], ids=["zeros", "ages"])
def test_shares_at_atoms_keep_within_two_points(method: str, column: Column) -> None:
    """At epsilon 0.5 and k 50, with everything else as it is by default; of 13 atoms the one that moved most."""
    assert measure(column, method, "column", "atoms", secrets=20).share < 0.02


@pytest.mark.parametrize(
    ("method", "scope", "k"),
    [("laplace", "column", None), ("dp-um", "column", 7), ("idp-ls", "column", 7), ("idp-cbls", "column", 7),
     ("idp-ls", "centroid", 7), ("idp-cbls", "centroid", 7)],
)  # fmt: skip
def test_released_values_lie_on_the_grid(method: str, scope: str, k: int | None) -> None:
    """Of a grid whose points are no binary fractions, inside the domain; without clamping they stay where the noise put them."""
    values = np.random.default_rng(1).normal(3, 2, 1000)
    grid = Grid.declare(("-0.7", "6.5"), "0.1")
    made: dict[str, Any] = {"domain": ("-0.7", "6.5"), "grid": "0.1", "epsilon": 1, "k": k, "scope": scope, "secret": SECRET}
    released = mask_column(values, method=method, **made).values
    assert np.array_equal(released, grid.restore(grid.quantise(released).astype(np.float64)))
    assert np.array_equal(released, np.array([float(f"{value:.1f}") for value in released]))
    free = mask_column(values, method=method, clamp=False, **made).values
    off = np.abs(free * 10 - np.rint(free * 10)) > 1e-6
    assert off.any() == (method != "laplace")
    assert free.min() < -0.7 or method == "idp-cbls"
    between = mask_column(values, method=method, on_grid=False, **made).values
    assert np.max(np.abs(between - released)) <= 0.05 + 1e-9


@pytest.mark.parametrize(
    ("atoms", "words"),
    [([0.5], "off the grid"), ([-10_000], "outside the domain"), ([1_000_000], "outside the domain"), ([0, 5, "0.0"], "twice")],
)
def test_atoms_that_no_value_can_be_at_are_refused(atoms: list[Any], words: str) -> None:
    """Off the grid, outside the domain, or twice."""
    with pytest.raises(InvalidArgument, match=words):
        mask(ZEROS, "idp-cbls", atoms=atoms)


def test_clusters_weigh_as_many_records_as_they_have() -> None:
    """Two clusters in the wrong order meet at the mean of their records."""
    assert isotonic(np.array([4.0, 1.0]), np.array([3, 1])).tolist() == [3.25, 3.25]
