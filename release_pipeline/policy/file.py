"""What a steward writes: the keys of a policy file, and what each may be. What follows from them is in `model`; what several
must agree on is in `rules`. The parts: `sections`, `options` (of `protect`), `kinds` (of columns), `suppression`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from release_pipeline.policy.about import About
from release_pipeline.policy.assessment import Assessment
from release_pipeline.policy.audience import Audience
from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.derivations import Derivation
from release_pipeline.policy.kinds import Column
from release_pipeline.policy.options import ProtectSection
from release_pipeline.policy.scalars import Days, Name, ReleaseList, Slug, release_texts, unique
from release_pipeline.policy.sections import Audit, Gates, Person, Publish, Review, Scheduled, Source
from release_pipeline.policy.sketch import Sketch
from release_pipeline.policy.suite import OwnExpectation
from release_pipeline.policy.suppression import AnySuppress
from release_pipeline.policy.tables import Table, by_name


class PolicyFile(Frozen):
    """The keys of a policy file, in the order of the canonical form."""

    policy: Slug
    steward: Slug
    population: Slug
    source: Source
    person: Annotated[
        Person | Literal["each-row"], Option(allowed="Allowed: each-row, or {column: NAME, records_per_release: 1}.")
    ]
    releases: Annotated[
        ReleaseList | Scheduled | Literal["once"],
        BeforeValidator(release_texts),
        Option(
            allowed="Allowed: once, a list of names, {list: [...], cron: '0 6 1 * *'}, or "
            "{every: month, first: 2026-01, cron: '0 6 1 * *'}."
        ),
    ]
    protect: ProtectSection
    columns: Annotated[dict[Name, Column], Field(min_length=1)]
    drop: Annotated[tuple[Name, ...], AfterValidator(unique)] = ()
    derive: dict[Name, Derivation] = Field(default_factory=dict[str, Derivation])
    expectations: tuple[OwnExpectation, ...] = ()
    tables: Annotated[dict[Slug, Table], AfterValidator(by_name)] = Field(default_factory=dict[str, Table])
    suppress: AnySuppress | None = None
    gates: Gates = Gates()
    audit: Audit = Audit()
    review: Review = Review()
    publish: Publish = Publish()
    retain: Days | None = None
    audience: Annotated[
        Audience | None,
        Option(allowed="Allowed: public, internal, {licensed: TERMS}, or {public: REASON}."),
    ] = None
    about: About | None = None
    assessment: Assessment | None = None
    shape: Sketch | None = Field(default=None, exclude=True)  # what is believed: nothing that is released depends on it
