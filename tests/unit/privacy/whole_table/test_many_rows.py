"""Rows of more than a block: how often each record of the pool is one, dealt to blocks, and cells handed out over them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.privacy import arrays
from release_pipeline.privacy.arrays import IN_MEMORY
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table import Column, Impossible, Measured, TableBudget, expected, make_design, make_rows
from release_pipeline.privacy.whole_table import measure as measuring
from release_pipeline.privacy.whole_table import rows as making
from release_pipeline.privacy.whole_table.cells import Cells
from release_pipeline.privacy.whole_table.exchange import Counted, Listed, exchange_rows
from release_pipeline.privacy.whole_table.placing import Placing
from release_pipeline.privacy.whole_table.rows import find_never, hold_all, link_table, synthesise

COLUMNS = (Column(3, nominal=True), Column(400), Column(60, labels=1), Column(9))
NEVER = (Impossible({0: ((2, 3),), 3: ((5, 9),)}),)
RECORDS = 9_000
KEY = b"m" * 32


def stream(*purpose: Context) -> NoiseStream:
    """The noise of counts."""
    return noise_stream(KEY, *purpose)


def make_entries() -> list[IntArray]:
    """Columns that go together; what cannot occur does not."""
    draw = np.random.default_rng(3)
    score = draw.standard_normal(RECORDS)
    own = np.clip(np.round(4.5 + 2 * score), 0, 9)
    kind = np.where(own < 5, draw.integers(0, 4, RECORDS), draw.integers(0, 2, RECORDS))
    amount = np.clip(np.round(np.exp(4 + score)), 0, 400)
    some = np.where(draw.random(RECORDS) < 0.1, 61, np.clip(np.round(30 + 10 * score), 0, 60))
    return [one.astype(np.int64) for one in (kind, amount, some, own)]


def measure(never: tuple[Impossible, ...] = ()) -> Measured:
    """The noisy counts of these."""
    design = make_design(COLUMNS, RECORDS, TableBudget(Fraction(20)), never=never)
    return measuring.measure_table(make_entries().__getitem__, design, stream)


@pytest.mark.parametrize("never", [(), NEVER], ids=["anything", "some combinations never"])
def test_blocks_are_as_good_as_one(never: tuple[Impossible, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Just as many rows; cells of every column as often as in one, but for rounding; pairs as near to the counts; and no row that
    cannot occur."""
    measured = measure(never)
    whole = synthesise(measured, make_random(KEY, "rows"))
    monkeypatch.setattr(making, "BLOCK", 1_000)
    blocks = list(make_rows(measured, make_random(KEY, "rows")))
    rows = [np.concatenate(columns) for columns in zip(*blocks, strict=True)]
    assert len(blocks) == 9
    assert {len(one) for one in rows} == {RECORDS}
    assert max(abs(len(block[0]) - 1_000) for block in blocks) < 200
    off: list[float] = []
    for made in (whole, rows):
        found = [groups[cells.find(own)] for groups, cells, own in zip(measured.groups, measured.cells, made, strict=True)]
        off.append(
            float(
                sum(
                    np.abs(np.bincount(found[one] * noisy.shape[1] + found[other], minlength=noisy.size) - noisy.ravel()).sum()
                    for (one, other), noisy in measured.pairs.items()
                )
            )
        )
    assert off[1] <= 1.1 * off[0] + 20
    for place, held in enumerate(hold_all(measured)):
        cells, groups = measured.cells[place], measured.groups[place]
        made = np.bincount(cells.find(rows[place]), minlength=cells.count)
        in_group = np.bincount(groups, made, minlength=int(groups.max()) + 1)[groups]
        share = held * in_group / np.maximum(np.bincount(groups, held)[groups], 1e-9)
        assert (np.abs(made - share) <= 1 + 1e-6).all()  # of all blocks together: its share, rounded up or down
    if never:
        assert not ((rows[0] >= 2) & (rows[3] >= 5)).any()
    first = [np.bincount(own[:1_000], minlength=3) for own in (rows[0], whole[0])]
    assert np.abs(first[0] - first[1]).max() < 5 * np.sqrt(1_000)  # a block is as the whole


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 7), st.integers(0, 9))
def test_every_record_is_dealt_as_often_as_it_is_a_row(often: list[int], blocks: int, seed: int) -> None:
    """In each block as often as in the others, but for one."""
    pool = np.arange(len(often))[np.newaxis]
    dealt = [
        np.bincount(block[0], minlength=len(often))
        for block in Counted(pool, np.array(often)).deal(blocks, make_random(KEY, "deal", seed))
    ]
    assert len(dealt) == blocks
    assert (np.sum(dealt, axis=0) == often).all()
    assert (np.abs(np.array(dealt) - np.array(often) / blocks) <= 1).all()


