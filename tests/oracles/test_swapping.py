"""The lemma of swapping by brute force: whatever somebody knows, and by whatever rule they name a record for each released row,
at most one in k is right on average."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.mechanisms.clusters import mdav as swapping
from release_pipeline.mechanisms.clusters.mdav import describe_alike, make_blocks, swap_positions
from release_pipeline.mechanisms.noise import noise_stream

SECRET = bytes(range(32))
BLOCK = np.array([0, 0, 0, 1, 1, 1, -1])  # the last record is not released


def swap_by_every_order(block: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, ...]]:
    """How often each result comes of all orders of the records that a stream may draw."""
    found = Counter[tuple[int, ...]]()
    for order in permutations(range(len(block))):
        monkeypatch.setattr(swapping, "shuffled_positions", lambda *_, order=order: np.array(order))
        found[tuple(swap_positions(block, noise_stream(SECRET)).tolist())] += 1
    return found


def test_every_order_within_a_block_is_equally_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of uniform orders of all records: each pair of orders of the two blocks as often as any other. Nobody leaves a block."""
    found = swap_by_every_order(BLOCK, monkeypatch)
    within = {one + tuple(3 + np.array(other)) + (6,) for one, other in product(permutations(range(3)), repeat=2)}
    assert found.keys() == within
    assert set(found.values()) == {5040 // 36}


def best_share(values: list[tuple[int, ...]], block: np.ndarray, outcomes: list[tuple[tuple[int, ...], ...]]) -> Fraction:
    """The expected share of right links by the best of all rules, for who knows everything but the random choices. `values`: of
    each column; `outcomes`: equally likely, from which record each row of each column gets its value.

    Rows are shuffled, so that what is seen of a release is how often each row occurs in it. Whoever sees that, and names a
    record for a row, is right as often as the record's place has that row, shared among equal rows: the best rule names the
    likeliest."""
    seen = defaultdict(list)
    for outcome in outcomes:
        rows = [tuple(column[source[at]] for column, source in zip(values, outcome, strict=True)) for at in range(len(block))]
        seen[tuple(sorted(rows))].append(rows)
    right = Fraction(0)
    for table, cases in seen.items():
        for row, often in Counter(table).items():
            most = max(sum(rows[record] == row for rows in cases) for record in range(len(block)))
            right += often * Fraction(most, often)
    return right / (len(outcomes) * len(block))


@pytest.mark.parametrize(
    "values",
    [
        [(1, 2, 3, 4, 5, 6), (9, 8, 7, 6, 5, 4)],  # all different: the greatest knowledge
        [(1, 1, 3, 4, 5, 5), (9, 8, 7, 6, 6, 6)],  # ties
        [(1, 1, 1, 2, 2, 2), (1, 2, 3, 1, 2, 3)],  # a block that agrees in a column
        [(1, 2, 3, 1, 2, 3), (1, 2, 3, 1, 2, 3)],  # blocks that look alike
    ],
)
def test_no_rule_links_more_than_one_in_k(values: list[tuple[int, ...]]) -> None:
    """Two blocks of 3, two columns: 1296 outcomes, and the best of all rules. One permutation for both columns, or blocks of 2,
    give more where values differ."""
    block = np.array([0, 0, 0, 1, 1, 1])
    each = [one + tuple(3 + np.array(other)) for one, other in product(permutations(range(3)), repeat=2)]
    assert best_share(values, block, list(product(each, repeat=2))) <= Fraction(1, 3)
    pairs = [a + tuple(2 + np.array(b)) + tuple(4 + np.array(c)) for a, b, c in product(permutations(range(2)), repeat=3)]
    if len(set(values[0])) == 6:
        assert best_share(values, block, list(product(pairs, repeat=2))) == Fraction(1, 2)


def best_share_of_values(block: np.ndarray, outcomes: list[tuple[tuple[int, ...], ...]]) -> Fraction:
    """The expected share of rows whose value of the last column is that of the person whom the best rule names, which knows
    everything else: also how all other columns were swapped."""
    seen = defaultdict(list)
    for *others, last in outcomes:
        seen[tuple(others)].append(last)
    right = sum(max(Counter(last[at] for last in cases).values()) for cases in seen.values() for at in range(len(block)))
    return Fraction(right, len(outcomes) * len(block))


def test_no_rule_names_the_owner_of_more_than_one_value_in_k() -> None:
    """By all that is not the column. Of places nothing like it follows: one permutation for both columns is no better than one in
    k there, and tells every owner."""
    block = np.array([0, 0, 0, 1, 1, 1])
    each = [one + tuple(3 + np.array(other)) for one, other in product(permutations(range(3)), repeat=2)]
    assert best_share_of_values(block, list(product(each, repeat=2))) == Fraction(1, 3)
    assert best_share([(1, 2, 3, 4, 5, 6)] * 2, block, [(one, one) for one in each]) == Fraction(1, 3)
    assert best_share_of_values(block, [(one, one) for one in each]) == 1


def test_a_column_that_keeps_its_place_links_everybody() -> None:
    """What the rules refuse: a column outside of the blocks' entries that is not swapped, here the first."""
    block, still = np.array([0, 0, 0, 1, 1, 1]), tuple(range(6))
    each = [one + tuple(3 + np.array(other)) for one, other in product(permutations(range(3)), repeat=2)]
    assert best_share([(1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6)], block, [(still, one) for one in each]) == 1


CELLS = st.lists(st.integers(-1, 2), min_size=0, max_size=60)


@settings(deadline=None)
@given(CELLS, st.integers(2, 5), st.integers(0, 10**6), st.booleans())
def test_blocks_have_k_records_of_one_cell(cells: list[int], k: int, seed: int, again: bool) -> None:
    """Whatever the values, and whichever blocks were there before: so no rule can link more than one in k."""
    random, cell = np.random.default_rng(seed), np.array(cells, dtype=np.int64)
    few = [number for number, count in Counter(cells).items() if count < k and number >= 0]
    cell[np.isin(cell, few)] = -1
    features = describe_alike([random.integers(0, 4, len(cell)).astype(np.float64), random.normal(size=len(cell))])
    earlier = random.integers(-1, 6, len(cell)) if again else None
    block = make_blocks(features, cell, k, earlier=earlier)
    assert ((block < 0) == (cell < 0)).all()
    for number in np.unique(block[block >= 0]):
        members = block == number
        assert members.sum() >= k
        assert len(set(cell[members].tolist())) == 1
    assert set(block[block >= 0].tolist()) == set(range(int(block.max(initial=-1)) + 1))
