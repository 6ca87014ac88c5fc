"""The one door to randomness, and the exact discrete Laplace behind it.

`noise_stream(secret, *context)` gives the random words of one purpose; `discrete_laplace(scales, stream)` turns them into
noise. Nothing else in the project draws random numbers that a claim rests on.

The words come from a key: HKDF-SHA256 (RFC 5869) derives it from the secret and the context, ChaCha20 (RFC 8439) makes the words.
The law below is exact for truly random words. So every claim is computational: it holds against whoever cannot tell these
words from truly random ones, as long as the secret is one (docs/guarantees.md).

The law (methods.md section 0): P[Z = z] proportional to exp(-|z| / t), with an integer scale t >= 1; scale 0 gives 0.
The sampler is CKS20 Algorithm 2 for integer scales:

    U uniform in 0..t-1; keep it with probability exp(-U/t), else start again
    V geometric: P[V >= v] = exp(-v);  X = U + t V;  a fair sign;  start again on "minus zero"

Both exponentials are decided exactly, in integers, by comparing a uniform real number in [0, 1), of which only the bits
that matter are ever drawn, with exp(-a/b). Its first 32 (for U) or 63 (for V) bits are compared with an integer enclosure of
exp(-a/b); where they do not decide (about one draw in 10^8), `_below_exp` goes on in exact arithmetic with as many bits as
it takes. No floating-point number occurs (MIR12 tells what one would cost).

Addressing: attempt a of draw i reads three words at place 3 i of the stream's a-th substream. So a draw is a function of
(secret, context, i, scale) alone, and how a caller cuts the work into calls, chunks or threads changes nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from release_pipeline.errors import InvalidArgument, InvalidType, ReleasePipelineError
from release_pipeline.privacy.grid import IntArray

WordArray: TypeAlias = npt.NDArray[np.uint64]
Context: TypeAlias = str | int | bytes

SECRET_BYTES = 32
MAX_SCALE = 2**56  # |Z| reaches 2^62 with probability exp(-64), 1.6e-28: refused if it ever happens
_MAX_NOISE = 2**62

_WORDS = 3  # per attempt: U; the comparison that keeps it; V and the sign
_LANES = 1 << 14  # draws worked on at once: their words stay in the cache
_WHOLE_ROW_SHARE = 256  # with fewer than one draw in so many left, their words are fetched one by one
_SLACK = 16  # the enclosure of exp(-U/t) is wrong by less than this, in units of 2^-32
_REFINE = 0xFFFFFFFF  # substream number of the extra bits; attempts count up from 0

_u64 = np.uint64
_32, _31, _24, _1 = _u64(32), _u64(31), _u64(24), _u64(1)


class NoiseError(ReleasePipelineError):
    """Noise cannot be drawn without breaking its promise."""


class NoiseStream:
    """The random words of one (secret, context). Made by `noise_stream`; consumed by `discrete_laplace`.

    It hands out lanes 0, 1, 2, ... once each. It refuses to be copied, pickled or used in a forked process, where it would
    give the same noise a second time.
    """

    __slots__ = ("_key", "_lock", "_next_lane", "_process")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._next_lane = 0
        self._process = os.getpid()
        self._lock = Lock()

    def take_lanes(self, count: int) -> int:
        """Reserve `count` consecutive lanes and return the first; no lane is ever handed out twice."""
        self._check_process()
        with self._lock:
            first = self._next_lane
            self._next_lane += count
        return first

    def words(self, substream: int, start: int, out: WordArray) -> None:
        """Fill `out` with the 64-bit words from place `start` on of one substream (ChaCha20 with its number as nonce)."""
        self._check_process()
        block, skip = divmod(start * 8, 64)
        if block + len(out) // 8 + 2 >= 2**32:
            raise NoiseError("a noise stream is exhausted.", remedy="Split the table into parts of fewer records.")
        nonce = block.to_bytes(4, "little") + substream.to_bytes(4, "little") + bytes(8)
        encryptor = Cipher(ChaCha20(self._key, nonce), mode=None).encryptor()
        if skip:
            encryptor.update(bytes(skip))
        encryptor.update_into(_zeros(out.nbytes), out.view(np.uint8).data)
        if sys.byteorder == "big":  # the same words on every processor
            out.byteswap(inplace=True)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise NoiseError(
                "a noise stream was carried into another process, where it would repeat its parent's noise.",
                remedy="Make the stream inside the process that uses it, with a context of its own.",
            )

    def __reduce__(self) -> str:
        raise NoiseError("a noise stream cannot be copied: the copy would repeat its noise.")

    def __repr__(self) -> str:
        return f"<NoiseStream at lane {self._next_lane}>"


def noise_stream(secret: bytes, *context: Context) -> NoiseStream:
    """The stream of one purpose: its key is HKDF-SHA256(secret; context), so distinct contexts are independent.

    `secret` has 32 bytes from the operating system and masks one input only. `context` is any sequence of text, integers
    and bytes, encoded so that different sequences never meet: ("ab", "c"), ("a", "bc") and ("abc",) are three streams.
    """
    return NoiseStream(derive_key(secret, *context))


def derive_key(secret: bytes, *context: Context) -> bytes:
    """32 bytes that depend on the secret and on every part of the context (HKDF-SHA256, RFC 5869)."""
    if not isinstance(cast(object, secret), bytes) or len(secret) != SECRET_BYTES:
        raise InvalidArgument("the secret must be 32 bytes.", remedy="Take secrets.token_bytes(32).")
    encoded = b"".join(_encode(part) for part in context)
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"release-pipeline/1" + encoded).derive(secret)


def discrete_laplace(scales: npt.ArrayLike, stream: NoiseStream) -> IntArray:
    """One exact draw per scale: P[Z = z] proportional to exp(-|z| / t) for t >= 1, and 0 for t = 0.

    E|Z| = 1 / sinh(1/t); variance 1 / (2 sinh(1/(2t))^2), about 2 t^2. Scales are whole numbers from 0 to 2^56, of any
    mixture; floats are refused, whole or not. Draws are consecutive in the stream: drawing in two calls or in one is the same.
    """
    t = _as_scales(scales)
    first = stream.take_lanes(len(t))
    out = np.zeros(len(t), dtype=np.int64)
    for start in range(0, len(t), _LANES):
        stop = min(start + _LANES, len(t))
        _draw_chunk(t[start:stop], stream, first + start, out[start:stop])
    return out


def shuffled_positions(count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """A keyed random order of 0..count-1: positions sorted by one 64-bit word each (equal words: once in 10^5 tables of 10^7)."""
    words = np.empty(count, dtype=np.uint64)
    stream.words(0, _WORDS * stream.take_lanes(-(-count // _WORDS)), words)
    return np.argsort(words, kind="stable")


class PositionMixer:
    """A keyed one-to-one map of 0..2^bits-1, which breaks ties independently of the values.

    Three rounds of odd multiplication, addition and xor-shift, each of them invertible modulo 2^bits. It orders equal values and
    carries no claim: no statement of methods.md section 2 depends on how ties are broken, only on that it ignores the values.
    """

    __slots__ = ("_add", "_factor", "_inverse", "_mask", "_shift")

    def __init__(self, bits: int, stream: NoiseStream) -> None:
        words = np.empty(6, dtype=np.uint64)
        stream.words(0, 3 * stream.take_lanes(2), words)
        modulus = 1 << bits
        factors = [int(word) % modulus | 1 for word in words[:3]]
        self._mask = _u64(modulus - 1)
        self._shift = _u64((bits + 1) // 2)
        self._factor = [_u64(factor) for factor in factors]
        self._inverse = [_u64(pow(factor, -1, modulus)) for factor in factors]
        self._add = [_u64(int(word) % modulus) for word in words[3:]]

    def mix(self, positions: WordArray) -> WordArray:
        """The keyed numbers of `positions`; works in place, chunk by chunk."""
        for start in range(0, len(positions), _LANES):
            x = positions[start : start + _LANES]
            for factor, add in zip(self._factor, self._add, strict=True):
                x *= factor
                x += add
                x &= self._mask
                x ^= x >> self._shift
        return positions

    def unmix(self, numbers: WordArray) -> WordArray:
        """The positions that `mix` gave these numbers to; works in place, chunk by chunk."""
        for start in range(0, len(numbers), _LANES):
            x = numbers[start : start + _LANES]
            for inverse, add in zip(reversed(self._inverse), reversed(self._add), strict=True):
                x ^= x >> self._shift
                x -= add
                x *= inverse
                x &= self._mask
        return numbers


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
    """Fill `out` for lanes first_lane.. with rounds of attempts over the draws that are still open."""
    open_draws = np.flatnonzero(t)
    row = np.empty((len(t), _WORDS), dtype=np.uint64)
    attempt = 0
    while len(open_draws):
        if len(open_draws) * _WHOLE_ROW_SHARE > len(t):
            stream.words(attempt, _WORDS * first_lane, row.reshape(-1))
            words = row if len(open_draws) == len(t) else row[open_draws]
        else:
            words = row[: len(open_draws)]
            for place, draw in enumerate(open_draws):
                stream.words(attempt, _WORDS * (first_lane + int(draw)), words[place])
        scales = t if len(open_draws) == len(t) else t[open_draws]
        kept, values = _attempt(scales, words, stream, first_lane, open_draws, attempt)
        out[open_draws[kept]] = values
        open_draws = np.delete(open_draws, kept)
        attempt += 1


def _attempt(
    t: WordArray, words: WordArray, stream: NoiseStream, first_lane: int, draws: npt.NDArray[np.intp], attempt: int
) -> tuple[npt.NDArray[np.intp], IntArray]:
    """One attempt for each scale: the places that succeeded, and their values."""
    raw = words[:, 0]
    u = raw % t
    whole = raw - u  # raw lies in the block of t numbers that starts here; the last, incomplete block is rejected
    kept = (whole + (t - _1)) >= whole

    bits = words[:, 1] >> _32
    estimate = _exp_enclosure(u, t)
    kept &= bits < estimate + _u64(_SLACK)
    unsure = np.flatnonzero(kept & (bits + _u64(_SLACK) >= estimate))
    for place in unsure:
        lane = first_lane + int(draws[place])
        known = int(words[place, 1])
        kept[place] = _below_exp(known, 64, int(u[place]), int(t[place]), _extra_bits(stream, lane, attempt, 0))

    places = np.flatnonzero(kept)
    u, t, last = u[places], t[places], words[places, 2]
    minus = last & _1
    v = _geometric(last >> _1, stream, first_lane + draws[places], attempt)
    if len(v) and int(v.max()) >= _MAX_NOISE // MAX_SCALE:
        raise NoiseError("a noise draw was too large to be represented (probability below 2e-28).")
    magnitude = (u + t * v).astype(np.int64)
    sign = 1 - 2 * minus.astype(np.int64)
    good = (magnitude != 0) | (sign > 0)
    return places[good], (magnitude * sign)[good]


def _exp_enclosure(u: WordArray, t: WordArray) -> WordArray:
    """Integers E with |E - 2^32 exp(-u/t)| < 16, for 0 <= u < t <= 2^56.

    u/t is taken to 32 bits after shifting both until t < 2^32 (error below 3 units of 2^-32). With u/t = h/256 + x, x < 2^-8:
    exp(-h/256) from a table of exact integers, exp(-x) = 1 - x + x^2/2 - x^3/6 up to x^4/24 < 2^-36. Every floor costs at
    most one unit, 8 in all; the property test compares with exact arithmetic.
    """
    if len(t) and int(t.max()) >= 2**32:
        shift = _excess_bits(t)
        u, t = u >> shift, t >> shift
    g = (u << _32) // t
    x = g & _u64(0xFFFFFF)
    square = (x * x) >> _32
    near = (_u64(2**32) - x) + (square >> _1) - ((square * x) >> _32) // _u64(6)
    return (near * _exp_table()[(g >> _24).astype(np.intp)]) >> _31


def _excess_bits(t: WordArray) -> WordArray:
    """How many bits each number has beyond 32."""
    excess = np.zeros_like(t)
    rest = t >> _32
    for step in (16, 8, 4, 2, 1):
        big = rest >> _u64(step) != 0
        excess += big * _u64(step)
        rest = np.where(big, rest >> _u64(step), rest)
    return excess + rest  # rest is now 0 or 1


def _geometric(bits: WordArray, stream: NoiseStream, lanes: npt.NDArray[np.intp], attempt: int) -> WordArray:
    """V with P[V >= v] = exp(-v): how many of exp(-1), exp(-2), ... lie above the uniform number that starts with 63 `bits`."""
    v = np.zeros(len(bits), dtype=np.uint64)
    places = np.arange(len(bits))
    for threshold in _geometric_thresholds():
        reached = bits[places]
        for place in places[reached == threshold]:
            lane, level = int(lanes[place]), 1
            while _below_exp(int(bits[place]), 63, level, 1, _extra_bits(stream, lane, attempt, 1)):
                level += 1
            v[place] = level - 1
        places = places[reached < threshold]
        v[places] += _1
        if not len(places):
            break
    return v


def _extra_bits(stream: NoiseStream, lane: int, attempt: int, which: int) -> Iterable[int]:
    """More 64-bit words of the uniform number behind one comparison: a stream of their own, told by lane and attempt."""
    extra = NoiseStream(derive_key(stream._key, "refine", lane, attempt, which))  # pyright: ignore[reportPrivateUsage]
    word = np.empty(1, dtype=np.uint64)
    place = 0
    while True:
        extra.words(_REFINE, place, word)
        yield int(word[0])
        place += 1


def _below_exp(known: int, bits: int, a: int, b: int, more: Iterable[int]) -> bool:
    """Whether the uniform number in [0, 1) that starts with `known` (`bits` bits) and goes on with `more` is below exp(-a/b).

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
    """floor(2^bits * exp(-a/b)) for a > 0, b > 0, in exact integer arithmetic.

    >>> exp_digits(1, 1, 10)
    376
    """
    guard = 32
    while True:
        low, high = _exp_bounds(a, b, bits + guard)
        if low >> guard == high >> guard:
            return low >> guard
        guard *= 2


