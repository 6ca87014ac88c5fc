"""A share that was tried on some of many, with the interval that the sampling costs, and what of one share is beyond another.

The interval is Wilson's (WIL27), 95%: all p for which the mean found lies within 1.96 sqrt(p(1-p)/n) of p. It is made for yes
and no; a mean of numbers in [0, 1] is given the same one, because the variance of such a number is at most p(1-p), which yes and
no attain: so it is no shorter than need be. Those tried are taken as drawn with replacement; without, the mean spreads less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import FloatArray, as_numbers

Z = 1.959963984540054  # the normal law's 97.5% quantile
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Share:
    """A mean of numbers in [0, 1]: `value` of those `tried`, and for all of those it stands for the interval from `low` to
    `high`.

    `among` says how many those are, and is None where they are not a list that could be tried to its end. If all were tried, the
    interval is the value. If nothing was tried, `tried` is 0, the value 0 and the interval all of [0, 1]: nothing is known.
    """

    value: float
    low: float
    high: float
    tried: int
    among: int | None


def measure_share(successes: npt.ArrayLike, *, among: int | None) -> Share:
    """The mean of what each try gave, a number in [0, 1], with its interval for the `among` of which these are a random sample.

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
    """The 95% interval for a mean of numbers in [0, 1] of which `tried` had the mean `value` (WIL27).

    >>> [round(limit, 3) for limit in wilson_interval(0.5, 100)]
    [0.404, 0.596]
    """
    square = Z * Z / tried
    centre = (value + square / 2) / (1 + square)
    half = math.sqrt(square * value * (1 - value) + square * square / 4) / (1 + square)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def bound_share(found: npt.ArrayLike, of: int, doubt: float) -> tuple[FloatArray, FloatArray]:
    """Bounds on the probability of an event that happened so often in so many tries (CP34), each wrong with a probability of
    `doubt` at the most, whatever the event's is.

    >>> lower, upper = bound_share([0, 50], 100, 0.025)
    >>> lower.round(3).tolist(), upper.round(3).tolist()
    ([0.0, 0.398], [0.036, 0.602])
    """
    import scipy.special  # 0.1 s to import: only where it is used

    special: Any = scipy.special
    count = np.asarray(found, dtype=np.float64)
    lower = np.where(count > 0, special.betaincinv(np.maximum(count, 1), of - count + 1, doubt), 0.0)
    upper = np.where(count < of, special.betaincinv(count + 1, np.maximum(of - count, 1), 1 - doubt), 1.0)
    return lower, upper


def difference_beyond(attack: Share, control: Share) -> Share:
    """What the attack gains on those whom it concerns, as a share of what it could gain: (a - c) / (1 - c), from 0 to 1 (GEM23).

    a and c are the middles of the two intervals and the errors their half lengths, which propagate as if independent: sqrt((da /
    (1-c))^2 + (dc (1-a) / (1-c)^2)^2). Value and limits are cut off at 0 and 1. This is the residual risk of GEM23 and of its
    authors' library, so that figures can be compared. If the attack always succeeds on the control group nothing is left to be
    gained, and the interval is all of [0, 1]; likewise if either was not tried at all.
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
    """One share less another, from -1 to 1, with its 95% interval."""

    value: float
    low: float
    high: float


def subtract_shares(one: Share, other: Share) -> Difference:
    """How much larger one share is than another that was tried on other people: the interval of NEW98 (method 10, without
    correction), which takes from each of Wilson's two intervals the side that makes the difference smaller, or larger. As
    these, it is no shorter than need be where what is tried gives numbers between 0 and 1. If either was not tried at all
    nothing is known.

    >>> found = subtract_shares(measure_share([1] * 56 + [0] * 14, among=None), measure_share([1] * 48 + [0] * 32, among=None))
    >>> [round(figure, 4) for figure in (found.value, found.low, found.high)]
    [0.2, 0.0524, 0.3339]
    """
    if not one.tried or not other.tried:
        return Difference(0.0, -1.0, 1.0)
    value = one.value - other.value
    low = value - math.hypot(one.value - one.low, other.high - other.value)
    high = value + math.hypot(one.high - one.value, other.value - other.low)
    return Difference(value, max(low, -1.0), min(high, 1.0))
