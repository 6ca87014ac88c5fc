"""The cells of a table: every combination of declared labels, level by level. Nothing about them depends on data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.scales import mean_magnitude
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid, IntArray
from release_pipeline.mechanisms.noise import (
    MAX_SCALE,
    MAX_VARIANCE,
    MIN_VARIANCE,
    NoiseStream,
    discrete_gaussian,
    discrete_laplace,
    gaussian_magnitude,
)

MOST_CELLS = 100_000  # in one table, over all of its levels
MOST_LEVELS = 8


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """The shape of a table. `cells`: how many each level has, the coarsest first; `parents`: for each level except the first, the
    cell of the level before that contains each of its cells. A record is in one cell of every level."""

    cells: tuple[int, ...]
    parents: tuple[IntArray, ...]

    @classmethod
    def of(cls, axes: Sequence[Sequence[Sequence[int]]]) -> Shape:
        """Return the shape of a table by axes: for each of them, level by level from the coarsest, the label of each value of its
        column. At most one axis has several levels. Cells are numbered as the labels are, the last axis first.

        >>> Shape.of([[[0, 0, 1], [0, 1, 2]], [[0, 1]]]).cells
        (4, 6)
        >>> Shape.of([[[0, 0, 1], [0, 1, 2]], [[0, 1]]]).parents[0].tolist()
        [0, 1, 0, 1, 2, 3]
        """
        deep = [deep_axis for deep_axis, axis in enumerate(axes) if len(axis) > 1]
        if len(deep) > 1:
            raise InvalidArgument("one column of a table has several levels at the most.", where="by")
        deep_axis = deep[0] if deep else 0
        sizes = [[int(max(level)) + 1 for level in axis] for axis in axes]
        levels = [
            tuple(size[number if axis == deep_axis else 0] for axis, size in enumerate(sizes))
            for number in range(len(sizes[deep_axis]))
        ]
        parents: list[IntArray] = []
        for number, (above, below) in enumerate(pairwise(levels)):
            into = np.zeros(below[deep_axis], dtype=np.int64)
            into[np.array(axes[deep_axis][number + 1])] = np.array(axes[deep_axis][number])
            found = list(np.unravel_index(np.arange(math.prod(below)), below))
            found[deep_axis] = into[found[deep_axis]]
            parents.append(np.ravel_multi_index(found, above).astype(np.int64))
        return cls(tuple(math.prod(level) for level in levels), tuple(parents))

    @property
    def total(self) -> int:
        """Return how many cells all levels have."""
        return sum(self.cells)


# The change of one record in a level of a table, and the noise for it.
#
# Neighbours are two tables of n records that differ in one of them; n is public. In a level a
# record is in one cell.
#
# Counts. The replaced record moves from one cell to another: the counts change by 1 twice, 2 in L1 and sqrt(2) in L2. A level of
# one cell has the count n, which is public: nothing changes.
#
# Sums of a number x that is declared to be in [lo, hi], in whole units of its grid, with m = max(|lo|, |hi|). A record with x
# leaves a cell, one with y comes into another: the sums change by |x| + |y| <= 2 m in L1 and by sqrt(x^2 + y^2) <= sqrt(2) m in
# L2. Into the same cell: by |x - y| <= hi - lo in both. Since hi - lo <= 2 m, L1 is 2 m; L2 is the larger of sqrt(2) m and hi -
# lo, which is more where the domain has numbers of both signs. A level of one cell has only the second case.
#
# Weights. What a record adds may be its weight w, or its weight times its number x: whole units of
# the step of w, or of both steps multiplied. Nothing above needs more than the two ends of what is
# added, if both occur: lo and hi of w; and of w x, which is linear in each, the least and the
# largest of the four corners of the box of (w, x). The total of weights is not public, unlike n: a
# level of one cell changes by hi - lo.
#
# Noise. Independent discrete Laplace noise of a whole scale t on every cell loses L1 / t of epsilon, since
# ||y - c| - |y - c'|| <= |c - c'|, added up. Independent discrete Gaussian noise of variance s^2 loses L2^2 / (2 s^2) of rho
# (CKS20). The levels of a table share what it may lose; that of all of them adds up.


_TOO_LARGE = "the noise of a sum does not fit into 64 bits."
_REMEDY = "Use a larger epsilon, a coarser grid or a narrower domain."


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of a level's cells by one replaced record, in L1, and in L2 squared."""

    l1: int
    l2_squared: int


