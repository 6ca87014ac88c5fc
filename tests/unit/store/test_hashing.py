"""Hashes of many rows by compiled code: those of hashlib, bit for bit."""

from __future__ import annotations

import hashlib
import hmac
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.store.hashing import PersonKeys, Rows, hash_rows, sum_words

pytestmark = pytest.mark.slow  # they wait for a compiler
KEY, EVERYWHERE = b"k" * 32, b"e" * 32


def hash_all(beginning: bytes, rows: list[bytes]) -> list[bytes]:
    """Each behind the beginning."""
    return [one.tobytes() for one in hash_rows(beginning, Rows.of(rows), many=True)]


@pytest.mark.parametrize("beginning", [b"", b"abc", bytes(63), bytes(64), bytes(range(65)), bytes(130)], ids=len)
def test_every_length(beginning: bytes) -> None:
    """On both sides of every border of a block, and of the room that its length needs; more than are hashed together."""
    rows = [bytes([length]) * length for length in range(200)] + [b""] * 400
    assert hash_all(beginning, rows) == [hashlib.sha256(beginning + row).digest() for row in rows]


@given(beginning=st.binary(max_size=200), rows=st.lists(st.binary(max_size=200), max_size=300))
def test_any_bytes(beginning: bytes, rows: list[bytes]) -> None:
    """Whatever they are."""
    assert hash_all(beginning, rows) == [hashlib.sha256(beginning + row).digest() for row in rows]


def test_a_long_row() -> None:
    """Its length takes more than one byte."""
    assert hash_all(b"x", [bytes(100_000)]) == [hashlib.sha256(b"x" + bytes(100_000)).digest()]


@pytest.mark.parametrize("many", [False, True])
def test_persons_and_sums(many: bool) -> None:
    """HMAC under both keys, and the first eight bytes as numbers; more than are hashed together, and by several threads."""
    texts = [b"", b"a", "ä".encode(), bytes(64), b"\0\xff" * 70, *(b"p%d" % number for number in range(40_000))]
    found = PersonKeys.of(KEY, EVERYWHERE).hash(Rows.of(texts), many=many)
    assert [one.tobytes() for one in found] == [
        b"".join(hmac.digest(key, one, "sha256")[:16] for key in (KEY, EVERYWHERE)) for one in texts
    ]
    words = [int.from_bytes(hashlib.sha256(KEY + text).digest()[:8], "big") for text in texts]
    assert sum_words(KEY, Rows.of(texts), many=many) == sum(words) > 1 << 64


@pytest.mark.parametrize("texts", [[], [b""], [b"a", b"", b"bcd"]])
def test_rows_of_arrow(texts: list[bytes]) -> None:
    """Also of a slice: as Python has them."""
    whole = pa.array([b"before", *texts, b"behind"], pa.binary())
    found, made = Rows.of_arrow(whole.slice(1, len(texts))), Rows.of(texts)
    assert len(found) == len(made) == len(texts)
    pieces = [[rows.data[first:end].tobytes() for first, end in pairwise(rows.ends)] for rows in (found, made)]
    assert pieces == [texts, texts]
