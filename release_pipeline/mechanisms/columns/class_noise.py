"""Noise within classes of records that share their generalised quasi-identifiers: (k,epsilon)-anonymity (KEA18).

A class C has k records or more that are equal after generalisation. Each of their numbers gets discrete Laplace noise of scale
t_C = ceil(diam(C) / eps), diam(C) = greatest - least value in C, in grid units. For any two records x, x' of C and any outcome y

    P[x + Z = y] / P[x' + Z = y] <= exp(|x - x'| / t_C) <= exp(diam(C) / t_C) <= exp(eps),

so a released number reveals hardly more about one record of its class than about another: *stochastic indistinguishability within
a class*. It is not eps-DP: classes, scales and suppression are read off the data, and a neighbouring table may have others.
Several columns share epsilon by sequential composition; independent noise on copies of one number would add up in the same way.

That is the distribution of a number as it is drawn. Two rules then drop records, and both use the originals of the class: (1) one
whose confidence box holds some but fewer than k of them (`find_exposed`), (2) all that remain of a class if they are fewer than k
(`find_small_classes`). Let K_x be the event that x passes rule 1, and A_x, given that, that the class passes rule 2. Rule 1 is
one set of numbers y for all records of the class: P[K_x] and P[not K_x] are within e^eps of those of x'. For y outside of it

    P[x released as y] = P[x + Z = y] P[A_x],    P[A_x] = P[N >= k-1] + P[N = k-2] P[K_x'],

N being how many of C without x and x' pass rule 1. So P[A_x] is within e^eps of P[A_x'], and the *joint* event "kept, and
released so" within e^(2 eps) = e^(`KEPT` eps). It is not within e^eps: class {0 six times, 3, 10}, k 7, confidence 70%, eps 2
has e^2.369. P[not A_x] = P[N < k-2] + P[N = k-2] P[not K_x'] is within e^eps too, so that being dropped, P[not K_x] + P[K_x]
P[not A_x], is within e^(2 eps). Given that it was kept, a number is within e^(2 eps): P[A_x] cancels, and 1 / P[K_x] is left.
With l rule 2 counts entries of kept columns too, and A_x depends on those of x: then all of this holds for two records that
agree in them, and for others only the bound given that it was kept. `tests/oracles/test_confidence.py` enumerates both.

If diam(C) = 0 all records of the class have the same number, and it is published exactly: no noise could distinguish them.
Everything is an integer on the declared grid; moving a noisy number back into the declared domain is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import MAX_NANO, Epsilon
from release_pipeline.mechanisms.accounting.sensitivity import scales_for
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid, IntArray
from release_pipeline.mechanisms.noise import Context, discrete_laplace, noise_stream

BoolArray = npt.NDArray[np.bool_]
KEPT = 2  # "kept, and released so" is within e^(KEPT eps) for two records of a class, if records are dropped for standing out
_SHORT_REACH = 1e-4  # below this share of the scale a sum of squares is computed from its series


def count_classes(group: IntArray) -> int:
    """Return how many classes there are. `group`: the class of each record, 0.. without gaps, -1 for none."""
    return int(group.max(initial=-1)) + 1


def class_ends(q: IntArray, group: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least and the greatest number of each class; the greatest is below the least if a class has no records. `group`:
    the class of each record, -1 for none."""
    count, has_class = count_classes(group), group >= 0
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, group[has_class], q[has_class])
    np.maximum.at(high, group[has_class], q[has_class])
    return low, high


def class_sizes(group: IntArray, kept: BoolArray | None = None) -> IntArray:
    """Return how many records each class has, of all or of those that are `kept`."""
    use = group >= 0 if kept is None else (group >= 0) & kept
    return np.bincount(group[use], minlength=count_classes(group))


def class_diameters(q: IntArray, group: IntArray) -> IntArray:
    """Return the greatest minus the least number of each class, in grid units. `group`: the class of each record, 0.. without
    gaps, -1 for none."""
    low, high = class_ends(q, group)
    if (high < low).any():
        raise InvalidArgument("there is a class without records.", where="group")
    return high - low


def class_scales(q: IntArray, group: IntArray, epsilon: Epsilon) -> IntArray:
    """Return the noise scale of each class: ceil(diam / epsilon), 0 if all its numbers are the same.

    >>> class_scales(np.array([3, 9, 4, 7, 7]), np.array([0, 0, 0, 1, 1]), Epsilon.of("0.5")).tolist()
    [12, 0]
    """
    diameters = class_diameters(q, group)
    return scales_for(diameters, epsilon) if len(diameters) else diameters


