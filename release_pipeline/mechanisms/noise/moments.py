"""The size of noise as figures for people: the only floats next to the samplers, and no draw uses them."""

from __future__ import annotations

import math
from fractions import Fraction

from release_pipeline.mechanisms.noise.gaussian import as_variance

_SUMMED = 100  # up to this sigma term by term; beyond, the series is right to 1 part in 10^10


def gaussian_magnitude(variance: Fraction | int) -> float:
    """Return E|Z| of the discrete Gaussian of this `variance`, to a relative 1e-9: about sqrt(2/pi) sigma.

    Up to sigma = 100 the sums of |z| and 1, each times exp(-z^2 / (2 sigma^2)), to z > 40 sigma. Beyond: by Euler and Maclaurin
    the first is 2 sigma^2 (1 - 1/(12 sigma^2) - 1/(240 sigma^4) ..), and by Poisson the second sqrt(2 pi) sigma (1 + 2
    exp(-2 pi^2 sigma^2) ..).

    >>> round(gaussian_magnitude(1), 6), round(gaussian_magnitude(10**12) / 10**6, 6)
    (0.727582, 0.797885)
    """
    square = float(as_variance(variance))
    sigma = math.sqrt(square)
    if sigma > _SUMMED:
        return math.sqrt(2 / math.pi) * sigma * (1 - 1 / (12 * square))
    weights = [math.exp(-z * z / (2 * square)) for z in range(1, math.ceil(40 * sigma) + 1)]
    return 2 * math.fsum(z * weight for z, weight in enumerate(weights, 1)) / (1 + 2 * math.fsum(weights))
