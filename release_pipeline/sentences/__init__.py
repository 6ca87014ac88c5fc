"""The sentences that readers see, one file for each audience, so that a translator needs no code: `en/public.toml` for who gets a
package, `en/policy.toml` for what follows from a policy, wherever it is said, `en/kit.toml` for what a card says of the analyst's
kit, `en/analyst.toml` for who uses that kit, `en/reviewers.toml`, `en/status.toml` and `en/explore.toml` for the people of a
site, `en/papers.toml` for those to whom a site must answer, `en/agent.toml` for who signs on a machine of their own, and
`en/figures.toml` for how numbers and dates are written.

A file has tables of sentences by key, with named places like {k} that the program fills; a brace that is meant as such is
doubled. What is under `page` is HTML and what is under `note` is Markdown, where a line ends as it stands; all else is plain
text, escaped where it is used. tests/unit/test_sentences.py looks whether every key and place that is used exists, and is used.

What a package and the reviewers' page say is there in every language of `LANGUAGES`, in a folder of its own; commands, status and
`explore` speak English. Which language is spoken is told once, by `with speaking("de"):` around what makes a text; nothing in
between passes it on, and outside of it everything is English. A sentence that a language lacks is refused when its file is read,
and never told in another one: who signs a text must be able to read all of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from release_pipeline.errors import InvalidArgument

HERE = Path(__file__).parent
ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "de": "Deutsch"}  # as each calls itself, by its BCP 47 tag
_spoken: ContextVar[str] = ContextVar("spoken", default=ENGLISH)


@contextmanager
def speaking(language: str) -> Generator[None]:
    """Whatever is said inside is said in this language, in this thread alone, and however deep it is called from here."""
    before = _spoken.set(language)
    try:
        yield
    finally:
        _spoken.reset(before)


def spoken() -> str:
    """The language that is spoken here, as a BCP 47 tag."""
    return _spoken.get()


class Catalogue:
    """The sentences of one audience. `translated`: they are there in every language; others are said in English everywhere."""

    def __init__(self, audience: str, *, translated: bool = False) -> None:
        self.audience, self.is_translated = audience, translated

    def __call__(self, key: str, /, **values: object) -> str:
        """The sentence of this key, with every place filled. An unknown key, and a place without its value, is a KeyError."""
        return self.sentences[key].format_map(values)

    def read_section(self, section: str) -> dict[str, str]:
        """The sentences under a key, by the rest of theirs; they have no places."""
        start = f"{section}."
        return {key.removeprefix(start): text.format() for key, text in self.sentences.items() if key.startswith(start)}

    def read_phrases(self, section: str) -> dict[str, str]:
        """The same of sentences that have places, as they stand in the file."""
        start = f"{section}."
        return {key.removeprefix(start): text for key, text in self.sentences.items() if key.startswith(start)}

    @property
    def sentences(self) -> Mapping[str, str]:
        """Every sentence by its key, as it stands in the file of the language that is spoken."""
        return read_sentences(self.audience, spoken() if self.is_translated else ENGLISH)


@cache
def read_sentences(audience: str, language: str) -> Mapping[str, str]:
    """The sentences of an audience in a language, which has every one that English has; another language is refused."""
    found = _read_file(audience, language)
    if language != ENGLISH and (lacking := read_sentences(audience, ENGLISH).keys() ^ found.keys()):
        what = f"{len(lacking)} sentences are not both in {language}/{audience}.toml and in English, like '{min(lacking)}'."
        raise InvalidArgument(what, where="sentences", remedy="Install the package anew: a file of it is damaged.")
    return found


def check_language(language: str) -> str:
    """The tag of a language, when every sentence that it needs was found."""
    for catalogue in TRANSLATED:
        read_sentences(catalogue.audience, language)
    read_formal(language)
    return language


@cache
def read_formal(language: str) -> Mapping[str, str]:
    """The readings of what `privacy.catalogue` states formally, by key; none in English, which stands there."""
    return {} if language == ENGLISH else _read_file("formal", language)


def read_stated(key: str, text: str) -> str:
    """A text of `privacy.catalogue` in the language that is spoken: in English as it stands there, and in another language by its
    key. What is claimed is said by the English text; this is for who reads another language."""
    return text if spoken() == ENGLISH else read_formal(spoken())[key]


def _read_file(audience: str, language: str) -> Mapping[str, str]:
    if language not in LANGUAGES:
        raise InvalidArgument("this language is not spoken.", where="language", remedy=f"Use one of {', '.join(LANGUAGES)}.")
    file = HERE / language / f"{audience}.toml"
    return dict(_list_sentences(tomllib.loads(file.read_text(encoding="utf-8"))))


def _list_sentences(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield above + key, value
        else:
            yield from _list_sentences(value, f"{above}{key}.")


class HasLanguage(Protocol):
    """What is told in a language of its own."""

    @property
    def language(self) -> str: ...


Told = TypeVar("Told", bound=HasLanguage)
More = ParamSpec("More")
Made = TypeVar("Made")


def in_its_language(make: Callable[Concatenate[Told, More], Made]) -> Callable[Concatenate[Told, More], Made]:
    """A function that speaks the language of its first argument, whatever is spoken where it is called. It makes all at once: a
    generator would go on in the language of who asks it."""

    @wraps(make)
    def speak(told: Told, /, *more: More.args, **named: More.kwargs) -> Made:
        with speaking(told.language):
            return make(told, *more, **named)

    return speak


PUBLIC = Catalogue("public", translated=True)
REVIEWERS = Catalogue("reviewers", translated=True)
KIT = Catalogue("kit", translated=True)
POLICY = Catalogue("policy", translated=True)
FIGURES = Catalogue("figures", translated=True)
ANALYST = Catalogue("analyst")
STATUS = Catalogue("status")
EXPLORE = Catalogue("explore")
PAPERS = Catalogue("papers")
AGENT = Catalogue("agent")
TRANSLATED = (PUBLIC, POLICY, REVIEWERS, KIT, FIGURES)
