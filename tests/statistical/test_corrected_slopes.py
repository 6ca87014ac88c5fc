"""The covariance behind the corrected slopes' intervals, term by term, on a table where each of its terms matters."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.analyst.laws import fourth_cumulant_of, variance_of
from release_pipeline.analyst.slopes import _covariance, _invert, _Sums
from release_pipeline.mechanisms import discrete_laplace, noise_stream

pytestmark = pytest.mark.statistical

ROWS, RELEASES = 150, 8000
SCALES = (40, 9, 15)  # of two explanatory columns and the explained one
WITHIN = 0.06  # the sampling error of a variance from 8,000 numbers is 1.6%


def test_the_covariance_of_the_corrected_sum_is_what_the_kit_estimates() -> None:
    """Mean 0, and on average the estimated covariance is that of 8,000 releases, for columns that go together and large
    residuals; without any one of its terms, or with scales 30% off, it is not."""
    chance = np.random.default_rng(11)
    x = np.round(chance.normal(0, [60, 25], (ROWS, 2)) @ np.array([[1, 0.4], [0, 1]]))
    y = np.round(1.5 * x[:, 0] - 2 * x[:, 1] + 150 * (chance.random(ROWS) - 0.5) * np.abs(x[:, 0]) / 30)
    x, y = x - x.mean(axis=0), y - y.mean()
    beta = np.linalg.solve(x.T @ x, x.T @ y)
    scales = np.repeat(np.array(SCALES), ROWS * RELEASES)
    u, w, v = discrete_laplace(scales, noise_stream(bytes(32), "slopes")).reshape(3, RELEASES, ROWS).astype(np.float64)
    noise = np.array([variance_of(t) for t in SCALES])
    cumulant = np.array([fourth_cumulant_of(t) for t in SCALES])
    psi, content = np.empty((RELEASES, 2)), np.zeros((2, 2))
    for number in range(RELEASES):
        a = x + np.column_stack([u[number], w[number]])
        b = y + v[number]
        a, b = a - a.mean(axis=0), b - b.mean()
        sums = _Sums(a, b, noise[:2], cumulant[:2], noise[2], cumulant[2])
        psi[number] = a.T @ b - sums.left @ beta
        content += _covariance(sums, beta) / RELEASES
    true = np.cov(psi.T)
    size = np.sqrt(np.diag(true))
    assert np.abs(psi.mean(axis=0) / size * np.sqrt(RELEASES)).max() < 4

    def off(content: np.ndarray) -> float:
        return float(np.abs((content - true) / np.outer(size, size)).max())

    assert off(content) < WITHIN
    s = noise[2] + float(beta**2 @ noise[:2])
    residual = float(np.sum((y - x @ beta) ** 2))
    moved = noise[:2] * beta
    terms = [x.T @ x * s, residual * np.diag(noise[:2]), ROWS * s * np.diag(noise[:2])]
    terms += [ROWS * np.outer(moved, moved), ROWS * np.diag(beta**2 * cumulant[:2])]
    assert off(sum(terms)) < WITHIN
    for term in terms:
        assert off(content - term) > WITHIN
    assert off(content * 1.3**2) > WITHIN
    assert off(content * 0.7**2) > WITHIN


MANY = 6000


@pytest.mark.parametrize(("level", "most"), [(0.95, 0.0585), (0.99, 0.0140), (0.999, 0.0023)])
@pytest.mark.parametrize("case", ["1 one", "2 ones", "5 ones", "outlier", "noisy outlier", "rare and explained"])
def test_where_a_few_records_decide_the_slope_it_covers(case: str, level: float, most: float) -> None:
    """A 0/1 column with few ones, an outlier without and with noise in it, and rare values of y explained by a noisy x: no more
    misses than the level allows, give and take three standard errors. One record alone misses 6%, 2.3% and 0.95% with a normal
    number's quantile."""
    chance = np.random.default_rng(3)
    x, y = np.zeros(ROWS), np.round(chance.uniform(0, 100, ROWS))
    scales = (0, 100)
    if case.endswith(("one", "ones")):
        x[: int(case[0])] = 1
    elif case == "rare and explained":
        x, y, scales = y, np.where(np.arange(ROWS) < 2, 100.0, 0.0), (8, 0)
    else:
        x[0], x[1:] = 100, chance.integers(0, 5, ROWS - 1)
        scales = (2, 100) if case == "noisy outlier" else scales
    draws = discrete_laplace(np.repeat(np.array([max(t, 1) for t in scales]), ROWS * MANY), noise_stream(bytes(32), case))
    u, v = draws.reshape(2, MANY, ROWS).astype(np.float64) * np.array([t > 0 for t in scales])[:, None, None]
    law = [(variance_of(t), fourth_cumulant_of(t)) if t else (0.0, 0.0) for t in scales]
    true = float(np.cov(x, y)[0, 1] / np.var(x, ddof=1))
    missed = 0
    for number in range(MANY):
        a, b = x + u[number], y + v[number]
        sums = _Sums(
            (a - a.mean())[:, None], b - b.mean(), np.array([law[0][0]]), np.array([law[0][1]]), law[1][0], law[1][1], 1.0
        )
        fit = _invert(sums, level, "x")
        missed += not fit.low <= true <= fit.high
    assert missed / MANY <= most
