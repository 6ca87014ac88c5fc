"""All that the papers may say of a release, as a type; and a door to it that remembers which field each value was read from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from release_pipeline.privacy.catalogue import find_definition
from release_pipeline.report.internal_view import InternalView
from release_pipeline.report.papers.sources import name_place, read_field
from release_pipeline.report.view import PublicView

Edition: TypeAlias = Literal["public", "internal"]


@dataclass(frozen=True, slots=True)
class AssessmentView:
    """What the policy states in words of its own (`policy.assessment`); None for what it leaves out."""

    purpose: str | None = None
    lawful_basis: str | None = None
    necessity: str | None = None
    collection: str | None = None
    environment: str | None = None
    bias: str | None = None
    recipients_could: str | None = None
    controls: str | None = None
    consulted: str | None = None
    residual_risk: str | None = None
    decision: str | None = None


@dataclass(frozen=True, slots=True)
class SignedView:
    """Something that a person signed, as an event has it: its number, when, who, the fingerprint of their key, their reason."""

    event: int
    moment: str
    name: str
    key: str
    why: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What a reviewer signed of a candidate: `approved`, `returned` or `rejected`, of the candidate with this hash."""

    verdict: str
    candidate: str
    signed: SignedView


@dataclass(frozen=True, slots=True)
class CheckedView:
    """The check of an output, from the events. `voted`: how many have voted, as long as votes are blind and no decision is told;
    `holding`: who approved the candidate as it is, with signatures that hold now;
    `policy`, `caps`: the officer's approvals before the charge; `published`: who published; `checks`: how many of each family of
    checks of the data passed."""

    needed: int
    decisions: tuple[DecisionView, ...] = ()
    holding: tuple[str, ...] = ()
    policy: SignedView | None = None
    caps: SignedView | None = None
    published: SignedView | None = None
    checks: tuple[tuple[str, int], ...] = ()
    retain: int | None = None
    voted: int | None = None


@dataclass(frozen=True, slots=True)
class PaperView:
    """One release, for its papers. A public edition has the public facts alone: `assessment`, `internal` and `checked` are of the
    internal one. `published`: when, None before; `state`: what the release is, by the events; `withdrawn`: who retracted or
    superseded it, when, and why.
    `places`: where in evidence.json an entry of `internal` stands, by its path, where the view alone does not tell."""

    public: PublicView
    edition: Edition
    state: str
    published: str | None = None
    assessment: AssessmentView | None = None
    internal: InternalView | None = None
    checked: CheckedView | None = None
    withdrawn: SignedView | None = None
    places: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def claims_dp(self) -> bool:
        """Whether what is claimed is differential privacy, in one of its forms, or individual differential privacy."""
        return find_definition(self.public.definition).composes


def view_public(view: PublicView) -> PaperView:
    """The public edition of a release that is being published."""
    return PaperView(public=view, edition="public", state="published", published=view.published)


@dataclass(frozen=True, slots=True)
class Bound:
    """A value, the field that it was read from, how it is written in a sentence, and where a reader finds it."""

    path: str
    value: Any
    words: str = ""
    place: str = ""

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a view, by their paths: `public.columns.0.noise`. What is not there is None."""

    view: PaperView

    def __call__(self, path: str, words: str | None = None) -> Bound:
        """A field, written as it is or in these words."""
        value = read_field(self.view, path)
        return Bound(path, value, str(value) if words is None else words, name_place(self.view, path))

    def each(self, path: str) -> Iterator[tuple[str, Any]]:
        """The path and the value of every entry of a field."""
        yield from ((f"{path}.{place}", entry) for place, entry in enumerate(read_field(self.view, path) or ()))


def replace_field(view: Any, path: str, value: Any) -> Any:
    """A copy of the view with another value at a path."""
    step, _, rest = path.partition(".")
    if step.isdecimal():
        inner = replace_field(view[int(step)], rest, value) if rest else value
        return (*view[: int(step)], inner, *view[int(step) + 1 :])
    inner = replace_field(getattr(view, step), rest, value) if rest else value
    return dataclasses.replace(view, **{step: inner})
