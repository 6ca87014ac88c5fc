"""Who is in a release: the hashes of persons, each once and sorted, so that the source's order is gone.

A hash is as good as random, so all hashes that begin with the same bits are a part of about the same size as any other. Rows are
sorted as far as they fit in memory, and written one behind the other to a file without a name; then each part is read from all of
these, and sorted in its turn.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from release_pipeline.errors import StoreError, is_full, spill_full

PERSON = 16  # bytes that are kept of a person's hash
Bytes: TypeAlias = npt.NDArray[np.uint8]
_BLOCK = 64  # bytes of SHA-256
_TOGETHER = 1 << 19  # rows that are sorted together, as a rule
_OF_ROOT = 64  # for very many rows, so many times their square root: otherwise there would be as many parts as rows in each


@dataclass(frozen=True, slots=True)
class PersonKeys:
    """The keys of a person's two hashes: `first` of the HMAC that is computed once for each, `population` and `everywhere` of the
    hashes made from it. There are three keys so that anyone who has one of somebody's two hashes cannot derive the other."""

    first: bytes
    population: bytes
    everywhere: bytes


def list_pads(key: bytes) -> dict[str, bytes]:
    """Return the pads of HMAC-SHA256 under a key, as stages/read_persons names them."""
    padded = key.ljust(_BLOCK, b"\0")
    return {name: bytes(byte ^ mask for byte in padded) for name, mask in (("inner", 0x36), ("outer", 0x5C))}


def hash_persons(hashes: pa.Array, *keys: bytes) -> Bytes:
    """Return a hash under each of these keys for each person, whose HMAC DuckDB made, one next to the other: the HMAC
    encrypted by AES.

    AES is a permutation: two persons are one under a key where they are one under another. Without the keys it cannot be
    distinguished from a second HMAC, except that its hashes never collide: those of an HMAC would for one in 2^128 pairs.
    """
    blocks = np.frombuffer(b"".join(hashes.to_pylist()), dtype=np.uint8)
    encrypted = [Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks.data) for key in keys]  # noqa: S305  see above
    return np.hstack([np.frombuffer(each, dtype=np.uint8).reshape(-1, PERSON) for each in encrypted])


def sort_people(hashed: Iterable[Bytes], most: int, folder: Path) -> Iterator[Bytes]:
    """Yield every row of these once, in order, part by part. `most`: how many there may be; beyond a limit they go through a file
    of the folder. All are taken before the first part is yielded."""
    together = max(_TOGETHER, _OF_ROOT * math.isqrt(most))
    bits = (max(most - 1, 0) // together).bit_length()
    runs = map(sort_rows, _gather(hashed, together))
    if not bits:
        yield from list(runs)
        return
    borders = np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    with _disk_errors(), TemporaryFile(dir=folder) as file:
        cuts: list[npt.NDArray[np.int64]] = []
        written = 0
        for run in runs:
            file.write(run.data)
            inner = np.searchsorted(_read_word(run, 0), borders)
            cuts.append(written + np.concatenate([[0], inner, [len(run)]]))
            written += len(run)
        file.flush()
        for first, beyond in pairwise(np.array(cuts).T):
            yield sort_rows(_read_part(file.fileno(), first, beyond, 2 * PERSON))


@contextmanager
def _disk_errors() -> Generator[None]:
    """Turn a full disk into a clear error."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise spill_full() from None
        raise


def insert_people(connection: duckdb.DuckDBPyConnection, parts: Iterable[Bytes]) -> None:
    """Add rows to the table `people`, whose columns are the halves of each."""
    for part in parts:
        halves = {"person": part[:, :PERSON], "everywhere": part[:, PERSON:]}
        connection.from_arrow(pa.table({name: as_arrow(half) for name, half in halves.items()})).insert_into("people")


def sort_rows(rows: Bytes) -> Bytes:
    """Return the rows, each once, sorted by all their bytes."""
    ordered = _leave_repeats(_take(rows, np.argsort(_read_word(rows, 0))))
    first = _read_word(ordered, 0)
    if not (first[1:] == first[:-1]).any():
        return ordered
    # one in 2^64 of two: other rows between the same person's, or in the wrong order
    words = [_read_word(ordered, word) for word in range(ordered.shape[1] // 8)]
    return _leave_repeats(_take(ordered, np.lexsort(words[::-1])))


def _gather(hashed: Iterable[Bytes], together: int) -> Iterator[Bytes]:
    """Yield so many rows at a time, or a few more."""
    waiting: list[Bytes] = []
    for rows in hashed:
        waiting.append(rows)
        if sum(map(len, waiting)) >= together:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _read_word(rows: Bytes, word: int) -> npt.NDArray[np.uint64]:
    """Return eight bytes of each row as a number, the first byte the highest."""
    return rows.view(np.uint64)[:, word].byteswap()


def _take(rows: Bytes, places: npt.NDArray[np.intp]) -> Bytes:
    whole = rows.view(f"V{rows.shape[1]}").reshape(-1)
    return whole[places].view(np.uint8).reshape(-1, rows.shape[1])


def _leave_repeats(ordered: Bytes) -> Bytes:
    """Return the rows without those that equal the one before."""
    words = ordered.view(np.uint64)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = (words[1:] != words[:-1]).any(axis=1)
    return ordered if is_new.all() else ordered[is_new]


def _read_part(file: int, first: npt.NDArray[np.int64], beyond: npt.NDArray[np.int64], width: int) -> Bytes:
    """Return these rows of a file."""
    rows = np.empty(int((beyond - first).sum()) * width, dtype=np.uint8)
    at = 0
    for start, stop in zip((first * width).tolist(), (beyond * width).tolist(), strict=True):
        while start < stop:
            read = os.preadv(file, [rows[at : at + stop - start].data], start)
            if not read:
                raise StoreError("the file of hashes that are put in order ends too early.", remedy="Run the same command again.")
            at, start = at + read, start + read
    return rows.reshape(-1, width)


def as_arrow(half: Bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(PERSON), len(half), [None, pa.py_buffer(np.ascontiguousarray(half).reshape(-1))])
