"""Distributions of a column: as SciPy has them, and no number in them that tells of single persons."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given

from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import BEYOND, QUANTILES, TENTHS, describe_spread, find_distance, find_gap
from tests.unit.mechanisms.columns import Numbers, columns


def scipys_ks(x: Numbers, y: Numbers) -> float:
    """SciPy's distance, without its probability, for which it warns where there are few records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(scipy.stats.ks_2samp(x, y, method="asymp").statistic)


@given(columns(), columns())
def test_distances_equal_scipys(x: Numbers, y: Numbers) -> None:
    """Also of columns of different lengths, with ties within and between them."""
    assert find_gap(Tally.of(x), Tally.of(y)) == pytest.approx(scipys_ks(x, y), abs=1e-12)
    assert find_distance(Tally.of(x), Tally.of(y)) == pytest.approx(scipy.stats.wasserstein_distance(x, y), abs=1e-12)


@pytest.mark.slow
@given(columns(least=2))
def test_spread_leaves_out_what_tells_of_single_persons(x: Numbers) -> None:
    """Mean and deviation by definition; of up to 30 records no quantile has ten beyond it but the quartiles of enough of them."""
    found = describe_spread(Tally.of(x))
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
