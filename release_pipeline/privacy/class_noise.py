"""Noise within classes of records that share their generalised quasi-identifiers: (k,epsilon)-anonymity (KEA18).

A class C holds k records or more that look alike after generalisation. Each of their numbers gets discrete Laplace noise of scale
t_C = ceil(diam(C) / eps), diam(C) = greatest - least value in C, in grid units. For any two records x, x' of C and any outcome y

    P[x + Z = y] / P[x' + Z = y] <= exp(|x - x'| / t_C) <= exp(diam(C) / t_C) <= exp(eps),

so a released number tells hardly more of one record of its class than of another: *stochastic indistinguishability within a
class*. It is not eps-DP: classes, scales and suppression are read off the data, and a neighbouring table may have others. Several
columns share epsilon by sequential composition; independent noise on copies of one number would add up in the same way.

That is the law of a number as it is drawn. Two rules then drop records, and both look at the originals of the class: (1) one
whose confidence box holds some but fewer than k of them (`find_exposed`), (2) all that are left of a class where fewer than k
are (`find_small_classes`). Let K_x be the event that x passes rule 1, and A_x, given that, that the class passes rule 2. Rule 1
is one set of numbers y for all records of the class: P[K_x] and P[not K_x] are within e^eps of those of x'. For y outside of it

    P[x released as y] = P[x + Z = y] P[A_x],    P[A_x] = P[N >= k-1] + P[N = k-2] P[K_x'],

N being how many of C without x and x' pass rule 1. So P[A_x] is within e^eps of P[A_x'], and the *joint* event "kept, and
released so" within e^(2 eps) = e^(`KEPT` eps). It is not within e^eps: class {0 six times, 3, 10}, k 7, confidence 70%, eps 2
has e^2.369. P[not A_x] = P[N < k-2] + P[N = k-2] P[not K_x'] is within e^eps too, so that being dropped, P[not K_x] + P[K_x]
P[not A_x], is within e^(2 eps). Given that it was kept, a number is within e^(2 eps): P[A_x] cancels, and 1 / P[K_x] is left.
With l rule 2 counts entries of kept columns too, and A_x depends on those of x: then all of this holds for two records that
agree in them, and for others nothing but the bound given that it was kept. `tests/oracles/test_confidence.py` enumerates both.

Where diam(C) = 0 all records of the class have the same number, and it is published exactly: no noise could tell them apart.
Everything is an integer on the declared grid; moving a noisy number back into the declared domain is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.budget import MAX_NANO, Epsilon
from release_pipeline.privacy.grid import FloatArray, Grid, IntArray
from release_pipeline.privacy.noise import Context, discrete_laplace, noise_stream
from release_pipeline.privacy.sensitivity import scales_for

BoolArray = npt.NDArray[np.bool_]
KEPT = 2  # "kept, and released so" is within e^(KEPT eps) for two records of a class, where records are dropped for standing out
_DIGITS = 50  # of the logarithms behind a confidence width: correctly rounded, so every processor gives the same integer
_SHORT_REACH = 1e-4  # below this share of the scale a sum of squares is taken from its series


def class_ends(q: IntArray, group: IntArray) -> tuple[IntArray, IntArray]:
    """The least and the greatest number of each class; the greatest below the least where a class has no records. `group`: the
    class of each record, -1 for none."""
    kept = group >= 0
    numbers, groups = q[kept], group[kept]
    count = int(groups.max(initial=-1)) + 1
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, groups, numbers)
    np.maximum.at(high, groups, numbers)
    return low, high


def class_diameters(q: IntArray, group: IntArray) -> IntArray:
    """greatest - least number of each class, in grid units. `group`: the class of each record, 0.. without gaps, -1 for none."""
    low, high = class_ends(q, group)
    if (high < low).any():
        raise InvalidArgument("there is a class without records.", where="group")
    return high - low


def class_scales(q: IntArray, group: IntArray, epsilon: Epsilon) -> IntArray:
    """The noise scale of each class: ceil(diam / epsilon), 0 where all its numbers are the same.

    >>> class_scales(np.array([3, 9, 4, 7, 7]), np.array([0, 0, 0, 1, 1]), Epsilon.of("0.5")).tolist()
    [12, 0]
    """
    diameters = class_diameters(q, group)
    return scales_for(diameters, epsilon) if len(diameters) else diameters


def add_class_noise(
    q: IntArray, group: IntArray, scale: IntArray, grid: Grid, *, secret: bytes, context: Sequence[Context], clamp: bool = True
) -> IntArray:
    """The released number of each record, in grid units: its own plus one draw with the scale of its class, back in the domain.

    One draw per record, in record order; a record without a class (-1) gets its lane too and keeps its number, which the caller
    must not release.
    """
    per_record = np.where(group >= 0, scale[group] if len(scale) else 0, 0)
    noisy = q + discrete_laplace(per_record, noise_stream(secret, *context, "noise"))
    return np.clip(noisy, 0, grid.width) if clamp else noisy


def expect_magnitude(scale: IntArray) -> FloatArray:
    """E|Z| = 1 / sinh(1/t) of each scale in grid units, 0 where there is no noise."""
    t = scale.astype(np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(scale > 0, 1 / np.sinh(1 / np.where(scale > 0, t, 1.0)), 0.0)


def expect_relative_errors(values: FloatArray, group: IntArray, scale: IntArray, step: float) -> tuple[FloatArray, IntArray]:
    """For each class the expected relative error of its numbers, and of how many numbers that is.

    E|Z| / |x|, averaged over the class through the harmonic mean of |x|: E|Z| times the mean of 1/|x| (KEA18).
    It is undefined at x = 0, so those records are left out, and the caller says how many they were; a class of zeros has NaN.
    """
    inverse, count = mean_inverses(values, group, len(scale))
    return expect_magnitude(scale) * step * inverse, count


def mean_inverses(values: FloatArray, group: IntArray, classes: int) -> tuple[FloatArray, IntArray]:
    """For each class 1 over the harmonic mean of |x|, and of how many numbers: those that are not 0; NaN without any."""
    use = (group >= 0) & (values != 0)
    count = np.bincount(group[use], minlength=classes).astype(np.int64)
    total = np.bincount(group[use], weights=1 / np.abs(values[use]), minlength=classes)
    with np.errstate(invalid="ignore"):
        return total / count, count


def expect_square(q: IntArray, group: IntArray, scale: IntArray, width: int) -> FloatArray:
    """The expected squared error of each record's released number, in grid units, moving back into the domain included.

    With q = exp(-1/t), P[|Z| >= j on one side] = q^j / (1 + q): a number x loses its noise beyond x below and W - x above, so
    E = (S(x) + S(W - x)) / (1 + q), S(d) = sum over j = 1..d of (2j - 1) q^j. 0 for records without a class.
    """
    t = np.where(group >= 0, scale[group] if len(scale) else 0, 0).astype(np.float64)
    noisy = t > 0
    out = np.zeros(len(q))
    ratio = np.exp(-1 / t[noisy])
    below, above = q[noisy].astype(np.float64), (width - q[noisy]).astype(np.float64)
    out[noisy] = (_one_sided_squares(below, t[noisy]) + _one_sided_squares(above, t[noisy])) / (1 + ratio)
    return out


def _one_sided_squares(d: FloatArray, t: FloatArray) -> FloatArray:
    """S(d) = sum over j = 1..d of (2j - 1) exp(-j/t) for whole d >= 0."""
    ratio, r = np.exp(-1 / t), -np.expm1(-1 / t)
    with np.errstate(under="ignore"):
        reached = np.exp(-d / t)
    a = -np.expm1(-d / t)
    exact = ratio * (2 * (a - d * r * reached) - r * a) / (r * r)
    return np.where(d / t < _SHORT_REACH, d * d - (4 * d**3 + 3 * d * d - d) / (6 * t), exact)


def epsilon_for(error_of: Callable[[Epsilon], float], wanted: float) -> Epsilon | None:
    """The smallest epsilon whose error, a falling function of epsilon, is at most what is wanted; None if none is.

    >>> str(epsilon_for(lambda epsilon: 3 / float(epsilon), 2.0))
    '1.5'
    """

    def suffices(nano: int) -> bool:
        try:
            return error_of(Epsilon(nano)) <= wanted  # NaN, where there is nothing to err on, is not at most anything
        except InvalidArgument:  # so little epsilon that the noise would not fit 64 bits
            return False

    low, high = 0, MAX_NANO
    if not suffices(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return Epsilon(high)


@cache
def confidence_width(scale: int, confidence: Decimal, columns: int) -> int:
    """The least whole w with P[|Z_a| <= w in each of `columns` columns] >= confidence, when all have this scale: one at c^(1/m).

    P[|Z| <= w] = 1 - 2 q^(w+1) / (1 + q) with q = exp(-1/t), so w = ceil(t ln(2 / ((1 + q)(1 - c')))) - 1.

    >>> confidence_width(10, Decimal("0.99"), 1), confidence_width(0, Decimal("0.99"), 1)
    (46, 0)
    """
    if not 0 < confidence < 1:
        raise InvalidArgument("the confidence does not lie between 0 and 1.", where="confidence")
    if scale == 0:
        return 0
    with localcontext() as context:
        context.prec = _DIGITS
        each = confidence ** (Decimal(1) / columns)
        if each >= 1:
            raise InvalidArgument("the confidence does not lie between 0 and 1 by its first 50 digits.", where="confidence")
        q = (Decimal(-1) / scale).exp()
        return max(math.ceil(scale * (2 / ((1 + q) * (1 - each))).ln()) - 1, 0)


def confidence_widths(scales: Sequence[IntArray], confidence: Decimal) -> IntArray:
    """The half-widths of each class's confidence box, a column per noise column."""
    m = len(scales)
    return np.stack([np.array([confidence_width(int(t), confidence, m) for t in scale], np.int64) for scale in scales], axis=1)


def find_exposed(original: IntArray, released: IntArray, group: IntArray, widths: IntArray, k: int) -> BoolArray:
    """The records whose confidence box holds some of the originals of their class, and fewer than k: those stand out.

    Confidence-based k-anonymity (KEA18; methods.md section 5). `original`, `released`: records by noise columns in grid units,
    `group` the class of each record (-1: not released, and no original of any class), `widths` half-widths by class and column.
    An empty box does not count against its record, though its number may point at the original nearest to it. Each record has
    one with a probability of at most 1 - confidence: its own original lies outside too. The decision reads original data.
    """
    m = original.shape[1]
    if widths.ndim != 2 or widths.shape[1] != m or int(group.max(initial=-1)) >= len(widths):  # compiled code checks no bounds
        raise InvalidArgument("the widths do not have a row for each class and a column for each noise column.", where="widths")
    widest = sorted(range(m), key=lambda place: -len(np.unique(original[:, place])))  # few are inside a box of its first column
    original, released, widths = (np.ascontiguousarray(array[:, widest]) for array in (original, released, widths))
    order = np.lexsort((original[:, 0], group)).astype(np.int64)
    order = order[np.searchsorted(group[order], 0) :]
    starts = np.searchsorted(group[order], np.arange(len(widths) + 1)).astype(np.int64)
    exposed = np.zeros(len(group), dtype=np.bool_)
    reach = np.minimum(widths, 2**60)
    kernel = _load_kernel()
    kernel.count_boxes(np.ascontiguousarray(original[order]), starts, order, released, group[order], reach, m, k, exposed)
    return exposed


def find_small_classes(
    group: IntArray,
    kept: BoolArray,
    *,
    k: int,
    sensitive: npt.NDArray[Any] | None = None,
    l: int = 1,  # noqa: E741  the literature's name
) -> BoolArray:
    """The kept records whose class has too few of them: fewer than k, or fewer than l different values of a sensitive column.

    `sensitive`: records by columns. Records without a class are not among them.
    """
    members = np.flatnonzero(kept & (group >= 0))
    own = group[members]
    small = np.bincount(own) < k
    for column in sensitive.T if sensitive is not None and l > 1 else ():
        values, value = np.unique(column, return_inverse=True)
        pairs = np.unique(own * len(values) + value[members])
        small |= np.bincount(pairs // len(values), minlength=len(small)) < l
    found = np.zeros(len(group), dtype=np.bool_)
    found[members] = small[own]
    return found


@cache
def _load_kernel() -> ModuleType:
    """The compiled loops, when they are needed."""
    from release_pipeline.privacy import box_kernel

    return box_kernel
