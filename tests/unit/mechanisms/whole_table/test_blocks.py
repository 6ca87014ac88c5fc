"""Columns that are counted together: which they are, what they lose, and the tables of pairs that are sums of theirs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.by_value.noise_laws import LaplaceNoise
from release_pipeline.mechanisms.noise import NoiseStream, noise_stream
from release_pipeline.mechanisms.whole_table import Column, TableBudget, make_design, measure_table
from release_pipeline.mechanisms.whole_table.design import MOST_COLUMNS, SummedNoise, choose_blocks, find_homes, sum_block
from release_pipeline.mechanisms.whole_table.measure import CountedArrays, list_sizes
from tests.counting import count_together

SECRET = b"b" * 32
ROWS = 3000


def stream(*purpose: Any) -> NoiseStream:
    """A stream for each purpose."""
    return noise_stream(SECRET, *purpose)


def share(tables: int) -> LaplaceNoise:
    """The noise of so many tables of which each may lose its part of a small budget."""
    return LaplaceNoise(1000 * tables)


def choose(sizes: list[int]) -> list[tuple[int, ...]]:
    """The blocks, or the pairs that are counted one by one."""
    return choose_blocks(sizes, share) or list(combinations(range(len(sizes)), 2))


def judge(blocks: list[tuple[int, ...]], sizes: list[int]) -> float:
    """The geometric mean of the noise of pairs, in scales of a table that is alone, by its definition."""
    noise: list[float] = []
    for pair in combinations(range(len(sizes)), 2):
        of_pair = [block for block in blocks if set(pair) <= set(block)]
        noise.append(min(math.sqrt(math.prod(sizes[column] for column in block if column not in pair)) for block in of_pair))
    return len(blocks) * math.exp(sum(map(math.log, noise)) / len(noise))


@given(st.lists(st.integers(1, 20), min_size=2, max_size=12))
def test_every_pair_is_in_a_block_and_none_has_more_noise_than_pairs(sizes: list[int]) -> None:
    """Whatever the sizes are; and the same sizes give the same blocks."""
    blocks = choose(sizes)
    pairs = list(combinations(range(len(sizes)), 2))
    assert {pair for block in blocks for pair in combinations(block, 2)} == set(pairs)
    assert all(2 <= len(block) <= max(MOST_COLUMNS, 2) and list(block) == sorted(set(block)) for block in blocks)
    assert judge(blocks, sizes) <= (len(pairs) if max(map(len, blocks)) == 2 else 0.85 * len(pairs)) + 1e-9
    assert blocks == choose(sizes)
    homes = find_homes(blocks, sizes)
    assert list(homes) == pairs
    for pair, (block, terms) in homes.items():
        assert set(pair) <= set(block)
        assert terms == math.prod(sizes[column] for column in block if column not in pair)


def test_the_table_of_a_pair_is_what_counting_it_gives() -> None:
    """By brute force, for every pair of a block."""
    random = np.random.default_rng(3)
    grouped = [random.integers(0, size, 500).astype(np.uint16) for size in (3, 2, 4)]
    counts = count_together(grouped, (3, 2, 4))
    for place in product(range(3), range(2), range(4)):
        assert counts[place] == sum(all(own[row] == part for own, part in zip(grouped, place, strict=True)) for row in range(500))
    block = (1, 4, 6)
    for one, other in combinations(range(3), 2):
        summed = sum_block(counts, block, (block[one], block[other]))
        assert (summed == count_together([grouped[one], grouped[other]], summed.shape)).all()


COLUMNS = [
    *(Column(values - 1, nominal=True) for values in (2, 3, 2, 12, 10)),
    Column(200),
    Column(3),
    Column(2),
    Column(30),
]


def make_entries() -> list[IntArray]:
    """Records whose columns go together."""
    random = np.random.default_rng(8)
    score = random.normal(0, 1, ROWS)
    width = [column.width for column in COLUMNS]
    return [np.clip(np.rint((score + random.normal(0, 1, ROWS) + 2) / 4 * top), 0, top).astype(np.int64) for top in width]


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(7, 3), Fraction(50)])
def test_blocks_lose_no_more_than_pairs_would(epsilon: Fraction) -> None:
    """Exactly: with all that is lost before, no more than the budget; a scale that is one less would be too small."""
    measured = measure_table(CountedArrays(make_entries().__getitem__), make_design(COLUMNS, ROWS, TableBudget(epsilon)), stream)
    design = measured.design
    assert design.in_blocks
    assert 3 <= len(measured.blocks) < 36
    lost = sum((own.noise.loss for own in measured.blocks.values()), design.loss_of_columns)
    assert lost <= design.loss == epsilon
    [noise] = {own.noise for own in measured.blocks.values()}
    assert isinstance(noise, LaplaceNoise)
    assert noise.scale == 1 or design.loss_of_columns + len(measured.blocks) * Fraction(2, noise.scale - 1) > epsilon


def test_pairs_are_sums_of_blocks_and_have_less_noise() -> None:
    """Near to the exact counts by the law that they say; on average less far than pairs that are counted one by one."""
    entries = make_entries()
    off: dict[bool, list[float]] = {True: [], False: []}
    for number in range(20):
        for in_blocks in (True, False):
            design = replace(make_design(COLUMNS, ROWS, TableBudget(Fraction(1))), in_blocks=in_blocks)
            measured = measure_table(CountedArrays(entries.__getitem__), design, partial(stream, number))
            assert bool(measured.blocks) == in_blocks
            usual = float(np.mean([math.log(sums.deviation) for sums in measured.noise.values()]))
            assert not in_blocks or usual < math.log(0.9 * design.pair_deviation)
            for (one, other), counts in measured.pairs.items():
                grouped = [measured.groups[place][measured.cells[place].find(entries[place])] for place in (one, other)]
                exact = count_together([own.astype(np.uint16) for own in grouped], counts.shape)
                standard = (counts - exact) / measured.noise[one, other].deviation
                off[in_blocks].append(float((standard**2).mean()))
                if in_blocks:
                    block, terms = find_homes(list(measured.blocks), list_sizes(measured.groups))[one, other]
                    assert (counts == sum_block(measured.blocks[block].counts, block, (one, other))).all()
                    assert measured.noise[one, other] == SummedNoise(measured.blocks[block].noise, terms)
    for found in off.values():
        assert float(np.mean(found)) == pytest.approx(1.0, abs=0.12)


def test_blocks_have_noise_of_their_own() -> None:
    """Each its own stream: with one for two of them their difference would have none."""
    purposes: Counter[tuple[Any, ...]] = Counter()

    def note(*purpose: Any) -> NoiseStream:
        purposes[purpose] += 1
        return stream(*purpose)

    measured = measure_table(
        CountedArrays(make_entries().__getitem__), make_design(COLUMNS, ROWS, TableBudget(Fraction(1))), note
    )
    assert {purpose[1:] for purpose in purposes if purpose[0] == "block"} == set(measured.blocks)
    assert set(purposes.values()) == {1}


def test_by_rho_pairs_are_counted_one_by_one() -> None:
    """There is hardly anything to be had by rho."""
    design = make_design(COLUMNS, ROWS, TableBudget(Fraction(1, 50), by_rho=True))
    measured = measure_table(CountedArrays(make_entries().__getitem__), design, stream)
    assert not measured.blocks
    assert {pair: SummedNoise(law) for pair, law in measured.design.pairs.items()} == measured.noise
