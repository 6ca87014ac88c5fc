"""Whether a uniform number is below exp(-a/b), decided exactly, in integers.

A uniform real number in [0, 1) is a row of random bits, of which only those that matter are ever drawn. Its first 32 bits are
compared with an integer enclosure of 2^32 exp(-a/b); if they do not decide (about one draw in 10^8), `below_exp` continues in
exact arithmetic with as many bits as needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.noise.streams import NoiseError, NoiseStream, WordArray

MAX_EXPONENT = 2**37  # of `exp_enclosure`, in units of 2^-32: exp(-32)

_u64 = np.uint64
_32, _31, _24, _1 = _u64(32), _u64(31), _u64(24), _u64(1)
_LOW_24 = _u64(2**24 - 1)


def are_below(numbers: WordArray, estimate: WordArray, slack: int, settle: Callable[[int], bool]) -> npt.NDArray[np.bool_]:
    """Return whether each uniform number is below its bound, if 2^32 times the bound is less than `slack` away from `estimate`.

    `words` has the first 64 bits of each number. If the first 32 do not decide, `settle(place)` does.
    """
    bits = numbers >> _32
    below = bits < estimate + _u64(slack)
    for place in np.flatnonzero(below & (bits + _u64(slack) >= estimate)):
        below[place] = settle(int(place))
    return below


def exp_enclosure(exponents: WordArray) -> WordArray:
    """Return integers E with |E - 2^32 exp(-g / 2^32)| < 6, for whole numbers g of `exponents` from 0 to 2^37.

    With g / 2^32 = h/256 + x, x < 2^-8: exp(-h/256) from a table of exact integers, exp(-x) = 1 - x + x^2/2 - x^3/6 up to
    x^4/24 < 2^-36. In units of 2^-32: the floors of x^2/2 and x^3/6 cost less than 3, the end of the series less than 1, the
    table (half a unit of 2^-31) 1, the last floor 1.
    """
    x = exponents & _LOW_24
    square = (x * x) >> _32
    near = (_u64(2**32) - x) + (square >> _1) - ((square * x) >> _32) // _u64(6)
    return (near * _exp_table()[(exponents >> _24).astype(np.intp)]) >> _31


def below_exp(known: int, bits: int, a: int, b: int, more: Iterable[int]) -> bool:
    """Return whether the uniform number in [0, 1) that starts with `known` (`bits` bits) and continues with `more` is below
    exp(-a/b).

    Exact: for a > 0 exp(-a/b) is irrational, so finitely many bits decide.
    """
    if a == 0:
        return True
    following = iter(more)
    while True:
        digits = exp_digits(a, b, bits)
        if known != digits:
            return known < digits
        known, bits = known << 64 | next(following), bits + 64


def exp_digits(a: int, b: int, bits: int) -> int:
    """Return floor(2^bits * exp(-a/b)) for a > 0, b > 0, in exact integer arithmetic.

    >>> exp_digits(1, 1, 10)
    376
    """
    if a >= bits * b:
        return 0  # exp(-bits) < 2^-bits; a/b may be far too large for a power of two
    guard = 32
    while True:
        low, high = _exp_bounds(a, b, bits + guard)
        if low >> guard == high >> guard:
            return low >> guard
        guard *= 2


def _exp_bounds(a: int, b: int, bits: int) -> tuple[int, int]:
    """Return integers around 2^bits * exp(-a/b), by 1 / exp(a/b) with exp from its series, rounded outwards."""
    unit = 1 << (bits + 2 * (a // b) + 8)
    low = high = low_term = high_term = unit
    n = 0
    while high_term > 1 or n * b < 2 * a:
        n += 1
        low_term = low_term * a // (b * n)
        high_term = -(-high_term * a // (b * n))
        low += low_term
        high += high_term
    high += 2 * high_term + 2  # the terms left out are less than a geometric series of ratio 1/2
    return (unit << bits) // high, -(-(unit << bits) // low)


@lru_cache(maxsize=1)
def _exp_table() -> WordArray:
    """Return round(2^31 exp(-h/256)) for h = 0..8192.

    By powers of exp(-1/256) in 128 bits: each is too small by less than two units more than the one before it, so that even the
    last is right to 2^-114.
    """
    step = exp_digits(1, 256, 128)
    powers = [1 << 128]
    for _ in range(MAX_EXPONENT >> 24):
        powers.append(powers[-1] * step >> 128)
    return np.array([(power + (1 << 96)) >> 97 for power in powers], dtype=np.uint64)


# Rejection sampling along the lanes of a stream: rounds of attempts, until every draw has its
# value.
#
# Attempt a of draw i reads its words at a position of the stream that depends only on a and the draw's lane. So a draw is a
# function of only (secret, context, lane, parameter of its distribution), and the split of the work into calls, chunks or threads
# changes nothing.


Places: TypeAlias = npt.NDArray[np.intp]

LANES = 1 << 14  # draws worked on at once: their words stay in the cache
_WHOLE_ROW_SHARE = 256  # with fewer than one draw in so many left, their words are fetched one by one


@dataclass(frozen=True, slots=True)
class Layout:
    """The position of attempts' words: attempt a of a lane has `words`, from position words * lane of substream first + a."""

    words: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class Round:
    """One attempt at each draw that is still open: their positions in the chunk, and a row of random words for each."""

    stream: NoiseStream
    first_lane: int
    attempt: int
    draws: Places
    words: WordArray

    def more(self, row: int, which: int) -> Iterator[int]:
        """Yield further words of the uniform number for comparison `which` of the draw in this row."""
        return self.stream.further_words(self.first_lane + int(self.draws[row]), self.attempt, which)


Attempt: TypeAlias = Callable[[Round], tuple[Places, IntArray]]  # the rows that succeeded, and their values


def draw_in_rounds(draws: Places, attempt: Attempt, layout: Layout, stream: NoiseStream, first_lane: int, out: IntArray) -> None:
    """Fill `out`, whose lanes begin with `first_lane`, at the positions `draws`, by rounds of attempts over those still open."""
    row = np.empty((len(out), layout.words), dtype=np.uint64)
    number = 0
    while len(draws):
        substream = layout.first + number
        if len(draws) * _WHOLE_ROW_SHARE > len(out):
            stream.words(substream, layout.words * first_lane, row.reshape(-1))
            random = row if len(draws) == len(out) else row[draws]
        else:
            random = row[: len(draws)]
            for place, draw in enumerate(draws):
                stream.words(substream, layout.words * (first_lane + int(draw)), random[place])
        kept, values = attempt(Round(stream, first_lane, number, draws, random))
        out[draws[kept]] = values
        is_open = np.ones(len(draws), dtype=np.bool_)
        is_open[kept] = False
        draws = draws[is_open]
        number += 1


# A whole number below a total, each with the same probability: exactly, of any size.


def uniform_below(total: int, stream: NoiseStream) -> int:
    """Return a whole number below `total`: as many random bits as the total has, redrawn until they are below it, less than twice
    on average."""
    if total < 1:
        raise NoiseError("there is no whole number below a total that is not positive.", remedy="Draw from something.")
    random = stream.further_words(stream.take_lanes(1), 0, 0)
    bits = total.bit_length()
    while True:
        drawn = 0
        for _ in range(-(-bits // 64)):
            drawn = drawn << 64 | next(random)
        drawn >>= -bits % 64
        if drawn < total:
            return drawn