def _exp_bounds(a: int, b: int, bits: int) -> tuple[int, int]:
    """Integers around 2^bits * exp(-a/b), by 1 / exp(a/b) with exp from its series, rounded outwards."""
    one = 1 << (bits + 2 * (a // b) + 8)
    low = high = low_term = high_term = one
    n = 0
    while high_term > 1 or n * b < 2 * a:
        n += 1
        low_term = low_term * a // (b * n)
        high_term = -(-high_term * a // (b * n))
        low += low_term
        high += high_term
    high += 2 * high_term + 2  # the terms left out are less than a geometric series of ratio 1/2
    return (one << bits) // high, -(-(one << bits) // low)


@lru_cache(maxsize=1)
def _exp_table() -> WordArray:
    """round(2^31 exp(-h/256)) for h = 0..256."""
    return np.array([2**31] + [(exp_digits(h, 256, 32) + 1) >> 1 for h in range(1, 257)], dtype=np.uint64)


@lru_cache(maxsize=1)
def _geometric_thresholds() -> WordArray:
    """floor(2^63 exp(-v)) for v = 1, 2, ... down to 0."""
    return np.array([exp_digits(v, 1, 63) for v in range(1, 45)], dtype=np.uint64)


@lru_cache(maxsize=8)
def _zeros(count: int) -> bytes:
    return bytes(count)


def _encode(part: Any) -> bytes:
    if isinstance(part, bool) or not isinstance(part, str | int | bytes):
        raise InvalidType(f"a noise context is made of text, integers and bytes, not {type(part).__name__}.")
    if isinstance(part, str):
        kind, body = b"s", part.encode()
    elif isinstance(part, int):
        kind, body = b"i", str(part).encode()
    else:
        kind, body = b"b", part
    return kind + len(body).to_bytes(8, "big") + body
