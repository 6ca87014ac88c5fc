"""Documents of remarks: what is written is read again, what no reader could see is refused, and no message has a text of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import WrongUsage
from release_pipeline.store.registry import canonical_json, hash_of_json
from release_pipeline.trust.remarks import check_remarks
from release_pipeline.verifier.documents import Fault, read_json
from release_pipeline.verifier.remarks import Remarks, hash_remarks, read_remarks

HIDDEN = "\x00\x07\r\t\x1b\x7f\x85\x9f\u2028\u2029\u202a\u202e\u2066\u2069\ud800\udfff"
SUBJECTS = st.sampled_from(["people/1/r1", "people/2026-03/r12", "people", "rand-hie"])
HASHES = st.text("0123456789abcdef", min_size=64, max_size=64)
SEEN = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters=HIDDEN)
TEXTS = st.text(st.one_of(SEEN, st.just("\n")), min_size=1, max_size=60).filter(lambda text: text.strip() != "")
PASSAGES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
ENTRIES = st.lists(st.tuples(PASSAGES, TEXTS), min_size=1, max_size=5)
CANARY = "Kanarienvogel"


@given(SUBJECTS, HASHES, ENTRIES)
def test_what_is_written_is_read_again(subject: str, digest: str, entries: list[tuple[str, str]]) -> None:
    """By the site and by the verifier, with the hash that both compute; also after it went through a file."""
    remarks = Remarks(subject, digest, tuple(entries))
    document = read_json(canonical_json(remarks.document).encode())
    assert check_remarks(document) == remarks
    assert (read_remarks(document).subject, read_remarks(document).entries) == (subject, tuple(entries))
    assert hash_remarks(document) == hash_of_json(remarks.document)


@given(st.sampled_from(HIDDEN), TEXTS, st.integers(0, 60))
def test_what_cannot_be_seen_is_refused(hidden: str, text: str, place: int) -> None:
    """Wherever in a text it stands."""
    spoiled = CANARY + text[:place] + hidden + text[place:]
    with pytest.raises(WrongUsage, match="remark 2: its text has a character that cannot be seen") as refused:
        check_remarks(Remarks("people", "ab" * 32, (("", "well"), ("", spoiled))).document)
    assert CANARY not in str(refused.value)


GOOD: dict[str, Any] = Remarks("people/1/r1", "ab" * 32, (("claim", CANARY), ("", "well"))).document
BROKEN: dict[str, Any] = {
    "another format": {"format": "release-pipeline/remarks/2"},
    "a subject that is none": {"subject": "people/1"},
    "a hash that is none": {"hash": "AB" * 32},
    "no remarks": {"remarks": []},
    "too many": {"remarks": [{"passage": "", "text": CANARY}] * 201},
    "more than it has": {"why": CANARY},
    "an empty text": {"remarks": [{"passage": "", "text": " \n "}]},
    "a text too long": {"remarks": [{"passage": "", "text": CANARY + "x" * 2000}]},
    "a passage of two lines": {"remarks": [{"passage": f"{CANARY}\n", "text": "so"}]},
}


@pytest.mark.parametrize("way", BROKEN)
def test_a_broken_document_is_refused_in_words(way: str) -> None:
    """By both, without a word of what it says; the good one passes."""
    assert check_remarks(copy.deepcopy(GOOD)).document == GOOD
    broken = {**GOOD, **BROKEN[way]}
    with pytest.raises(Fault) as fault:
        read_remarks(broken)
    with pytest.raises(WrongUsage) as refused:
        check_remarks(broken)
    assert CANARY not in fault.value.what + str(refused.value)
