"""Counts and tallies against records looked at one by one, however the records are cut into parts and tasks."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms.basis import counting
from release_pipeline.mechanisms.basis.counting import GroupsOfEntries, NumberEncoder, TablePlan, plan_tables
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import compare_ranks, find_gap
from release_pipeline.mechanisms.whole_table.design import cover_pairs
from release_pipeline.rows import batches
from release_pipeline.rows.batches import CountTables, ListEncoder, tally_batches, unpack
from tests.counting import count_together

ENTRIES = st.lists(st.integers(0, 40), min_size=1, max_size=60)


@given(entries=ENTRIES, edges=st.lists(st.integers(-1, 42), min_size=2, max_size=8))
def test_a_tally_answers_what_a_sorted_column_would(entries: list[int], edges: list[int]) -> None:
    """Ranks, counts below and between, and a part of it."""
    column = np.sort(np.array(entries))
    tally = Tally.of(np.random.default_rng(1).permutation(column))
    assert len(tally) == len(column)
    assert tally.at(np.arange(len(column))).tolist() == column.tolist()
    assert tally.count_below(edges).tolist() == np.searchsorted(column, edges).tolist()
    assert tally.count_within(sorted(edges)).tolist() == np.diff(np.searchsorted(column, sorted(edges))).tolist()
    low, high = min(edges), max(edges)
    part = tally.between(low, high)
    assert part.at(np.arange(len(part))).tolist() == column[(column >= low) & (column < high)].tolist()


@given(entries=ENTRIES, others=ENTRIES)
def test_tallies_are_compared_as_their_records_are(entries: list[int], others: list[int]) -> None:
    """Each list repeated as often as the other is long, so that ranks are the same shares of both."""
    first, second = np.repeat(np.sort(entries), len(others)), np.repeat(np.sort(others), len(entries))
    error = compare_ranks(Tally.of(np.array(entries)), Tally.of(np.array(others)))
    assert error == pytest.approx(np.mean((first - second) ** 2) / np.var(first) if np.var(first) else 0.0)
    places = np.arange(-1, 42)
    gaps = [abs(float(np.mean(first <= place) - np.mean(second <= place))) for place in places]
    assert find_gap(Tally.of(np.array(entries)), Tally.of(np.array(others))) == pytest.approx(max(gaps))


NUMBERS: dict[str, Any] = {
    "whole": lambda random, count: random.integers(-50, 5000, count),
    "far": lambda random, count: random.integers(-(1 << 63), (1 << 63) - 1, count),
    "near": lambda random, count: (1 << 62) + random.integers(0, 2000, count),
    "small": lambda random, count: random.integers(0, 255, count).astype(np.uint8),
    "skewed": lambda random, count: np.exp(random.normal(0, 2, count)).round(2),
    "single": lambda random, count: random.random(count).astype(np.float32),
    "odd": lambda random, count: random.choice([-np.inf, np.inf, 0.0, -0.0, 1.0, -1e308, 1e308, 5e-324, 1e-323], count),
    "tiny": lambda random, count: random.choice([0.0, 5e-324, 1e-323, 2.5e-323], count),
}


@given(kind=st.sampled_from(sorted(NUMBERS)), seed=st.integers(0, 1 << 32), count=st.integers(1, 60))
def test_steps_say_of_every_number_what_a_search_does(kind: str, seed: int, count: int) -> None:
    """Next to each first too, and where numbers are too near for steps."""
    random = np.random.default_rng(seed)
    firsts: Any = np.unique(NUMBERS[kind](random, count))
    numbers = np.concatenate([NUMBERS[kind](random, 5000), firsts])
    if firsts.dtype.kind == "f":
        numbers = np.concatenate([numbers, *(np.nextafter(firsts, firsts.dtype.type(end)) for end in (-np.inf, np.inf))])
    assert np.array_equal(batches.count_up_to(firsts, numbers), np.searchsorted(firsts, numbers, side="right"))


class Records:
    """Made-up records of numbers, numbers with many entries, and texts, with the groups of their entries."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.rows = int(random.integers(1, 300))
        self.encoders = (
            NumberEncoder(-1.0, 4.0, 1.0, 2.0, 10),
            NumberEncoder(0.0, 1e7, 1.0, 1.0, 10**7),
            ListEncoder(("a", "b", "c"), (0, 1, 1)),
        )
        texts = random.choice(["a", "b", "c"], self.rows)
        self.table = pa.table({"x": random.normal(1, 3, self.rows), "y": np.rint(random.lognormal(9, 2, self.rows)), "z": texts})
        self.entries = [
            np.rint((np.clip(self.table["x"].to_numpy(), -1, 4) + 1) * 2).astype(int),
            np.minimum(self.table["y"].to_numpy(), 1e7).astype(int),
            (texts != "a").astype(int),
        ]
        firsts = [np.array([0, 3, 7]), np.array([0, 1, 5000, 10**6]), np.array([0, 1])]
        groups = [np.array([1, 0, 2]), np.array([0, 1, 2, 1]), np.array([0, 1])]
        self.sizes = (3, 3, 2)
        self.groups = [
            GroupsOfEntries.of(first, group, encoder.size)
            for first, group, encoder in zip(firsts, groups, self.encoders, strict=True)
        ]
        self.grouped = [
            group[np.searchsorted(first, own, side="right") - 1]
            for first, group, own in zip(firsts, groups, self.entries, strict=True)
        ]

    def plan(self, most: int) -> TablePlan:
        """All columns, pairs and triples, some of them sums."""
        wanted = [columns for count in (1, 2, 3) for columns in combinations(range(3), count)]
        return plan_tables(self.groups, self.sizes, wanted, cover_pairs(self.sizes, most))

    def reduce(self, function: Any, tasks: int, seed: int) -> pa.Table:
        """By so many tasks, each with some batches, which may have no rows."""
        cuts = np.sort(np.random.default_rng(seed).integers(0, self.rows + 1, 2 * tasks - 1))
        parts = [self.table.slice(first, beyond - first) for first, beyond in zip([0, *cuts], [*cuts, self.rows], strict=True)]
        made = [function(batch for part in parts[number::tasks] for batch in part.to_batches()) for number in range(tasks)]
        return pa.Table.from_batches([batch for task in made for batch in task], batches.PARTIAL)


