"""Where a figure of one more release should be: of quantiles among few values."""

from __future__ import annotations

import numpy as np

from release_pipeline.flow.exploring import trials
from release_pipeline.flow.exploring.ranges import SHARE, predict, predict_quantile
from release_pipeline.flow.exploring.views import view_setting
from tests.unit.flow.exploring.test_trials import TEXT, make_bench, settings_of

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


def test_no_range_goes_where_no_figure_can_be() -> None:
    """A distance is at most 1, a mean in the domain; what was drawn beyond is told all the same."""
    shares = predict(np.array([0.9, 0.95, 0.97, 0.99, 0.8]), widened=1.4, positive=True, ends=SHARE)
    assert shares.high == 1.0
    means = predict(np.array([2.0, 30.0, 1.0, 50.0, 10.0]), widened=1.4, ends=(0.0, 100.0))
    assert (means.low, means.high) == (0.0, 100.0)
    assert predict(np.array([2.0, 30.0, 130.0]), widened=1.4, ends=(0.0, 100.0)).high == 130.0


def test_of_a_few_draws_that_disagree_wildly_nothing_is_told() -> None:
    """Five distances between a hundredth and one: a range from 1e-8 to 200,000 would say no more, and lie. Many tell."""
    few = np.array([0.01, 0.9, 0.2, 0.03, 1.0])
    told = predict(few, widened=1.4, positive=True, ends=SHARE)
    assert (told.low, told.middle, told.high) == (None, 0.2, None)
    many = predict(np.tile(few, 6), widened=1.4, positive=True, ends=SHARE)
    assert many.low is not None
    assert many.high == 1.0


def test_figures_of_a_setting_are_possible() -> None:
    """Hardly any epsilon, few draws: every range is in the domain, and of shares between 0 and 1."""
    text = TEXT.replace("method: laplace, epsilon: 4, clamp: no", "method: dp-um, epsilon: 0.01, k: 3")
    bench = make_bench(text, resampled=True)
    [tested] = trials.try_settings(bench, settings_of(bench)[:1], workers=1, progress=lambda _: None)
    assert isinstance(tested, trials.Tested)
    columns = view_setting(bench, tested, 1).columns
    for name, high in (("income", 20_000), ("rent", 100)):
        one = columns[name]
        values = [one.mean, *one.quantiles, *one.groups]
        assert all(0 <= (each.released.low or 0) <= (each.released.high or 0) <= high for each in values)
        assert (one.ks.high or 0) <= 1
        assert (one.error.high or 0) <= high**2 / bench.reference.variance[name] * 1.00001
