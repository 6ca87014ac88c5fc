"""A language that nobody speaks: every sentence of every translated catalogue as it is in English, in brackets. What stands on a
page outside of them has not come from the catalogue."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser

import pytest

from release_pipeline import sentences
from release_pipeline.privacy.catalogue.readings import list_stated

PSEUDO = "qps"  # of the tags that are nobody's
BEGIN, END = "\u27e6", "\u27e7"  # around a sentence
OPEN, CLOSE = "\u27e8", "\u27e9"  # around what fills a place of it, which is data, or a sentence again
DECIMAL, THOUSANDS = "\u066b", "\u066c"
_VOID = {"meta", "link", "br", "line", "rect", "circle", "polygon", "polyline", "path", "img", "input", "hr"}
_UNSEEN = {"style", "script", "code"}  # what is no text, and what shows names as they are
_LABELS = {"aria-label", "data-label", "title", "alt"}


def wrap(key: str, text: str) -> str:
    """A sentence of the language. Heads of a table stand in one line of the catalogue, and marks of numbers are single signs."""
    if key in ("mark.decimal", "mark.thousands"):
        return {"mark.decimal": DECIMAL, "mark.thousands": THOUSANDS}[key]
    between = re.compile(r"( \| )")
    parts = between.split(text) if between.search(text) and not text.startswith("|") else [text]
    wrapped = "".join(part if between.fullmatch(part) else f"{BEGIN}{part}{END}" for part in parts)
    return re.sub(r"(?<!\{)(\{\w+\})(?!\})", rf"{OPEN}\1{CLOSE}", wrapped)


@contextmanager
def speaking_pseudo() -> Generator[None]:
    """The language is there while this lasts."""
    read_file = sentences._read_file  # pyright: ignore[reportPrivateUsage]

    def read_pseudo(audience: str, language: str) -> Mapping[str, str]:
        if language != PSEUDO:
            return read_file(audience, language)
        english = dict(list_stated()) if audience == "formal" else read_file(audience, "en")
        return {key: wrap(key, text) for key, text in english.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences, "_read_file", read_pseudo)
        patch.setitem(sentences.LANGUAGES, PSEUDO, f"{BEGIN}Pseudo{END}")
        try:
            yield
        finally:
            sentences.read_sentences.cache_clear()
            sentences.read_formal.cache_clear()


def speak_english(text: str) -> str:
    """A text of the language as it is in English: without brackets, with English marks in numbers, and one stop where a bracket
    hid that there was one."""
    return text.translate(
        {ord(BEGIN): None, ord(END): None, ord(OPEN): None, ord(CLOSE): None, ord(DECIMAL): ".", ord(THOUSANDS): ","}
    ).replace("..", ".")


class _Reader(HTMLParser):
    """What people see and hear of a page, without what is marked as English, and without names and values in elements of their
    own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag not in _VOID:
            is_seen = tag not in _UNSEEN and (known.get("lang") != "en" or tag == "html")
            self.open.append((tag, is_seen))
        self.seen += [f" {value} " for name, value in attrs if name in _LABELS and value]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """It has no text."""

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if all(is_seen for _, is_seen in self.open):
            self.seen.append(data)


def list_unspoken(text: str, *, is_html: bool) -> list[str]:
    """The words that are in no sentence, and those that fill a place of one without being a sentence themselves."""
    if is_html:
        reader = _Reader()
        reader.feed(text)
        text = " ".join(reader.seen)
    text = re.sub(r"\b[0-9a-f]{64}\b|&[#a-z0-9]+;", " ", text).replace("\\", "")  # hashes, and what Markdown escapes
    outside: list[str] = []
    opened: list[str] = []
    for piece in re.split(f"([{BEGIN}{END}{OPEN}{CLOSE}])", text):
        if piece in (BEGIN, OPEN):
            opened.append(piece)
        elif piece in (END, CLOSE):
            assert opened.pop() == {END: BEGIN, CLOSE: OPEN}[piece], "brackets were cut apart"
        elif not opened or opened[-1] == OPEN:
            outside.append(piece)
    assert not opened, "brackets were cut apart"
    return re.findall(r"[^\W\d_][\w.'-]*", " ".join(outside))
