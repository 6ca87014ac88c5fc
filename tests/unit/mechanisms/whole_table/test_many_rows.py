"""Rows of more than a block: how often each record of the pool is one, dealt to blocks, and cells handed out over them."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.noise import Context, NoiseStream, noise_stream
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.mechanisms.whole_table import Column, Measured, TableBudget, make_design
from release_pipeline.mechanisms.whole_table import measure as measuring
from release_pipeline.mechanisms.whole_table import rows as making
from release_pipeline.mechanisms.whole_table.measure import CountedArrays
from release_pipeline.mechanisms.whole_table.rows import hold_all, plan_rows, synthesise

COLUMNS = (Column(3, nominal=True), Column(400), Column(60, labels=1), Column(9))
RECORDS = 9_000
KEY = b"m" * 32


def stream(*purpose: Context) -> NoiseStream:
    """The noise of counts."""
    return noise_stream(KEY, *purpose)


def make_entries() -> list[IntArray]:
    """Columns that go together."""
    draw = np.random.default_rng(3)
    score = draw.standard_normal(RECORDS)
    own = np.clip(np.round(4.5 + 2 * score), 0, 9)
    kind = np.where(own < 5, draw.integers(0, 4, RECORDS), draw.integers(0, 2, RECORDS))
    amount = np.clip(np.round(np.exp(4 + score)), 0, 400)
    some = np.where(draw.random(RECORDS) < 0.1, 61, np.clip(np.round(30 + 10 * score), 0, 60))
    return [one.astype(np.int64) for one in (kind, amount, some, own)]


def measure() -> Measured:
    """The noisy counts of these."""
    design = make_design(COLUMNS, RECORDS, TableBudget(Fraction(20)))
    return measuring.measure_table(CountedArrays(make_entries().__getitem__), design, stream)


def test_blocks_are_as_good_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Just as many rows; cells of every column as often as in one, but for rounding; pairs as near to the counts."""
    measured = measure()
    whole = synthesise(measured, make_random(KEY, "rows"))
    monkeypatch.setattr(making, "BLOCK", 1_000)
    plan = plan_rows(measured, make_random(KEY, "rows"))
    blocks = [plan.make_block(number) for number in range(plan.blocks)]
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
    first = [np.bincount(own[:1_000], minlength=3) for own in (rows[0], whole[0])]
    assert np.abs(first[0] - first[1]).max() < 5 * np.sqrt(1_000)  # a block is as the whole


def test_a_block_is_a_function_of_the_plan_and_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made again, alone and in another order it has the same rows; all together come in their order, and none is left out."""
    monkeypatch.setattr(making, "BLOCK", 2_000)
    plan = plan_rows(measure(), make_random(KEY, "rows"))
    first = [plan.make_block(number) for number in range(plan.blocks)]
    again = pickle.loads(pickle.dumps(plan))  # noqa: S301  as another process would have it
    for number in reversed(range(plan.blocks)):
        assert [own.tolist() for own in again.make_block(number)] == [own.tolist() for own in first[number]]
    together = plan.make_blocks()
    assert [[own.tolist() for own in block] for block in together] == [[own.tolist() for own in block] for block in first]
    assert sum(len(block[0]) for block in first) == RECORDS
