"""Records that stand for others: weighted means and quantiles, and what a sample tells of the population that it was drawn from.

Each record of a sample has a weight, the number of people of the population that it stands for. Of f records of a sample with the
same quasi-identifiers, whose weights add up to W, the number F of people in the population who have these is taken to be f plus a
negative binomial number, as if each person had been drawn with probability p = f / W (Benedetti and Franconi, as sdcMicro's
`indivRisk` has it: BF98). Then

    P[F = f] = p^f                          a sample unique is alone in the population with probability p
    E[1 / F] = p^f / f * 2F1(f, f; f + 1; 1 - p) = p / f * 2F1(1, 1; f + 1; 1 - p)

is the risk that who knows the population's quasi-identifiers points at the right person for one of these records. It is an
estimate by a model of the sampling: weights that were adjusted much for answers that are missing say less of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import FloatArray, IntArray

SERIES, TERMS = 32, 32  # from so many records on a series of so many terms: the first that is left out is below 1e-17


@dataclass(frozen=True, slots=True)
class PopulationRisk:
    """Of the records of a sample: how many are alone in it with their quasi-identifiers, and how many of these are expected to be
    alone in the population too; how many re-identifications to expect when all are tried; and the largest risk of one."""

    sample_uniques: int
    population_uniques: float
    identified: float
    worst: float


def risk_of_records(group: IntArray, weights: FloatArray) -> FloatArray:
    """E[1/F] of each record, by the group of equal quasi-identifiers that it is in.

    >>> risk_of_records(np.array([0, 0, 1]), np.array([92.0, 8.0, 45.5])).round(8).tolist()
    [0.01877883, 0.01877883, 0.08579129]
    """
    _check(group, weights)
    size = np.bincount(group).astype(np.float64)
    share = np.minimum(size / np.maximum(np.bincount(group, weights=weights), 1e-300), 1.0)
    return (share / np.maximum(size, 1) * _sum_series(size, share))[group]


def _sum_series(size: FloatArray, share: FloatArray) -> FloatArray:
    """2F1(1, 1; f + 1; 1 - p), the sum of (1 - p)^n / binomial(f + n, n). scipy has none from f = 100 on (infinite or NaN): there
    it is added up here, and from so few records on that the terms are below the last digit; nor of one record where p is tiny:
    there it is the logarithm of 1 / p over 1 - p."""
    import scipy.special

    special: Any = scipy.special
    rest: FloatArray = 1 - share
    total: FloatArray = np.asarray(special.hyp2f1(1, 1, np.clip(size, 2, SERIES) + 1, rest), dtype=np.float64)
    single = size <= 1
    inside = single & (share > 0) & (share < 1)
    total[single] = 1.0
    total[inside] = -np.log(share[inside]) / rest[inside]
    many = size >= SERIES
    term = np.ones(int(many.sum()))
    summed = term.copy()
    for place in range(1, TERMS):
        term = term * rest[many] * place / (size[many] + place)
        summed += term
    total[many] = summed
    return total


def risk_in_population(group: IntArray, weights: FloatArray) -> PopulationRisk:
    """What a sample tells of the population, over all of its records."""
    risk = risk_of_records(group, weights)
    size = np.bincount(group)
    alone = size[group] == 1
    share = np.minimum(1 / np.maximum(weights[alone], 1e-300), 1.0)
    return PopulationRisk(int(alone.sum()), float(share.sum()), float(risk.sum()), float(risk.max(initial=0.0)))


def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """The mean of what the records stand for."""
    return float(np.average(values, weights=weights))


def weighted_quantiles(values: FloatArray, weights: FloatArray, shares: Sequence[float]) -> list[float]:
    """The least value that records which stand for so large a share do not exceed.

    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), [0.25, 0.5, 0.8])
    [1.0, 2.0, 3.0]
    """
    order = np.argsort(values, kind="stable")
    below: FloatArray = np.cumsum(weights[order])
    wanted: FloatArray = np.array(shares, dtype=np.float64) * float(below[-1]) * (1 - 1e-12)
    places: npt.NDArray[np.intp] = np.searchsorted(below, wanted)
    return values[order][np.minimum(places, len(values) - 1)].tolist()


def _check(group: IntArray, weights: npt.NDArray[np.float64]) -> None:
    if len(group) != len(weights):
        raise InvalidArgument("there is not one weight for each record.", where="weights")
    if len(weights) and not (np.isfinite(weights).all() and float(weights.min()) >= 0):
        raise InvalidArgument("a weight is negative, missing or infinite.", where="weights")
