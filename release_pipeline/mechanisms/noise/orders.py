"""Keyed orders: a random one of all positions, and a one-to-one map of them that breaks ties. Neither carries a claim."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.noise.streams import WORDS, NoiseStream, WordArray

_u64 = np.uint64


def shuffled_positions(count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """A keyed random order of 0..count-1: positions sorted by one 64-bit word each (equal words: once in 10^5 tables of 10^7)."""
    return np.argsort(_take_words(count, stream), kind="stable")


def drawn_positions(count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """As many of 0..count-1, drawn with replacement."""
    words = _take_words(count, stream)
    words %= _u64(count)
    return words.astype(np.intp)


def _take_words(count: int, stream: NoiseStream) -> WordArray:
    """So many words of a stream, one for each position."""
    first, words = WORDS * stream.take_lanes(-(-count // WORDS)), np.empty(count, dtype=np.uint64)
    for part in pieces(count):  # a stream keeps as many zero bytes as it is asked for at once
        stream.words(0, first + part.start, words[part])
    return words


def shuffled_first(count: int, few: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
    """The first `few` of `shuffled_positions`."""
    return shuffled_positions(count, stream)[:few]


def mix_positions(positions: WordArray, bits: int, stream: NoiseStream) -> WordArray:
    """A keyed one-to-one map of the numbers 0..2^bits-1, which breaks ties independently of the values: that of `positions`.

    Three rounds of odd multiplication, addition and xor-shift, each of them invertible modulo 2^bits. It orders equal values and
    carries no claim: no statement of methods.md section 2 depends on how ties are broken, only on that it ignores the values.
    """
    random = np.empty(6, dtype=np.uint64)
    stream.words(0, 3 * stream.take_lanes(2), random)
    mask, shift = _u64((1 << bits) - 1), _u64((bits + 1) // 2)
    mixed = positions.copy()
    for factor, summand in zip(random[:3] | _u64(1), random[3:], strict=True):
        mixed = mixed * factor + summand & mask
        mixed ^= mixed >> shift
    return mixed
