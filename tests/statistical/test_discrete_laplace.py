"""The sampler follows its law at every scale, and these tests have the power to tell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from release_pipeline.mechanisms import discrete_laplace, noise_stream
from tests.statistical.goodness import TRUE_PASSES, WRONG_FAILS, chi_square

pytestmark = pytest.mark.statistical

SECRET = bytes(range(32))
DRAWS = 200_000
SCALES = [1, 2, 3, 7, 50, 1_000, 2**20, 2**31 + 1, 2**32, 2**40 + 12345, 2**50]


@pytest.mark.parametrize("scale", SCALES)
def test_true_scale_passes_and_wrong_scales_fail(scale: int) -> None:
    """Draws of one scale pass the test of that scale, and fail the tests of 0.7 and 1.3 times the scale."""
    draws = discrete_laplace(np.full(DRAWS, scale), noise_stream(SECRET, "fit", scale))
    assert chi_square(draws, scale) > TRUE_PASSES
    assert chi_square(draws, 0.7 * scale) < WRONG_FAILS
    assert chi_square(draws, 1.3 * scale) < WRONG_FAILS


def test_tail_beyond_the_first_words_is_right() -> None:
    """P[|Z| > 10 t] is as it should be: the geometric part is not cut off."""
    draws = discrete_laplace(np.full(3_000_000, 1000), noise_stream(SECRET, "tail"))
    expected = 3_000_000 * 2 * math.exp(-10_001 / 1000) / (1 + math.exp(-1 / 1000))
    assert abs(int(np.count_nonzero(np.abs(draws) > 10_000)) - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize(
    "other", [("release", 1, "rent"), ("release", 2, "income"), ("release", "1", "income"), ("release1", "income")]
)
def test_other_columns_and_partitions_get_independent_noise(other: tuple[str | int, ...]) -> None:
    """Streams of different contexts show no dependence: not in values, not in order, not shifted by a few places."""
    a = discrete_laplace(np.full(100_000, 2**40), noise_stream(SECRET, "release", 1, "income"))
    b = discrete_laplace(np.full(100_000, 2**40), noise_stream(SECRET, *other))
    assert not np.any(a == b)
    for shift in range(-3, 4):
        assert abs(stats.spearmanr(a, np.roll(b, shift)).statistic) < 5 / math.sqrt(len(a))


def test_consecutive_draws_are_independent() -> None:
    """No serial dependence within a stream at lags 1 to 8."""
    draws = discrete_laplace(np.full(200_000, 2**35), noise_stream(SECRET, "serial"))
    for lag in range(1, 9):
        assert abs(stats.spearmanr(draws[:-lag], draws[lag:]).statistic) < 5 / math.sqrt(len(draws))
