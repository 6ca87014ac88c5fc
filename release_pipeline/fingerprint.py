"""A hash in words, for two people, or two screens, to compare.

Six words say the first 66 of the 256 bits: 11 bits each, the first ones first, by the place of the word in fingerprint.txt. That
file has 2048 English words of three to eight letters, sorted, no two with the same first four letters and none a letter away from
another. It never changes: what somebody wrote down yesterday is compared with what is shown tomorrow.

What the words are for: to see that one and the same thing is meant, on two screens or over the telephone. They decide nothing,
for a signature is over the whole hash. Who wants another content with the words of a given one must try 2^66 of them on average:
with work for 2^60, which is more than a person can buy today, the chance is one in 64. Who may choose both contents, as the
author of two policies may, needs about 2^33 tries for some pair with the same words, which is minutes: so two contents with the
same words need not be one, if somebody wanted them to look alike. Compare the hash itself where that matters.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from release_pipeline.errors import InvalidArgument

BITS, COUNT = 11, 6  # of a word, and how many there are
_FILE = Path(__file__).with_suffix(".txt")
_HEX = re.compile("[0-9a-f]{64}")


@cache
def read_words() -> tuple[str, ...]:
    """The list, in its order."""
    return tuple(_FILE.read_text(encoding="ascii").split())


def spell(digest: str) -> tuple[str, ...]:
    """The words of a SHA-256 in hex.

    >>> spell("0" * 64)
    ('abacus', 'abacus', 'abacus', 'abacus', 'abacus', 'abacus')
    """
    if not _HEX.fullmatch(digest):
        raise InvalidArgument("this is not a SHA-256 in lower-case hex.", where="digest", remedy="Give its 64 characters.")
    words, first = read_words(), int(digest, 16) >> (256 - BITS * COUNT)
    return tuple(words[first >> (BITS * place) & (2**BITS - 1)] for place in reversed(range(COUNT)))
