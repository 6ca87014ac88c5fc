"""How far a sum of discrete Laplace or Gaussian numbers lies from 0, with a given probability: exactly where the scales are
known, and at the most where only their squares are bounded, or numbers have weights."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from statistics import NormalDist
from typing import Any, cast

import numpy as np

from release_pipeline.analyst.laws import variance_of
from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import FloatArray

_BINS = 20_000
_EXACT_UP_TO = 2_000.0  # standard deviations in steps, up to which the law is added up number by number


def check_level(level: float) -> None:
    """A level is a probability that an interval can have."""
    given: object = level
    if isinstance(given, bool) or not isinstance(given, Real):
        raise InvalidType("the level is a number between 0.5 and 1, like 0.95.", where="level")
    if not 0.5 <= level < 1:
        raise InvalidArgument("the level lies between 0.5 and 1, like 0.95.", where="level")


@lru_cache(maxsize=256)
def quantile_of_sum(scale: int, draws: int, level: float) -> int:
    """The least m with P[|Z_1 + .. + Z_p| <= m] >= level, for p independent discrete Laplace numbers of one scale.

    Up to a standard deviation of 2,000 steps the probabilities are added up: they are the Fourier coefficients of
    (1 + 2 sigma^2 sin(u/2)^2)^-p. Above it a step matters to the sixth digit: the sum is then as a normal number of variance
    sigma^2 G, where G is gamma distributed with shape p (each Laplace number is a normal one of exponential variance, AM74).

    >>> quantile_of_sum(1, 1, 0.95), quantile_of_sum(1000, 1, 0.95), round(quantile_of_sum(1000, 100, 0.95) / 14142, 2)
    (3, 2996, 1.96)
    """
    check_level(level)
    deviation = math.sqrt(variance_of(scale) * draws)
    if deviation <= _EXACT_UP_TO:
        places = 1 << math.ceil(math.log2(80 * deviation + 64))
        angle = np.sin(np.pi * np.arange(places // 2 + 1) / places)
        law = np.fft.irfft((1 + 2 * variance_of(scale) * angle**2) ** -float(draws), places)
        inside = law[0] + np.concatenate([[0.0], 2 * np.cumsum(law[1 : places // 2])])
        return int(np.searchsorted(inside, level - 1e-12))
    import scipy.optimize  # both take long to import: only where they are used
    import scipy.special

    special, optimize = cast(Any, scipy.special), cast(Any, scipy.optimize)
    spread = np.sqrt(special.gammaincinv(draws, (np.arange(_BINS) + 0.5) / _BINS) / draws)

    def excess(m: float) -> float:
        beyond: FloatArray = 2 * special.ndtr(-m / spread)
        return float(beyond.mean()) - (1 - level)

    return math.ceil(optimize.brentq(excess, 0.01, 50.0) * deviation)


@lru_cache(maxsize=1)
def _nodes() -> tuple[FloatArray, FloatArray]:
    """Places and weights of Gauss' rule on (-1, 1): they take longer to find than to use."""
    places, weights = np.polynomial.legendre.leggauss(400)
    return places.astype(np.float64), weights.astype(np.float64)


@lru_cache(maxsize=4096)
def worst_quantile(level: float, draws: int = 1) -> float:
    """z with P[|X_1 + .. + X_p| > z sd] <= 1 - level for independent Laplace numbers of *any* scales, `sd` that of the sum, as
    long as none has more than 1/`draws` of the variance.

    X_j is a normal number of variance 2 s_j^2 E_j, E_j exponential with mean 1 (AM74), so that P[|sum| > z sd] = E f(Y) with
    f(y) = 2 Phi(-z / sqrt(y)) and Y = sum a_j E_j, a_j = s_j^2 / sum s^2. For convex h, E h(sum a_j E_j) is a convex symmetric
    function of a, so it is largest at the corners of a_j <= 1/q, where q of them are 1/q (q = `draws`): E h(Y) <= E h(G), G the
    mean of q of the E_j, gamma distributed. f is convex up to y = z^2/3 and concave from there on; h follows f and then its
    tangent: convex, and nowhere below f. So E f(Y) <= E h(G), which with B = z^2/3 is

        E[f(G); G < B] + f(B) P[G > B] + f'(B) E[G - B; G > B],    f'(y) = z y^(-3/2) phi(z / sqrt(y))

    One Laplace number alone reaches 2.12 at 95%, a normal one 1.96; Gauss' inequality for unimodal sums would say 2.98.

    >>> round(worst_quantile(0.95), 2), round(worst_quantile(0.95, 20), 2), round(worst_quantile(0.95, 1000), 2)
    (2.16, 1.97, 1.96)
    """
    check_level(level)

    import scipy.optimize
    import scipy.special

    optimize: Any = scipy.optimize
    special: Any = scipy.special
    q = float(draws)
    least, most = (float(special.gammaincinv(q, share)) / q for share in (1e-18, 1 - 1e-15))
    places, weights = _nodes()

    def excess(z: float) -> float:
        bend = z * z / 3
        half = max(min(bend, most) - least, 0.0) / 2
        y = least + half * (places + 1)
        density = np.exp(q * math.log(q) + (q - 1) * np.log(y) - q * y - math.lgamma(q))
        before = half * float(weights @ (special.erfc(z / np.sqrt(2 * y)) * density))
        above = float(special.gammaincc(q, q * bend))
        slope = z * bend**-1.5 * math.exp(-1.5) / math.sqrt(2 * math.pi)
        beyond = float(special.gammaincc(q + 1, q * bend)) - bend * above
        return before + above * math.erfc(math.sqrt(1.5)) + slope * max(beyond, 0.0) - (1 - level)

    return float(optimize.brentq(excess, 0.5, 60.0)) * (1 + 1e-7)


