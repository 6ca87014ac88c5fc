"""What is kept of noisy tables: more than noise, and nothing where there is nothing else."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from release_pipeline.mechanisms.basis.grid import FloatArray
from release_pipeline.mechanisms.by_value.noise_laws import GaussianNoise
from release_pipeline.mechanisms.whole_table import Cells, Column, Measured, TableBudget, make_design
from release_pipeline.mechanisms.whole_table.links import combine_margins, link_columns
from release_pipeline.mechanisms.whole_table.measure import BlockCounts

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
