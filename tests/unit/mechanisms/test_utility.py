"""The closed formulas of utility: by their definitions, and as SciPy, NumPy and scikit-learn have them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from release_pipeline.mechanisms.basis.grid import Grid
from release_pipeline.mechanisms.basis.utility import (
    correlation_matrix,
    covariance_matrix,
    measure_clamping,
    rank_correlation_matrix,
    sse_paper,
)
from tests.unit.mechanisms.columns import Numbers, columns


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


def test_correlations_of_ranks_are_scipys() -> None:
    """Ties included; a constant column has none."""
    numbers = np.random.default_rng(5)
    columns = [numbers.lognormal(0, 2, 300), numbers.integers(0, 4, 300).astype(np.float64), np.ones(300)]
    columns[1] += np.round(columns[0])
    found = rank_correlation_matrix(columns)
    assert found[0, 1] == pytest.approx(scipy.stats.spearmanr(columns[0], columns[1]).statistic)
    assert np.isnan(found[0, 2])