def bound_sum(root: float, draws: int, level: float) -> float:
    """x with P[|Z_1 + .. + Z_p| > x] <= 1 - level for discrete Laplace numbers whose scales have sqrt(sum t_j^2) <= root.

    Let U be uniform on (-1/2, 1/2). Z + U is more concentrated about 0 than a Laplace number of scale s = 1/(2 tanh(1/(2t))):
    with a = tanh(1/(2t)), P[|Z + U| > m + v/2] = q^m (1 - v a) for whole m >= 0 and v in [-1, 1] (m = 0: v >= 0), and
    q^m <= exp(-2ma), 1 - va <= exp(-va). Both laws are symmetric and unimodal, so the sums keep that order (Bir48). s <= t +
    1/12, so the Laplace sum has a standard deviation of at most sqrt(2) (root + sqrt(p)/12), and `worst_quantile` bounds it. The
    U_j are taken away again: |sum U_j| > 3.3 sqrt(p) has probability below 1e-9 (Hoe63), which the level is raised by.
    """
    raised = 1 - (1 - level) * (1 - 1e-8)
    return worst_quantile(raised) * math.sqrt(2) * (root + math.sqrt(draws) / 12) + 3.3 * math.sqrt(draws)


def bound_magnitudes(total: float, root: float, draws: int, level: float) -> float:
    """x with P[|Z_1| + .. + |Z_p| > x] <= 1 - level for scales with sum t_j <= total and sqrt(sum t_j^2) <= root.

    P[|Z| >= m] = 2 q^m / (1 + q) <= q^(m - 1/2) = P[t E + 1/2 >= m] for an exponential E, so that the sum is at most sum t_j E_j
    + p/2 in law: mean sum t_j, variance sum t_j^2, and Cantelli's inequality.
    """
    return total + root * math.sqrt(level / (1 - level)) + draws / 2


def bound_equal_magnitudes(scale: int, draws: int, level: float) -> float:
    """The same where no scale exceeds `scale`: sum |Z_j| <= t (E_1 + .. + E_p) + p/2 in law, and that sum is gamma
    distributed."""
    import scipy.special

    special: Any = scipy.special
    return scale * float(special.gammaincinv(draws, level)) + draws / 2


def bound_weighted(weights: FloatArray, scale: int, level: float) -> float:
    """x with P[|w_1 Z_1 + .. + w_p Z_p| > x] <= 1 - level for discrete Laplace numbers of one scale t.

    As in `bound_sum`: w_j (Z_j + U_j) is more concentrated than a Laplace number of scale |w_j| (t + 1/12), and |sum w_j U_j|
    is above 3.3 sqrt(sum w_j^2) with probability below 1e-9 (Hoe63). None has a larger part of the variance than the heaviest.
    """
    raised = 1 - (1 - level) * (1 - 1e-8)
    size = float(np.sqrt(weights @ weights))
    if size == 0:
        return 0.0
    alike = max(int(float(weights @ weights) / float(np.max(weights * weights))), 1)
    return (worst_quantile(raised, alike) * math.sqrt(2) * (scale + 1 / 12) + 3.3) * size


@lru_cache(maxsize=4096)
def quantile_of_gaussian(variance: Fraction, draws: int, level: float) -> int:
    """The least m with P[|Z_1 + .. + Z_p| <= m] >= level, for p independent discrete Gaussian numbers of one variance: by their
    law, multiplied out; above a standard deviation of 2,000 steps as a normal number, from which it differs by less than a step.

    >>> quantile_of_gaussian(Fraction(1), 1, 0.95), quantile_of_gaussian(Fraction(10**8), 4, 0.95)
    (2, 39200)
    """
    check_level(level)
    square = float(variance)
    deviation = math.sqrt(square * draws)
    if deviation > _EXACT_UP_TO:
        return math.ceil(NormalDist().inv_cdf((1 + level) / 2) * deviation)
    places = 1 << math.ceil(math.log2(24 * deviation + 64))
    number = np.fft.fftfreq(places, 1 / places)
    one = np.exp(-(number**2) / (2 * square))
    law = np.fft.irfft(np.fft.rfft(one / one.sum()) ** draws, places)
    inside = law[0] + np.concatenate([[0.0], 2 * np.cumsum(law[1 : places // 2])])
    return int(np.searchsorted(inside, level - 1e-12))


def bound_gaussian(weights: FloatArray, variance: Fraction, level: float) -> float:
    """x with P[|w_1 Z_1 + .. + w_p Z_p| > x] <= 1 - level for discrete Gaussian numbers of one variance v: they are sub-Gaussian
    with it (CKS20), so that the probability is at most 2 exp(-x^2 / (2 v sum w_j^2))."""
    return math.sqrt(2 * float(variance) * float(weights @ weights) * math.log(2 / (1 - level)))
