"""Our noise and its epsilon beside OpenDP's, written by others: the same laws, and the same loss for each shift and scale.

OpenDP takes its randomness from the operating system and no seed from us. So the thresholds are such that the right law comes
out wrong once in 10^9 runs, while scales 30% off are far beyond.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import opendp.prelude as dp
import pytest
from scipy import stats

from release_pipeline.mechanisms import discrete_laplace, noise_stream
from release_pipeline.mechanisms.noise import MAX_SCALE, discrete_gaussian

pytestmark = pytest.mark.statistical

SECRET = bytes(range(32))
DRAWS = 40_000  # OpenDP takes seven seconds for a million
SAME, OTHER = 1e-9, 1e-30
BINS = 30


def measurement(scale: int) -> dp.Measurement:
    """OpenDP's Laplace mechanism on vectors of integers, under the L1 distance."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=float(scale))


@cache
def theirs(scale: int) -> npt.NDArray[np.int64]:
    return np.array(measurement(scale)([0] * DRAWS), dtype=np.int64)


def ours(scale: int) -> npt.NDArray[np.int64]:
    return discrete_laplace(np.full(DRAWS, scale), noise_stream(SECRET, "beside OpenDP", scale))


@cache
def their_gaussian(sigma: str) -> npt.NDArray[np.int64]:
    """OpenDP's Gaussian mechanism on vectors of integers, under the L2 distance."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return np.array(dp.m.make_gaussian(*space, scale=float(sigma))([0] * DRAWS), dtype=np.int64)


def our_gaussian(sigma: Fraction) -> npt.NDArray[np.int64]:
    return discrete_gaussian(sigma**2, DRAWS, noise_stream(SECRET, "beside OpenDP's Gaussian", str(sigma)))


def two_samples(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float:
    """The p-value of a chi-square test that both follow one law, whatever it is."""
    together = np.concatenate([a, b])
    edges = np.unique(np.quantile(together, np.linspace(0, 1, BINS + 1)[1:-1], method="higher"))
    counts = np.stack([np.bincount(np.searchsorted(edges, part, side="right"), minlength=len(edges) + 1) for part in (a, b)])
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue)


@pytest.mark.parametrize("scale", [3, 10, 1000, 2**40])
def test_our_noise_has_the_law_of_theirs(scale: int) -> None:
    """And the test tells our noise at 0.7 and 1.3 times the scale from theirs."""
    assert two_samples(ours(scale), theirs(scale)) > SAME
    for wrong in (0.7, 1.3):
        assert two_samples(ours(round(scale * wrong)), theirs(scale)) < OTHER


@pytest.mark.parametrize("sigma", ["3.7", "50", str(2**20), str(2**40)])
def test_our_gaussian_has_the_law_of_theirs(sigma: str) -> None:
    """And the test tells our noise at 0.7 and 1.3 times sigma from theirs."""
    assert two_samples(our_gaussian(Fraction(sigma)), their_gaussian(sigma)) > SAME
    for wrong in ("0.7", "1.3"):
        assert two_samples(our_gaussian(Fraction(sigma) * Fraction(wrong)), their_gaussian(sigma)) < OTHER


@pytest.mark.parametrize("distance", [1, 7, 10**9])
@pytest.mark.parametrize("scale", [1, 12345, MAX_SCALE])
def test_their_privacy_map_says_what_our_arithmetic_says(distance: int, scale: int) -> None:
    """A shift of d costs d/t: theirs is in floats, rounded up, so at least ours and next to it."""
    exact, content = Fraction(distance, scale), measurement(scale).map(distance)
    assert exact <= Fraction(content)
    assert content <= float(exact) * (1 + 1e-12)
