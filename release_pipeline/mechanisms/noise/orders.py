"""Keyed orders: a random one of all positions, and a one-to-one map of them that breaks ties. No claim depends on either."""

from __future__ import annotations

from math import isqrt

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.noise.streams import WORDS, NoiseStream, WordArray

_CHUNK = 1 << 14  # positions worked on at once: they stay in the cache
_SLICE = 1 << 20  # words processed together

_u64 = np.uint64


def shuffled_positions(count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """Return a keyed random order of 0..count-1: positions sorted by one 64-bit word each (equal words: once in 10^5 tables of
    10^7)."""
    return np.argsort(_take_words(count, stream), kind="stable")


def drawn_positions(count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """Return `count` positions of 0..count-1, drawn with replacement."""
    words = _take_words(count, stream)
    words %= _u64(count)
    return words.astype(np.intp)


def _take_words(count: int, stream: NoiseStream) -> WordArray:
    """Return so many words of a stream, one for each position."""
    first, words = WORDS * stream.take_lanes(-(-count // WORDS)), np.empty(count, dtype=np.uint64)
    for part in pieces(count):  # a stream allocates as many zero bytes as are requested at once
        stream.words(0, first + part.start, words[part])
    return words


def shuffled_first(count: int, few: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """Return the first `few` of `shuffled_positions`, without an order of all: positions with small enough words suffice."""
    first_lane = stream.take_lanes(-(-count // WORDS))
    few = min(few, count)
    wanted = few
    while True:
        wanted += 8 * isqrt(few) + 64  # with so many expected, there are fewer than `few` once in 10^15 tables
        most = _u64(min(wanted * 2**64 // max(count, 1), 2**64 - 1))
        positions, found = list[npt.NDArray[np.intp]](), list[WordArray]()
        for start in range(0, count, _SLICE):
            words = np.empty(min(_SLICE, count - start), dtype=np.uint64)
            stream.words(0, WORDS * first_lane + start, words)
            [small] = np.nonzero(words <= most)
            positions.append(small + start)
            found.append(words[small])
        small, words = np.concatenate([np.empty(0, np.intp), *positions]), np.concatenate([np.empty(0, np.uint64), *found])
        if len(small) >= few:
            return small[np.argsort(words, kind="stable")[:few]]


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
        """Return the keyed numbers of `positions`; works in place, chunk by chunk."""
        for start in range(0, len(positions), _CHUNK):
            x = positions[start : start + _CHUNK]
            for factor, add in zip(self._factor, self._add, strict=True):
                x *= factor
                x += add
                x &= self._mask
                x ^= x >> self._shift
        return positions

    def unmix(self, numbers: WordArray) -> WordArray:
        """Return the positions that `mix` gave these numbers to; works in place, chunk by chunk."""
        for start in range(0, len(numbers), _CHUNK):
            x = numbers[start : start + _CHUNK]
            for inverse, add in zip(reversed(self._inverse), reversed(self._add), strict=True):
                x ^= x >> self._shift
                x -= add
                x *= inverse
                x &= self._mask
        return numbers
