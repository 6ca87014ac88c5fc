"""Distributions of a column: as SciPy has them, and no number in them that tells of single persons."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.privacy import distributions
from release_pipeline.privacy.distributions import (
    BEYOND,
    CURVE_POINTS,
    QUANTILES,
    TENTHS,
    Spread,
    choose_places,
    compare_distributions,
    describe_spread,
    describe_weighted_spread,
    ks_distance,
    share_at_most,
    share_of_many,
    wasserstein_distance,
)
from tests.unit.privacy.columns import Numbers, columns

Columns = dict[str, tuple[Numbers, Decimal]]


def scipys_ks(x: Numbers, y: Numbers) -> float:
    """SciPy's distance, without its probability, for which it warns where there are few records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(scipy.stats.ks_2samp(x, y, method="asymp").statistic)


@given(columns(), columns())
def test_distances_equal_scipys(x: Numbers, y: Numbers) -> None:
    """Also of columns of different lengths, with ties within and between them."""
    assert ks_distance(x, y) == pytest.approx(scipys_ks(x, y), abs=1e-12)
    assert wasserstein_distance(x, y) == pytest.approx(scipy.stats.wasserstein_distance(x, y), abs=1e-12)


@pytest.mark.parametrize("together", [1, 3, 1 << 20])
@given(columns(), columns())
def test_both_distances_are_found_slice_by_slice(together: int, x: Numbers, y: Numbers) -> None:
    """However many records are looked at together: ties may go from one slice to the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributions, "_CHUNK", together)
        ks, area = compare_distributions(np.sort(x), np.sort(y))
    assert ks == pytest.approx(scipys_ks(x, y), abs=1e-12)
    assert area == pytest.approx(wasserstein_distance(x, y), abs=1e-12)


def test_distances_on_reference_data_equal_scipys(reference_columns: Callable[[str], Columns]) -> None:
    """Real columns of census against themselves with noise."""
    rng = np.random.default_rng(5)
    real = [x for x, _ in list(reference_columns("census").values())[:5]]
    for x in real:
        y = x[:700] + rng.normal(0, np.std(x) / 3, 700)
        assert ks_distance(x, y) == pytest.approx(scipys_ks(x, y), abs=1e-12)
        assert wasserstein_distance(x, y) == pytest.approx(scipy.stats.wasserstein_distance(x, y), rel=1e-9)


@pytest.mark.slow
@given(columns(least=2))
def test_spread_leaves_out_what_tells_of_single_persons(x: Numbers) -> None:
    """Mean and deviation by definition; of up to 30 records no quantile has ten beyond it but the quartiles of enough of them."""
    found = describe_spread(np.sort(x))
    most = max(np.count_nonzero(x == value) for value in x)
    if len(x) - most < BEYOND:
        assert found.mean is found.deviation is None
    else:
        assert found.mean == pytest.approx(sum(x) / len(x))
        assert found.deviation == pytest.approx((sum((x - found.mean) ** 2) / len(x)) ** 0.5)
    for q, value in zip(QUANTILES, found.quantiles, strict=True):
        assert (value is None) == (min(q, 1 - q) * len(x) < BEYOND)
        assert value is None or value == pytest.approx(float(np.quantile(x, q)))
    for q, value in zip(TENTHS, found.deciles, strict=True):
        assert (value is None) == (len(x) < 10 * BEYOND)
        assert value is None or value == pytest.approx(float(np.quantile(x, q)))


def test_tenths_are_told_from_a_hundred_records_on() -> None:
    """Ten records lie beyond each."""
    assert describe_spread(np.arange(100.0)).deciles == pytest.approx((9.9, 89.1))
    assert describe_spread(np.arange(99.0)).deciles == (None, None)


def test_weighted_figures_are_those_of_records_written_out() -> None:
    """A record of weight 3 is three records, by pandas; who has no weight, or none that is known, counts for nothing."""
    numbers = np.random.default_rng(5)
    x, weights = numbers.integers(0, 40, 300).astype(np.float64), numbers.integers(0, 4, 300).astype(np.float64)
    written = pd.Series(np.repeat(x, weights.astype(int)))
    x, weights = np.append(x, [9e9, 9e9]), np.append(weights, [0.0, np.nan])
    found = describe_weighted_spread(x, weights)
    assert (found.mean, found.deviation) == (pytest.approx(written.mean()), pytest.approx(written.std(ddof=0)))
    for q, value in zip((*QUANTILES, *TENTHS), (*found.quantiles, *found.deciles), strict=True):
        by_hand = written.sort_values().iloc[math.ceil(q * len(written) * (1 - 1e-12)) - 1]
        sides = np.sum((x <= by_hand) & (weights > 0)), np.sum((x >= by_hand) & (weights > 0))
        assert value == (by_hand if min(sides) >= BEYOND else None)
    assert sum(value is not None for value in (*found.quantiles, *found.deciles)) >= 7
    assert describe_weighted_spread(x, np.zeros(len(x))) == Spread(None, None, (None,) * 7, (None,) * 2)
    assert describe_weighted_spread(np.array([4.0]), np.array([2.0])) == Spread(None, None, (None,) * 7, (None,) * 2)


@given(columns(least=1), st.data())
def test_weighted_figures_leave_out_what_tells_of_single_persons(x: Numbers, data: st.DataObject) -> None:
    """However heavy a record is: each figure that is told is of ten records or more, and a value of one with weight."""
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 1e9]), min_size=len(x), max_size=len(x))))
    found = describe_weighted_spread(x, weights)
    own = x[weights > 0]
    if len(own) == 0 or len(own) - max(np.count_nonzero(own == value) for value in own) < BEYOND:
        assert found.mean is found.deviation is None
    for value in (*found.quantiles, *found.deciles):
        assert value is None or (value in own and min(np.sum(own <= value), np.sum(own >= value)) >= BEYOND)


@given(columns(), columns())
def test_curves_are_shares_at_places_of_the_released_column(x: Numbers, y: Numbers) -> None:
    """Every place follows from the released values; shares are counts, of the original too, but for those of fewer than ten."""
    places = choose_places(np.sort(y))
    assert min(y) == places[0] <= places[-1] == max(y)
    assert len(places) <= CURVE_POINTS
    for share, place in zip(share_of_many(np.sort(x), places), places, strict=True):
        count = np.count_nonzero(x <= place)
        hidden = 0 < count < BEYOND or 0 < len(x) - count < BEYOND
        assert (share is None) == (hidden and 0 < count < len(x))
        assert share is None or share == pytest.approx(count / len(x))
    for column in (x, y):
        assert share_at_most(np.sort(column), places).tolist() == pytest.approx([np.mean(column <= place) for place in places])
    assert share_at_most(np.sort(y), places)[-1] == 1
