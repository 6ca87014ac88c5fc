"""The closed formulas of utility: by their definitions, and as SciPy, NumPy and scikit-learn have them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from release_pipeline.privacy import utility
from release_pipeline.privacy.grid import Grid
from release_pipeline.privacy.utility import (
    BEYOND,
    CURVE_POINTS,
    QUANTILES,
    TENTHS,
    Spread,
    choose_places,
    column_error,
    compare_distributions,
    correlation_matrix,
    covariance_matrix,
    describe_spread,
    describe_weighted_spread,
    f_measure,
    ks_distance,
    measure_clamping,
    pmse,
    pmse_by_chance,
    rank_correlation_matrix,
    share_at_most,
    share_of_many,
    sse_paper,
    wasserstein_distance,
)

Numbers = npt.NDArray[np.float64]
Columns = dict[str, tuple[Numbers, Decimal]]


def columns(least: int = 1, most: int = 30) -> st.SearchStrategy[Numbers]:
    """Columns of few different whole numbers, so that ties are common."""
    return arrays(np.float64, st.integers(least, most), elements=st.integers(-5, 5).map(float))


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
        patch.setattr(utility, "_CHUNK", together)
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


@given(
    st.tuples(st.integers(2, 12), st.integers(1, 4)).flatmap(
        lambda shape: st.tuples(*[arrays(np.float64, shape, elements=st.integers(-50, 50).map(float))] * 2)
    )
)
def test_sse_paper_literally(pair: tuple[Numbers, Numbers]) -> None:
    """Mean over the records of (1/m^2) sum over the columns of ((x - y) / variance)^2; constant columns add nothing."""
    x, y = pair
    m = x.shape[1]
    variances = [sum((a - sum(column) / len(x)) ** 2 for a in column) / len(x) for column in x.T.tolist()]
    total = 0.0
    for own, other in zip(x.tolist(), y.tolist(), strict=True):
        total += sum(((a - b) / v) ** 2 for a, b, v in zip(own, other, variances, strict=True) if v > 0) / m**2
    assert sse_paper(list(x.T), list(y.T)) == pytest.approx(total / len(x))


def test_column_error_is_relative_to_the_variance() -> None:
    """0 for the data themselves, 1 for their mean, 0 for a constant column, also one whose mean is rounded."""
    x = np.array([1.0, 2.0, 3.0, 10.0])
    assert column_error(x, x) == 0
    assert column_error(x, np.full(4, x.mean())) == pytest.approx(1)
    assert column_error(x, x + 2) == pytest.approx(4 / np.var(x))
    assert column_error(x, x + 2, variance=8.0) == 0.5
    assert column_error(x, x + 2, variance=0.0) == 0
    assert column_error(np.ones(3), np.zeros(3)) == 0
    assert column_error(np.full(10, 0.1), np.zeros(10)) == 0


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


@given(
    st.integers(1, 4).flatmap(lambda m: arrays(np.float64, st.tuples(st.integers(2, 15), st.just(m)), elements=st.integers(0, 9)))
)
def test_covariances_and_correlations_equal_numpys(table: Numbers) -> None:
    """Of the records themselves (divided by n); NaN where a column is constant."""
    found = covariance_matrix(list(table.T))
    np.testing.assert_allclose(found, np.cov(table.T, bias=True).reshape(found.shape), atol=1e-12)
    correlations = correlation_matrix(found)
    varied = [a for a in range(table.shape[1]) if len(set(table[:, a])) > 1]
    for a in range(table.shape[1]):
        for b in range(table.shape[1]):
            if a in varied and b in varied:
                assert correlations[a, b] == pytest.approx(np.corrcoef(table[:, a], table[:, b])[0, 1])
            else:
                assert np.isnan(correlations[a, b])


def test_a_constant_column_has_no_correlation_however_its_mean_is_rounded() -> None:
    """0.1 ten times has a mean that is not 0.1, and a variance that is not 0, in floating point."""
    x = np.full(10, 0.1)
    assert np.isnan(correlation_matrix(covariance_matrix([x, np.arange(10.0)]))[0, 1])


@given(arrays(np.bool_, 12), arrays(np.bool_, 12))
def test_f_measure_equals_scikit_learns(truth: npt.NDArray[np.bool_], said: npt.NDArray[np.bool_]) -> None:
    """0 where nobody is and nobody is said to be."""
    assert f_measure(truth, said) == pytest.approx(sklearn.metrics.f1_score(truth, said, zero_division=0))


def test_pmse_by_definition_and_by_chance() -> None:
    """0 for scores that are the share of everybody, a quarter where halves are told with certainty. By chance, for
    halves: (parameters - 1) / (4 records)."""
    assert pmse(np.full(7, 0.3), 0.3) == 0
    assert pmse(np.array([0.0, 1.0, 0.0, 1.0]), 0.5) == 0.25
    assert pmse_by_chance(5, 0.5, 1000) == pytest.approx(4 / 4000)


@given(columns(2), st.integers(-4, 0), st.integers(1, 4))
def test_what_clamping_takes_is_by_its_definition(column: Numbers, low: int, high: int) -> None:
    """The share of records that lie outside, and the mean square of how far they are moved over the variance as they came."""
    taken = measure_clamping(column, Grid.declare((low, high), 1))
    moved = column - np.clip(column, low, high)
    assert taken.share == np.mean(moved != 0)
    if np.ptp(column):
        assert taken.variance == pytest.approx(np.mean(moved**2) / np.var(column))
    else:
        assert taken.variance == 0


def test_clamping_at_the_edges_of_what_numbers_are() -> None:
    """Half a step beyond an end is still on the grid; a missing number is not outside; the largest floats have finite figures."""
    grid = Grid.declare((0, 10), 2)
    assert measure_clamping(np.array([-1.0, 11.0, 5.0]), grid).share == 0
    assert measure_clamping(np.array([-1.1, 11.1, 5.0]), grid).share == 2 / 3
    assert measure_clamping(np.array([np.nan, 5.0, 12.0, np.nan]), grid).share == 1 / 4
    assert measure_clamping(np.array([np.nan, np.nan]), grid).share == 0
    largest = measure_clamping(np.array([1.7e308, -1.7e308, 5.0, 5.0]), grid)
    assert (largest.share, largest.variance) == (0.5, pytest.approx(1.0))
    assert measure_clamping(np.array([50.0, 51.0]), grid).variance == pytest.approx((40**2 + 41**2) / 2 / 0.25)


def test_values_as_a_method_sees_them() -> None:
    """In the domain, on the grid, in their own units."""
    assert Grid.declare((-1, 1), "0.5").snap(np.array([-7.0, -0.3, 0.2, 0.3, 99.0])).tolist() == [-1, -0.5, 0, 0.5, 1]


def test_correlations_of_ranks_are_scipys() -> None:
    """Ties included; a constant column has none."""
    numbers = np.random.default_rng(5)
    columns = [numbers.lognormal(0, 2, 300), numbers.integers(0, 4, 300).astype(np.float64), np.ones(300)]
    columns[1] += np.round(columns[0])
    found = rank_correlation_matrix(columns)
    assert found[0, 1] == pytest.approx(scipy.stats.spearmanr(columns[0], columns[1]).statistic)
    assert np.isnan(found[0, 2])
