"""Exact probabilities of the discrete Laplace and Gaussian, and chi-square tests against them."""

from __future__ import annotations

import math

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
    edges = two_sided(-scale * np.log(2 * (1 - upper)))
    return _p_value(draws, edges, survival(edges.astype(np.float64), scale))


def gaussian_masses(sigma: float) -> npt.NDArray[np.float64]:
    """P[Z = z] of the discrete Gaussian for z = 0, 1, .. up to 12 sigma and more."""
    weights = np.exp(-(np.arange(math.ceil(12 * sigma) + 12) ** 2.0) / (2 * sigma**2))
    return weights / (2 * weights.sum() - 1)


def gaussian_survival(z: npt.NDArray[np.int64], sigma: float) -> npt.NDArray[np.float64]:
    """P[Z >= z] for integers z: sums of masses up to sigma = 1000; beyond, the normal law at z - 1/2, right to 1 in 10^7."""
    if sigma > 1000:
        return stats.norm.sf((z - 0.5) / sigma)
    masses = gaussian_masses(sigma)
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    tail = tails[np.minimum(np.where(z >= 1, z, 1 - z), len(masses))]
    return np.where(z >= 1, tail, 1 - tail)


def chi_square_gaussian(draws: npt.NDArray[np.int64], sigma: float) -> float:
    """The p-value of `draws` under the discrete Gaussian of `sigma`, over at most 40 bins of about equal probability."""
    upper = np.linspace(0.5, 1, BINS // 2 + 1)[1:-1]  # a bin of 0 alone only where that is no rare value
    edges = two_sided(sigma * stats.norm.ppf(upper) + 0.5)
    return _p_value(draws, edges, gaussian_survival(edges, sigma))


def two_sided(quantiles: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The first value of each bin but the lowest: quantiles above the middle rounded up, and their mirror images."""
    positive = np.unique(np.ceil(quantiles).astype(np.int64))
    return np.unique(np.concatenate([-positive + 1, positive]))


def _p_value(draws: npt.NDArray[np.int64], edges: npt.NDArray[np.int64], survivals: npt.NDArray[np.float64]) -> float:
    expected = -np.diff(np.concatenate([[1.0], survivals, [0.0]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    return float(stats.chisquare(observed, expected * (len(draws) / expected.sum())).pvalue)
