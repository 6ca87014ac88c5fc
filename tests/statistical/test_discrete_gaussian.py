"""The Gaussian sampler follows its law at every sigma, and these tests have the power to tell."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from release_pipeline.privacy.noise import discrete_gaussian, discrete_laplace, gaussian_magnitude, noise_stream
from tests.statistical.goodness import TRUE_PASSES, WRONG_FAILS, chi_square_gaussian, gaussian_masses

pytestmark = pytest.mark.statistical

SECRET = bytes(range(32))
DRAWS = 200_000
SIGMAS = ["0.5", "1", "1.99", "3.7", "50", str(2**20), str(2**31 + 1), str(2**40), str(2**55)]
LARGE = [sigma for sigma in SIGMAS if float(sigma) > 1000]


def draw(sigma: str, *context: str | int, count: int = DRAWS) -> npt.NDArray[np.int64]:
    return discrete_gaussian(Fraction(sigma) ** 2, count, noise_stream(SECRET, *context, sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_true_sigma_passes_and_wrong_ones_fail(sigma: str) -> None:
    """Draws of one sigma pass the test of that sigma, and fail the tests of 0.7 and 1.3 times it."""
    draws = draw(sigma, "fit")
    assert chi_square_gaussian(draws, float(sigma)) > TRUE_PASSES
    assert chi_square_gaussian(draws, 0.7 * float(sigma)) < WRONG_FAILS
    assert chi_square_gaussian(draws, 1.3 * float(sigma)) < WRONG_FAILS


@pytest.mark.parametrize("sigma", ["0.5", "1", "50", str(2**40)])
def test_draws_30_percent_off_fail(sigma: str) -> None:
    """The other way round: a sampler that is 30% off either way is seen by the test of the true sigma."""
    for wrong in ("0.7", "1.3"):
        assert chi_square_gaussian(draw(str(Fraction(sigma) * Fraction(wrong)), "wrong"), float(sigma)) < WRONG_FAILS


@pytest.mark.parametrize("sigma", LARGE)
def test_large_noise_is_normal(sigma: str) -> None:
    """Z / sigma by the test of Kolmogorov and Smirnov; 30% off either way is seen, and so is a Laplace of the same variance."""
    ratio = draw(sigma, "normal") / float(sigma)
    assert stats.kstest(ratio, "norm").pvalue > TRUE_PASSES
    assert stats.kstest(ratio / 0.7, "norm").pvalue < WRONG_FAILS
    assert stats.kstest(ratio / 1.3, "norm").pvalue < WRONG_FAILS
    scale = round(float(sigma) / math.sqrt(2))
    other = discrete_laplace(np.full(DRAWS, scale), noise_stream(SECRET, "no normal law"))
    assert stats.kstest(other / float(sigma), "norm").pvalue < WRONG_FAILS


@pytest.mark.parametrize("sigma", ["0.25", "0.5", "0.99", "1", "1.01"])
def test_small_noise_value_by_value(sigma: str) -> None:
    """Every value comes as often as it should, within five standard errors, down to those expected ten times in a million."""
    draws = draw(sigma, "values", count=1_000_000)
    for value, mass in enumerate(gaussian_masses(float(sigma))):
        expected = mass * len(draws)
        for signed in {value, -value}:
            found = int(np.count_nonzero(draws == signed))
            assert abs(found - expected) < 5 * math.sqrt(expected * (1 - mass)) or (expected < 10 and found < 40), signed


@pytest.mark.parametrize("sigma", SIGMAS)
def test_mean_magnitude_and_sign(sigma: str) -> None:
    """E|Z| as `gaussian_magnitude` has it, and fair signs, both within five standard errors."""
    draws = draw(sigma, "mean")
    magnitude = np.abs(draws)
    assert abs(magnitude.mean() - gaussian_magnitude(Fraction(sigma) ** 2)) < 5 * magnitude.std() / math.sqrt(DRAWS)
    assert abs(np.sign(draws).mean()) < 5 * np.sign(draws).std() / math.sqrt(DRAWS)


@pytest.mark.parametrize("sigma", ["1", "50", str(2**40)])
def test_the_law_is_symmetric(sigma: str) -> None:
    """Positive draws and negative ones have the same magnitudes; draws moved by a fifth of sigma have not."""
    draws = draw(sigma, "sides")
    step = max(1, round(float(sigma) / 5))
    assert _sides(draws, step) > TRUE_PASSES
    assert _sides(draws + step, step) < WRONG_FAILS


def _sides(draws: npt.NDArray[np.int64], step: int) -> float:
    """The p-value that both signs have the same magnitudes, in steps."""
    sides = [np.minimum(np.abs(draws[draws * sign > 0]) // step, 16) for sign in (1, -1)]
    counts = np.stack([np.bincount(side, minlength=17) for side in sides])
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 10]).pvalue)


def test_the_tail_is_right() -> None:
    """P[|Z| > 4.5 sigma] is as it should be, within five standard errors: neither the proposals nor the comparison cut it off."""
    draws = draw("1000", "tail", count=3_000_000)
    expected = len(draws) * 2 * stats.norm.sf(4500.5 / 1000)
    assert abs(int(np.count_nonzero(np.abs(draws) > 4500)) - expected) < 5 * math.sqrt(expected)


def test_variances_that_are_no_squares() -> None:
    """2/3, 1 and a bit, and a third of a power of two: the law of sqrt(v), whatever its digits are."""
    for variance in (Fraction(2, 3), Fraction(10**9 + 1, 10**9), Fraction(2**61, 3)):
        draws = discrete_gaussian(variance, DRAWS, noise_stream(SECRET, "no squares"))
        assert chi_square_gaussian(draws, math.sqrt(variance)) > TRUE_PASSES
        assert chi_square_gaussian(draws, math.sqrt(variance) * 1.3) < WRONG_FAILS
        assert chi_square_gaussian(draws, math.sqrt(variance) * 0.7) < WRONG_FAILS


def test_consecutive_draws_are_independent() -> None:
    """No serial dependence within a stream at lags 1 to 8, nor on the draws of another stream, shifted by a few places."""
    draws, other = draw(str(2**35), "serial"), draw(str(2**35), "other")
    for lag in range(1, 9):
        assert abs(stats.spearmanr(draws[:-lag], draws[lag:]).statistic) < 5 / math.sqrt(len(draws))
    for shift in range(-3, 4):
        assert abs(stats.spearmanr(draws, np.roll(other, shift)).statistic) < 5 / math.sqrt(len(draws))


def test_draws_of_both_laws_from_one_stream_are_independent() -> None:
    """A Gaussian after a Laplace and before it: lanes and words of their own."""
    stream = noise_stream(SECRET, "both")
    laplace, gaussian = discrete_laplace(np.full(DRAWS, 2**40), stream), discrete_gaussian(2**80, DRAWS, stream)
    for shift in range(-3, 4):
        assert abs(stats.spearmanr(laplace, np.roll(gaussian, shift)).statistic) < 5 / math.sqrt(DRAWS)
