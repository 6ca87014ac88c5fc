"""The exact discrete Laplace.

The distribution (methods.md section 0): P[Z = z] proportional to exp(-|z| / t), with an integer scale t >= 1; scale 0 gives 0.
The sampler is CKS20 Algorithm 2 for integer scales:

    U uniform in 0..t-1; keep it with probability exp(-U/t), else start again
    V geometric: P[V >= v] = exp(-v);  X = U + t V;  a fair sign;  start again on "minus zero"

Both exponentials are decided exactly, as `exponentials` says, from the first 32 (for U) or 63 (for V) bits of a uniform number
and from more of them if these do not decide. No floating-point number occurs (MIR12 shows what one would cost).

Addressing: attempt a of lane i reads three words at position 3 i of the stream's a-th substream.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.noise.sampling import (
    LANES,
    Layout,
    Places,
    Round,
    are_below,
    below_exp,
    draw_in_rounds,
    exp_digits,
    exp_enclosure,
)
from release_pipeline.mechanisms.noise.streams import NoiseError, NoiseStream, WordArray

MAX_SCALE = 2**56  # |Z| reaches 2^62 with probability exp(-64), 1.6e-28: refused if it ever happens
_MAX_NOISE = 2**62
MAX_MULTIPLE = _MAX_NOISE // MAX_SCALE  # |Z| is always below so many times t

_LAYOUT = Layout(words=3)  # U; the comparison that keeps it; V and the sign
_SLACK = 16  # the enclosure of exp(-U/t) is wrong by less than this, in units of 2^-32

_u64 = np.uint64
_32, _1 = _u64(32), _u64(1)


def discrete_laplace(scales: npt.ArrayLike, stream: NoiseStream) -> IntArray:
    """Return one exact draw per scale: P[Z = z] proportional to exp(-|z| / t) for t >= 1, and 0 for t = 0.

    E|Z| = 1 / sinh(1/t); variance 1 / (2 sinh(1/(2t))^2), about 2 t^2. Scales are whole numbers from 0 to 2^56, of any
    mixture; floats are refused, whole or not. Draws are consecutive in the stream: drawing in two calls or in one is the same.
    """
    t = _as_scales(scales)
    first = stream.take_lanes(len(t))
    out = np.zeros(len(t), dtype=np.int64)
    for start in range(0, len(t), LANES):
        _draw_chunk(t[start : start + LANES], stream, first + start, out[start : start + LANES])
    return out


def _as_scales(scales: npt.ArrayLike) -> WordArray:
    array = np.asarray(scales)
    if array.ndim != 1:
        raise InvalidArgument(f"scales must have one dimension, not {array.ndim}.")
    if array.size == 0:
        return np.zeros(0, dtype=np.uint64)
    if array.dtype.kind not in "iu":
        raise InvalidType(f"scales must be integers, not {array.dtype.name}: the sampler is exact in integers only.")
    if int(array.min()) < 0 or int(array.max()) > MAX_SCALE:
        raise InvalidArgument("a noise scale lies outside 0 to 2^56.", remedy="Use a larger epsilon or a coarser grid.")
    return array.astype(np.uint64)


def _draw_chunk(t: WordArray, stream: NoiseStream, first_lane: int, out: IntArray) -> None:
    def attempt(now: Round) -> tuple[Places, IntArray]:
        return attempt_laplace(t if len(now.draws) == len(t) else t[now.draws], now)

    draw_in_rounds(np.flatnonzero(t), attempt, _LAYOUT, stream, first_lane, out)


def attempt_laplace(t: WordArray, now: Round) -> tuple[Places, IntArray]:
    """Return one attempt for each scale, by the first three words of its row: the rows that succeeded, and their values.

    Its comparisons are number 0 (U) and 1 (V) of the round.
    """
    random = now.words
    raw = random[:, 0]
    u = raw % t
    whole = raw - u  # raw is in the block of t numbers that starts here; the last, incomplete block is rejected
    is_kept = (whole + (t - _1)) >= whole

    def settle(row: int) -> bool:
        return below_exp(int(random[row, 1]), 64, int(u[row]), int(t[row]), now.more(row, 0))

    is_kept &= are_below(random[:, 1], _exp_enclosure(u, t), _SLACK, settle)
    rows = np.flatnonzero(is_kept)
    u, t, last = u[rows], t[rows], random[rows, 2]
    minus = last & _1
    v = _geometric(last >> _1, rows, now)
    if len(v) and int(v.max()) >= MAX_MULTIPLE:
        raise NoiseError("a noise draw was too large to be represented (probability below 2e-28).")
    magnitude = (u + t * v).astype(np.int64)
    sign = 1 - 2 * minus.astype(np.int64)
    good = (magnitude != 0) | (sign > 0)
    return rows[good], (magnitude * sign)[good]


def _exp_enclosure(u: WordArray, t: WordArray) -> WordArray:
    """Return integers E with |E - 2^32 exp(-u/t)| < 16, for 0 <= u < t <= 2^56.

    u/t is taken to 32 bits after shifting both until t < 2^32 (error below 3 units of 2^-32), exp to less than 6 units; the
    property test compares with exact arithmetic.
    """
    if len(t) and int(t.max()) >= 2**32:
        shift = _excess_bits(t)
        u, t = u >> shift, t >> shift
    return exp_enclosure((u << _32) // t)


def _excess_bits(t: WordArray) -> WordArray:
    """Return how many bits each number has beyond 32."""
    excess = np.zeros_like(t)
    rest = t >> _32
    for step in (16, 8, 4, 2, 1):
        big = rest >> _u64(step) != 0
        excess += big * _u64(step)
        rest = np.where(big, rest >> _u64(step), rest)
    return excess + rest  # rest is now 0 or 1


def _geometric(bits: WordArray, rows: Places, now: Round) -> WordArray:
    """Return V with P[V >= v] = exp(-v): how many of exp(-1), exp(-2), ... are above the uniform number that starts with 63
    `bits`."""
    v = np.zeros(len(bits), dtype=np.uint64)
    places = np.arange(len(bits))
    for threshold in _geometric_thresholds():
        reached = bits[places]
        for index in places[reached == threshold]:
            row, level = int(rows[index]), 1
            while below_exp(int(bits[index]), 63, level, 1, now.more(row, 1)):
                level += 1
            v[index] = level - 1
        places = places[reached < threshold]
        v[places] += _1
        if not len(places):
            break
    return v


@lru_cache(maxsize=1)
def _geometric_thresholds() -> WordArray:
    """Return floor(2^63 exp(-v)) for v = 1, 2, ... down to 0."""
    return np.array([exp_digits(v, 1, 63) for v in range(1, 45)], dtype=np.uint64)
