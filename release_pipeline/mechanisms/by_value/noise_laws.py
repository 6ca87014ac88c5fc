"""The split of a column's budget over its stages: noise of integer scales under epsilon, of rational variances under rho.

Replacing one record takes 1 from one count of a stage and adds 1 to another: the counts of a stage change by 2 in L1 and by
sqrt(2) in L2. Discrete Laplace noise of scale t then loses 2/t of epsilon, discrete Gaussian noise of variance s^2 loses 1/s^2 of
rho (methods.md sections 7 and 8). The losses of the stages add up, even if the cells of one follow from earlier noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.scales import mean_magnitude
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.noise import MAX_SCALE, NoiseStream, discrete_gaussian, discrete_laplace, gaussian_magnitude

FIRST = Fraction(35, 100)  # share of the budget for the first stage, which locates the records in the domain
LEAST_STRENGTH = 100  # the least records times epsilon for counts by value: below it, sums by rank have less error
_TRIED = 200  # scales tried for the first stage, because whole numbers waste some of the budget


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise. `blunt`: how much of the spread the fit treats as a parabola; `coarse`: the number of spreads that
    cells are sized for."""

    scale: int
    blunt = 0.5
    coarse = 1.0

    @property
    def loss(self) -> Fraction:
        """Return the loss of a stage: 2/t of epsilon."""
        return Fraction(2, self.scale)

    @property
    def spread(self) -> float:
        """Return the scale as the fit uses it: t."""
        return float(self.scale)

    @property
    def magnitude(self) -> float:
        """E|Z|."""
        return mean_magnitude(self.scale)

    def draw(self, count: int, stream: NoiseStream) -> IntArray:
        """Return so many independent draws."""
        return discrete_laplace(np.full(count, self.scale, dtype=np.int64), stream)

    def log_ratio(self, residual: FloatArray, other: FloatArray) -> FloatArray:
        """Return how much likelier the first residuals are than the others, in nats: (|other| - |residual|) / t."""
        return (np.abs(other) - np.abs(residual)) / self.scale


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise, otherwise like `LaplaceNoise`."""

    variance: Fraction
    blunt = 1.5  # with a parabola throughout, one count that nothing explains keeps the fit from ending
    coarse = 1.4

    @property
    def loss(self) -> Fraction:
        """Return the loss of a stage: 1/s^2 of rho."""
        return 1 / self.variance

    @property
    def spread(self) -> float:
        """Return the scale as the fit uses it: s."""
        return math.sqrt(self.variance)

    @property
    def magnitude(self) -> float:
        """E|Z|."""
        return gaussian_magnitude(self.variance)

    def draw(self, count: int, stream: NoiseStream) -> IntArray:
        """Return so many independent draws."""
        return discrete_gaussian(self.variance, count, stream)

    def log_ratio(self, residual: FloatArray, other: FloatArray) -> FloatArray:
        """Return how much likelier the first residuals are, in nats: (other^2 - residual^2) / (2 s^2)."""
        return (other - residual) * (other + residual) / (2 * float(self.variance))


Noise: TypeAlias = LaplaceNoise | GaussianNoise


@dataclass(frozen=True, slots=True)
class PureBudget:
    """The budget of all stages of a column together: epsilon, exactly."""

    epsilon: Fraction

    @property
    def strength(self) -> float:
        """Return the epsilon under which counts would have noise like that of this budget: epsilon itself."""
        return float(self.epsilon)

    def first(self) -> LaplaceNoise:
        """Return noise for about 0.35 of epsilon. Scales are whole numbers, so some of a large epsilon is wasted: the chosen
        scale has the least cost together with that of the next stage, at prices that make 0.35 : 0.65 the best shares if nothing
        is wasted.

        >>> [PureBudget(Fraction(epsilon)).first().scale for epsilon in ("1", "0.1", "2")]
        [6, 60, 2]
        """
        return LaplaceNoise(_first_scale(self.epsilon))

    def after(self, lost: Fraction, share: Fraction) -> LaplaceNoise:
        """Return the noise of the least scale t with 2/t within the share."""
        return LaplaceNoise(_least_scale(share * (self.epsilon - lost)))


@dataclass(frozen=True, slots=True)
class RhoBudget:
    """The budget of all stages together: rho, exactly. Variances are fractions, so nothing is wasted."""

    rho: Fraction

    @property
    def strength(self) -> float:
        """Return 2 sqrt(2 rho): the epsilon whose discrete Laplace noise of scale 2/epsilon has the standard deviation
        1/sqrt(rho)."""
        return 2 * math.sqrt(2 * self.rho)

    def first(self) -> GaussianNoise:
        """Return noise for 0.35 of rho.

        >>> RhoBudget(Fraction(1, 50)).first().variance
        Fraction(1000, 7)
        """
        return GaussianNoise(1 / (FIRST * self.rho))

    def after(self, lost: Fraction, share: Fraction) -> GaussianNoise:
        """Return the noise whose variance loses exactly that share."""
        return GaussianNoise(1 / (share * (self.rho - lost)))


Budget: TypeAlias = PureBudget | RhoBudget


@lru_cache(maxsize=64)  # computed for every simulated and every audited release
def _first_scale(epsilon: Fraction) -> int:
    """Return the scale of the first stage."""
    ideal = _least_scale(FIRST * epsilon)
    if ideal > _TRIED:
        return ideal
    least = _least_scale(epsilon)
    tried = [t for t in range(least, 3 * ideal + 1) if Fraction(2, t) < epsilon]
    return min(tried or [least + 1], key=lambda t: _price(t, epsilon))


def _price(first: int, epsilon: Fraction) -> Fraction:
    """Return FIRST^3 t_1^2 + (1 - FIRST)^3 t_2^2: least at shares FIRST and 1 - FIRST of 2/t_1 + 2/t_2."""
    then = _least_scale(epsilon - Fraction(2, first))
    return FIRST**3 * first**2 + (1 - FIRST) ** 3 * then**2


def _least_scale(epsilon: Fraction) -> int:
    """Return the least whole t >= 1 with 2/t <= epsilon."""
    scale = max(math.ceil(2 / epsilon), 1)
    if scale > MAX_SCALE:
        raise InvalidArgument("epsilon is too small for noise of 64 bits.", where="epsilon", remedy="Use a larger epsilon.")
    return scale


def name_noise(noise: Noise) -> str:
    """Return the name of a noise distribution, as it appears next to counts.

    >>> name_noise(LaplaceNoise(3)), name_noise(GaussianNoise(Fraction(5, 2)))
    ('Laplace 3', 'Gaussian 5/2')
    """
    return f"Laplace {noise.scale}" if isinstance(noise, LaplaceNoise) else f"Gaussian {noise.variance}"


def read_noise(words: str) -> Noise:
    """Return the noise that `name_noise` named; raises for any other text."""
    law, amount = words.split()
    return LaplaceNoise(int(amount)) if law == "Laplace" else GaussianNoise(Fraction(amount))
