"""Records with weights: weighted means and quantiles, and what a sample shows about the population that it was drawn from.

Each record of a sample has a weight, the number of people of the population that it represents. If f records of a sample have the
same quasi-identifiers, and their weights add up to W, the number F of people in the population with these is modelled as f plus a
negative binomial number, as if each person had been drawn with probability p = f / W (Benedetti and Franconi, as sdcMicro's
`indivRisk` has it: BF98). Then

    P[F = f] = p^f                          a sample unique is unique in the population with probability p
    E[1 / F] = p^f / f * 2F1(f, f; f + 1; 1 - p) = p / f * 2F1(1, 1; f + 1; 1 - p)

is the risk that somebody who knows the population's quasi-identifiers identifies the right person for one of these records. It is
an estimate by a model of the sampling: it is less reliable for weights that were strongly adjusted for missing answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray, as_numbers

SERIES, TERMS = 32, 32  # with so many records or more, a series of so many terms: the first omitted term is below 1e-17


@dataclass(frozen=True, slots=True)
class PopulationRisk:
    """The risk of a sample: the number of records that are unique in it by their quasi-identifiers, the expected number of these
    that are unique in the population too, the expected number of re-identifications if all are tried, and the largest risk of one
    record."""

    sample_uniques: int
    population_uniques: float
    identified: float
    worst: float


def risk_of_records(group: IntArray, weights: FloatArray) -> FloatArray:
    """Return E[1/F] of each record, given its group of equal quasi-identifiers.

    >>> risk_of_records(np.array([0, 0, 1]), np.array([92.0, 8.0, 45.5])).round(8).tolist()
    [0.01877883, 0.01877883, 0.08579129]
    """
    _check(group, weights)
    size = np.bincount(group).astype(np.float64)
    share = np.minimum(size / np.maximum(np.bincount(group, weights=weights), 1e-300), 1.0)
    return (share / np.maximum(size, 1) * _sum_series(size, share))[group]


def _sum_series(size: FloatArray, share: FloatArray) -> FloatArray:
    """Return 2F1(1, 1; f + 1; 1 - p), the sum of (1 - p)^n / binomial(f + n, n). scipy fails from f = 100 on (infinite or NaN):
    there it is added up here, starting at the fewest records for which further terms are below the last digit. scipy also fails
    for one record if p is tiny: there it is the logarithm of 1 / p over 1 - p."""
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
    """Return the risk of all records of a sample in the population."""
    risk = risk_of_records(group, weights)
    size = np.bincount(group)
    alone = size[group] == 1
    share = np.minimum(1 / np.maximum(weights[alone], 1e-300), 1.0)
    return PopulationRisk(int(alone.sum()), float(share.sum()), float(risk.sum()), float(risk.max(initial=0.0)))


def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted mean of the records."""
    return float(np.average(values, weights=weights))


