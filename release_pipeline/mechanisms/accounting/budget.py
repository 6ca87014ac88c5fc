"""Epsilon as an exact value: whole nano-epsilon, split without losing or gaining a unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation, localcontext
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
        """Return the exact epsilon of a decimal text, Decimal, Fraction or int; for a float the one just below.

        A float is read as the shortest decimal that prints as it (0.7 is seven tenths) and rounded *down* to nano-epsilon,
        so that the spent budget is never more than the declared one. Anything else must be a whole number of nano-epsilon.

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
        """Return the exact rational value."""
        return Fraction(self.nano, NANO)

    def split(self, weights: Sequence[int | Decimal | Fraction]) -> tuple[Epsilon, ...]:
        """Return parts in proportion to `weights` that add up to self exactly, by largest remainder (ties: the earlier part).

        Sequential composition (methods.md section 0): the parts together cost self, no unit more or less.

        >>> [part.nano for part in Epsilon(10).split([1, 1, 1])]
        [4, 3, 3]
        """
        return _split(self.nano, tuple(weights))

    def times(self, count: int) -> Epsilon:
        """Return what `count` equal charges cost (basic composition, or group privacy of eps-DP)."""
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
        return hash(float(self))  # equal numbers hash alike; below 2^53 nano the float differs for all values

    def __str__(self) -> str:
        return format_nano(self.nano)

    def __repr__(self) -> str:
        return f"Epsilon({self!s})"


def format_nano(nano: int) -> str:
    """Return any number of nano-epsilon as a decimal: sums and bounds may go beyond what one release may have.

    >>> format_nano(2_500_000_000), format_nano(3 * 10**16)
    ('2.5', '30000000')
    """
    return f"{nano // NANO}.{nano % NANO:09d}".rstrip("0").removesuffix(".")


def format_nano_up(nano: int, decimals: int) -> str:
    """Return a number of nano-epsilon as a decimal of so many places, never below it.

    >>> format_nano_up(14_828_787_753, 2), format_nano_up(2_999_999_995, 6), format_nano_up(3 * NANO, 2)
    ('14.83', '3', '3')
    """
    step = 10 ** (9 - decimals)
    return format_nano(-(-nano // step) * step)


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


# Zero-concentrated differential privacy (BS16): the epsilon of a rho at a delta, and the cost of an epsilon in rho.
#
# rho-zCDP implies (epsilon, delta)-DP for every alpha > 1 with (CKS20)
#
#     delta = exp((alpha - 1) (alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha,
#
# which, solved for epsilon, with x = alpha - 1 and L = ln(1/delta), is
#
#     epsilon = alpha rho + ln(x / alpha) + (L - ln alpha) / x.
#
# Its derivative by alpha is rho - (L - ln alpha) / x^2, so that the least epsilon is where rho x^2
# + ln(1 + x) = L. The left side grows with x: one x solves it, and there
#
#     epsilon = (2 alpha - 1) rho + ln(x / alpha),    with rho = (L - ln alpha) / x^2,
#
# which falls in x. Floats search for x, by halving, but no guarantee depends on them: every alpha gives a valid bound, and the
# result is the bound for the x found, with 100 digits and rounded against us. The margin is far more than the last digits of its
# few operations: none of its terms is above 10^35 if delta has at most 30 decimals.
#
# eps-DP is (eps^2 / 2)-zCDP (BS16 Prop. 1.4), and never the other way round. rho of releases about
# the same people adds up, and for g records of one person it is g^2 times that of one. Amounts are
# whole nano-rho, as those of epsilon are whole nano-epsilon.


DECIMALS = 30  # at most, of a delta
_DIGITS, _MARGIN = 100, Decimal("1e-50")
_LEAST, _MOST = 1e-40, 1e31  # bounds of x: L >= 10^-30 gives the lower, alpha <= 1/delta the upper
_HALVINGS = 200  # of the logarithm of x: to the last bit of a float


def epsilon_of(nano_rho: int, delta: Decimal) -> int:
    """Return the least nano-epsilon for which rho-zCDP is known to give (epsilon, delta)-DP: rounded up.

    >>> epsilon_of(10**8, Decimal("0.000001"))
    2141938929
    """
    check_delta(delta)
    if nano_rho < 0:
        raise InvalidArgument("rho is below 0.", where="rho")
    if nano_rho == 0:
        return 0
    rho, log = nano_rho / NANO, _log(delta)
    found = _halve(lambda x: rho * x * x + math.log1p(x) < log)
    with localcontext() as context:
        context.prec = _DIGITS
        x = Decimal(found)
        epsilon = (1 + x) * nano_rho / NANO + (x / (1 + x)).ln() - (delta.ln() + (1 + x).ln()) / x
        return max(int(((epsilon + _MARGIN) * NANO).to_integral_value(rounding=ROUND_CEILING)), 0)


@lru_cache(maxsize=1024)
def rho_within(nano_epsilon: int, delta: Decimal) -> int:
    """Return the most nano-rho that gives (epsilon, delta)-DP: rounded down, 0 if there is none.

    >>> rho_within(10**9, Decimal("0.000001")), rho_within(3 * 10**9, Decimal("0.000001"))
    (24355970, 185069840)
    """
    check_delta(delta)
    if nano_epsilon < 0:
        raise InvalidArgument("epsilon is below 0.", where="epsilon")
    epsilon, log = nano_epsilon / NANO, _log(delta)

    def is_above(x: float) -> bool:
        return (2 * x + 1) * (log - math.log1p(x)) / (x * x) + math.log(x) - math.log1p(x) > epsilon

    with localcontext() as context:
        context.prec = _DIGITS
        x = Decimal(_halve(is_above))
        rho = (Decimal(nano_epsilon) / NANO - (x / (1 + x)).ln() + (delta.ln() + (1 + x).ln()) / x) / (1 + x)
        return max(int(((rho - _MARGIN) * NANO).to_integral_value(rounding=ROUND_FLOOR)), 0)


def rho_of_pure(nano_epsilon: int) -> int:
    """Return the nano-rho that eps-DP costs: eps^2 / 2, rounded up.

    >>> rho_of_pure(10**9), rho_of_pure(1)
    (500000000, 1)
    """
    return -(-nano_epsilon * nano_epsilon // (2 * NANO))


def check_delta(delta: Decimal) -> None:
    """Refuse a delta that is not between 0 and 1, or has more than 30 decimals."""
    if not delta.is_finite() or not 0 < delta < 1:
        raise InvalidArgument("delta lies outside 0 to 1.", where="delta", remedy="Name a small one, like 0.000001.")
    exponent = delta.normalize().as_tuple().exponent
    if isinstance(exponent, int) and exponent < -DECIMALS:
        raise InvalidArgument(f"delta has more than {DECIMALS} decimals.", where="delta", remedy="Round it down.")


def _log(delta: Decimal) -> float:
    """Return ln(1/delta), which is above 0 also for a delta near 1."""
    with localcontext() as context:
        context.prec = _DIGITS
        return float(-delta.ln())


def _halve(is_left: Callable[[float], bool]) -> float:
    """Return the point where a condition that holds on the left ends, by halving on the scale of logarithms."""
    low, high = math.log(_LEAST), math.log(_MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_left(math.exp(middle)) else (low, middle)
    return math.exp(low)
