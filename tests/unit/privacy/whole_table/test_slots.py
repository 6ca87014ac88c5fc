"""Empty slots of households: apart from all others in what is measured, and in rows empty in every column."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table import Column, Measured, TableBudget, make_design, measure_table, synthesise
from release_pipeline.privacy.whole_table.slots import count_empty, leave_empty

COLUMNS = (
    Column(2, nominal=True, labels=2, in_slots=True),
    Column(9, labels=1, in_slots=True),
    Column(5_000, labels=3, in_slots=True),
)
SLOTS = 3_000


def measure(people: int, epsilon: int = 1_000) -> Measured:
    """A table in which so many slots are filled."""
    draw = np.random.default_rng(people)
    entries: list[IntArray] = []
    for column in COLUMNS:
        own = draw.integers(0, column.width + column.labels, SLOTS)
        entries.append(np.where(np.arange(SLOTS) < people, own, column.width + column.labels))

    def stream(*purpose: Context) -> NoiseStream:
        return noise_stream(b"s" * 32, *purpose)

    return measure_table(lambda place: entries[place], make_design(COLUMNS, SLOTS, TableBudget(Fraction(epsilon))), stream)


def test_rows_are_empty_everywhere_or_nowhere() -> None:
    """About as many as were counted; none or all of them, too. What is left is a table of the others."""
    for people in (0, 1, 1_700, SLOTS):
        measured = measure(people)
        empty = count_empty(measured)
        assert abs(empty - (SLOTS - people)) <= 2
        rows = synthesise(measured, make_random(b"r" * 32))
        is_empty = np.array([own == column.width + column.labels for own, column in zip(rows, COLUMNS, strict=True)])
        assert is_empty.shape == (3, SLOTS)
        assert (is_empty.all(axis=0) == is_empty.any(axis=0)).all()
        assert int(is_empty[0].sum()) == empty
        left = leave_empty(measured, empty)
        assert left.design.records == SLOTS - empty
        assert all(len(margin) == cells.count for margin, cells in zip(left.margins, left.cells, strict=True))
        for (one, other), counts in left.pairs.items():
            assert counts.shape == (int(left.groups[one].max()) + 1, int(left.groups[other].max()) + 1)
