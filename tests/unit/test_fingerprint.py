"""Hashes in words: the list is what it was, and every bit of the first 66 has its place."""

from __future__ import annotations

import hashlib

import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.fingerprint import BITS, read_words, spell

WORDS = "d3464faa9f6f49865343d85ee3efa9ad4127efa88e1f19e299098d77bc685f8a"  # of the file: it never changes


def test_the_list_never_changes() -> None:
    """Words that somebody wrote down are those of the same hash for ever."""
    words = read_words()
    assert hashlib.sha256("".join(f"{word}\n" for word in words).encode()).hexdigest() == WORDS
    assert len(words) == 2**BITS


def test_known_words() -> None:
    """Counted by hand: 11 bits each, the first ones first."""
    first = "00000000001" + "00000000010" + "11111111111" + "0" * 11 + "00000000011" + "0" * 11
    digest = f"{int(first.ljust(256, '1'), 2):064x}"
    words = read_words()
    assert spell(digest) == (words[1], words[2], words[2047], words[0], words[3], words[0])


@pytest.mark.parametrize("digest", ["", "A" * 64, "0" * 63, "0" * 65, "g" * 64, " " + "0" * 63, "0" * 64 + "\n"])
def test_what_is_no_hash_has_no_words(digest: str) -> None:
    """Refused by name."""
    with pytest.raises(InvalidArgument, match="SHA-256"):
        spell(digest)
