"""SHA-256 (FIPS 180-4) of many short texts, compiled: for hundreds of them at once, so that the processor adds several numbers
with one instruction. `hashing` has it used; of one text, or a long one, `hashlib` is faster."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.compiling import compiled

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
LANES = 512  # texts that are hashed together: what is held of them stays in the cache
_u32 = np.uint32


@compiled
def _turn(word: _u32, by: _u32) -> _u32:
    """A word, its bits moved round to the right."""
    return _u32(_u32(word >> by) | _u32(word << _u32(_u32(32) - by)))


@compiled
def _compress(state: Words, words: Words, constants: Words) -> None:
    """Take in a block of each text: `words[t]` has word t of every one, and is used up."""
    lanes = state.shape[1]
    turned = state.copy()
    for t in range(64):
        here = words[t & 15]
        if t >= 16:
            first, ninth, last = words[(t + 1) & 15], words[(t + 9) & 15], words[(t + 14) & 15]
            for i in range(lanes):
                x, y = first[i], last[i]
                small = _turn(x, _u32(7)) ^ _turn(x, _u32(18)) ^ _u32(x >> _u32(3))
                large = _turn(y, _u32(17)) ^ _turn(y, _u32(19)) ^ _u32(y >> _u32(10))
                here[i] = _u32(here[i] + small + ninth[i] + large)
        a, b, c, d = turned[-t & 7], turned[(1 - t) & 7], turned[(2 - t) & 7], turned[(3 - t) & 7]
        e, f, g, h = turned[(4 - t) & 7], turned[(5 - t) & 7], turned[(6 - t) & 7], turned[(7 - t) & 7]
        constant = constants[t]
        for i in range(lanes):
            x, y = e[i], a[i]
            chosen = _u32((x & f[i]) ^ (_u32(~x) & g[i]))
            most = _u32((y & b[i]) ^ (y & c[i]) ^ (b[i] & c[i]))
            mixed = _turn(x, _u32(6)) ^ _turn(x, _u32(11)) ^ _turn(x, _u32(25))
            added = _u32(h[i] + mixed + chosen + constant + here[i])
            d[i] = _u32(d[i] + added)
            h[i] = _u32(added + (_turn(y, _u32(2)) ^ _turn(y, _u32(13)) ^ _turn(y, _u32(22))) + most)
    for k in range(8):
        for i in range(lanes):
            state[k, i] = _u32(state[k, i] + turned[k, i])


@compiled
def _count_blocks(blocks: Places, before: int, ends: Places, first: int, size: int) -> int:
    """How many blocks each of these texts takes behind so many bytes, and the most of them: a bit and eight bytes of a length
    come behind a text."""
    most = 0
    for i in range(size):
        blocks[i] = (before + ends[first + i + 1] - ends[first + i] + 72) // 64
        most = max(most, blocks[i])
    return most


@compiled
def _fill(
    words: Words, block: int, blocks: Places, rest: Bytes, before: int, data: Bytes, ends: Places, first: int, size: int
) -> None:
    """One block of each of these texts, behind `rest`, with what comes behind it; `before` bytes are in front of all."""
    kept, start = len(rest), 64 * block
    words[:, :] = 0
    of_rest = min(max(kept - start, 0), 64)  # bytes of this block that every text has
    for j in range(of_rest):
        byte = _u32(_u32(rest[start + j]) << _u32(24 - 8 * (j & 3)))
        for i in range(size):
            words[j >> 2, i] |= byte
    for i in range(size):
        begin = ends[first + i] + max(start - kept, 0)
        length = kept + ends[first + i + 1] - ends[first + i] - start  # of what is in this block and behind it
        for j in range(of_rest, min(length, 64)):
            words[j >> 2, i] |= _u32(_u32(data[begin + j - of_rest]) << _u32(24 - 8 * (j & 3)))
        if 0 <= length < 64:
            words[length >> 2, i] |= _u32(_u32(128) << _u32(24 - 8 * (length & 3)))
        if block == blocks[i] - 1:
            bits = 8 * (before + start + length)
            words[14, i], words[15, i] = _u32(bits >> 32), _u32(bits & 0xFFFFFFFF)


@compiled
def hash_texts(begun: Words, constants: Words, rest: Bytes, before: int, data: Bytes, ends: Places) -> Words:
    """The hash of each text, eight words, behind one and the same beginning of `before` bytes: of these all whole blocks are in
    `begun`, the others are `rest`. Text i is data[ends[i]:ends[i + 1]]."""
    count = len(ends) - 1
    out = np.empty((count, 8), dtype=np.uint32)
    state, words = np.empty((8, LANES), dtype=np.uint32), np.empty((16, LANES), dtype=np.uint32)
    blocks = np.empty(LANES, dtype=np.int64)
    for first in range(0, count, LANES):
        size = min(LANES, count - first)
        most = _count_blocks(blocks, len(rest), ends, first, size)
        for k in range(8):
            state[k, :] = begun[k]
        for block in range(most):
            _fill(words, block, blocks, rest, before - len(rest), data, ends, first, size)
            _compress(state, words, constants)
            for i in range(size):
                if block == blocks[i] - 1:
                    for k in range(8):
                        out[first + i, k] = state[k, i]
    return out


@compiled
def hash_persons(begun: Words, constants: Words, data: Bytes, ends: Places) -> Words:
    """HMAC of each text under some keys, four words of every one: `begun` has the states after the inner and the outer pad of one
    key, and then those of the next. What a text is for one it is for all, so its blocks are put together once."""
    count, keys = len(ends) - 1, len(begun) // 2
    out = np.empty((count, 4 * keys), dtype=np.uint32)
    state, words = np.empty((8, LANES), dtype=np.uint32), np.empty((16, LANES), dtype=np.uint32)
    used = np.empty((16, LANES), dtype=np.uint32)
    within = np.empty((keys, 8, LANES), dtype=np.uint32)
    running = np.empty((keys, 8, LANES), dtype=np.uint32)
    blocks, nothing = np.empty(LANES, dtype=np.int64), np.empty(0, dtype=np.uint8)
    for first in range(0, count, LANES):
        size = min(LANES, count - first)
        most = _count_blocks(blocks, 0, ends, first, size)
        for key in range(keys):
            for k in range(8):
                running[key, k, :] = begun[2 * key, k]
        for block in range(most):
            _fill(words, block, blocks, nothing, 64, data, ends, first, size)
            for key in range(keys):
                used[:, :] = words
                _compress(running[key], used, constants)
                for i in range(size):
                    if block == blocks[i] - 1:
                        for k in range(8):
                            within[key, k, i] = running[key, k, i]
        for key in range(keys):
            used[:, :] = 0
            used[:8, :] = within[key]
            used[8, :], used[15, :] = _u32(1 << 31), _u32(8 * (64 + 32))
            for k in range(8):
                state[k, :] = begun[2 * key + 1, k]
            _compress(state, used, constants)
            for i in range(size):
                for k in range(4):
                    out[first + i, 4 * key + k] = state[k, i]
    return out


@compiled
def take_in(state: Words, constants: Words, data: Bytes) -> Words:
    """The state after these bytes, which are whole blocks."""
    found, words = state.copy().reshape(8, 1), np.empty((16, 1), dtype=np.uint32)
    for block in range(0, len(data), 64):
        words[:, :] = 0
        for j in range(64):
            words[j >> 2, 0] |= _u32(_u32(data[block + j]) << _u32(24 - 8 * (j & 3)))
        _compress(found, words, constants)
    return found[:, 0].copy()
