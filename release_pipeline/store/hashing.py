"""Keyed hashes of very many rows in DuckDB: `people_after`, two HMAC of a person as bytes, and `word_after`, the first eight
bytes of SHA-256 as a number. Of few rows DuckDB's own function makes them; of many, compiled code that is learned once."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from release_pipeline.store.sql import statement

MANY = 1 << 18  # hashes from which it pays to load, or compile, what is faster
_BLOCK, _DIGEST, _CUT = 64, 32, 16
_ARROW: Any = "arrow"
_OF_FEW = "schema/create_people_after_of_few", "schema/create_word_after_of_few"
_OF_MANY = "schema/create_people_after_of_many", "schema/create_word_after_of_many"


def learn_hashes(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    """What `people_after` and `word_after` are in this connection, for so many rows."""
    if rows >= MANY:
        _register(connection)
    for name in _OF_MANY if rows >= MANY else _OF_FEW:
        connection.execute(statement(name))


def _register(connection: duckdb.DuckDBPyConnection) -> None:
    known = connection.execute(statement("schema/count_hash_functions")).fetchall()[0][0]
    if known:
        return
    with suppress(duckdb.NotImplementedException):  # of a transaction that was rolled back they are not listed, and there
        connection.create_function("people_many_after", hash_people, _blobs(5), "BLOB", type=_ARROW)
        connection.create_function("word_many_after", take_words, _blobs(2), "UBIGINT", type=_ARROW)


def _blobs(count: int) -> list[Any]:
    return ["BLOB"] * count


def hash_people(inner: Any, outer: Any, everywhere_inner: Any, everywhere_outer: Any, rows: Any) -> Any:
    """Two HMAC-SHA256 of each row, by the pads of two keys: 16 bytes of one, and behind them 16 of the other."""
    import pyarrow as pa  # a large library: only where it is used

    data, ends = _read(rows)
    found = np.empty((len(ends) - 1, 2 * _CUT), dtype=np.uint8)
    places = np.arange(len(ends), dtype=np.int64) * _DIGEST
    for start, pads in ((0, (inner, outer)), (_CUT, (everywhere_inner, everywhere_outer))):
        within = hash_rows(_first(pads[0]), data, ends)
        found[:, start : start + _CUT] = hash_rows(_first(pads[1]), within.reshape(-1), places)[:, :_CUT]
    borders = pa.py_buffer((np.arange(len(ends)) * 2 * _CUT).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(found), [None, borders, pa.py_buffer(found.reshape(-1))])


def take_words(beginnings: Any, rows: Any) -> Any:
    """The first eight bytes of these hashes as numbers."""
    import pyarrow as pa

    found = _hash_rows(_first(beginnings), *_read(rows))
    return pa.array(found[:, 0].astype(np.uint64) << np.uint64(32) | found[:, 1])


def hash_rows(beginning: bytes, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """SHA-256 of the beginning and each row, which is data[ends[i]:ends[i + 1]]: 32 bytes of every one."""
    return _hash_rows(beginning, data, ends).astype(">u4").view(np.uint8)


def _hash_rows(beginning: bytes, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """The same as eight words."""
    from release_pipeline.store import hash_kernel  # compiled code: only where it is used

    begun, constants, rest = _begin(beginning)
    return hash_kernel.hash_texts(begun, constants, rest, len(beginning), data, ends)


def _first(beginnings: Any) -> bytes:
    """The one that all are."""
    return beginnings[0].as_py() if len(beginnings) else b""


def _read(rows: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of these blobs, none of which is missing, and where each ends."""
    import pyarrow as pa

    whole = (rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows).cast(pa.large_binary())
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
    return np.frombuffer(b"" if data is None else data, dtype=np.uint8), ends


@lru_cache(maxsize=8)  # they are keys: not kept for ever
def _begin(beginning: bytes) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
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
