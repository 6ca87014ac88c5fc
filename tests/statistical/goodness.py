"""Exact probabilities of the discrete Laplace, and a chi-square test against them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

TRUE_PASSES = 1e-4  # the least p-value with which the right law may come out: secrets are fixed, so nothing is flaky
WRONG_FAILS = 1e-9  # the largest p-value with which a scale 30% off may come out
BINS = 40


def survival(z: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    """P[Z >= z] for integers z, with Z discrete Laplace: q^z / (1 + q) for z >= 1, q = exp(-1/t)."""
    tail = np.exp(-np.abs(z) / scale) / (1 + np.exp(-1 / scale))
    return np.where(z >= 1, tail, 1 - tail * np.exp(-1 / scale))


def chi_square(draws: npt.NDArray[np.int64], scale: float) -> float:
    """The p-value of `draws` under the discrete Laplace of `scale`, over at most 40 bins of about equal probability."""
    upper = np.linspace(0.5, 1, BINS // 2 + 1)[:-1]
    positive = np.unique(np.ceil(-scale * np.log(2 * (1 - upper))).astype(np.int64))
    edges = np.unique(np.concatenate([-positive + 1, positive]))
    cumulative = np.concatenate([[1.0], survival(edges.astype(np.float64), scale), [0.0]])
    expected = -np.diff(cumulative) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    return float(stats.chisquare(observed, expected * (len(draws) / expected.sum())).pvalue)
