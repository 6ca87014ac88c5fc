"""Claims by rho: what dp-um and dp-cdf lose under them, exactly, and that noise has the variance that is charged."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import Epsilon, Grid, mask_column
from release_pipeline.mechanisms.accounting.budget import rho_within
from release_pipeline.mechanisms.accounting.sensitivity import plain_moves
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value import ByValue, GaussianNoise, RhoBudget
from release_pipeline.mechanisms.clusters.rank import RankClusters
from release_pipeline.mechanisms.columns.methods import add_noise, compute_statistics, make_claim, squared_loss
from release_pipeline.mechanisms.noise import noise_stream

SECRET = bytes(range(32))
DELTA = Decimal("0.000001")


@given(values=st.lists(st.integers(0, 30), min_size=4, max_size=14), k=st.integers(1, 4), place=st.data())
def test_the_loss_of_a_table_is_never_more_than_its_rho(values: list[int], k: int, place: st.DataObject) -> None:
    """Of dp-um, for every neighbour: squares of what its sums change by, over twice the variance, exactly; and it never is below
    that of any one neighbour."""
    width, rho = 30, Fraction(1, 7)
    variance = Fraction(width**2) / (2 * rho)
    moves = plain_moves(RankClusters.of(Tally.of(np.array(values)), min(k, len(values))), width)
    worst = max(squared_loss(moves.up, variance), squared_loss(moves.down, variance))
    assert worst <= rho
    changed = values.copy()
    changed[place.draw(st.integers(0, len(values) - 1))] = place.draw(st.integers(0, width))
    sums = [RankClusters.of(Tally.of(np.array(table)), min(k, len(values))).sums() for table in (values, changed)]
    assert squared_loss(sums[0] - sums[1], variance) <= worst


@pytest.mark.parametrize("zeros", [False, True])
def test_counts_by_value_use_up_their_rho_and_no_more(zeros: bool) -> None:
    """The losses of all stages are its rho, in fractions, with two stages and with three; noise has the variances that say so."""
    numbers = np.random.default_rng(1).normal(8000, 30, 4000).astype(np.int64)
    ordered = np.sort(np.where(np.arange(4000) % 2 == 0, 0, numbers) if zeros else numbers)
    rho = Fraction(1, 50)
    column = ByValue(Grid.declare((0, 12_000), 1), RhoBudget(rho))
    stages = column.measure(Tally.of(ordered).count_within, 4000, noise_stream(SECRET, "rho"))
    assert len(stages) == (2 if zeros else 3)
    assert sum(stage.noise.loss for stage in stages) == rho
    stream = noise_stream(SECRET, "rho")
    for stage in stages:
        assert isinstance(stage.noise, GaussianNoise)
        drawn = stage.noise.draw(len(stage.counts), stream)
        assert stage.counts.tolist() == (Tally.of(ordered).count_within(stage.edges) + drawn).tolist()


def test_dp_um_by_rho_draws_gaussian_noise_of_that_variance() -> None:
    """Ten thousand sums: their mean square is the variance within what chance allows, and 30% off would be seen."""
    claim = make_claim("dp-um", 1, "column", definition="zcdp", delta=DELTA)
    assert claim.rho is not None
    exact = compute_statistics(
        np.zeros(10_000),
        grid=Grid.declare((0, 100), 1),
        method="dp-um",
        epsilon=claim.rho,
        k=1,
        scope="column",
        definition="zcdp",
        consistency="none",
        secret=SECRET,
        context=(),
    )
    noise = add_noise(exact, clamp=False, secret=SECRET, context=())
    variance = 100**2 / (2 * float(claim.rho))
    assert exact.variance == Fraction(100**2) / (2 * claim.rho.fraction)
    assert float(np.mean(noise**2)) / variance == pytest.approx(1, abs=0.06)
    kurtosis = float(np.mean(noise**4)) / float(np.mean(noise**2)) ** 2
    assert kurtosis == pytest.approx(3, abs=0.3)  # a Laplace number has 6


@pytest.mark.parametrize("method", ["dp-um", "dp-cdf"])
def test_a_column_by_rho_says_what_it_claims(method: str) -> None:
    """Definition, epsilon, delta and rho; its loss is at most rho."""
    numbers = np.random.default_rng(2).integers(0, 1000, 2000)
    masked = mask_column(numbers, domain=(0, 1000), grid=1, method=method, epsilon=1, k=20, definition="zcdp", delta="0.000001")
    assert (masked.claim.definition, masked.claim.epsilon, masked.claim.delta) == ("zcdp", Epsilon.of(1), DELTA)
    assert masked.claim.rho == Epsilon(rho_within(10**9, DELTA))
    assert 0 < masked.loss["column"] <= float(masked.claim.rho)
    assert method != "dp-um" or masked.scale.min() ** 2 >= 1000**2 / (2 * float(masked.claim.rho))  # sigma, whatever the data
    again = [
        mask_column(
            numbers, domain=(0, 1000), grid=1, method=method, epsilon=1, k=20, definition="zcdp", delta=DELTA, secret=SECRET
        ).values.tolist()
        for _ in range(2)
    ]
    assert again[0] == again[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "dp-um", "definition": "zcdp"}, "delta is missing"),
        ({"method": "dp-um", "delta": "0.000001"}, "only zcdp has a delta"),
        ({"method": "dp-um", "definition": "zcdp", "delta": "2"}, "delta lies outside"),
        ({"method": "dp-um", "definition": "zcdp", "delta": "0.000001", "scope": "centroid"}, "no claim of scope centroid"),
        ({"method": "idp-cbls", "definition": "zcdp", "delta": "0.000001"}, "no claim of scope column"),
        ({"method": "dp-um", "definition": "zcdp", "delta": "0.000001", "epsilon": "0.000001"}, "too small for this delta"),
    ],
)
def test_what_is_no_claim_by_rho_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        mask_column([1, 2, 3, 4], domain=(0, 10), grid=1, k=3, **{"epsilon": 1, **options})  # pyright: ignore[reportArgumentType]
