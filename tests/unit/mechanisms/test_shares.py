"""Intervals: published figures, limits, and what they cover.

The figures are those of Anonymeter's tests (github.com/statice/anonymeter, commit 0188bdf, tests/test_confidence.py), typed in.
"""

from __future__ import annotations

import pytest
from scipy import stats

from release_pipeline.mechanisms.basis.samples import Share, difference_beyond, measure_share, subtract_shares, wilson_interval


def middle(share: Share) -> tuple[float, float]:
    return (share.low + share.high) / 2, (share.high - share.low) / 2


def ones(successes: int, of: int) -> list[int]:
    return [1] * successes + [0] * (of - successes)


@pytest.mark.parametrize(
    ("successes", "of", "rate", "error"),
    [
        (100, 100, 0.9815032508965071, 0.01849674910349284),
        (0, 100, 0.01849674910349284, 0.01849674910349284),
        (23, 100, 0.23998824451588613, 0.08155558571285167),
        (11, 100, 0.1244274643007244, 0.06188550073007873),
    ],
)
def test_the_interval_is_anonymeters(successes: int, of: int, rate: float, error: float) -> None:
    share = measure_share(ones(successes, of), among=None)
    assert middle(share) == pytest.approx((rate, error), rel=1e-12)
    assert share.value == successes / of


@pytest.mark.parametrize(("successes", "of"), [(0, 7), (3, 7), (7, 7), (40, 1000), (999, 1000)])
def test_the_interval_is_scipys(successes: int, of: int) -> None:
    wanted = stats.binomtest(successes, of).proportion_ci(0.95, "wilson")
    assert wilson_interval(successes / of, of) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_what_is_beyond_is_anonymeters() -> None:
    """residual_success: rates 0.9 and 0.8 without error give 0.5, 0.9 and 0.85 with 0.02 each give 0.333 and 0.16."""
    exact = difference_beyond(Share(0.9, 0.9, 0.9, 10, 10), Share(0.8, 0.8, 0.8, 10, 10))
    assert (exact.low, exact.value, exact.high) == pytest.approx((0.5, 0.5, 0.5))
    share = difference_beyond(Share(0.9, 0.88, 0.92, 1000, None), Share(0.85, 0.83, 0.87, 1000, None))
    assert (round(share.value, 3), round(middle(share)[1], 3)) == (0.333, 0.16)


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_a_difference_is_newcombes(one: tuple[int, int], other: tuple[int, int], low: float, high: float) -> None:
    """Table II of NEW98, method 10; and turned around it is the same with the other sign."""
    shares = [measure_share(ones(*counts), among=None) for counts in (one, other)]
    found, turned = subtract_shares(*shares), subtract_shares(*reversed(shares))
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-found.value, -found.high, -found.low))
