"""What is kept of noisy tables: more than noise, and nothing where there is nothing else."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from release_pipeline.privacy.by_value.noise_laws import GaussianNoise
from release_pipeline.privacy.grid import FloatArray
from release_pipeline.privacy.whole_table import Cells, Column, Measured, TableBudget, make_design
from release_pipeline.privacy.whole_table.links import link_columns
from release_pipeline.privacy.whole_table.margins import combine_margins
from release_pipeline.privacy.whole_table.measure import BlockCounts

RECORDS, DEVIATION = 30_000.0, 300.0
ROWS: FloatArray = RECORDS * np.array([0.4, 0.3, 0.2, 0.07, 0.03])
COLUMNS: FloatArray = RECORDS * np.array([0.5, 0.25, 0.15, 0.1])


def distance(one: FloatArray, other: FloatArray) -> float:
    """Total variation."""
    return float(np.abs(one - other).sum() / RECORDS / 2)


def linked_table(strength: float) -> FloatArray:
    """A table of two columns that go together by some of their cells."""
    table = np.outer(ROWS, COLUMNS) / RECORDS
    for place in range(4):
        table[place, place] *= 1 + strength
    for _ in range(200):
        table *= (ROWS / table.sum(axis=1))[:, None]
        table *= (COLUMNS / table.sum(axis=0))[None, :]
    return table


def mean_distance(table: FloatArray, deviation: float = DEVIATION) -> tuple[float, float]:
    """Of what is made of noisy tables, and of these themselves, from the true one."""
    random, found, noise = np.random.default_rng(3), list[float](), list[float]()
    for _ in range(40):
        noisy = table + random.normal(0, deviation, table.shape)
        found.append(distance(link_columns(noisy, ROWS, COLUMNS, deviation, valued=None).table, table))
        noise.append(distance(noisy, table))
    return float(np.mean(found)), float(np.mean(noise))


def test_nothing_is_seen_where_nothing_goes_together() -> None:
    """Noise alone makes no link, but for a little."""
    found, noise = mean_distance(linked_table(0.0))
    assert found < 0.35 * noise


@pytest.mark.parametrize(("strength", "most"), [(0.5, 0.6), (1.0, 0.7), (4.0, 0.82)])
def test_links_are_kept_without_most_of_the_noise(strength: float, most: float) -> None:
    """Weak ones and strong ones: nearer to the truth than noisy tables are, and than if nothing went together."""
    table = linked_table(strength)
    found, noise = mean_distance(table)
    assert found < most * noise
    assert found < 0.95 * distance(np.outer(ROWS, COLUMNS) / RECORDS, table)


def test_without_noise_a_table_is_what_it_is() -> None:
    found, _ = mean_distance(linked_table(2.0), 0.01)
    assert found < 1e-4


def test_what_pairs_say_of_a_column_counts_by_how_sure_it_is() -> None:
    """Least squares by hand: groups of cells, rows of tables that were moved to the known total, weights of one over variance."""
    random = np.random.default_rng(1)
    columns = tuple(Column(5) for _ in range(3))
    design = make_design(columns, 1000, TableBudget(Fraction(1, 50), by_rho=True))
    groups = np.array([0, 0, 1, 1, 2, 2])
    margins = tuple(random.integers(50, 300, 6) for _ in range(3))
    pairs = {pair: random.integers(0, 200, (3, 3)) for pair in combinations(range(3), 2)}
    tables = {pair: BlockCounts(counts, design.pairs[pair]) for pair, counts in pairs.items()}
    measured = Measured(design, (Cells.narrow(columns[0]),) * 3, margins, (groups,) * 3, tables)
    combined = combine_margins(measured)
    own, laws = design.margins, design.pairs
    assert isinstance(own, GaussianNoise)
    for place in range(3):
        mine = np.bincount(groups, margins[place])
        total, weight = mine / (2 * own.spread**2), np.full(3, 1 / (2 * own.spread**2))
        for pair, counts in pairs.items():
            if place in pair:
                even = counts + (1000 - counts.sum()) / 9
                said = even.sum(axis=1 - pair.index(place))
                variance = 3 * laws[pair].spread ** 2
                total, weight = total + said / variance, weight + 1 / variance
        assert np.bincount(groups, combined[place]) == pytest.approx(total / weight)
        assert combined[place] - margins[place] == pytest.approx(((total / weight - mine) / 2)[groups])


def count_with_reasons(records: int = 60_000) -> FloatArray:
    """Two columns of normal numbers with correlation -0.15, in five groups each, and a group of reasons of
    the second one: most of those who are low in the first have one."""
    draw = np.random.default_rng(5)
    one = draw.standard_normal(records)
    other = -0.15 * one + math.sqrt(1 - 0.15**2) * draw.standard_normal(records)
    cuts = np.array([-0.84, -0.25, 0.25, 0.84])
    rows, columns = np.searchsorted(cuts, one), np.searchsorted(cuts, other)
    columns[draw.random(records) < np.array([0.7, 0.1, 0.1, 0.1, 0.1])[rows]] = 5
    return np.bincount(rows * 6 + columns, minlength=30).reshape(5, 6) * 5_000.0 / records


@pytest.mark.parametrize("turned", [False, True])
def test_reasons_are_no_values_above_all_others(turned: bool) -> None:
    """The correlation is that of the records with a value in both; who has a reason stays as the counts say."""
    table = count_with_reasons()
    deviation, valued = 10.0, (5, 5)
    noisy = table + np.random.default_rng(2).normal(0, deviation, table.shape)
    noisy, true = (noisy.T, table.T) if turned else (noisy, table)
    link = link_columns(noisy, true.sum(axis=1), true.sum(axis=0), deviation, valued=valued)
    assert link.correlation == pytest.approx(-0.15, abs=0.05)
    reasons = link.table[5] if turned else link.table[:, 5]
    assert reasons == pytest.approx(table[:, 5], abs=2.5 * deviation)
    as_values = link_columns(noisy, true.sum(axis=1), true.sum(axis=0), deviation, valued=noisy.shape)
    assert as_values.correlation is not None
    assert as_values.correlation < -0.3  # with reasons as the highest values


def test_records_without_a_pair_of_groups_have_no_correlation() -> None:
    """One group of values goes together with nothing."""
    table = np.array([[300.0, 100.0], [500.0, 100.0]])
    link = link_columns(table, table.sum(axis=1), table.sum(axis=0), 1.0, valued=(2, 1))
    assert link.correlation is None
    assert link.table == pytest.approx(table, abs=2)
