"""The Gaussian sampler follows its law at every sigma, and these tests have the power to tell."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from release_pipeline.mechanisms.noise import discrete_gaussian, noise_stream
from tests.statistical.goodness import TRUE_PASSES, WRONG_FAILS, chi_square_gaussian, gaussian_masses

pytestmark = pytest.mark.statistical

SECRET = bytes(range(32))
DRAWS = 200_000
SIGMAS = ["0.5", "1", "1.99", "3.7", "50", str(2**20), str(2**31 + 1), str(2**40), str(2**55)]


def draw(sigma: str, *context: str | int, count: int = DRAWS) -> npt.NDArray[np.int64]:
    return discrete_gaussian(Fraction(sigma) ** 2, count, noise_stream(SECRET, *context, sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_true_sigma_passes_and_wrong_ones_fail(sigma: str) -> None:
    """Draws of one sigma pass the test of that sigma, and fail the tests of 0.7 and 1.3 times it."""
    draws = draw(sigma, "fit")
    assert chi_square_gaussian(draws, float(sigma)) > TRUE_PASSES
    assert chi_square_gaussian(draws, 0.7 * float(sigma)) < WRONG_FAILS
    assert chi_square_gaussian(draws, 1.3 * float(sigma)) < WRONG_FAILS


@pytest.mark.parametrize("sigma", ["0.25", "0.5", "0.99", "1", "1.01"])
def test_small_noise_value_by_value(sigma: str) -> None:
    """Every value comes as often as it should, within five standard errors, down to those expected ten times in a million."""
    draws = draw(sigma, "values", count=1_000_000)
    for value, mass in enumerate(gaussian_masses(float(sigma))):
        expected = mass * len(draws)
        for signed in {value, -value}:
            found = int(np.count_nonzero(draws == signed))
            assert abs(found - expected) < 5 * math.sqrt(expected * (1 - mass)) or (expected < 10 and found < 40), signed


def test_the_tail_is_right() -> None:
    """P[|Z| > 4.5 sigma] is as it should be, within five standard errors: neither the proposals nor the comparison cut it off."""
    draws = draw("1000", "tail", count=3_000_000)
    expected = len(draws) * 2 * stats.norm.sf(4500.5 / 1000)
    assert abs(int(np.count_nonzero(np.abs(draws) > 4500)) - expected) < 5 * math.sqrt(expected)


def test_consecutive_draws_are_independent() -> None:
    """No serial dependence within a stream at lags 1 to 8, nor on the draws of another stream, shifted by a few places."""
    draws, other = draw(str(2**35), "serial"), draw(str(2**35), "other")
    for lag in range(1, 9):
        assert abs(stats.spearmanr(draws[:-lag], draws[lag:]).statistic) < 5 / math.sqrt(len(draws))
    for shift in range(-3, 4):
        assert abs(stats.spearmanr(draws, np.roll(other, shift)).statistic) < 5 / math.sqrt(len(draws))
