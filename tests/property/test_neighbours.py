"""What must hold of nearest neighbours and shares whatever the records are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.privacy.neighbours import Neighbours
from release_pipeline.privacy.risk import distinct_diversity, record_linkage
from release_pipeline.privacy.shares import difference_beyond, measure_share

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False) | st.integers(-3, 3).map(float)
TABLES = st.integers(1, 3).flatmap(lambda m: st.lists(st.lists(NUMBERS, min_size=m, max_size=m), min_size=1, max_size=30))
PAIRS = st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 5)), min_size=1, max_size=40)
SUCCESSES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(TABLES, st.sampled_from([1, 2]), st.randoms(use_true_random=False))
def test_the_order_of_the_known_records_does_not_matter(rows: list[list[float]], power: int, chance: object) -> None:
    """Same distances and counts for shuffled records; a known record is at distance 0 of as many as equal it, or nearly do."""
    known = np.array(rows)
    order = np.array(chance.sample(range(len(rows)), len(rows)))  # pyright: ignore[reportAttributeAccessIssue]
    points = np.concatenate([known, known + 0.5])
    distance, count = Neighbours(known, power=power).count(points)
    again = Neighbours(known[order], power=power).count(points)
    assert again[0].tolist() == distance.tolist()
    assert again[1].tolist() == count.tolist()
    assert not distance[: len(known)].any()
    equal = (known[:, np.newaxis] == known[np.newaxis]).all(axis=2).sum(axis=1)
    assert (count[: len(known)] >= equal).all()


@given(TABLES, st.integers(1, 4))
def test_copies_of_all_originals_divide_linkage(rows: list[list[float]], copies: int) -> None:
    """Each original so many times: the own one is one of so many times as many, and a table released as it is is linked fully but
    for equal rows."""
    table = np.array(rows)
    own = np.arange(len(table))
    once = record_linkage(table, table, own, positions=own)
    often = record_linkage(np.tile(table, (copies, 1)), table, own, positions=own)
    np.testing.assert_allclose(often.value * copies, once.value, rtol=1e-9)
    assert once.low == once.value == once.high


@given(PAIRS)
def test_groups_that_are_merged_tell_less(pairs: list[tuple[int, int]]) -> None:
    """One group of all has the most of l."""
    groups, values = (list(column) for column in zip(*pairs, strict=True))
    together = [0] * len(pairs)
    assert distinct_diversity(groups, values) <= distinct_diversity(together, values) == len(set(values))


@given(SUCCESSES, SUCCESSES)
def test_shares_lie_in_their_intervals(attack: list[float], control: list[float]) -> None:
    """So does what is beyond, from 0 to 1; trying the same thing more often shortens the interval."""
    one, other = measure_share(attack, among=None), measure_share(control, among=None)
    more = measure_share(attack * 4, among=None)
    beyond = difference_beyond(one, other)
    for share in (one, other, more, beyond):
        assert 0 <= share.low <= share.value <= share.high <= 1
    assert more.high - more.low < one.high - one.low
    if max(attack) <= min(control) and len(attack) == len(control):
        assert beyond.low == 0