def weighted_quantiles(values: FloatArray, weights: FloatArray, shares: Sequence[float]) -> list[float]:
    """Return for each share the least value that records with this share of the weights do not exceed.

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


# A share measured on a sample, with its sampling interval, and the difference of two shares.
#
# The interval is Wilson's (WIL27), 95%: all p for which the measured mean is within 1.96 sqrt(p(1-p)/n) of p. It is made for yes
# and no; a mean of numbers in [0, 1] gets the same one, because the variance of such a number is at most p(1-p), which yes and no
# attain: so it is not too short. Trials are treated as drawn with replacement; without, the mean varies less.


Z = 1.959963984540054  # the normal distribution's 97.5% quantile
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Share:
    """A mean of numbers in [0, 1]: `value` over those `tried`, and for all that they represent the interval from `low` to `high`.

    `among` is how many there are in all, None if they are not a finite list. If all were tried, the interval is the value. If
    nothing was tried, `tried` is 0, the value 0 and the interval all of [0, 1]: nothing is known.
    """

    value: float
    low: float
    high: float
    tried: int
    among: int | None


def measure_share(successes: npt.ArrayLike, *, among: int | None) -> Share:
    """Return the mean of the results, numbers in [0, 1], with its interval for the `among` of which they are a random sample.

    >>> measure_share([1, 0, 0.5], among=3)
    Share(value=0.5, low=0.5, high=0.5, tried=3, among=3)
    """
    numbers = as_numbers(successes, name="successes")
    tried = len(numbers)
    if among is not None and among < tried:
        raise InvalidArgument("more were tried than there are.", where="among")
    if not tried:
        return Share(0.0, 0.0, 0.0 if among == 0 else 1.0, 0, among)
    if float(numbers.min()) < -_ROUNDING or float(numbers.max()) > 1 + _ROUNDING:
        raise InvalidArgument("a success is not a number from 0 to 1.", where="successes")
    value = min(max(float(np.mean(numbers, dtype=np.float64)), 0.0), 1.0)
    low, high = (value, value) if tried == among else wilson_interval(value, tried)
    return Share(value, low, high, tried, among)


def wilson_interval(value: float, tried: int) -> tuple[float, float]:
    """Return the 95% interval for a mean of numbers in [0, 1], of which `tried` had the mean `value` (WIL27).

    >>> [round(limit, 3) for limit in wilson_interval(0.5, 100)]
    [0.404, 0.596]
    """
    square = Z * Z / tried
    centre = (value + square / 2) / (1 + square)
    half = math.sqrt(square * value * (1 - value) + square * square / 4) / (1 + square)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def bound_share(hits: npt.ArrayLike, of: int, doubt: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the probability of an event that happened so often in so many trials (CP34), each wrong with a probability
    of at most `doubt`, for any probability of the event.

    >>> lower, upper = bound_share([0, 50], 100, 0.025)
    >>> lower.round(3).tolist(), upper.round(3).tolist()
    ([0.0, 0.398], [0.036, 0.602])
    """
    import scipy.special  # 0.1 s to import: only where it is used

    special: Any = scipy.special
    count = np.asarray(hits, dtype=np.float64)
    lower = np.where(count > 0, special.betaincinv(np.maximum(count, 1), of - count + 1, doubt), 0.0)
    upper = np.where(count < of, special.betaincinv(count + 1, np.maximum(of - count, 1), 1 - doubt), 1.0)
    return lower, upper


def difference_beyond(attack: Share, control: Share) -> Share:
    """Return what the attack gains on its targets, as a share of what it could gain: (a - c) / (1 - c), from 0 to 1 (GEM23).

    a and c are the middles of the two intervals and the errors their half lengths, which propagate as if independent: sqrt((da /
    (1-c))^2 + (dc (1-a) / (1-c)^2)^2). Value and limits are cut off at 0 and 1. This is the residual risk of GEM23 and of its
    authors' library, so that figures can be compared. If the attack always succeeds on the control group, nothing is left to
    gain, and the interval is all of [0, 1]; the same if either was not tried at all.
    """
    tried = min(attack.tried, control.tried)
    a, c = ((share.low + share.high) / 2 for share in (attack, control))
    da, dc = ((share.high - share.low) / 2 for share in (attack, control))
    if not tried or c >= 1:
        return Share(0.0, 0.0, 1.0, tried, attack.among)
    value = (a - c) / (1 - c)
    error = math.hypot(da / (1 - c), dc * (1 - a) / (1 - c) ** 2)
    value, low, high = (min(max(number, 0.0), 1.0) for number in (value, value - error, value + error))
    return Share(value, low, high, tried, attack.among)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two shares, from -1 to 1, with its 95% interval."""

    value: float
    low: float
    high: float


def subtract_shares(share: Share, other: Share) -> Difference:
    """Return how much larger one share is than another measured on other people: the interval of NEW98 (method 10, without
    correction), which takes from each of Wilson's two intervals the side that makes the difference smaller, or larger. Like
    these, it is not too short for results between 0 and 1. If either was not tried at all, it is [-1, 1].

    >>> found = subtract_shares(measure_share([1] * 56 + [0] * 14, among=None), measure_share([1] * 48 + [0] * 32, among=None))
    >>> [round(figure, 4) for figure in (found.value, found.low, found.high)]
    [0.2, 0.0524, 0.3339]
    """
    if not share.tried or not other.tried:
        return Difference(0.0, -1.0, 1.0)
    value = share.value - other.value
    low = value - math.hypot(share.value - share.low, other.high - other.value)
    high = value + math.hypot(share.high - share.value, other.value - other.low)
    return Difference(value, max(low, -1.0), min(high, 1.0))
