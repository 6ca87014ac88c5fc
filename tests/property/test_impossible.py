"""Combinations that cannot occur: whatever the table and the rules are, no row has one, and what is measured is as it was."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.noise import NoiseStream, noise_stream
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.mechanisms.whole_table import (
    Column,
    Design,
    Impossible,
    TableBudget,
    make_design,
    measure_table,
    synthesise,
)
from release_pipeline.mechanisms.whole_table.design import MOST_GROUPS
from release_pipeline.mechanisms.whole_table.impossible import is_anything_left
from release_pipeline.mechanisms.whole_table.measure import CountedArrays

SECRET = b"z" * 32
TRIES = 12
Generator = np.random.Generator


def streams(seed: int) -> Any:
    """A stream for each purpose."""

    def stream(*purpose: Any) -> NoiseStream:
        return noise_stream(SECRET, str(seed), *purpose)

    return stream


def draw_column(random: Generator) -> Column:
    """One with an order that is wide or not, or without; some with reasons to have no value."""
    labels = int(random.integers(0, 3))
    match int(random.integers(0, 3)):
        case 0:
            return Column(int(random.integers(65, 5_000)), labels=labels, atoms=(7,) if random.random() < 0.5 else ())
        case 1:
            return Column(int(random.integers(1, 30)), labels=labels)
        case _:
            return Column(int(random.integers(1, 15)), nominal=True, labels=labels)


def draw_rule(random: Generator, columns: list[Column], about: int) -> Impossible:
    """A rule about so many columns, none of which it names wholly."""
    entries: dict[int, tuple[tuple[int, int], ...]] = {}
    for place in random.permutation(len(columns))[:about].tolist():
        width = columns[place].width
        if columns[place].nominal:
            values = random.permutation(width + 1)[: int(random.integers(1, width + 1))]
            entries[place] = tuple((value, value) for value in sorted(values.tolist()))
        else:
            first, last = sorted(random.integers(0, width + 1, 2).tolist())
            entries[place] = ((first, last if (first, last) != (0, width) else width - 1),)
    return Impossible(entries)


def draw_table(random: Generator, columns: list[Column], rules: list[Impossible], records: int) -> list[IntArray]:
    """Records with heaps and links, those out that meet a rule."""
    base = random.random(4 * records)
    table = []
    for column in columns:
        mixed = np.clip(base + random.normal(0, 0.3, len(base)), 0, 1)
        own = np.floor(mixed * (column.width + 1)).clip(0, column.width).astype(np.int64)
        own[random.random(len(base)) < 0.2] = 0
        if column.labels:
            lacking = random.random(len(base)) < 0.1
            own[lacking] = column.width + 1 + random.integers(0, column.labels, int(lacking.sum()))
        table.append(own)
    kept = ~meets_any(rules, table)
    return [own[kept][:records] for own in table]


def meets_any(rules: list[Impossible], table: list[IntArray]) -> npt.NDArray[np.bool_]:
    """Which rows meet a rule, said plainly, entry by entry."""
    return np.array(
        [
            any(
                all(any(first <= row[place] <= last for first, last in ends) for place, ends in rule.entries.items())
                for rule in rules
            )
            for row in zip(*(own.tolist() for own in table), strict=True)
        ],
        dtype=np.bool_,
    )


def draw_case(seed: int) -> tuple[list[Column], list[Impossible], list[IntArray]]:
    """Columns, rules that leave something, and records that meet none."""
    random = np.random.default_rng(seed)
    while True:
        columns = [draw_column(random) for _ in range(int(random.integers(3, 6)))]
        rules = [draw_rule(random, columns, int(random.integers(2, 4))) for _ in range(int(random.integers(1, 4)))]
        widths = {place: column.width for place, column in enumerate(columns)}
        if not is_anything_left(rules, widths, {place: column.labels > 0 for place, column in enumerate(columns)}):
            continue
        table = draw_table(random, columns, rules, int(random.integers(150, 900)))
        if len(table[0]) > 100:
            return columns, rules, table


def design_of(columns: list[Column], records: int, rules: list[Impossible], seed: int) -> Design:
    """Epsilon 2 or 20, or rho."""
    return make_design(columns, records, TableBudget(Fraction((2, 20)[seed % 2]), by_rho=seed % 3 == 0), rules)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(TRIES))
def test_no_row_has_a_combination_that_cannot_occur(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules about two columns and about three, of every kind; cells and groups lie on one side of every end; a pool that is small
    changes nothing of it."""
    monkeypatch.setattr("release_pipeline.mechanisms.whole_table.pool.LEAST_POOL", 4_000)
    columns, rules, table = draw_case(seed)
    design = design_of(columns, len(table[0]), rules, seed)
    measured = measure_table(CountedArrays(table.__getitem__), design, streams(seed))
    for place, (cells, groups) in enumerate(zip(measured.cells, measured.groups, strict=True)):
        entries = np.arange(columns[place].width + 1)
        for rule in rules:
            if place in rule.entries:
                met = rule.meet(place, entries)
                group = groups[cells.find(entries)]
                assert all(len(np.unique(met[group == one])) == 1 for one in np.unique(group))
        assert groups.max() + 1 <= MOST_GROUPS + max(columns[place].labels, 1) + 2 * len(rules) + 2**3
    rows = synthesise(measured, make_random(SECRET, "rows", seed))
    assert len(rows[0]) == len(table[0])
    assert not meets_any(rules, rows).any()


@pytest.mark.parametrize("seed", range(TRIES))
def test_rules_change_no_noise_and_no_loss(seed: int) -> None:
    """The design loses what it lost; columns that no rule is about have the cells, counts and groups that they had, and so do the
    tables of their pairs, counted one by one: what is counted together follows from the groups of all columns."""
    columns, rules, table = draw_case(seed)
    rules = [Impossible({place: ends for place, ends in rule.entries.items() if place < 2}) for rule in rules]
    records = len(table[0])
    plain, ruled = (design_of(columns, records, known, seed) for known in ([], rules))
    assert ruled.loss == plain.loss
    assert (ruled.margins, ruled.pairs, ruled.cuts) == (plain.margins, plain.pairs, plain.cuts)
    one_by_one = (replace(design, in_blocks=False) for design in (plain, ruled))
    before, after = (measure_table(CountedArrays(table.__getitem__), design, streams(seed)) for design in one_by_one)
    for place in range(2, len(columns)):
        assert (before.margins[place] == after.margins[place]).all()
        assert (before.groups[place] == after.groups[place]).all()
    for pair in before.pairs:
        if min(pair) >= 2:
            assert (before.pairs[pair] == after.pairs[pair]).all()
