"""`dp-cdf` end to end on numbers: what is measured, what is made of it, and that nothing but noisy counts goes into it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value.cells import Facts, Stage
from release_pipeline.mechanisms.by_value.fit import Quantiles, release_values
from release_pipeline.mechanisms.by_value.mechanism import estimate, measure, next_stage
from release_pipeline.mechanisms.by_value.noise_laws import LaplaceNoise, PureBudget
from release_pipeline.mechanisms.clusters.rank import cut_ranks
from release_pipeline.mechanisms.noise import noise_stream

SECRET = bytes(range(32))
N = 4000


def incomes(zeros: float = 0.6, records: int = N) -> IntArray:
    """Many zeros and a long tail, ascending; always the same."""
    above = np.rint(np.exp(np.linspace(4, 9, records - round(zeros * records)))).astype(np.int64)
    return np.concatenate([np.zeros(records - len(above), dtype=np.int64), above])


def counter(ordered: IntArray) -> Callable[[IntArray], IntArray]:
    """What sees the data."""
    return Tally.of(ordered).count_within


def stages_of(ordered: IntArray, facts: Facts, epsilon: Fraction = Fraction(1), purpose: str = "") -> list[Stage]:
    """Noisy counts."""
    return measure(counter(ordered), facts, PureBudget(epsilon), noise_stream(SECRET, purpose))


def released(stages: list[Stage], facts: Facts, k: int = 1) -> IntArray:
    """The values that ranks are given."""
    found = release_values(Quantiles.of(estimate(stages, facts)), facts.records, k, facts.atoms)
    return found.at(cut_ranks(facts.records, k)[0])


def test_noise_has_the_scale_that_is_charged() -> None:
    """Each stage adds the noise that it says to the true counts of its cells: no other draws, no rounding."""
    facts, ordered = Facts(20_000, N, atoms=(0,)), incomes()
    stages = stages_of(ordered, facts)
    stream = noise_stream(SECRET, "")
    for stage in stages:
        assert isinstance(stage.noise, LaplaceNoise)
        noise = stage.noise.draw(len(stage.counts), stream)
        assert stage.counts.tolist() == (counter(ordered)(stage.edges) + noise).tolist()
    assert sum(stage.noise.loss for stage in stages) <= 1


def test_cells_and_estimate_follow_from_noisy_counts_alone() -> None:
    """Whoever has them and the declared facts finds every cell, and the same masses."""
    facts = Facts(20_000, N, atoms=(0,))
    stages = stages_of(incomes(), facts)
    for number, stage in enumerate(stages):
        following = next_stage(stages[:number], facts, PureBudget(Fraction(1)))
        assert following is not None
        assert following[0].tolist() == stage.edges.tolist()
        assert following[1] == stage.noise
    assert next_stage(stages, facts, PureBudget(Fraction(1))) is None
    assert estimate(stages, facts).share.tolist() == estimate(list(stages), facts).share.tolist()


@pytest.mark.parametrize("zeros", [0.6, 0.93])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_the_share_of_zeros_is_kept(zeros: float, epsilon: Fraction) -> None:
    """Within two points, and what is above 0 stays above."""
    facts, ordered = Facts(20_000, N, atoms=(0,)), incomes(zeros)
    values = released(stages_of(ordered, facts, epsilon), facts)
    assert abs((values == 0).mean() - zeros) < 0.02
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("width", [1, 2, 3, 2**52])
@pytest.mark.parametrize("records", [1, 2, 50])
def test_the_narrowest_and_the_widest_domains_work(width: int, records: int) -> None:
    """And tables of one record: there is little to say, and it is inside the domain."""
    facts = Facts(width, records)
    ordered = np.linspace(0, width, records).astype(np.int64)
    values = released(stages_of(ordered, facts), facts)
    assert values.min() >= 0
    assert values.max() <= width
