"""What a paper is made of: statements, each bound to the fields that it was read from.

There are two ways to a sentence. `define` gives a fixed one that says what a standard asks; it has no places. `state_fact` gives
one about the release: its places take nothing but `Bound` values, and which sentence it is depends on none but those that are
named. So no statement is without its source, and no source is told that was not read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from release_pipeline.privacy.figures import format_moment
from release_pipeline.report.papers.sources import group_places
from release_pipeline.report.papers.view import Bound, Edition, Fields, PaperView
from release_pipeline.sentences import PAPERS

Basis: TypeAlias = Literal["definition", "evidence", "stated", "not stated"]
ASSESSMENT = "assessment."
RETRACTED = "retracted"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, and what it stands on. `paths`: the fields that it was read from, and `shown` those of them that fill its
    places; a definition has none. `places`: where these stand in package, evidence, policy or events, which `sources` names."""

    words: str
    basis: Basis
    paths: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Where a reader finds what it was read from."""
        return tuple(group_places(self.places))


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a standard asks. `asks`: what, in our words; `field`: that of a registry's entry, where there is one."""

    key: str
    title: str
    asks: Statement
    statements: tuple[Statement, ...]
    field: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a paper."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper about one release. `standard`: which edition of what it follows; `limits`: what it is not; `is_draft`: the
    release is not published; `notice`: whom it is for; `withdrawn`: that the release was retracted or superseded."""

    name: str
    title: str
    standard: str
    limits: str
    edition: Edition
    release: str
    sections: tuple[Section, ...]
    is_draft: bool = False
    notice: str = ""
    withdrawn: Statement | None = None

    def list_statements(self) -> Iterator[tuple[str, Statement]]:
        """Every statement, with the key of its item."""
        if self.withdrawn is not None:
            yield "withdrawn", self.withdrawn
        for section in self.sections:
            for item in section.items:
                yield item.key, item.asks
                yield from ((item.key, statement) for statement in item.statements)


def define(words: str) -> Statement:
    """A fixed sentence: what a standard asks, in our words."""
    return Statement(words, "definition")


def state_fact(key: str, /, *because: Bound, **places: Bound) -> Statement:
    """A sentence of the catalogue about the release, with all that it was read from: what fills it, and what else chose it."""
    every = (*because, *places.values())
    if not every:
        raise TypeError(f"{key} says something of a release and is bound to nothing")
    return Statement(
        PAPERS(key, **{name: bound.words for name, bound in places.items()}),
        "evidence",
        tuple(dict.fromkeys(bound.path for bound in every)),
        tuple(dict.fromkeys(bound.path for bound in places.values())),
        tuple(dict.fromkeys(bound.place for bound in every)),
    )


def quote(fields: Fields, name: str) -> Statement:
    """What the policy states under `assessment`, word for word; that it states nothing; or that the public is not told."""
    if fields.view.edition == "public":
        return state_fact("said.not_public", fields("edition"))
    bound = fields(f"{ASSESSMENT}{name}")
    if bound.value is None:
        fact = state_fact("said.not_stated", bound)
        return dataclasses.replace(fact, basis="not stated")
    fact = state_fact("said.stated", words=bound)
    return dataclasses.replace(fact, basis="stated")


def state_withdrawal(fields: Fields) -> Statement | None:
    """That a release was taken back or replaced: on which day, by whom, and why; nothing of one that stands."""
    found = fields("withdrawn")
    if found.value is None:
        return None
    state, name = fields("state"), fields("withdrawn.name")
    why = fields("withdrawn.why", str(found.value.why or "").rstrip("."))
    moment = fields("withdrawn.moment", format_moment(found.value.moment))
    if state.value == RETRACTED:
        return state_fact("state.retracted", state, moment=moment, name=name, why=why)
    return state_fact("state.superseded", state, moment=moment, name=name, why=why)


def make_paper(
    view: PaperView,
    name: str,
    sections: tuple[Section, ...],
    title: str,
    standard: str,
    limits: str,
    *,
    edition: Edition | None = None,
    notice: str = "",
) -> Paper:
    """The paper of a release; `edition` and `notice` where they are others than the view's."""
    edition = edition or view.edition
    notice = notice or (PAPERS("paper.public") if edition == "public" else PAPERS("paper.internal"))
    withdrawn, is_draft = state_withdrawal(Fields(view)), view.published is None
    return Paper(name, title, standard, limits, edition, view.public.release, sections, is_draft, notice, withdrawn)


def make_item(key: str, titles: dict[str, str], *statements: Statement | Iterable[Statement], field: str = "") -> Item:
    """An item by its key in a section of the catalogue, where `KEY` is its title and `KEY_asks` what it asks; what is said twice
    stands in it once."""
    said: list[Statement] = []
    for part in statements:
        said += [part] if isinstance(part, Statement) else part
    return Item(key, titles[key], define(titles[f"{key}_asks"]), tuple(dict.fromkeys(said)), field)
