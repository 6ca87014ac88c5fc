"""Remarks of reviewers: their form, and whether a text is readable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from release_pipeline.verifier.documents import HEX, NAME, RELEASE, Fault, canonical_json, get, sha256

REMARKS_FORMAT = "release-pipeline/remarks/1"
MOST_REMARKS, LONGEST_REMARK, LONGEST_PASSAGE = 200, 2000, 300
_HIDDEN = frozenset("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they turn the text next to them


@dataclass(frozen=True)
class Remarks:
    """Remarks on a candidate or a policy with this hash: passages with texts. The passage "" is the whole."""

    subject: str
    hash: str
    entries: tuple[tuple[str, str], ...]

    @property
    def is_of_release(self) -> bool:
        """Return whether they are on a candidate, and not on a policy."""
        return "/" in self.subject

    @property
    def document(self) -> dict[str, Any]:
        """Return the signed document, whose canonical JSON has the hash in the statement."""
        entries = [{"passage": passage, "text": text} for passage, text in self.entries]
        return {"format": REMARKS_FORMAT, "subject": self.subject, "hash": self.hash, "remarks": entries}


def read_remarks(document: Any) -> Remarks:
    """Return the remarks in a document; raises `Fault` unless it has its form, and only readable text. No message has a text of
    it."""
    if get(document, "format", str) != REMARKS_FORMAT:
        raise Fault(f"its format is not {REMARKS_FORMAT}")
    subject, digest, listed = get(document, "subject", str), get(document, "hash", HEX), get(document, "remarks", list)
    if not (RELEASE.fullmatch(subject) or NAME.fullmatch(subject)):
        raise Fault("its subject is neither a release nor a policy")
    if len(document) != 4 or not 0 < len(listed) <= MOST_REMARKS:
        raise Fault(f"it must have 1 to {MOST_REMARKS} remarks, and nothing else")
    entries: list[tuple[str, str]] = []
    for number, entry in enumerate(listed, start=1):
        try:
            passage, text = get(entry, "passage", str), get(entry, "text", str)
        except Fault as fault:
            raise Fault(f"remark {number}: {fault.what}") from None
        if len(entry) != 2:
            raise Fault(f"remark {number} has more than a passage and a text")
        if len(passage) > LONGEST_PASSAGE or not (passage or " ").isprintable():
            raise Fault(f"remark {number}: a passage is one line of at most {LONGEST_PASSAGE} characters")
        if not text.strip() or len(text) > LONGEST_REMARK:
            raise Fault(f"remark {number}: a text has 1 to {LONGEST_REMARK} characters")
        if any(_is_unreadable(c) for c in text):
            raise Fault(f"remark {number}: its text has a character that cannot be seen, other than the end of a line")
        entries.append((passage, text))
    return Remarks(subject, digest, tuple(entries))


REVIEW, REVIEW_FORMAT = "review.json", "release-pipeline/reviewed/1"  # of dossiers: the statements signed during the review


def is_review(kind: str, release: str, content: Mapping[str, Any], about: str) -> bool:
    """Return whether an event is a vote on a release, or has remarks on it or on its policy."""
    if kind == "remarked":
        return content.get("subject") in (about, about.split("/")[0])
    return kind in ("approved", "returned", "rejected") and release == about


def hash_remarks(document: Any) -> str:
    """Return the hash of a statement of remarks: SHA-256 of the canonical JSON of its document."""
    return sha256(canonical_json(document))


def _is_unreadable(c: str) -> bool:
    return (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" or c in _HIDDEN
