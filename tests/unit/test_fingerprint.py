"""Hashes in words: the list is what it was, and every bit of the first 66 has its place."""

from __future__ import annotations

import hashlib

import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.fingerprint import BITS, COUNT, read_words, spell

WORDS = "d3464faa9f6f49865343d85ee3efa9ad4127efa88e1f19e299098d77bc685f8a"  # of the file: it never changes


def test_the_list_never_changes() -> None:
    """Words that somebody wrote down are those of the same hash for ever."""
    words = read_words()
    assert hashlib.sha256("".join(f"{word}\n" for word in words).encode()).hexdigest() == WORDS
    assert len(words) == 2**BITS


def test_the_words_are_told_apart() -> None:
    """Lower-case, sorted, three to eight letters; the first four are enough."""
    words = read_words()
    assert list(words) == sorted(set(words))
    assert all(word.isascii() and word.isalpha() and word.islower() and 3 <= len(word) <= 8 for word in words)
    assert len({word[:4] for word in words}) == len(words)


def test_no_slip_of_one_letter_makes_another_word() -> None:
    """Each letter of each word, by all that stands around it, is there once; no word without one letter is another."""
    words = read_words()
    around = [(word[:at], word[at + 1 :]) for word in words for at in range(len(word))]
    assert len(set(around)) == len(around)
    assert {before + after for before, after in around}.isdisjoint(words)


@pytest.mark.parametrize("bit", range(BITS * COUNT))
def test_each_of_the_first_bits_changes_the_word_that_it_is_in(bit: int) -> None:
    """And no other word; the order is that of the hash."""
    start = int("5a" * 32, 16)
    before, after = spell(f"{start:064x}"), spell(f"{start ^ 1 << (255 - bit):064x}")
    assert [place for place in range(COUNT) if before[place] != after[place]] == [bit // BITS]


def test_the_other_bits_are_in_no_word() -> None:
    """As the module says."""
    assert spell("0" * 64) == spell("0" * 17 + "f" * 47) != spell("0" * 16 + "4" + "0" * 47)


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
