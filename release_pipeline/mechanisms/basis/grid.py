"""From declared domain and grid to exact integers, and back after the noise.

Everything that a guarantee depends on is integer arithmetic (methods.md section 0; MIR12 shows what happens otherwise): each
value is clamped to the declared domain and snapped to the declared grid *before* anything is summed, and mapped back only *after*
the noise, which costs nothing. Domain and grid are declared, never learned from data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.basis.counting import NumberEncoder

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
Number: TypeAlias = "Decimal | Fraction | str | int | float"

MAX_WIDTH = 2**52  # grid units: each of them, and its neighbour, is a float64
_FLOAT_SLACK = Fraction(8, 2**53)  # a domain given in floats may miss the grid by this much, relatively


@dataclass(frozen=True, slots=True)
class Grid:
    """The declared domain [lo, hi] in steps: value = lo + q * step for q in 0..width."""

    lo: Fraction
    step: Fraction
    width: int

    @classmethod
    def declare(cls, domain: tuple[Number, Number], step: Number) -> Grid:
        """Return the grid of a declared domain; refused unless (hi - lo) / step is a whole number from 1 to 2^52.

        Text, integers, Decimal and Fraction are taken exactly. A float is taken as the shortest decimal that prints
        as it; when such a domain misses a whole number of steps by rounding error only, the nearest one is meant.

        >>> Grid.declare((0, "0.3"), "0.1").width, Grid.declare((0, 1.5 * 14.2), 0.05).width
        (3, 426)
        """
        lo, hi, g = (_fraction(number) for number in (*domain, step))
        if g <= 0:
            raise InvalidArgument("the grid is not positive.", remedy="Name the step between two values, like 1 or 0.01.")
        if hi <= lo:
            raise InvalidArgument("the domain is empty: its upper end is not above its lower end.")
        steps = (hi - lo) / g
        width = round(steps)
        slack = _FLOAT_SLACK * (abs(lo) + abs(hi)) / g if any(isinstance(x, float) for x in (*domain, step)) else 0
        if abs(steps - width) > slack or width < 1:
            raise InvalidArgument(
                "the domain is not a whole number of grid steps wide.",
                remedy="Choose domain and grid so that (upper - lower) / grid is a whole number.",
            )
        if width > MAX_WIDTH:
            raise InvalidArgument(
                "the domain has more than 2^52 grid steps, which numbers of this size cannot carry exactly.",
                remedy="Choose a coarser grid or a narrower domain.",
            )
        if max(abs(lo), abs(hi)) > 2 * MAX_WIDTH * g:
            raise InvalidArgument(
                "the domain lies so far from 0 that its grid is finer than the numbers there.",
                remedy="Choose a coarser grid, or subtract a constant first.",
            )
        return cls(lo, g, width)

    @property
    def hi(self) -> Fraction:
        """Return the upper end of the domain."""
        return self.lo + self.width * self.step

    def units_of(self, points: Sequence[Number]) -> tuple[int, ...]:
        """Return declared points in grid units, ascending; one outside the domain, off the grid or named twice is refused.

        >>> Grid.declare((0, 1), "0.1").units_of(["0.3", 0])
        (0, 3)
        """
        whole_units: list[int] = []
        for point in points:
            units = (_fraction(point) - self.lo) / self.step
            if not 0 <= units <= self.width:
                raise InvalidArgument("an atom lies outside the domain.", where="atoms", remedy="Name values inside it.")
            if units.denominator != 1:
                raise InvalidArgument(
                    "an atom lies off the grid, so that no value could be there.",
                    where="atoms",
                    remedy="Name values that are the lower end of the domain and a whole number of grid steps.",
                )
            whole_units.append(int(units))
        if len(set(whole_units)) < len(whole_units):
            raise InvalidArgument("an atom is named twice.", where="atoms", remedy="Name each once.")
        return tuple(sorted(whole_units))

    def quantise(self, values: npt.NDArray[Any]) -> IntArray:
        """Return q = round((clamp(x) - lo) / step) in 0..width for each value separately.

        It is a fixed function of each value only, however the last bit is rounded: the claims need no more.
        Only correctly rounded operations are used, so every processor gives the same integers.
        """
        units, encoder = np.empty(len(values), dtype=np.int64), self.encoder
        for part in pieces(len(values)):
            units[part] = encoder.find(values[part])
        return units

    @property
    def encoder(self) -> NumberEncoder:
        """Return how numbers become units of the grid, one by one."""
        step = self.step
        return NumberEncoder(float(self.lo), float(self.hi), float(step.numerator), float(step.denominator), self.width)

    def snap(self, values: npt.NDArray[Any]) -> FloatArray:
        """Return the values as a method sees them: moved into the domain and onto the grid, in their own units."""
        return self.values_of(self.quantise(values))

    def values_of(self, units: IntArray) -> FloatArray:
        """Return the values at so many whole grid steps above lo."""
        return self.restore(units.astype(np.float64))

    def restore(self, units: FloatArray) -> FloatArray:
        """Return the values at `units` grid steps above lo; whole units give the float nearest to the exact decimal."""
        common = self.lo.denominator * self.step.denominator
        offset = float(self.lo.numerator * self.step.denominator)
        factor = float(self.step.numerator * self.lo.denominator)
        values = units * factor if factor != 1.0 else units.copy()
        if offset != 0.0:
            values += offset
        if common != 1:
            values /= float(common)
        return values


def as_numbers(values: object, *, name: str = "values") -> npt.NDArray[Any]:
    """Return `values` as a one-dimensional array of finite numbers; anything else is refused, with only counts in the message."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidType(f"{name} is a masked array.", remedy="Fill or remove the masked entries by a declared rule first.")
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidArgument(f"{name} must have one dimension, not {array.ndim}.")
    if array.dtype.kind not in "iuf" or array.dtype == np.longdouble:
        raise InvalidType(f"{name} must be integers or float64, not {array.dtype.name}.")
    if array.dtype.kind == "f":
        bad = int(np.count_nonzero(~np.isfinite(array)))
        if bad:
            raise InvalidArgument(
                f"{name} holds {bad:,} missing or infinite numbers.",
                remedy="Fill or remove them by a declared rule first.",
            )
    return array


def as_rows(matrix: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `matrix` as an array with a row for each record and at least one column."""
    if isinstance(matrix, np.ma.MaskedArray):
        raise InvalidType("the matrix is a masked array.", remedy="Fill or remove the masked entries by a declared rule first.")
    array: npt.NDArray[Any] = np.asarray(matrix)
    if array.ndim != 2 or not array.shape[1]:
        raise InvalidArgument("the matrix must have two dimensions, a row for each record and at least one column.")
    return array


def as_matrix(matrix: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `matrix` as rows of finite numbers; a refusal gives only counts."""
    array = as_rows(matrix)
    if array.dtype.kind not in "iuf" or array.dtype == np.longdouble:
        raise InvalidType(f"the matrix must be integers or float64, not {array.dtype.name}.")
    if array.dtype.kind == "f":
        bad = int(np.count_nonzero(~np.isfinite(array)))
        if bad:
            raise InvalidArgument(
                f"the matrix holds {bad:,} missing or infinite numbers.",
                remedy="Fill or remove them by a declared rule first.",
            )
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise InvalidArgument("a value is beyond 64-bit integers.")
    return array


def _fraction(number: Number) -> Fraction:
    try:
        if isinstance(number, float):
            return Fraction(Decimal(repr(float(number))))
        return Fraction(Decimal(number.strip())) if isinstance(number, str) else Fraction(number)
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        raise InvalidArgument("domain and grid must be finite numbers.") from None
