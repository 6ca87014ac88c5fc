"""Epsilon as an exact value: whole nano-epsilon, split without losing or gaining a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import TypeAlias

from release_pipeline.errors import InvalidArgument, InvalidType

NANO = 10**9
MAX_NANO = 10**6 * NANO  # epsilon of a million: beyond any meaning, and below 2^53 nano-epsilon

EpsilonLike: TypeAlias = "Epsilon | Decimal | Fraction | str | int | float"


@total_ordering
@dataclass(frozen=True, eq=False, slots=True)
class Epsilon:
    """A non-negative epsilon of `nano` times 1e-9.

    Equal to another Epsilon with the same `nano`, and to the number that it prints as:

    >>> Epsilon.of("0.7") == 0.7, Epsilon.of("0.1") + Epsilon.of("0.2") == Epsilon.of("0.3")
    (True, True)
    """

    nano: int

    def __post_init__(self) -> None:
        if not 0 <= self.nano <= MAX_NANO:
            raise InvalidArgument("epsilon lies outside 0 to 1,000,000.", remedy="Name a smaller, positive number.")

    @classmethod
    def of(cls, value: EpsilonLike) -> Epsilon:
        """The exact epsilon of a decimal text, Decimal, Fraction or int; the one just below for a float.

        A float is read as the shortest decimal that prints as it (0.7 is seven tenths) and rounded *down* to nano-epsilon,
        so that what is spent is never more than what was named. Anything else must be a whole number of nano-epsilon.

        >>> Epsilon.of(1 / 3).nano, Epsilon.of("2").nano
        (333333333, 2000000000)
        """
        if isinstance(value, Epsilon):
            return value
        if isinstance(value, bool):
            raise InvalidType("epsilon must be a number, not true or false.")
        exact = _exact(value)
        if not 0 <= exact <= MAX_NANO // NANO:
            raise InvalidArgument("epsilon lies outside 0 to 1,000,000.", remedy="Name a smaller, positive number.")
        nano = exact * NANO
        if nano.denominator != 1 and not isinstance(value, float):
            raise InvalidArgument(
                "epsilon has more than nine decimals.", remedy="The ledger counts whole billionths: round it down."
            )
        return cls(nano.numerator // nano.denominator)

    @property
    def fraction(self) -> Fraction:
        """The exact rational value."""
        return Fraction(self.nano, NANO)

    def split(self, weights: Sequence[int | Decimal | Fraction]) -> tuple[Epsilon, ...]:
        """Parts in proportion to `weights` that add up to self exactly, by largest remainder (ties: the earlier part).

        Sequential composition (methods.md section 0): the parts together cost self, no unit more or less.

        >>> [part.nano for part in Epsilon(10).split([1, 1, 1])]
        [4, 3, 3]
        """
        return _split(self.nano, tuple(weights))

    def times(self, count: int) -> Epsilon:
        """What `count` equal charges cost (basic composition, or group privacy of eps-DP)."""
        return Epsilon(self.nano * count)

    def __add__(self, other: Epsilon) -> Epsilon:
        return Epsilon(self.nano + other.nano)

    def __float__(self) -> float:
        return self.nano / NANO

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Epsilon):
            return self.nano == other.nano
        if isinstance(other, int | float):
            return float(self) == other
        return NotImplemented

    def __lt__(self, other: Epsilon | float) -> bool:
        if isinstance(other, Epsilon):
            return self.nano < other.nano
        return float(self) < other

    def __hash__(self) -> int:
        return hash(float(self))  # equal numbers hash alike; below 2^53 nano the float tells all values apart

    def __str__(self) -> str:
        return format_nano(self.nano)

    def __repr__(self) -> str:
        return f"Epsilon({self!s})"


def format_nano(nano: int) -> str:
    """Any number of nano-epsilon as a decimal: sums and bounds may go beyond what one release may have.

    >>> format_nano(2_500_000_000), format_nano(3 * 10**16)
    ('2.5', '30000000')
    """
    return f"{nano // NANO}.{nano % NANO:09d}".rstrip("0").removesuffix(".")


@lru_cache(maxsize=16)  # a plan asks for the parts of all columns once for each column
def _split(nano: int, weights: tuple[int | Decimal | Fraction, ...]) -> tuple[Epsilon, ...]:
    exact_weights = [Fraction(weight) for weight in weights]
    if not exact_weights or any(weight <= 0 for weight in exact_weights):
        raise InvalidArgument("weights must be positive, and there must be at least one.")
    total = sum(exact_weights)
    shares = [nano * weight / total for weight in exact_weights]
    units = [share.numerator // share.denominator for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda i: (units[i] - shares[i], i))
    for i in by_remainder[: nano - sum(units)]:
        units[i] += 1
    return tuple(Epsilon(unit) for unit in units)


def _exact(value: Decimal | Fraction | str | int | float) -> Fraction:
    try:
        if isinstance(value, float):
            return Fraction(Decimal(repr(float(value))))
        if isinstance(value, str):
            return Fraction(Decimal(value.strip()))
        return Fraction(value)
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        raise InvalidArgument("epsilon is not a decimal number.", remedy="Write it like 0.5 or 2.") from None
