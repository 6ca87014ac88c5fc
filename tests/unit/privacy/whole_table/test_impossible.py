"""What cannot occur, in the tables of pairs, in the model and in the pool."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import noise_stream
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table import Column, Impossible, Measured, TableBudget, make_design, measure_table, synthesise
from release_pipeline.privacy.whole_table.impossible import draw_possible, find_barred, find_met, is_anything_left
from release_pipeline.privacy.whole_table.rows import find_never, fit_model, hold_all, link_table, replace_tables

SECRET = b"n" * 32
YOUNG = Impossible({0: ((0, 14),), 1: ((2, 2), (3, 3))})  # of age, married or widowed
THREE = Impossible({0: ((65, 110),), 1: ((0, 0), (1, 1)), 2: ((500, 1000),)})
COLUMNS = (Column(110), Column(3, nominal=True), Column(1000), Column(5))


def draw_people(count: int = 3_000) -> list[IntArray]:
    """Ages, what goes with them, and pay that does; none meets a rule."""
    random = np.random.default_rng(8)
    age = random.integers(0, 111, count)
    status = np.where(age < 15, random.integers(0, 2, count), random.integers(0, 4, count))
    pay = np.clip(np.where(age < 15, 0, random.normal(400, 150, count)), 0, 1000).astype(np.int64)
    pay = np.where((age >= 65) & (status < 2), np.minimum(pay, 499), pay)
    return [age, status, pay, random.integers(0, 6, count)]


def measure(*rules: Impossible, epsilon: int = 4) -> Measured:
    """The noisy counts of these people."""
    people = draw_people()
    design = make_design(COLUMNS, len(people[0]), TableBudget(Fraction(epsilon)), rules)
    return measure_table(lambda place: people[place], design, lambda *purpose: noise_stream(SECRET, *purpose))


def test_tables_of_pairs_have_zeros_and_their_margins() -> None:
    """Exactly 0 where a rule about two columns says so; adding up to what columns hold as before, and no cell that is not barred
    is 0. A rule about three columns leaves no cell of a pair out."""
    measured = measure(YOUNG, THREE)
    never = find_never(measured)
    linked = link_table(measured, hold_all(measured), never)
    model = fit_model(measured, linked)
    assert model is not None
    for tables in (linked, replace_tables(linked, model, never)):
        for (one, other), link in tables.links.items():
            barred = find_barred(never, one, other)
            assert (barred is not None) == ((one, other) == (0, 1))
            assert (link.table[~barred if barred is not None else ...] > 0).all()
            if barred is not None:
                assert barred.any()
                assert (link.table[barred] == 0).all()
    np.testing.assert_allclose(linked.links[0, 1].table.sum(axis=1), linked.held[0], rtol=0.02, atol=3)
    np.testing.assert_allclose(linked.links[0, 1].table.sum(axis=0), linked.held[1], rtol=0.02, atol=3)
    without = measure()
    plain = link_table(without, hold_all(without), find_never(without))
    assert (plain.links[0, 1].table > 0).all()


def test_the_model_has_none_of_what_cannot_occur() -> None:
    """Of rules about columns that it looks at together: what it makes is possible, and without rules some of it is not."""
    measured = measure(YOUNG, THREE, epsilon=1)
    never = find_never(measured)
    linked = link_table(measured, hold_all(measured), never)
    plain = replace(measured, design=replace(measured.design, never=()))
    ruled, free = fit_model(measured, linked), fit_model(plain, linked)
    assert ruled is not None
    assert free is not None
    assert any({0, 1} <= set(clique) for clique in ruled.tree.cliques)
    barred = find_barred(never, 0, 1)
    assert ruled.table((0, 1))[barred].max() == 0
    assert free.table((0, 1))[barred].max() > 1
    assert not find_met(never[:1], ruled.sample(20_000, make_random(SECRET, "pool"))).any()


def test_pools_are_drawn_until_enough_is_left() -> None:
    """And are left as they are without rules."""
    never = [{0: np.array([True, True, True, False]), 1: np.array([True, False])}]
    random = np.random.default_rng(3)
    drawn: list[IntArray] = []

    def draw() -> IntArray:
        drawn.append(np.stack([random.integers(0, 4, 1_000), np.zeros(1_000, dtype=np.int64)]))
        return drawn[-1]

    kept = draw_possible(never, draw)
    assert 2 <= len(drawn) <= 4
    assert kept.shape[1] >= 500
    assert not find_met(never, kept).any()
    assert draw_possible([], draw) is drawn[-1]
    with pytest.raises(InvalidArgument, match="combination that cannot occur"):
        draw_possible(never, lambda: np.zeros((2, 50), dtype=np.int64))


def test_rows_follow_the_records_where_rules_are() -> None:
    """What is possible is about as often as it was: nobody is pushed out of the ages that a rule is about."""
    people, rows = draw_people(), synthesise(measure(YOUNG, THREE, epsilon=20), make_random(SECRET, "rows"))
    young = [(table[0] < 15).mean() for table in (people, rows)]
    assert abs(young[0] - young[1]) < 0.02
    for value in range(4):
        shares = [((table[0] >= 15) & (table[1] == value)).mean() for table in (people, rows)]
        assert abs(shares[0] - shares[1]) < 0.03
    assert not (rows[1][rows[0] < 15] > 1).any()
    assert not ((rows[0] >= 65) & (rows[1] < 2) & (rows[2] >= 500)).any()


def test_what_is_left_is_found() -> None:
    """By the kinds of entries that rules tell apart: an entry that meets no rule leaves room, and so does a reason for none."""
    every = [Impossible({0: ((value, value),), 1: ((other, other),)}) for value in range(2) for other in range(3)]
    widths, none = {0: 1, 1: 2}, {0: False, 1: False}
    assert not is_anything_left(every, widths, none)
    assert all(is_anything_left(every[:place] + every[place + 1 :], widths, none) for place in range(6))
    assert is_anything_left(every, widths, {0: False, 1: True})
    assert is_anything_left(every, {0: 2, 1: 2}, none)
    assert is_anything_left([], {}, {})
