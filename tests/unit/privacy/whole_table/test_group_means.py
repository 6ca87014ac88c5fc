"""How exactly the mean of a group will be known, by public facts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.privacy.whole_table import Column, Measured, TableBudget, make_design, measure_table
from release_pipeline.privacy.whole_table.design import deviation

RECORDS = 20_000
COLUMNS = (Column(400, labels=1), Column(60), Column(4, nominal=True), Column(3, nominal=True))


def stream(*purpose: Context) -> NoiseStream:
    """The noise of counts."""
    return noise_stream(b"n" * 32, *purpose)


def make_entries() -> list[IntArray]:
    """A number with reasons, another by which it has a slope, categories with different means of it, and categories with about
    the same."""
    draw = np.random.default_rng(6)
    by = draw.standard_normal(RECORDS)
    kind = draw.integers(0, 5, RECORDS)
    number = 0.5 * (by + (kind - 2) / np.sqrt(2)) + 0.7 * draw.standard_normal(RECORDS)
    entries = np.clip(np.round(200 + 40 * number), 0, 400)
    entries[draw.random(RECORDS) < 0.1] = 401
    others = np.clip(np.round(30 + 10 * by), 0, 60), kind, draw.integers(0, 4, RECORDS)
    return [one.astype(np.int64) for one in (entries, *others)]


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Little noise."""
    design = make_design(COLUMNS, RECORDS, TableBudget(Fraction(1), by_rho=True))
    return measure_table(make_entries().__getitem__, design, stream)


@pytest.mark.parametrize("place", [0, 1])
def test_noise_moves_means_of_groups_by_as_much_as_is_said(measured: Measured, place: int) -> None:
    """The sum of noise over the groups of a column, each by its mean score; about, for groups are not just alike."""
    pair, design = (min(place, 2), max(place, 2)), measured.design
    groups = measured.groups[place][: len(measured.cells[place].edges) - 1]
    own = np.sort(make_entries()[place][make_entries()[place] <= COLUMNS[place].width])
    found = groups[measured.cells[place].find(own)]
    ranks = (np.arange(len(own)) - np.mean(np.arange(len(own)))) / np.std(np.arange(len(own)))
    means = np.bincount(found, ranks) / np.bincount(found)
    noise = deviation(design.pairs[pair]) * np.sqrt(float(means @ means))
    assert design.group_sum_deviation(pair, place) == pytest.approx(noise, rel=0.2)
