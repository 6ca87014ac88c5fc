"""Hashes of many rows by compiled code: those of hashlib, bit for bit, and the same in DuckDB either way."""

from __future__ import annotations

import hashlib
import hmac

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.store import hashing
from release_pipeline.store.hashing import hash_rows, learn_hashes
from release_pipeline.store.sql import statement

pytestmark = pytest.mark.slow  # they wait for a compiler
KEY, EVERYWHERE = b"k" * 32, b"e" * 32


def hash_all(beginning: bytes, rows: list[bytes]) -> list[bytes]:
    """Each behind the beginning."""
    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    return [one.tobytes() for one in hash_rows(beginning, np.frombuffer(b"".join(rows), dtype=np.uint8), ends)]


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
def test_in_duckdb(monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    """The first eight bytes as numbers, and persons; learned again without harm."""
    monkeypatch.setattr(hashing, "MANY", 0 if many else 1 << 60)
    rows = [b"", b"a", "ä".encode(), bytes(64), b"\0\xff" * 70]
    with duckdb.connect() as connection:
        for _ in range(2):
            learn_hashes(connection, 10)
        connection.execute("CREATE TABLE rows (row_of BLOB)")
        connection.executemany("INSERT INTO rows VALUES (?)", [(row,) for row in rows])
        found = connection.execute("SELECT word_after($key, row_of) FROM rows", {"key": KEY}).fetchall()
        assert found == [(int.from_bytes(hashlib.sha256(KEY + row).digest()[:8], "big"),) for row in rows]
        connection.execute("CREATE VIEW persons AS SELECT 'p' || range % 5000 AS person FROM range(20_000)")
        connection.execute("CREATE TABLE people (person BLOB, everywhere BLOB)")
        pads = {
            name: bytes(byte ^ by for byte in key.ljust(64, b"\0"))
            for side, key in (("", KEY), ("everywhere_", EVERYWHERE))
            for name, by in ((f"{side}inner", 0x36), (f"{side}outer", 0x5C))
        }
        text = statement("stages/insert_people", table="people")
        connection.execute(text, {**pads, "parts": 1, "part": 0})
        people = connection.execute("SELECT * FROM people").fetchall()
    each = [f"p{number}".encode() for number in range(5000)]
    assert people == sorted(tuple(hmac.digest(key, one, "sha256")[:16] for key in (KEY, EVERYWHERE)) for one in each)
