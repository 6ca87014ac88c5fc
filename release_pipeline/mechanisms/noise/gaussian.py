"""The exact discrete Gaussian.

The distribution: P[Z = z] proportional to exp(-z^2 / (2 v)), with a rational v, called the variance; that of Z is at most v
(CKS20). The sampler is CKS20 Algorithm 3, with sigma = sqrt(v):

    t = floor(sigma) + 1;  Y discrete Laplace of scale t (`laplace`)
    keep Y with probability exp(-(|Y| - v/t)^2 / (2 v)), else start again

For exp(-|Y|/t) exp(-(|Y| - v/t)^2 / (2 v)) = exp(-Y^2 / (2 v)) exp(-v / (2 t^2)), and the last factor is the same for all Y. With
v = N/D the exponent is (|Y| D t - N)^2 / (2 N D t^2), a ratio of whole numbers. It is decided exactly, as `exponentials` says:
the first 32 bits of a uniform number are compared with the enclosure below, and if they do not decide, exact arithmetic continues
with more of them. No floating-point number occurs.

Addressing: attempt a of lane i reads four words at position 4 i of the stream's substream 2^31 + a, which no other distribution
reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from numbers import Integral, Rational
from typing import cast

import numpy as np

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.noise.laplace import attempt_laplace
from release_pipeline.mechanisms.noise.sampling import (
    LANES,
    Layout,
    Places,
    Round,
    are_below,
    below_exp,
    draw_in_rounds,
    exp_enclosure,
)
from release_pipeline.mechanisms.noise.streams import NoiseStream, WordArray

MIN_VARIANCE = Fraction(1, 2**40)  # far below, all draws are 0: here Z is nonzero with probability below exp(-2^38)
MAX_VARIANCE = 2**110  # t is then below MAX_SCALE

_LAYOUT = Layout(words=4, first=2**31)  # the three of a discrete Laplace; the comparison that keeps it
_SLACK = 32  # the enclosure is wrong by less than this, in units of 2^-32


def discrete_gaussian(variance: Fraction | int, count: int, stream: NoiseStream) -> IntArray:
    """Return `count` exact draws from one distribution: P[Z = z] proportional to exp(-z^2 / (2 variance)).

    E|Z| is `gaussian_magnitude(variance)`; the variance of Z is at most `variance`, and close to it from 1 on. The variance is a
    fraction or a whole number from 2^-40 to 2^110; floats are refused, whole or not. Draws are consecutive in the stream:
    drawing in two calls or in one is the same.
    """
    law = GaussianLaw.of(as_variance(variance))
    size = _as_count(count)
    first = stream.take_lanes(size)
    out = np.zeros(size, dtype=np.int64)
    t = np.full(min(size, LANES), law.scale, dtype=np.uint64)

    def attempt(now: Round) -> tuple[Places, IntArray]:
        return _attempt(law, t[: len(now.draws)], now)

    for start in range(0, size, LANES):
        chunk = out[start : start + LANES]
        draw_in_rounds(np.arange(len(chunk)), attempt, _LAYOUT, stream, first + start, chunk)
    return out


def as_variance(variance: Fraction | int) -> Fraction:
    """Return the variance as a fraction; refused unless it is one, or a whole number, from 2^-40 to 2^110."""
    given = cast(object, variance)
    if isinstance(given, bool) or not isinstance(given, Rational):
        what = f"a noise variance must be a fraction or a whole number, not {type(given).__name__}"
        raise InvalidType(f"{what}: the sampler is exact in integers only.")
    exact = Fraction(int(given.numerator), int(given.denominator))
    if exact <= 0:
        raise InvalidArgument("a noise variance must be positive.")
    if exact > MAX_VARIANCE:
        raise InvalidArgument("a noise variance lies outside 2^-40 to 2^110.", remedy="Use a larger epsilon or a coarser grid.")
    if exact < MIN_VARIANCE:
        raise InvalidArgument("a noise variance lies outside 2^-40 to 2^110.", remedy="Use a smaller epsilon or a finer grid.")
    return exact


def _as_count(count: int) -> int:
    given = cast(object, count)
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise InvalidType(f"the number of draws must be a whole number, not {type(given).__name__}.")
    if given < 0:
        raise InvalidArgument("the number of draws must not be negative.")
    return int(given)


def _attempt(law: GaussianLaw, t: WordArray, now: Round) -> tuple[Places, IntArray]:
    """Return one attempt at each open draw: the rows that succeeded, and their values. Its comparison is number 2 of the
    round."""
    rows, values = attempt_laplace(t, now)
    magnitude = np.abs(values)
    bits = now.words[rows, 3]

    def settle(place: int) -> bool:
        return below_exp(int(bits[place]), 64, *law.exponent(int(magnitude[place])), now.more(int(rows[place]), 2))

    kept = are_below(bits, law.enclosure(magnitude), _SLACK, settle)
    return rows[kept], values[kept]


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """The sampler's form of v = N/D: t, the exact exponent, and the fixed-point numbers of its enclosure.

    With f such that s = sigma 2^f is in [2^30, 2^31): centre floor(2^f v/t), factor floor(2^59 / s), limit 8 floor(s).
    """

    numerator: int
    denominator: int
    scale: int
    shift: int
    centre: int
    factor: int
    limit: int

    @classmethod
    def of(cls, v: Fraction) -> GaussianLaw:
        """Return the form for variance v, computed in whole numbers: floor(sqrt(x)) = isqrt(floor(x))."""
        n, d = v.numerator, v.denominator
        t = isqrt(n // d) + 1
        f = (61 - _floor_log2(n, d)) // 2
        above, below = _times_power(n, d, 2 * f)  # s^2 = above / below, in [2^60, 2^62)
        high, low = _times_power(n, d * t, f)
        return cls(n, d, t, f, high // low, isqrt((below << 118) // above), 8 * isqrt(above // below))

    def exponent(self, magnitude: int) -> tuple[int, int]:
        """Return a and b with a/b = (|Y| - v/t)^2 / (2 v), exactly."""
        n, d, t = self.numerator, self.denominator, self.scale
        return (magnitude * d * t - n) ** 2, 2 * n * d * t * t

    def enclosure(self, magnitude: IntArray) -> WordArray:
        """Return integers E with |E - 2^32 exp(-z^2/2)| < 32, where z = (|Y| - v/t) / sigma, for |Y| < 64 t.

        Let d be | |Y| 2^f - centre |, where for f < 0 the product is rounded down. |d - |z| s| < 1, for both terms are too small
        by less than 1. Let z' = floor(d factor / 2^31) / 2^28. The factor is too small by less than 1, s < 2^31, factor <= 2^29:

            -(|z| + 5/4) < 2^28 (z' - |z|) < 1/4

        - z s / 2^31 for the factor, 1/4 for d and 1 for the floor. exp(-z^2/2) falls by at most z exp(-z^2/2) for one of z, and
        (z + 5/4) z exp(-z^2/2) < 2/e + 5/(4 sqrt(e)) < 1.5: at most 1.5 * 2^-28, or 24 units of 2^-32 (and, for z' is not z, less
        than 2^-20 of one). The floor of z'^2/2 costs less than 1, `exp_enclosure` less than 6: together less than 32.

        From |z| = 8 on, d is the limit, 8 floor(s), and E that of z' <= 8: it is 0, and exp(-32) less than a unit.
        Nothing overflows: 64 t 2^f < 2^58, limit * factor <= 2^62, and (2^28 z')^2 <= 2^62.
        """
        scaled = magnitude << self.shift if self.shift >= 0 else magnitude >> -self.shift
        distance = np.minimum(np.abs(scaled - self.centre), self.limit)
        z = distance * self.factor >> 31
        return exp_enclosure((z * z >> 25).astype(np.uint64))


def _floor_log2(a: int, b: int) -> int:
    """Return the largest e with 2^e <= a/b.

    >>> _floor_log2(1, 3), _floor_log2(8, 1)
    (-2, 3)
    """
    e = a.bit_length() - b.bit_length()
    above, below = _times_power(a, b, -e)
    return e if above >= below else e - 1


def _times_power(a: int, b: int, e: int) -> tuple[int, int]:
    """Return a/b times 2^e, as a ratio of whole numbers."""
    return (a << e, b) if e >= 0 else (a, b << -e)