@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0, 50)), min_size=1, max_size=12),
    st.lists(st.integers(0, 60), min_size=1, max_size=6),
    st.integers(0, 9),
)
def test_cells_are_handed_out_over_blocks_as_in_one(cells: list[tuple[int, float]], blocks: list[int], seed: int) -> None:
    """Of each group every cell its share of all rows, rounded; and no block is given other than it asked for."""
    groups = np.unique(np.array([group for group, _ in cells]), return_inverse=True)[1]
    held = np.array([many for _, many in cells])
    column, random = Column(len(cells) - 1, nominal=True), make_random(KEY, "cells", seed)
    chosen = [np.random.default_rng(number).integers(0, groups.max() + 1, size) for number, size in enumerate(blocks)]
    total = np.bincount(np.concatenate(chosen), minlength=int(groups.max()) + 1)
    placing = Placing.of(Cells.narrow(column), held, groups, total)
    made = np.zeros(len(held), dtype=np.int64)
    for block in chosen:
        entries = placing.place(block, None, random)
        assert (groups[entries] == block).all()
        made += np.bincount(entries, minlength=len(held))
    for group in range(int(groups.max()) + 1):
        own = np.flatnonzero(groups == group)
        wanted = held[own] if held[own].sum() > 0 else np.ones(len(own))
        assert made[own].sum() == total[group]
        assert (np.abs(made[own] - wanted / wanted.sum() * total[group]) <= 1 + 1e-6).all()


def test_rows_that_are_counted_are_exchanged_as_others_are() -> None:
    """From the same sample: nearer to the tables, by about as much; none is there less than never, and no more in all."""
    measured = measure()
    linked = link_table(measured, hold_all(measured), find_never(measured))
    draw = np.random.default_rng(8)
    pool = np.array([draw.integers(0, len(held), 3_000) for held in linked.held])
    often = draw.multinomial(RECORDS, np.full(3_000, 1 / 3_000))
    counted, listed = Counted(pool, often.copy()), Listed(pool[:, np.repeat(np.arange(3_000), often)])

    def off(rows: Counted | Listed) -> float:
        some, times = (np.concatenate(parts, axis=-1) for parts in zip(*rows.parts(500), strict=True))
        return sum(
            float(
                np.square(
                    np.bincount(some[one] * link.table.shape[1] + some[other], times, link.table.size) - link.table.ravel()
                ).sum()
            )
            for (one, other), link in linked.links.items()
        )

    before = off(counted)
    assert off(listed) == before
    for rows in (counted, listed):
        exchange_rows(rows, pool, np.ones(3_000), linked, make_random(KEY, "exchange"))
        assert rows.count == RECORDS
    assert counted.often.min() >= 0
    assert max(off(counted), off(listed)) < 0.8 * before
    assert 0.8 < off(counted) / off(listed) < 1.25
    for column in range(len(COLUMNS)):
        assert (counted.count_groups(column) == np.bincount(pool[column], counted.often)).all()


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what is measured nor what is expected of a column."""

    def look() -> tuple[Measured, list[IntArray]]:
        measured = measure()
        found = [
            expected.expect_column(
                np.sort(own),
                measured.design,
                place,
                lambda *purpose, at=place: stream("expect", at, *purpose),
                make_random(KEY, place),
                IN_MEMORY,
            )
            for place, own in enumerate(make_entries())
        ]
        return measured, found

    whole, of_whole = look()
    for module in (measuring, expected):
        monkeypatch.setattr(module, "SUMMED", 777)
    monkeypatch.setattr(arrays, "PIECE", 100)
    again, of_pieces = look()
    for one, other in zip((*whole.margins, *of_whole), (*again.margins, *of_pieces), strict=True):
        assert (one == other).all()
    for block, table in whole.tables.items():
        assert (table.counts == again.tables[block].counts).all()
