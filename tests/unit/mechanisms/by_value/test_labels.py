"""Cells of records without a value."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value import ByValue, PureBudget, Stage
from release_pipeline.mechanisms.by_value.cells import Facts
from release_pipeline.mechanisms.by_value.fit import count_labels
from release_pipeline.mechanisms.by_value.noise_laws import LaplaceNoise
from release_pipeline.mechanisms.noise import noise_stream

SECRET = bytes(range(32))
GRID = Grid.declare((0, 1000), 1)
RECORDS, LABELS = 3000, 3


def declare(*, labels: int = LABELS, k: int = 1) -> ByValue:
    """A column with reasons for no value."""
    return ByValue(GRID, PureBudget(Fraction(1)), k=k, labels=labels)


def draw(shares: Sequence[float] = (0.7, 0.2, 0.1, 0.0), seed: int = 3) -> IntArray:
    """Grid units, and 1001, 1002, 1003 for the reasons, ascending."""
    numbers = np.random.default_rng(seed)
    kinds = numbers.choice(4, size=RECORDS, p=shares)
    units = numbers.gamma(2, 80, RECORDS).astype(np.int64).clip(0, 1000)
    return np.sort(np.where(kinds == 0, units, 1000 + kinds))


def measure(declared: ByValue, units: IntArray, name: str = "labels") -> list[Stage]:
    """Its noisy counts."""
    return declared.measure(Tally.of(units).count_within, len(units), noise_stream(SECRET, name))


def test_every_record_is_in_one_cell_of_every_stage() -> None:
    """Values and reasons together are all that there is: what a replaced record changes is two counts by one."""
    units = draw()
    for stage in measure(declare(), units):
        assert stage.edges[0] == 0
        assert stage.edges[-4:].tolist() == [1001, 1002, 1003, 1004]
        assert (np.diff(stage.edges) > 0).all()
        assert Tally.of(units).count_within(stage.edges).sum() == RECORDS


def test_as_many_records_lack_a_value_as_were_counted() -> None:
    """Within noise of the truth; the others have values that are as good as if nobody else were there."""
    units, declared = draw(), declare()
    released = declared.release(measure(declared, units), RECORDS).at(np.arange(RECORDS))
    found, true = (np.bincount(np.clip(of - 1000, 0, None), minlength=4) for of in (released.astype(int), units))
    assert np.abs(found - true).max() <= 40
    assert (np.diff(released) >= 0).all()
    values, own = units[units <= 1000], released[released <= 1000]
    alone = declare(labels=0)
    as_good = alone.release(measure(alone, values), len(values)).at(np.arange(len(values)))
    both = min(len(values), len(own))
    error, other = (np.mean((one[:both] - values[:both]) ** 2) for one in (own, as_good))
    assert error < 2 * other + 20


@given(
    records=st.integers(1, 50),
    counted=st.lists(st.lists(st.integers(-60, 90), min_size=2, max_size=2), min_size=1, max_size=3),
    scales=st.lists(st.integers(1, 20), min_size=3, max_size=3),
)
def test_the_numbers_of_reasons_are_possible(records: int, counted: list[list[int]], scales: list[int]) -> None:
    """Never below none, together never more than there are records; and the mean of what was counted, where that is possible."""
    facts = Facts(5, records, labels=2)
    stages = [
        Stage(np.array([0, 6, 7, 8]), np.array([0, *counts]), LaplaceNoise(scale))
        for counts, scale in zip(counted, scales, strict=False)
    ]
    found = count_labels(stages, facts)
    assert (found >= 0).all()
    assert found.sum() <= records
    weights = [1 / stage.noise.spread**2 for stage in stages]
    means = np.average([counts for counts, _ in zip(counted, scales, strict=False)], axis=0, weights=weights)
    if (means >= 0).all() and means.sum() <= records - 1:
        assert np.abs(found - means).max() <= 0.5 + 1e-9