def add_class_noise(
    q: IntArray,
    group: IntArray,
    scale: IntArray,
    grid: Grid,
    *,
    secret: bytes,
    context: Sequence[Context],
    clamp: bool = True,
) -> IntArray:
    """Return the released number of each record, in grid units: its own plus one draw with the scale of its class, back in the
    domain.

    One draw per record, in record order; a record without a class (-1) gets its lane too and keeps its number, which the caller
    must not release.
    """
    noisy = q + discrete_laplace(take_of_class(scale, group), noise_stream(secret, *context, "noise"))
    return np.clip(noisy, 0, grid.width) if clamp else noisy


def take_of_class(per_class: npt.NDArray[Any], group: IntArray) -> npt.NDArray[Any]:
    """Return the entry of each record's class; 0 for a record without one."""
    return np.where(group >= 0, per_class[group] if len(per_class) else 0, 0)


def expect_magnitude(scale: IntArray) -> FloatArray:
    """Return E|Z| = 1 / sinh(1/t) of each scale in grid units, 0 if there is no noise."""
    t = scale.astype(np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(scale > 0, 1 / np.sinh(1 / np.where(scale > 0, t, 1.0)), 0.0)


def expect_relative_errors(values: FloatArray, group: IntArray, scale: IntArray, step: float) -> tuple[FloatArray, IntArray]:
    """Return for each class the expected relative error of its numbers, and how many numbers that covers.

    E|Z| / |x|, averaged over the class through the harmonic mean of |x|: E|Z| times the mean of 1/|x| (KEA18).
    It is undefined at x = 0, so those records are left out, and the caller reports how many they were; a class of zeros has NaN.
    """
    inverse, count = mean_inverses(values, group, len(scale))
    return expect_magnitude(scale) * step * inverse, count


def mean_inverses(values: FloatArray, group: IntArray, classes: int) -> tuple[FloatArray, IntArray]:
    """Return for each class 1 over the harmonic mean of |x|, and the number of values that are not 0; NaN without any."""
    use = (group >= 0) & (values != 0)
    total = np.bincount(group[use], weights=1 / np.abs(values[use]), minlength=classes).astype(np.float64, copy=False)
    count = np.bincount(group[use], minlength=classes)
    with np.errstate(invalid="ignore"):
        return total / count, count


def expect_square(q: IntArray, group: IntArray, scale: IntArray, width: int) -> FloatArray:
    """Return the expected squared error of each record's released number, in grid units, moving back into the domain included.

    With q = exp(-1/t), P[|Z| >= j on one side] = q^j / (1 + q): a number x loses its noise beyond x below and W - x above, so
    E = (S(x) + S(W - x)) / (1 + q), S(d) = sum over j = 1..d of (2j - 1) q^j. 0 for records without a class.
    """
    t = take_of_class(scale, group).astype(np.float64)
    noisy = t > 0
    out = np.zeros(len(q))
    ratio = np.exp(-1 / t[noisy])
    below, above = q[noisy].astype(np.float64), (width - q[noisy]).astype(np.float64)
    out[noisy] = (_one_sided_squares(below, t[noisy]) + _one_sided_squares(above, t[noisy])) / (1 + ratio)
    return out


def _one_sided_squares(d: FloatArray, t: FloatArray) -> FloatArray:
    """Return S(d) = sum over j = 1..d of (2j - 1) exp(-j/t) for whole d >= 0."""
    ratio, r = np.exp(-1 / t), -np.expm1(-1 / t)
    with np.errstate(under="ignore"):
        reached = np.exp(-d / t)
    a = -np.expm1(-d / t)
    exact = ratio * (2 * (a - d * r * reached) - r * a) / (r * r)
    return np.where(d / t < _SHORT_REACH, d * d - (4 * d**3 + 3 * d * d - d) / (6 * t), exact)


def epsilon_for(error_of: Callable[[Epsilon], float], wanted: float) -> Epsilon | None:
    """Return the smallest epsilon whose error, a falling function of epsilon, is at most `wanted`; None if there is none.

    >>> str(epsilon_for(lambda epsilon: 3 / float(epsilon), 2.0))
    '1.5'
    """

    def suffices(nano: int) -> bool:
        try:
            return error_of(Epsilon(nano)) <= wanted  # NaN, an error over no numbers, is not at most anything
        except InvalidArgument:  # so little epsilon that the noise would not fit 64 bits
            return False

    low, high = 0, MAX_NANO
    if not suffices(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return Epsilon(high)