@given(seed=st.integers(0, 2**32), tasks=st.integers(1, 7), most=st.sampled_from([4, 9, 18]), dense=st.booleans())
def test_counts_are_those_of_the_records_however_they_are_cut(seed: int, tasks: int, most: int, dense: bool) -> None:
    """Tallies of columns with few entries and with many, and tables of one, two and three columns."""
    records = Records(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "DENSE", 1 << 24 if dense else 5)
        patch.setattr(counting, "AT_ONCE", 7)
        patch.setattr(batches, "_MERGED", 2)
        tallies = unpack(records.reduce(partial(tally_batches, records.encoders), tasks, seed))
        plan = records.plan(most)
        _, counts = unpack(records.reduce(CountTables(records.encoders, plan), tasks, seed))[0]
    for place, entries in enumerate(records.entries):
        own = [part.tolist() for part in np.unique(entries, return_counts=True)]
        assert [part.tolist() for part in tallies[place]] == own
    for columns, table in zip(plan.wanted, plan.split(counts), strict=True):
        shape = [records.sizes[column] for column in columns]
        assert (table == count_together([records.grouped[column] for column in columns], shape)).all()


def test_pairs_of_many_columns_are_sums_of_fewer_tables() -> None:
    """45 pairs of ten groups each."""
    groups = [GroupsOfEntries.of(np.arange(10), np.arange(10), 10)] * 10
    pairs = list(combinations(range(10), 2))
    plan = plan_tables(groups, [10] * 10, pairs, cover_pairs([10] * 10))
    assert len(plan.counted) < 15
    assert all(any(set(pair) <= set(larger) for larger in plan.counted) for pair in pairs)
    assert plan_tables(groups, [10] * 10, pairs, ()).counted == tuple(pairs)
