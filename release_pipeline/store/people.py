"""Who is in a release: the hashes of persons, each once and sorted, so that the source's order is gone; and how many records
each person has.

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
from typing import Any, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from release_pipeline.errors import StoreError, is_full, spill_full
from release_pipeline.mechanisms.basis.arrays import gather

PERSON = 16  # bytes that are kept of a person's hash
_TIMED = 24  # and of how many records it has
Bytes: TypeAlias = npt.NDArray[np.uint8]
Part: TypeAlias = tuple[Bytes, npt.NDArray[np.int64]]  # different rows, ascending, and how often each was there
_TOGETHER = 1 << 19  # rows that are sorted together, as a rule
_OF_ROOT = 64  # for very many rows, so many times their square root: otherwise there would be as many parts as rows in each


@dataclass(frozen=True, slots=True)
class PersonKeys:
    """The keys of a person's two hashes: `first` of the SHA-256 that is computed once for each, `population` and `everywhere` of
    the hashes made from it. There are three keys so that anyone who has one of somebody's two hashes cannot derive the other."""

    first: bytes
    population: bytes
    everywhere: bytes


def as_rows(hashes: pa.Array) -> Bytes:
    """Return the hashes of persons as rows of bytes."""
    cells = hashes.cast(pa.binary(PERSON))
    rows = np.frombuffer(cells.buffers()[1], dtype=np.uint8)[: (cells.offset + len(cells)) * PERSON]
    return rows.reshape(-1, PERSON)[cells.offset :]


def hash_persons(hashes: pa.Array, key: bytes) -> Bytes:
    """Return the hash under a key of each person, whose SHA-256 DuckDB made: encrypted by AES.

    SHA-256 with a secret block before the person is the inner half of HMAC. We assume that nobody without the key finds two
    persons for whom the 16 bytes that are kept of it are the same, and that AES, the outer half, cannot be told from a random
    function while there are far fewer than 2^64 persons. It is a permutation: it makes no two persons one.
    """
    return encrypt(as_rows(hashes), key)


def encrypt(rows: Bytes, key: bytes) -> Bytes:
    """Return each row of 16 bytes, encrypted by AES."""
    return _code(rows, _cipher(key).encryptor())


def find_everywhere(rows: Bytes, keys: PersonKeys) -> Bytes:
    """Return the second hash of persons from their first: AES is a permutation, so that only who has its key can undo it."""
    return encrypt(_code(rows, _cipher(keys.population).decryptor()), keys.everywhere)


def _cipher(key: bytes) -> Any:
    """Return AES of blocks, each by itself: every row is a different one, and none is to be read again by others."""
    return Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305  see hash_persons


def _code(rows: Bytes, coder: Any) -> Bytes:
    return np.frombuffer(coder.update(rows.reshape(-1).data), dtype=np.uint8).reshape(-1, PERSON)


def count_persons(parts: Iterable[Part], *, records: int, allowed: int) -> dict[str, int]:
    """Return counts: `missing`, the records without a person; `persons`; and `too_often`, those with more records than
    allowed."""
    present = persons = too_often = 0
    for rows, times in parts:
        present += int(times.sum())
        persons += len(rows)
        too_often += int(np.count_nonzero(times > allowed))
    return {"missing": records - present, "persons": persons, "too_often": too_often}


def sort_people(hashed: Iterable[Bytes], most: int, folder: Path | None = None) -> Iterator[Part]:
    """Yield the different rows of these in order, part by part. `most`: how many rows there may be; beyond a limit they go
    through a file of the folder, unless there is none. All are taken before the first part is yielded."""
    together = max(_TOGETHER, _OF_ROOT * math.isqrt(most))
    bits = 0 if folder is None else (max(most - 1, 0) // together).bit_length()
    runs = (_sum_times(_with_times(rows)) for rows in map(np.concatenate, gather(hashed, together)))
    if not bits:
        yield _split(_sum_times(np.concatenate([np.empty((0, _TIMED), dtype=np.uint8), *runs])))
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
            yield _split(_sum_times(_read_part(file.fileno(), first, beyond, _TIMED)))


@contextmanager
def _disk_errors() -> Generator[None]:
    """Turn a full disk into a clear error."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise spill_full() from None
        raise


def insert_people(connection: duckdb.DuckDBPyConnection, parts: Iterable[Part], keys: PersonKeys) -> Iterator[Part]:
    """Yield these parts, once their rows are in the table `people`, with the second hash of each."""
    for rows, times in parts:
        hashes = {"person": rows, "everywhere": find_everywhere(rows, keys)}
        connection.from_arrow(pa.table({name: as_arrow(own) for name, own in hashes.items()})).insert_into("people")
        yield rows, times


def _with_times(rows: Bytes) -> Bytes:
    """Return each of these rows with how often it is there: once."""
    return np.hstack([rows, np.ones(len(rows), dtype=np.int64).view(np.uint8).reshape(-1, _TIMED - PERSON)])


def _split(rows: Bytes) -> Part:
    return np.ascontiguousarray(rows[:, :PERSON]), rows.view(np.int64)[:, -1]


def _sum_times(rows: Bytes) -> Bytes:
    """Return the different rows, sorted, each with how often it is there."""
    first = _read_word(rows, 0)
    order = np.argsort(first)
    first, second = first[order], _read_word(rows, 1)[order]
    if ((first[1:] == first[:-1]) & (second[1:] != second[:-1])).any():  # one in 2^64 of two persons
        order = np.lexsort((_read_word(rows, 1), _read_word(rows, 0)))
    words = rows.view(f"V{_TIMED}").reshape(-1)[order].view(np.int64).reshape(-1, _TIMED // 8)  # faster than row by row
    is_new = np.ones(len(words), dtype=np.bool_)
    is_new[1:] = (words[1:, :2] != words[:-1, :2]).any(axis=1)
    if not is_new.all():
        firsts = np.flatnonzero(is_new)
        times = np.add.reduceat(words[:, 2], firsts)
        words = words[firsts]
        words[:, 2] = times
    return words.view(np.uint8)


def _read_word(rows: Bytes, word: int) -> npt.NDArray[np.uint64]:
    """Return eight bytes of each row as a number, the first byte the highest."""
    return rows.view(np.uint64)[:, word].byteswap()


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
