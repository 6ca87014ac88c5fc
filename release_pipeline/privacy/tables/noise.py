"""What one record can change in a level of a table, and the noise for it.

Neighbours are two tables of n records that differ in one of them; n is public. In a level a record is in one cell.

Counts. The replaced record leaves a cell and comes into another: the counts change by 1 twice, 2 in L1 and sqrt(2) in L2. A level
of one cell has the count n, which is public: nothing changes.

Sums of a number x that is declared to lie in [lo, hi], in whole units of its grid, with m = max(|lo|, |hi|). A record with x
leaves a cell, one with y comes into another: the sums change by |x| + |y| <= 2 m in L1 and by sqrt(x^2 + y^2) <= sqrt(2) m in L2.
Into the same cell: by |x - y| <= hi - lo in both. Since hi - lo <= 2 m, L1 is 2 m; L2 is the larger of sqrt(2) m and hi - lo,
which is more where the domain has numbers of both signs. A level of one cell has the second case alone.

Weights. What a record adds may be its weight w, or its weight times its number x: whole units of the step of w, or of both steps
multiplied. Nothing above needs more than the two ends of what is added, if both occur: lo and hi of w; and of w x, which is
linear in each, the least and the largest of the four corners of the box of (w, x). The total of weights is not public, unlike n:
a level of one cell changes by hi - lo.

Noise. Independent discrete Laplace noise of a whole scale t on every cell loses L1 / t of epsilon, since
||y - c| - |y - c'|| <= |c - c'|, added up. Independent discrete Gaussian noise of variance s^2 loses L2^2 / (2 s^2) of rho
(CKS20). The levels of a table share what it may lose; that of all of them adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import Grid, IntArray
from release_pipeline.privacy.noise import (
    MAX_SCALE,
    MAX_VARIANCE,
    MIN_VARIANCE,
    NoiseStream,
    discrete_gaussian,
    discrete_laplace,
    gaussian_magnitude,
)
from release_pipeline.privacy.scales import mean_magnitude

_TOO_LARGE = "the noise of a sum does not fit into 64 bits."
_REMEDY = "Use a larger epsilon, a coarser grid or a narrower domain."


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much one replaced record changes the cells of a level, in L1, and in L2 squared."""

    l1: int
    l2_squared: int


OF_SOME = ", of some"  # behind the noise of counts whose total is not public: kits that do not know such decline the card


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The law of the noise of every cell of a level: discrete Laplace of a scale, or discrete Gaussian of a variance; an amount
    of 0 is none, for what is public."""

    law: Literal["Laplace", "Gaussian"]
    amount: Fraction

    @classmethod
    def read(cls, words: str) -> CellNoise:
        """As `words` writes it.

        >>> CellNoise.read("Gaussian 25/2").words
        'Gaussian 25/2'
        """
        match words.split(" "):
            case ["Laplace", amount] if amount.isascii() and amount.isdigit():
                return cls("Laplace", Fraction(amount))
            case ["Gaussian", amount] if amount.isascii() and amount.replace("/", "", 1).isdigit():
                return cls("Gaussian", Fraction(amount))
            case _:
                raise InvalidArgument("this names no noise.", remedy="Like Laplace 8, or Gaussian 25/2.")

    @property
    def words(self) -> str:
        """The law with its scale, or its variance."""
        return f"{self.law} {self.amount}"

    @property
    def magnitude(self) -> float:
        """E|Z|, for people."""
        if not self.amount:
            return 0.0
        return mean_magnitude(int(self.amount)) if self.law == "Laplace" else gaussian_magnitude(self.amount)

    @property
    def spread(self) -> float:
        """The square of the law's width, to weigh levels by: t^2, or the variance."""
        return float(self.amount * self.amount if self.law == "Laplace" else self.amount)

    def loses(self, sensitivity: Sensitivity) -> Fraction:
        """What a level with this noise loses, of epsilon or of rho."""
        if not self.amount:
            return Fraction(0)
        change = sensitivity.l1 if self.law == "Laplace" else Fraction(sensitivity.l2_squared, 2)
        return change / self.amount

    def draw(self, count: int, stream: NoiseStream) -> IntArray:
        """So many, independent."""
        if not self.amount:
            return np.zeros(count, dtype=np.int64)
        if self.law == "Gaussian":
            return discrete_gaussian(self.amount, count, stream)
        return discrete_laplace(np.full(count, int(self.amount), dtype=np.int64), stream)


def of_counts(cells: int) -> Sensitivity:
    """Of a level of so many cells that are counted."""
    return Sensitivity(2, 2) if cells > 1 else Sensitivity(0, 0)


def of_amounts(low: int, high: int, cells: int) -> Sensitivity:
    """Of a level of so many cells to which a record adds from `low` to `high` units, both of which occur.

    >>> of_amounts(3, 80, 5), of_amounts(3, 80, 1)
    (Sensitivity(l1=160, l2_squared=12800), Sensitivity(l1=77, l2_squared=5929))
    """
    most, width = max(abs(low), abs(high)), high - low
    if cells == 1:
        return Sensitivity(width, width**2)
    return Sensitivity(2 * most, max(2 * most**2, width**2))


def multiply_ends(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """From where to where a product goes, one factor of which goes from end to end, and so the other: by the corners of the box.

    >>> multiply_ends((3, 80), (-2, 10))
    (-160, 800)
    """
    corners = [mine * theirs for mine in one for theirs in other]
    return min(corners), max(corners)


def ends_of(grid: Grid) -> tuple[int, int]:
    """The ends of a domain in units of its grid from 0."""
    low = sum_units(grid)
    return low, low + grid.width


def sum_units(grid: Grid) -> int:
    """The lower end of a domain in units of its grid from 0: what is added up is this and the place on the grid."""
    low = grid.lo / grid.step
    if low.denominator != 1:
        raise InvalidArgument(
            "its domain does not begin at a multiple of its grid, so that its sums would lie between grid points.",
            remedy="Choose a lower end that is a whole number of grid steps from 0.",
        )
    return int(low)


def laplace_noise(sensitivity: Sensitivity, epsilon: Fraction) -> CellNoise:
    """The least whole scale t >= 1 with L1 / t <= epsilon.

    >>> laplace_noise(Sensitivity(2, 2), Fraction(1, 4)).words
    'Laplace 8'
    """
    if sensitivity.l1 == 0:
        return CellNoise("Laplace", Fraction(0))
    scale = max(math.ceil(sensitivity.l1 / epsilon), 1)
    if scale > MAX_SCALE:
        raise InvalidArgument(_TOO_LARGE, remedy=_REMEDY)
    return CellNoise("Laplace", Fraction(scale))


def gaussian_noise(sensitivity: Sensitivity, rho: Fraction) -> CellNoise:
    """The variance that loses just rho: L2^2 / (2 rho).

    >>> gaussian_noise(Sensitivity(2, 2), Fraction(1, 50)).words
    'Gaussian 50'
    """
    if sensitivity.l2_squared == 0:
        return CellNoise("Gaussian", Fraction(0))
    variance = max(sensitivity.l2_squared / (2 * rho), MIN_VARIANCE)
    if variance > MAX_VARIANCE:
        raise InvalidArgument(_TOO_LARGE, remedy=_REMEDY)
    return CellNoise("Gaussian", variance)


def noise_of_share(sensitivity: Sensitivity, share: Fraction, *, by_rho: bool) -> CellNoise:
    """The noise of a level that may lose so much of epsilon, or of rho."""
    return gaussian_noise(sensitivity, share) if by_rho else laplace_noise(sensitivity, share)
