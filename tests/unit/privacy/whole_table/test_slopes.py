"""How much of a slope rows keep, and how exactly the mean of a group will be known, by noisy counts and public facts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.privacy.whole_table import Column, Measured, TableBudget, make_design, measure_table
from release_pipeline.privacy.whole_table.slopes import Slope, find_slope

RECORDS = 20_000
COLUMNS = (Column(400, labels=1), Column(60), Column(4, nominal=True), Column(3, nominal=True))


def stream(*purpose: Context) -> NoiseStream:
    """The noise of counts."""
    return noise_stream(b"n" * 32, *purpose)


def make_entries(slope: float = 0.5) -> list[IntArray]:
    """A number with reasons, another by which it has a slope, categories with different means of it, and
    categories with about the same."""
    draw = np.random.default_rng(6)
    by = draw.standard_normal(RECORDS)
    kind = draw.integers(0, 5, RECORDS)
    number = slope * (by + (kind - 2) / np.sqrt(2)) + 0.7 * draw.standard_normal(RECORDS)
    entries = np.clip(np.round(200 + 40 * number), 0, 400)
    entries[draw.random(RECORDS) < 0.1] = 401
    others = np.clip(np.round(30 + 10 * by), 0, 60), kind, draw.integers(0, 4, RECORDS)
    return [one.astype(np.int64) for one in (entries, *others)]


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Little noise."""
    design = make_design(COLUMNS, RECORDS, TableBudget(Fraction(1), by_rho=True))
    return measure_table(make_entries().__getitem__, design, stream)


def find(measured: Measured, rows: list[IntArray], of: int, by: int) -> Slope:
    """The slope of two columns, which there is."""
    slope = find_slope(measured, (of, by), (rows[of], rows[by]))
    assert slope is not None
    return slope


@pytest.mark.parametrize(("of", "by"), [(0, 1), (1, 0), (0, 2)])
def test_rows_like_the_records_keep_the_slope(measured: Measured, of: int, by: int) -> None:
    """But for noise, and for what groups do not show."""
    slope = find(measured, make_entries(), of, by)
    assert slope.kept == pytest.approx(1, abs=0.06)
    assert slope.error < 0.1
