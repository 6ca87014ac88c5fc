"""Samples: known answers of sdcMicro, simulated populations, and weights that repeat records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.samples import risk_in_population, risk_of_records
from release_pipeline.mechanisms.clusters.hierarchy import group_by


def test_risks_are_those_of_sdcmicro() -> None:
    """Its test of `indivRisk(method = "exact")`: eight records of which three are alone and two a pair."""
    keys = [np.array([2, 3, 2, 2, 3, 3, 1, 2]), np.array([3, 3, 3, 3, 3, 3, 4, 3]), np.array([1, 3, 1, 2, 1, 1, 1, 1])]
    weights = np.array([18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51])
    expected = [0.01355297, 0.08579129, 0.01355297, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01355297]
    assert risk_of_records(group_by(keys), weights) == pytest.approx(expected, abs=5e-9)


def test_risks_of_the_french_example() -> None:
    """`francdat` of the CASC project, keys 1 to 4, with the frequencies and the sums of weights that Capobianchi, Polettini and
    Lucarelli print; the risk of one alone is p/(1 - p) log(1/p)."""
    keys = [[1, 1, 1, 3, 4, 4, 6, 1], [2, 2, 2, 3, 3, 3, 2, 2], [5, 1, 1, 1, 1, 1, 1, 5], [1, 1, 1, 5, 4, 1, 5, 1]]
    weights = np.array([18.0, 45.5, 39.0, 17.0, 541.0, 8.0, 5.0, 92.0])
    group = group_by([np.array(key) for key in keys])
    assert np.bincount(group)[group].tolist() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert np.bincount(group, weights=weights)[group].tolist() == [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    p = 1 / np.array([17, 541, 8, 5])
    risk = risk_of_records(group, weights)
    assert risk[[3, 4, 5, 6]] == pytest.approx(p / (1 - p) * np.log(1 / p))
    whole = risk_in_population(group, weights)
    assert whole.sample_uniques == 4
    assert whole.population_uniques == pytest.approx(p.sum())
    assert whole.identified == pytest.approx(risk.sum())
    assert whole.worst == pytest.approx(risk[6])


@pytest.mark.parametrize("each", [1.0, 50.0, 10_000.0])
@pytest.mark.parametrize("size", [1, 32, 33, 100, 101])
def test_risks_of_large_groups_are_their_integral(size: int, each: float) -> None:
    """However many records share their quasi-identifiers: E[1/F] by numerical integration, where scipy has no function."""
    rest = 1 - 1 / each
    integral, _ = quad(lambda u: 1 / (1 - rest * (1 - u ** (1 / size))), 0, 1, epsrel=1e-11, limit=500)
    risk = risk_of_records(np.zeros(size, dtype=np.int64), np.full(size, each))
    assert risk == pytest.approx(np.full(size, integral / each / size), rel=1e-8)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf]])
def test_what_is_no_weight_is_refused(weights: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="weight"):
        risk_of_records(np.array([0, 1]), np.array(weights))