OF_SOME = ", of some"  # after the noise of counts without a public total: kits that do not know it decline the card


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise distribution of every cell of a level: discrete Laplace of a scale, or discrete Gaussian of a variance; an amount
    of 0 means none, for public counts."""

    law: Literal["Laplace", "Gaussian"]
    amount: Fraction

    @classmethod
    def read(cls, text: str) -> CellNoise:
        """Return the noise with this name; raises for any other text.

        >>> CellNoise.read("Gaussian 25/2").name
        'Gaussian 25/2'
        """
        match text.split(" "):
            case ["Laplace", amount] if amount.isascii() and amount.isdigit():
                return cls("Laplace", Fraction(amount))
            case ["Gaussian", amount] if amount.isascii() and amount.replace("/", "", 1).isdigit():
                return cls("Gaussian", Fraction(amount))
            case _:
                raise InvalidArgument("this names no noise.", remedy="Like Laplace 8, or Gaussian 25/2.")

    @property
    def name(self) -> str:
        """Return the distribution with its scale, or its variance."""
        return f"{self.law} {self.amount}"

    @property
    def magnitude(self) -> float:
        """Return E|Z|, as a figure for people."""
        if not self.amount:
            return 0.0
        return mean_magnitude(int(self.amount)) if self.law == "Laplace" else gaussian_magnitude(self.amount)

    @property
    def spread(self) -> float:
        """Return the square of the distribution's width, to weight levels by: t^2, or the variance."""
        return float(self.amount * self.amount if self.law == "Laplace" else self.amount)

    def loses(self, sensitivity: Sensitivity) -> Fraction:
        """Return what a level with this noise loses, of epsilon or of rho."""
        if not self.amount:
            return Fraction(0)
        change = sensitivity.l1 if self.law == "Laplace" else Fraction(sensitivity.l2_squared, 2)
        return change / self.amount

    def draw(self, count: int, stream: NoiseStream) -> IntArray:
        """Return so many independent draws."""
        if not self.amount:
            return np.zeros(count, dtype=np.int64)
        if self.law == "Gaussian":
            return discrete_gaussian(self.amount, count, stream)
        return discrete_laplace(np.full(count, int(self.amount), dtype=np.int64), stream)


def of_counts(cells: int) -> Sensitivity:
    """Return the sensitivity of a level of so many cells that are counted."""
    return Sensitivity(2, 2) if cells > 1 else Sensitivity(0, 0)


def of_amounts(low: int, high: int, cells: int) -> Sensitivity:
    """Return the sensitivity of a level of so many cells to which a record adds from `low` to `high` units, both of which occur.

    >>> of_amounts(3, 80, 5), of_amounts(3, 80, 1)
    (Sensitivity(l1=160, l2_squared=12800), Sensitivity(l1=77, l2_squared=5929))
    """
    most, width = max(abs(low), abs(high)), high - low
    if cells == 1:
        return Sensitivity(width, width**2)
    return Sensitivity(2 * most, max(2 * most**2, width**2))


