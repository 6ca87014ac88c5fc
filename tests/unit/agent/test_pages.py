"""HTML without templates, what a ticket says, and what is typed to sign."""

from __future__ import annotations

from typing import Any

import pytest

from release_pipeline.agent.desk import read_ticket
from release_pipeline.agent.markup import Markup, join, tag
from release_pipeline.agent.reviews import confirms
from release_pipeline.fingerprint import spell
from release_pipeline.verify import Fault

DIGEST = "3c" * 32
TICKET: dict[str, Any] = {
    "format": "release-pipeline/ticket/1",
    "person": "ben",
    "what": "candidate",
    "subject": "people/1/r1",
    "wish": {"verdict": "reject", "why": "too\n coarse"},
    "back": "/releases/people/1",
}
WRONG: dict[str, dict[str, Any]] = {
    "another format": {"format": "release-pipeline/ticket/2"},
    "nobody": {"person": ""},
    "a person of two words": {"person": "ben\u2028olga"},
    "something else": {"what": "trusted-keys"},
    "no wish": {"wish": None},
    "another verdict": {"wish": {"verdict": "publish", "why": ""}},
    "no reason at all": {"wish": {"verdict": "approve"}},
    "a hidden reason": {"wish": {"verdict": "approve", "why": "fine\u202e"}},
    "a long reason": {"wish": {"verdict": "approve", "why": "x" * 501}},
    "a long subject": {"subject": "x" * 201},
    "back to another desk": {"back": "//evil.example"},
    "back to an address": {"back": "https://evil.example"},
    "back to a script": {"back": "javascript:alert(1)"},
    "back with a backslash": {"back": "/\\evil.example"},
    "back with a line": {"back": "/a\nb"},
    "back to a user": {"back": "@evil.example"},
}


def test_what_is_no_markup_is_escaped_and_seen() -> None:
    """In content and in attributes: tags, quotes, and characters that hide or turn what follows."""
    made = tag("p", "<script>", Markup("<br>"), "\u202e\x1b\n", title='"><script>', hidden=True, class_="a", id=False)
    assert made == '<p title="&quot;&gt;&lt;script&gt;" hidden class="a">&lt;script&gt;<br>\\u202e\\x1b\\n</p>'
    assert join("a<", tag("br")) == "a&lt;<br>"
    assert isinstance(join("a"), Markup)


def test_a_ticket_is_read() -> None:
    """The reason in one line; what a later version adds is not looked at."""
    ticket = read_ticket({**TICKET, "later": {"a": 1}})
    assert (ticket.person, ticket.verdict, ticket.why, ticket.back) == ("ben", "reject", "too coarse", "/releases/people/1")


@pytest.mark.parametrize("way", WRONG)
def test_what_is_no_ticket_is_refused(way: str) -> None:
    """Whatever one part of it is."""
    with pytest.raises(Fault):
        read_ticket({**TICKET, **WRONG[way]})
    for document in (None, [], "ticket", {name: value for name, value in TICKET.items() if name != "wish"}):
        with pytest.raises(Fault):
            read_ticket(document)


def test_the_beginning_of_the_hash_signs_and_nothing_else_does() -> None:
    """Its characters or its words, however they are set apart."""
    one, two, three, *_ = spell(DIGEST)
    for typed in (DIGEST[:8], f" {DIGEST[:8].upper()} ", f"{one} {two}", f"{one.upper()}-{two}", f"{one},  {two}"):
        assert confirms(typed, DIGEST), typed
    for typed in (
        "",
        "yes",
        DIGEST[:7],
        DIGEST,
        one,
        f"{two} {one}",
        f"{one} {two} {three}",
        f"{one} {three}",
        "-",
        f"{one}{two}",
    ):
        assert not confirms(typed, DIGEST), typed
