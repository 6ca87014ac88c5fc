"""`dp-cdf` end to end on numbers: what is measured, what is made of it, and that nothing but noisy counts goes into it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.by_value.facts import Facts, Stage
from release_pipeline.privacy.by_value.mechanism import estimate, measure, next_stage
from release_pipeline.privacy.by_value.noise_laws import LaplaceNoise, PureBudget
from release_pipeline.privacy.by_value.quantiles import Quantiles, release_values
from release_pipeline.privacy.clusters import count_ordered
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.methods import mask_column
from release_pipeline.privacy.noise import SECRET_BYTES, noise_stream

SECRET = bytes(range(32))
N = 4000


def incomes(zeros: float = 0.6, records: int = N) -> IntArray:
    """Many zeros and a long tail, ascending; always the same."""
    above = np.rint(np.exp(np.linspace(4, 9, records - round(zeros * records)))).astype(np.int64)
    return np.concatenate([np.zeros(records - len(above), dtype=np.int64), above])


def counter(ordered: IntArray) -> Callable[[IntArray], IntArray]:
    """What sees the data."""
    return lambda edges: count_ordered(ordered, edges)


def stages_of(ordered: IntArray, facts: Facts, epsilon: Fraction = Fraction(1), purpose: str = "") -> list[Stage]:
    """Noisy counts."""
    return measure(counter(ordered), facts, PureBudget(epsilon), noise_stream(SECRET, purpose))


def released(stages: list[Stage], facts: Facts, k: int = 1) -> IntArray:
    """The values that ranks are given."""
    return release_values(Quantiles.of(estimate(stages, facts)), facts.records, k, facts.atoms)


def test_noise_has_the_scale_that_is_charged() -> None:
    """Each stage adds the noise that it says to the true counts of its cells: no other draws, no rounding."""
    facts, ordered = Facts(20_000, N, atoms=(0,)), incomes()
    stages = stages_of(ordered, facts)
    stream = noise_stream(SECRET, "")
    for stage in stages:
        assert isinstance(stage.noise, LaplaceNoise)
        noise = stage.noise.draw(len(stage.counts), stream)
        assert stage.counts.tolist() == (count_ordered(ordered, stage.edges) + noise).tolist()
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


@pytest.mark.parametrize("zeros", [0.6, 0.93])
def test_of_ten_thousand_records_the_share_of_zeros_is_off_by_less_than_a_point(zeros: float) -> None:
    """At epsilon 1/2, with noise of several secrets."""
    facts, ordered = Facts(20_000, 10_000), incomes(zeros, 10_000)
    for purpose in "abcdefgh":
        values = released(stages_of(ordered, facts, Fraction(1, 2), purpose), facts)
        assert abs((values == 0).mean() - zeros) < 0.01


def test_most_records_in_one_cell_are_looked_at_closer() -> None:
    """A column far from its centre, such as a density, has three stages."""
    spread = np.sort(np.random.default_rng(1).normal(8000, 30, N)).astype(np.int64)
    facts = Facts(12_000, N)
    stages = stages_of(spread, facts)
    assert len(stages) == 3
    assert sum(stage.noise.loss for stage in stages) <= 1
    assert len(stages_of(incomes(), Facts(20_000, N))) == 2
    error = ((released(stages, facts) - spread) ** 2).mean() / spread.var()
    assert error < 0.1


def test_values_below_a_centre_are_found_as_well_as_above() -> None:
    """Gains and losses, mirrored: the same errors up to noise."""
    gains = np.sort(np.rint(np.random.default_rng(2).standard_t(3, N) * 300).astype(np.int64).clip(-10_000, 10_000))
    errors: list[float] = []
    for column in (gains + 10_000, np.sort(10_000 - gains)):
        facts = Facts(20_000, N, centre=10_000)
        errors.append(float(((released(stages_of(column, facts), facts) - column) ** 2).mean() / column.var()))
    assert max(errors) < 0.1


def test_an_atom_is_found_where_it_is_declared() -> None:
    """Many records at one number in the middle of others: as many are released there."""
    rest = np.random.default_rng(3).integers(0, 1000, N // 2)
    ordered = np.sort(np.concatenate([rest, np.full(N - N // 2, 365)]))
    facts = Facts(1000, N, atoms=(365,))
    values = released(stages_of(ordered, facts), facts)
    assert abs((values == 365).mean() - 0.5) < 0.02
    ages = released(stages_of(ordered, facts), facts, k=5)
    assert abs((ages == 365).mean() - 0.5) < 0.02


def test_a_false_record_far_out_is_not_believed() -> None:
    """In a domain a thousand times as wide as the data nothing is released out there, nor is a variance made up."""
    ordered = np.sort(np.random.default_rng(4).integers(0, 100, N))
    facts = Facts(100_000, N)
    for purpose in "abcdefgh":
        values = released(stages_of(ordered, facts, Fraction(1, 5), purpose), facts)
        assert values.max() < 300


@pytest.mark.parametrize("width", [1, 2, 3, 2**52])
@pytest.mark.parametrize("records", [1, 2, 50])
def test_the_narrowest_and_the_widest_domains_work(width: int, records: int) -> None:
    """And tables of one record: there is little to say, and it is inside the domain."""
    facts = Facts(width, records)
    ordered = np.linspace(0, width, records).astype(np.int64)
    values = released(stages_of(ordered, facts), facts)
    assert values.min() >= 0
    assert values.max() <= width


def test_nothing_counted_is_refused() -> None:
    """There is no column without a first stage."""
    with pytest.raises(InvalidArgument, match="counted"):
        estimate([], Facts(10, 5))


@pytest.mark.parametrize("epsilon", ["1", "8"])
@pytest.mark.parametrize("atoms", [[0], []])
def test_zeros_between_losses_and_gains_stay(epsilon: str, atoms: list[int]) -> None:
    """A fit that found no way down gave a third of the draws other zeros (.30 became .03 to .08), more of them the larger epsilon
    was: a new user saw it in taxes."""
    rng = np.random.default_rng(5)
    kinds, count = rng.random(40_000), 40_000
    losses, gains = rng.gamma(2, 1200, count).clip(1, 6000), rng.lognormal(8.5, 1.6, count).clip(0, 800_000)
    taxes = np.where(kinds < 0.09, -np.round(losses), np.where(kinds < 0.39, 0, np.round(gains)))
    for number in range(6):
        masked = mask_column(
            taxes,
            domain=(-20_000, 800_000),
            grid=1,
            method="dp-cdf",
            epsilon=epsilon,
            k=5,
            atoms=atoms,
            secret=bytes([number]) * SECRET_BYTES,
        )
        assert np.mean(masked.values == 0) == pytest.approx(np.mean(taxes == 0), abs=0.003)
        assert np.mean(masked.values) == pytest.approx(np.mean(taxes), rel=0.05)