def multiply_ends(ends: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the ends of a product of two factors, given the ends of each: by the corners of the box.

    >>> multiply_ends((3, 80), (-2, 10))
    (-160, 800)
    """
    corners = [mine * theirs for mine in ends for theirs in other]
    return min(corners), max(corners)


def ends_of(grid: Grid) -> tuple[int, int]:
    """Return the ends of a domain in units of its grid from 0."""
    low = sum_units(grid)
    return low, low + grid.width


def sum_units(grid: Grid) -> int:
    """Return the lower end of a domain in units of its grid from 0: a value adds this plus its position on the grid."""
    low = grid.lo / grid.step
    if low.denominator != 1:
        raise InvalidArgument(
            "its domain does not begin at a multiple of its grid, so that its sums would lie between grid points.",
            remedy="Choose a lower end that is a whole number of grid steps from 0.",
        )
    return int(low)


def laplace_noise(sensitivity: Sensitivity, epsilon: Fraction) -> CellNoise:
    """Return noise of the least whole scale t >= 1 with L1 / t <= epsilon.

    >>> laplace_noise(Sensitivity(2, 2), Fraction(1, 4)).name
    'Laplace 8'
    """
    if sensitivity.l1 == 0:
        return CellNoise("Laplace", Fraction(0))
    scale = max(math.ceil(sensitivity.l1 / epsilon), 1)
    if scale > MAX_SCALE:
        raise InvalidArgument(_TOO_LARGE, remedy=_REMEDY)
    return CellNoise("Laplace", Fraction(scale))


def gaussian_noise(sensitivity: Sensitivity, rho: Fraction) -> CellNoise:
    """Return noise of the variance that loses exactly rho: L2^2 / (2 rho).

    >>> gaussian_noise(Sensitivity(2, 2), Fraction(1, 50)).name
    'Gaussian 50'
    """
    if sensitivity.l2_squared == 0:
        return CellNoise("Gaussian", Fraction(0))
    variance = max(sensitivity.l2_squared / (2 * rho), MIN_VARIANCE)
    if variance > MAX_VARIANCE:
        raise InvalidArgument(_TOO_LARGE, remedy=_REMEDY)
    return CellNoise("Gaussian", variance)


def noise_of_share(sensitivity: Sensitivity, share: Fraction, *, by_rho: bool) -> CellNoise:
    """Return the noise of a level that may lose so much of epsilon, or of rho."""
    return gaussian_noise(sensitivity, share) if by_rho else laplace_noise(sensitivity, share)


# The noisy cells of a table: exact counts or sums, level by level, and one draw of noise on each.
#
# For two tables of n records that differ in one of them, a level of the table loses what `noise` derives for its sensitivity, for
# all data. The noise of different levels is drawn independently, so the whole loses at most the sum over its levels (basic
# composition). Later steps on noisy cells read no data, and lose nothing.


MOST_SUM = 2**61  # the largest sum of records: with noise it still fits into 64 bits


def sum_levels(cell: IntArray, amounts: IntArray | None, shape: Shape) -> list[IntArray]:
    """Return the exact cells of every level, the coarsest first: how many records are in each, or what their amounts add up to.
    `cell` is the cell of each record on the finest level."""
    finest = np.zeros(shape.cells[-1], dtype=np.int64)
    if amounts is None:
        finest += np.bincount(cell, minlength=shape.cells[-1])
    else:
        check_sum(len(amounts), int(np.abs(amounts).max(initial=0)))
        np.add.at(finest, cell, amounts)
    levels = [finest]
    for parents, count in zip(reversed(shape.parents), reversed(shape.cells[:-1]), strict=True):
        above = np.zeros(count, dtype=np.int64)
        np.add.at(above, parents, levels[0])
        levels.insert(0, above)
    return levels


def measure_levels(
    cell: IntArray, amounts: IntArray | None, shape: Shape, noise: Sequence[CellNoise], stream: NoiseStream
) -> list[IntArray]:
    """Return the noisy cells of every level, the coarsest first."""
    exact = sum_levels(cell, amounts, shape)
    return [level + law.draw(len(level), stream) for level, law in zip(exact, noise, strict=True)]


def check_sum(records: int, most: int) -> None:
    """Refuse sums that could leave 64 bits: of so many records, each of an amount of at most `most` units."""
    if records * most > MOST_SUM:
        raise InvalidArgument(
            f"the sum of {records:,} records might not fit into 64 bits.", remedy="Use a coarser grid or a narrower domain."
        )


# Values that add up, from noisy cells only: least squares, then no negative counts, then whole
# numbers.
#
# Noisy cells contradict each other: groups and their parts were measured separately, and counts add up to n, which is public. The
# values nearest to all of them, each level weighted by one over its variance, are found on the tree of cells in two passes.
#
# Upwards a cell's own number and the sum of those below it are two independent estimates, which are averaged with the inverse of
# their variances. Downwards the difference to the value above is shared out in proportion to those variances. That is the least
# squares solution (each pass is one step of eliminating variables in a tree), and `tests/oracles` compares it with the plain one.
#
# Then, from the coarsest level down, the values in each group are moved to the nearest ones that add up to the whole number above
# and, if no value can be below 0, are not below 0. Then they are rounded, up where most is cut off. All of it reads only noisy
# cells and declared facts, and loses nothing. Moving values up to 0 makes small cells too large on average: computations should
# use the noisy cells.


def reconcile(
    noisy: Sequence[IntArray], shape: Shape, spread: Sequence[float], *, total: int | None, negative: bool
) -> list[IntArray]:
    """Return whole numbers for every level, the coarsest first, that add up, and to `total` if that is known. `spread`: in
    proportion to the variance of each level, 0 for an exact one; `negative`: whether a cell can be below 0."""
    wanted = fit_levels(noisy, shape, spread, total=total)
    first = wanted[0] if negative else np.maximum(wanted[0], 0.0)
    values = [np.rint(first).astype(np.int64) if total is None else _share_out(wanted[0], total, negative=negative)]
    for level, parents in enumerate(shape.parents, 1):
        below = np.zeros(shape.cells[level], dtype=np.int64)
        order = np.argsort(parents, kind="stable")
        starts = np.searchsorted(parents[order], np.arange(shape.cells[level - 1] + 1))
        for cell in range(shape.cells[level - 1]):
            mine = order[starts[cell] : starts[cell + 1]]
            if len(mine):
                below[mine] = _share_out(wanted[level][mine], int(values[-1][cell]), negative=negative)
        values.append(below)
    return values


def fit_levels(noisy: Sequence[IntArray], shape: Shape, spread: Sequence[float], *, total: int | None) -> list[FloatArray]:
    """Return the least squares solution: the values nearest to all noisy cells that add up."""
    fitted = [level.astype(np.float64) for level in noisy]
    unsure = [np.full(len(level), of, dtype=np.float64) for level, of in zip(fitted, spread, strict=True)]
    for level in range(len(fitted) - 1, 0, -1):
        parents, count = shape.parents[level - 1], shape.cells[level - 1]
        held = np.bincount(parents, fitted[level], count)
        their = np.bincount(parents, unsure[level], count)
        part = np.divide(unsure[level - 1], unsure[level - 1] + their, out=np.zeros(count), where=their > 0)
        fitted[level - 1] = fitted[level - 1] + part * (held - fitted[level - 1])
        unsure[level - 1] = unsure[level - 1] * (1 - part)
    if total is not None and (all_of := float(unsure[0].sum())) > 0:
        fitted[0] = fitted[0] + unsure[0] / all_of * (total - fitted[0].sum())
    for level, parents in enumerate(shape.parents, 1):
        count = shape.cells[level - 1]
        missing = fitted[level - 1] - np.bincount(parents, fitted[level], count)
        their = np.bincount(parents, unsure[level], count)
        each = np.divide(missing, their, out=np.zeros(count), where=their > 0)
        fitted[level] = fitted[level] + unsure[level] * each[parents]
    return fitted


def _share_out(wanted: FloatArray, total: int, *, negative: bool) -> IntArray:
    """Return the whole numbers nearest to the wanted ones that add up to the total: not below 0 unless they may be."""
    if negative:
        moved = wanted + (total - float(wanted.sum())) / len(wanted)
    else:
        moved = np.maximum(wanted - level_off(wanted, total), 0.0)
    return _round(moved, total, negative=negative)


def level_off(wanted: FloatArray, total: int) -> float:
    """Return what to subtract from each of these so that the remainders above 0 add up to the total: the nearest such point."""
    down = np.sort(wanted)[::-1]
    off = (np.cumsum(down) - total) / np.arange(1, len(down) + 1)
    return float(off[max(int(np.count_nonzero(down > off)) - 1, 0)])


def _round(moved: FloatArray, total: int, *, negative: bool) -> IntArray:
    """Return the numbers rounded down, plus one for those that lost most by it (ties: the first), until the total is reached."""
    low = np.floor(moved).astype(np.int64)
    order = np.argsort(low - moved, kind="stable")
    rest = total - int(low.sum())
    if rest > 0:
        each, more = divmod(rest, len(low))
        low += each
        low[order[:more]] += 1
    while rest < 0:  # with sums beyond 2^53 floats lose units
        fits = order[::-1] if negative else order[::-1][low[order[::-1]] > 0]
        taken = fits[: min(-rest, len(fits))]
        low[taken] -= 1
        rest += len(taken)
    return low
