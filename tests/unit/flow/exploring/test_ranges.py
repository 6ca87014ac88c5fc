"""Where a figure of one more release should be: of quantiles among few values."""

from __future__ import annotations

import numpy as np

from release_pipeline.flow.exploring.ranges import predict, predict_quantile

PLACES = np.array([10.0, 11.0, 12.0, 16.0])


def curves_of(shares: tuple[float, ...], spread: float) -> np.ndarray:
    """Twenty releases whose shares up to each place lie around these."""
    drawn = np.random.default_rng(1).normal(np.tile(shares, (20, 1)), spread)
    return np.clip(drawn, 0, 1)


def test_a_quantile_that_was_one_value_may_be_the_one_beside_it() -> None:
    """Half of the records are up to 12 by a hair: one more release may well have 16 in the middle."""
    always = np.full(20, 12.0)
    near = predict_quantile(always, 0.5, curves_of((0.1, 0.3, 0.505, 1.0), 0.004), PLACES, widened=1.4)
    assert (near.low, near.middle, near.high) == (12.0, 12.0, 16.0)
    below = predict_quantile(always, 0.5, curves_of((0.1, 0.495, 0.8, 1.0), 0.004), PLACES, widened=1.4)
    assert (below.low, below.high) == (11.0, 12.0)


def test_a_quantile_that_is_sure_is_a_point() -> None:
    """Far from both ends of the step nothing else is possible."""
    sure = predict_quantile(np.full(20, 12.0), 0.5, curves_of((0.1, 0.3, 0.8, 1.0), 0.004), PLACES, widened=1.4)
    assert (sure.low, sure.high) == (12.0, 12.0)


def test_of_many_values_it_is_the_range_of_the_quantiles() -> None:
    """Nothing is added where the values themselves tell."""
    found = np.random.default_rng(2).normal(12, 0.1, 20)
    curves = curves_of((0.1, 0.3, 0.505, 1.0), 0.004)
    assert predict_quantile(found, 0.5, curves, PLACES, widened=1.4) == predict(found, widened=1.4)
