"""What `dp-cdf` loses, by trying everything: all tables of three records on 0..4, all neighbours, all noisy counts that decide on
cells, in exact fractions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from release_pipeline.mechanisms.by_value.cells import Facts, Stage
from release_pipeline.mechanisms.by_value.mechanism import next_stage
from release_pipeline.mechanisms.by_value.noise_laws import LaplaceNoise, PureBudget

UNITS, RECORDS = 5, 3
FACTS = Facts(UNITS - 1, RECORDS)
SEEN = range(-1, 5)  # noisy counts that are tried: beyond them cells follow from the same numbers, larger
Table = tuple[int, ...]
Next = Callable[
    [Table, Table], tuple[Table, int]
]  # edges and scale of the second stage, by noisy counts; and true ones, of a fault
INFINITE = Fraction(10**9)
TABLES = list(itertools.combinations_with_replacement(range(UNITS), RECORDS))


def count(table: Table, edges: tuple[int, ...]) -> tuple[int, ...]:
    """How many records are in each cell, by looking."""
    return tuple(sum(low <= value < high for value in table) for low, high in itertools.pairwise(edges))


def neighbours(table: Table) -> Iterator[Table]:
    """Every table with one record replaced."""
    for place, value in itertools.product(range(RECORDS), range(UNITS)):
        yield tuple(sorted((*table[:place], value, *table[place + 1 :])))


def worst_loss(first: tuple[int, ...], scale: int, choose: Next) -> Fraction:
    """The largest log ratio of the probabilities of any outcome, over all tables and neighbours. Log P[y] - log P'[y] is the
    sum of (|y - h'| - |y - h|) / t; in the second stage it is largest at y = h. Cells that differ tell the tables apart."""
    found = Fraction(0)
    for table in TABLES:
        for other in set(neighbours(table)):
            mine, theirs = count(table, first), count(other, first)
            for noisy in itertools.product(SEEN, repeat=len(mine)):
                lost = Fraction(sum(abs(y - b) - abs(y - a) for y, a, b in zip(noisy, mine, theirs, strict=True)), scale)
                edges, then = choose(noisy, mine)
                if choose(noisy, theirs) != (edges, then):
                    return INFINITE
                moved = sum(abs(a - b) for a, b in zip(count(table, edges), count(other, edges), strict=True))
                found = max(found, lost + Fraction(moved, then))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "facts"),
    [(Fraction(1), FACTS), (Fraction(3), FACTS), (Fraction(3), Facts(UNITS - 2, RECORDS, labels=1))],
    ids=["1", "3", "3, one may have no value"],
)
def test_no_outcome_loses_more_than_the_stages_say(epsilon: Fraction, facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the worst loses just that: cells that follow from noisy counts cost nothing, and no stage is charged for nothing. Three
    records would never be worth a finer cell: here they are. Nor does it cost more where a record may have no value: the last
    number stands for that."""
    monkeypatch.setattr("release_pipeline.mechanisms.by_value.mechanism.PER_NOISE", 9.0)
    monkeypatch.setattr("release_pipeline.mechanisms.by_value.mechanism.LEAST_CELL", 0.5)
    monkeypatch.setattr("release_pipeline.mechanisms.by_value.mechanism.CONCENTRATED", 1.0)
    budget = PureBudget(epsilon)
    first = next_stage([], facts, budget)
    assert first is not None
    edges, noise = first
    assert isinstance(noise, LaplaceNoise)

    @cache
    def of_noisy(noisy: Table) -> tuple[Table, int]:
        stages = [Stage(edges, np.array(noisy), noise)]
        second = next_stage(stages, facts, budget)
        assert second is not None
        assert isinstance(second[1], LaplaceNoise)
        assert (
            next_stage([*stages, Stage(second[0], np.zeros(len(second[0]) - 1, dtype=np.int64), second[1])], facts, budget)
            is None
        )
        return tuple(second[0].tolist()), second[1].scale

    worst = worst_loss(tuple(edges.tolist()), noise.scale, lambda noisy, _: of_noisy(noisy))
    kinds = {of_noisy(noisy)[0] for noisy in itertools.product(SEEN, repeat=len(edges) - 1)}
    assert len(kinds) > 1, "cells that never differ show nothing"
    assert worst == Fraction(2, noise.scale) + Fraction(2, of_noisy((1, 1, 1, 0))[1])
    assert worst <= epsilon


@pytest.mark.parametrize("fault", ["cells by true counts", "the noise of the first stage twice"])
def test_the_search_finds_faults(fault: str) -> None:
    """Cells that the true counts choose; a stage whose loss nobody added."""

    def choose(noisy: Table, true: Table) -> tuple[Table, int]:
        by = true if fault == "cells by true counts" else noisy
        return ((0, 1, 2, 3, 4, 5), 3) if by[2] > 1 else ((0, 1, 2, 3, 5), 3)

    assert worst_loss((0, 1, 2, 5), 6 if fault == "cells by true counts" else 3, choose) > 1
