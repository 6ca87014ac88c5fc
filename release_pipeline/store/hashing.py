"""SHA-256 of very many rows behind one beginning: keyed hashes of persons, and sums of keyed hashes. Of few rows hashlib makes
them; of many, compiled code that is loaded once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from os import cpu_count
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

MANY = 1 << 18  # hashes from which it pays to load, or compile, what is faster
PERSON = 16  # bytes that are kept of the hash of a person
_BLOCK, _DIGEST = 64, 32
_TOGETHER = 1 << 12  # rows that are hashed together: what is made of them stays in the cache
_ALONE = 8  # so many pieces, and threads would be begun for little
Bytes = npt.NDArray[np.uint8]
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Texts of bytes, one behind the other: text i is data[ends[i]:ends[i + 1]]."""

    data: Bytes
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Rows:
        """Of texts that Python has."""
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(texts), dtype=np.uint8), ends)

    @classmethod
    def of_arrow(cls, texts: Any) -> Rows:
        """Of those of an Arrow array; one that is missing is empty. No copy is made."""
        import pyarrow as pa  # a large library: only where it is used

        whole = texts.cast(pa.large_binary())
        _, offsets, data = whole.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
        return cls(np.frombuffer(b"" if data is None else data, dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def cut(self, first: int) -> Rows:
        """As many as are hashed together."""
        return Rows(self.data, self.ends[first : first + _TOGETHER + 1])


@dataclass(frozen=True, slots=True, repr=False)
class PersonKeys:
    """By what persons are hashed: the pads of HMAC under the key of a population, and under that of everybody."""

    pads: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def of(cls, population: bytes, everywhere: bytes) -> PersonKeys:
        """Of these two keys."""
        return cls(tuple(_pad(key) for key in (population, everywhere)))

    def hash(self, persons: Rows, *, many: bool) -> Bytes:
        """HMAC-SHA256 of each person under both keys: 16 bytes of one, and behind them 16 of the other. `many`: there are so many
        in all that compiled code pays."""
        return self._compute(persons) if many else self._ask_hashlib(persons)

    def _compute(self, persons: Rows) -> Bytes:
        from release_pipeline.store import hash_kernel  # compiled code: only where it is used

        states = [_begin(pad) for pads in self.pads for pad in pads]
        begun, constants = np.stack([state for state, _, _ in states]), states[0][1]
        found = np.empty((len(persons), PERSON * len(self.pads)), dtype=np.uint8)

        def hash_from(first: int) -> None:
            rows = persons.cut(first)
            words = hash_kernel.hash_persons(begun, constants, rows.data, rows.ends)
            found[first : first + len(rows)] = words.astype(">u4").view(np.uint8)

        _work(hash_from, len(persons))
        return found

    def _ask_hashlib(self, persons: Rows) -> Bytes:
        places = np.arange(len(persons) + 1, dtype=np.int64) * _DIGEST
        halves: list[Bytes] = []
        for inner, outer in self.pads:
            within = Rows(_hash_few(inner, persons).reshape(-1), places)
            halves.append(_hash_few(outer, within)[:, :PERSON])
        return np.concatenate(halves, axis=1)


def sum_words(beginning: bytes, rows: Rows, *, many: bool) -> int:
    """The first eight bytes of the hash of the beginning and each row, as numbers, the first byte the highest: their sum."""

    def sum_from(first: int) -> int:
        words = hash_rows(beginning, rows.cut(first), many=many)[:, :8].copy().view(">u4")
        high, low = (int(words[:, half].sum(dtype=np.uint64)) for half in (0, 1))
        return (high << 32) + low

    return sum(_work(sum_from, len(rows)) if many else map(sum_from, range(0, len(rows), _TOGETHER)))


def hash_rows(beginning: bytes, rows: Rows, *, many: bool) -> Bytes:
    """SHA-256 of the beginning and each row: 32 bytes of every one."""
    if not many:
        return _hash_few(beginning, rows)
    from release_pipeline.store import hash_kernel  # compiled code: only where it is used

    begun, constants, rest = _begin(beginning)
    found = hash_kernel.hash_texts(begun, constants, rest, len(beginning), rows.data, rows.ends)
    return found.astype(">u4").view(np.uint8)


def _work(work: Callable[[int], Found], rows: int) -> list[Found]:
    """What is found from the first row of each piece on: by all processors, for compiled code lets them."""
    starts = range(0, rows, _TOGETHER)
    if len(starts) < _ALONE:
        return list(map(work, starts))
    with ThreadPoolExecutor(min(len(starts) // 2, cpu_count() or 1)) as threads:
        return list(threads.map(work, starts))


def _hash_few(beginning: bytes, rows: Rows) -> Bytes:
    begun, data, ends = hashlib.sha256(beginning), rows.data.data, rows.ends.tolist()
    found = bytearray()
    for first, beyond in pairwise(ends):
        one = begun.copy()
        one.update(data[first:beyond])
        found += one.digest()
    return np.frombuffer(found, dtype=np.uint8).reshape(-1, _DIGEST)


def _pad(key: bytes) -> tuple[bytes, bytes]:
    """The two pads of HMAC."""
    padded = key.ljust(_BLOCK, b"\0")
    return bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded)


@lru_cache(maxsize=8)  # they are keys: not kept for ever
def _begin(beginning: bytes) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], Bytes]:
    """The state after all whole blocks of a beginning, SHA-256's constants, and what is left of the beginning."""
    from release_pipeline.store import hash_kernel

    first, constants = _find_constants()
    whole = len(beginning) // _BLOCK * _BLOCK
    data = np.frombuffer(beginning, dtype=np.uint8)
    return hash_kernel.take_in(first, constants, data[:whole]), constants, data[whole:]


@cache
def _find_constants() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """What SHA-256 begins with, and adds round by round: 32 bits behind the point of the square roots of the first eight primes,
    and of the cube roots of the first 64."""
    primes = [number for number in range(2, 312) if all(number % divisor for divisor in range(2, math.isqrt(number) + 1))]
    squares = [math.isqrt(prime << 64) & 0xFFFFFFFF for prime in primes[:8]]
    return np.array(squares, dtype=np.uint32), np.array([_cube_root(prime) for prime in primes], dtype=np.uint32)


def _cube_root(prime: int) -> int:
    """The first 32 bits behind the point of it."""
    low, high = 0, 1 << 36
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= prime << 96 else (low, middle)
    return low & 0xFFFFFFFF
