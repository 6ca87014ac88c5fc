"""What one record changes in a table, by trying every pair of neighbours; what noise then loses, outcome by outcome; and values
that add up, against the plain least squares."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.mechanisms.basis.grid import Grid, IntArray
from release_pipeline.mechanisms.tables import (
    Shape,
    ends_of,
    fit_levels,
    laplace_noise,
    multiply_ends,
    noise_of_share,
    of_amounts,
    of_counts,
    reconcile,
    sum_levels,
)

Record = tuple[int, int]  # its cell on the finest level, and its amount
DOMAINS = [(0, 3), (-2, 3), (-4, -2)]
SHAPES = {
    "one cell": Shape.of([[[0, 0]]]),
    "two cells": Shape.of([[[0, 1]]]),
    "two columns": Shape.of([[[0, 1]], [[0, 1]]]),
    "two levels": Shape.of([[[0, 0, 1], [0, 1, 2]]]),
    "all of it, and its parts": Shape.of([[[0, 0], [0, 1]]]),
}


def list_neighbours(cells: int, amounts: range, records: int) -> Iterator[tuple[list[Record], list[Record]]]:
    """Every table of so many records, and every one in which the first is another: the order of records does not matter."""
    kinds = list(itertools.product(range(cells), amounts))
    for others in itertools.combinations_with_replacement(kinds, records - 1):
        for one, other in itertools.product(kinds, repeat=2):
            yield [one, *others], [other, *others]


def add_up(table: list[Record], shape: Shape, *, counts: bool) -> list[IntArray]:
    """The exact cells, by the code under test."""
    cell, amount = (np.array(part, dtype=np.int64) for part in zip(*table, strict=True))
    return sum_levels(cell, None if counts else amount, shape)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("domain", [None, *DOMAINS], ids=str)
def test_one_record_changes_a_level_by_its_sensitivity_and_no_more(name: str, domain: tuple[int, int] | None) -> None:
    """In L1 and in L2; and some pair by just that much: nothing is paid for that cannot happen."""
    shape, worst = SHAPES[name], {}
    amounts = range(1) if domain is None else range(domain[0], domain[1] + 1)
    for one, other in list_neighbours(shape.cells[-1], amounts, 2):
        both = zip(add_up(one, shape, counts=domain is None), add_up(other, shape, counts=domain is None), strict=True)
        for level, (mine, theirs) in enumerate(both):
            change = np.abs(mine - theirs)
            l1, l2 = worst.get(level, (0, 0))
            worst[level] = max(l1, int(change.sum())), max(l2, int((change**2).sum()))
    for level, cells in enumerate(shape.cells):
        found = of_counts(cells) if domain is None else of_amounts(*ends_of(Grid.declare(domain, 1)), cells)
        assert (found.l1, found.l2_squared) == worst[level]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_no_outcome_of_a_table_in_two_levels_loses_more_than_its_share(domain: tuple[int, int]) -> None:
    """Of a sum: the log ratio of an outcome is largest at the exact cells of one of the tables."""
    shape, epsilon = SHAPES["two levels"], Fraction(1, 2)
    changes = [of_amounts(*ends_of(Grid.declare(domain, 1)), cells) for cells in shape.cells]
    noise = [laplace_noise(change, epsilon / 2) for change in changes]
    assert sum(law.loses(change) for law, change in zip(noise, changes, strict=True)) <= epsilon
    worst = Fraction(0)
    for one, other in list_neighbours(shape.cells[-1], range(domain[0], domain[1] + 1), 2):
        both = zip(add_up(one, shape, counts=False), add_up(other, shape, counts=False), noise, strict=True)
        worst = max(worst, sum((int(np.abs(a - b).sum()) / law.amount for a, b, law in both), Fraction(0)))
    assert epsilon * Fraction(9, 10) < worst <= epsilon


@pytest.mark.parametrize("by_rho", [False, True])
def test_noise_loses_what_it_may_and_nearly_all_of_it(*, by_rho: bool) -> None:
    """Scales are whole numbers, variances fractions."""
    for share in (Fraction(1, 7), Fraction(3), Fraction(1, 1000)):
        for change in (of_counts(5), of_amounts(*ends_of(Grid.declare((-100, 400), 1)), 3)):
            lost = noise_of_share(change, share, by_rho=by_rho).loses(change)
            assert lost <= share
            assert by_rho is False or lost == share
    assert not noise_of_share(of_counts(1), Fraction(1), by_rho=by_rho).amount  # n is public


def _matrix(shape: Shape) -> list[np.ndarray]:
    """For each level the sums of finest cells that its cells are."""
    found = [np.eye(shape.cells[-1])]
    for parents, cells in zip(reversed(shape.parents), reversed(shape.cells[:-1]), strict=True):
        above = np.zeros((cells, shape.cells[-1]))
        for cell, parent in enumerate(parents):
            above[parent] += found[0][cell]
        found.insert(0, above)
    return found


@pytest.mark.parametrize("total", [None, 40])
@pytest.mark.parametrize("seed", range(4))
def test_values_are_the_least_squares_solution(seed: int, total: int | None) -> None:
    """Of three levels with groups of different sizes, and noise of different variances; with the known total as a bound."""
    numbers = np.random.default_rng(seed)
    shape = Shape.of([[[0, 0, 0, 1, 1], [0, 0, 1, 2, 2], [0, 1, 2, 3, 4]], [[0, 1]]])
    noisy = [numbers.integers(-5, 20, cells) for cells in shape.cells]
    spread = [3.0, 1.0, 7.0]
    rows = np.concatenate([part / np.sqrt(of) for part, of in zip(_matrix(shape), spread, strict=True)])
    seen = np.concatenate([part / np.sqrt(of) for part, of in zip(noisy, spread, strict=True)])
    if total is None:
        finest = np.linalg.lstsq(rows, seen)[0]
    else:  # Lagrange
        count = shape.cells[-1]
        ones = np.ones((count, 1))
        left = np.block([[2 * rows.T @ rows, ones], [ones.T, np.zeros((1, 1))]])
        finest = np.linalg.solve(left, np.append(2 * rows.T @ seen, total))[:count]
    fitted = fit_levels(noisy, shape, spread, total=total)
    for part, values in zip(_matrix(shape), fitted, strict=True):
        np.testing.assert_allclose(values, part @ finest, atol=1e-9)


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_whole_values_add_up_near_the_solution(seed: int, *, negative: bool) -> None:
    """To the level above and to the total; none below 0 where none can be; and as near as any whole numbers with the sums above,
    by trying all."""
    numbers = np.random.default_rng(seed)
    shape = Shape.of([[[0, 0, 0, 1, 1], [0, 1, 2, 3, 4]]])
    noisy = [numbers.integers(-3, 6, cells) for cells in shape.cells]
    wanted = fit_levels(noisy, shape, [1.0, 1.0], total=9)
    above, values = reconcile(noisy, shape, [1.0, 1.0], total=9, negative=negative)
    assert above.sum() == 9
    for parent in range(2):
        mine = shape.parents[0] == parent
        assert values[mine].sum() == above[parent]
        assert negative or values[mine].min() >= 0
        tried = itertools.product(range(-15 if negative else 0, 25), repeat=int(mine.sum()) - 1)
        distance = min(
            float(((np.array([*rest, last]) - wanted[1][mine]) ** 2).sum())
            for rest in tried
            if (last := int(above[parent]) - sum(rest)) >= 0 or negative
        )
        assert float(((values[mine] - wanted[1][mine]) ** 2).sum()) == pytest.approx(distance)


WEIGHTS = [(1, 3, 7), (0, 1, 2)]  # that a record may have, in units
NUMBERS = [None, (0, 2), (-2, 1)]


def find_largest_changes(shape: Shape, weights: tuple[int, ...], numbers: range) -> list[tuple[int, int]]:
    """By how much replacing a record by any other, beside any third, changes each level the most: in L1, and in L2 squared."""
    kinds = list(itertools.product(range(shape.cells[-1]), weights, numbers))
    cell = np.array([kind[0] for kind in kinds], dtype=np.int64)
    added = np.array([weight * number for _, weight, number in kinds], dtype=np.int64)
    worst = [(0, 0) for _ in shape.cells]
    for beside in range(len(kinds)):
        tables = [
            sum_levels(cell[[first, beside]], added[[first, beside]], shape) for first in range(len(kinds))
        ]  # the exact cells of every table with this third one, by the code under test
        for level in range(len(shape.cells)):
            cells = np.array([table[level] for table in tables])
            change = np.abs(cells[:, None, :] - cells[None, :, :])
            l1, l2 = worst[level]
            worst[level] = max(l1, int(change.sum(2).max())), max(l2, int((change**2).sum(2).max()))
    return worst


@pytest.mark.parametrize("name", ["one cell", "two cells", "two levels"])
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("domain", NUMBERS, ids=str)
def test_one_weighted_record_changes_a_level_by_its_sensitivity_and_no_more(
    name: str, weights: tuple[int, ...], domain: tuple[int, int] | None
) -> None:
    """Of weighted counts, and of weighted sums: weights, numbers and cells may all change, and nothing is paid for that cannot
    happen. A sensitivity without the largest weight would be seen."""
    shape, of_weights = SHAPES[name], (weights[0], weights[-1])
    numbers = range(1, 2) if domain is None else range(domain[0], domain[1] + 1)
    ends = of_weights if domain is None else multiply_ends(of_weights, domain)
    worst = find_largest_changes(shape, weights, numbers)
    for cells, found in zip(shape.cells, worst, strict=True):
        claimed = of_amounts(*ends, cells)
        assert (claimed.l1, claimed.l2_squared) == found
        unweighted = of_counts(cells) if domain is None else of_amounts(*domain, cells)
        assert unweighted.l1 < found[0] or weights[-1] == 1 or found[0] == 0
