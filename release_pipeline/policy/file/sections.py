"""The sections of a policy that are not about its columns: source, people, releases, gates, audit, review, publication."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    StrictInt,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.figures import percent
from release_pipeline.policy.values.periods import Every, end_of
from release_pipeline.policy.values.scalars import (
    Category,
    Exact,
    Frozen,
    Instant,
    Name,
    Option,
    Percent,
    Query,
    ReleaseList,
    Text,
    Timetable,
    period_text,
    release_texts,
    unique,
)
from release_pipeline.sentences import POLICY

_SPARK_TABLE = re.compile(r"[\w-]+(\.[\w-]+){0,3}")
PrivacyUnit: TypeAlias = Literal["person", "household"]

_OF_SHAPE = Option(
    not_for={"classes": "{method} expects errors from closed formulas and simulates no released column before the charge."},
    instead="Remove it, or use expected_error or relative_error.",
)

_OF_RECORDS = Option(
    hint="Say how many records a release must have at least, like min_rows: 1000; with fewer nothing is released. Without "
    "the key it is 2 k."
)


class Source(Frozen):
    """The address of the confidential table, and the column (compared as text) that identifies the release of a record.

    `path` names a file, a folder with Parquet files, or with `table` a DuckDB file; `postgres` an address, with `table` or
    `query`; `spark` a table or view of the catalogue of the server that the site names. ${NAME} in path or address is taken from
    the environment when the source is read, so that a policy contains no password.
    """

    path: Text | None = None
    postgres: Text | None = None
    spark: Text | None = None
    table: Text | None = None
    query: Query | None = None
    release_column: Name | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Source:
        if sum(address is not None for address in (self.path, self.postgres, self.spark)) != 1:
            raise ValueError("a source has a path, a postgres address or a spark table, one of them")
        if self.spark is not None and (self.table is not None or _SPARK_TABLE.fullmatch(self.spark) is None):
            raise ValueError("a spark source names its table alone, as in spark: catalog.schema.table")
        if self.postgres is not None and self.table is None and self.query is None:
            raise ValueError("a postgres source needs its table")
        if self.query is not None and (self.postgres is None or self.table is not None):
            raise ValueError("a query is asked of a postgres address, and takes the place of a table")
        if self.path is not None and "://" in self.path:
            raise ValueError("a path names a file or folder of this machine, and no address")
        return self

    def describe(self) -> str:
        """Return the source as it may be shown: never the address of a server."""
        if self.query is not None:
            return f"Postgres query {' '.join(self.query.split())}"
        if self.spark is not None:
            return f"Spark table {self.spark}"
        if self.path is None:
            return f"Postgres table {self.table}"
        return self.path if self.table is None else f"{self.path} table {self.table}"


class Person(Frozen):
    """The column that identifies the person of a record, and how many records one person may have in a release. With `unit:
    household` it identifies households, and the claim covers all records of one. The claim does not protect how many records one
    has."""

    column: Name
    records_per_release: Annotated[StrictInt, Field(ge=1, le=10_000)] = 1
    unit: Literal["household"] | None = None

    @model_validator(mode="after")
    def _counts_households(self) -> Person:
        if self.unit is not None and "records_per_release" not in self.model_fields_set:
            raise ValueError("unit: household needs records_per_release, for a claim about households with equally many records")
        return self

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Return whose records the claim is about."""
        return self.unit or "person"


class Scheduled(Frozen):
    """Releases that a timetable opens: those of a list one after the other, or every period once it has ended, from the `first`
    on. Times are UTC."""

    list: Annotated[ReleaseList, BeforeValidator(release_texts)] | None = None
    every: Every | None = None
    first: Annotated[Text, BeforeValidator(period_text)] | None = None
    cron: Timetable

    @model_validator(mode="after")
    def _one_kind(self) -> Scheduled:
        if (self.list is None) == (self.every is None):
            raise ValueError("a timetable has either a list of releases or 'every' with a period")
        return self

    @field_validator("first")
    @classmethod
    def _is_period(cls, first: str | None, info: ValidationInfo) -> str | None:
        if first is None or "every" not in info.data:  # a fault of `every` is reported already
            return first
        every: Every | None = info.data["every"]
        if every is None:
            raise ValueError("says which period a series begins with, and is for 'every': a list begins with its first release")
        try:
            end_of(every, first)
        except InvalidArgument as error:
            raise ValueError(error.what.removesuffix(".")) from None
        return first


def _one_or_each(value: Any) -> str:
    return "each" if isinstance(value, dict) else "one"


class Gates(Frozen):
    """Limits that a release must meet before anybody reviews it. Some are on the data. Others are on forecasts: errors, how much
    the share of records at an atom may differ, the Kolmogorov-Smirnov distance, and in the column's own unit how far the means of
    declared groups may be off. `anonymity_k` and `l_diversity` are on only the released table. `clamped_at_most`: the share of
    records that may be outside the domain of a column with `outside: clamp`, one for all such columns or one for each named
    column. `linkage`: the share of rows that somebody may find who knows all released columns, on simulated releases.
    `group_error`: the expected error of the worst served declared group. No limit is set on a figure that compares released
    values with the original: it would reveal something about the noise that was drawn (methods.md section 2)."""

    ON_RELEASED: ClassVar = ("anonymity_k", "l_diversity")  # judged after the charge; the others before it

    min_rows: Annotated[Annotated[StrictInt, Field(ge=1)] | None, _OF_RECORDS] = None
    differencing_below: Annotated[StrictInt, Field(ge=0)] | None = None
    expected_error: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])
    relative_error: Annotated[
        dict[Name, Annotated[Exact, Field(gt=0)]],
        Option(
            not_for=dict.fromkeys(
                ("columns", "whole-table", "vectors", "mdav"),
                "relative errors are expected within the classes of k-epsilon; this method has none.",
            ),
            instead="Use expected_error.",
        ),
    ] = Field(default_factory=dict[str, Decimal])
    atom_share: Annotated[dict[Name, Annotated[Exact, Field(gt=0, le=1)]], _OF_SHAPE] = Field(default_factory=dict[str, Decimal])
    ks: Annotated[dict[Name, Annotated[Exact, Field(gt=0, le=1)]], _OF_SHAPE] = Field(default_factory=dict[str, Decimal])
    group_mean: Annotated[dict[Name, Annotated[Exact, Field(gt=0)]], _OF_SHAPE] = Field(default_factory=dict[str, Decimal])
    group_error: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])
    linkage: Percent | None = None
    anonymity_k: Annotated[StrictInt, Field(ge=2)] | None = None
    l_diversity: dict[Name, Annotated[StrictInt, Field(ge=2)]] = Field(default_factory=dict[str, int])
    clamped_at_most: (
        Annotated[
            Annotated[Percent, Tag("one")] | Annotated[dict[Name, Percent], Tag("each")],
            Discriminator(_one_or_each),
        ]
        | None
    ) = None

    @property
    def on_released(self) -> dict[str, tuple[str, ...]]:
        """The declared limits on the released table, by name, with the columns that they are for."""
        limits: dict[str, dict[str, int] | int | None] = {name: getattr(self, name) for name in self.ON_RELEASED}
        return {name: tuple(limit) if isinstance(limit, dict) else () for name, limit in limits.items() if limit}


class Target(Frozen):
    """The yes of a model: numbers `above` a limit, or an entry that `equals` this one."""

    above: Exact | None = None
    equals: Category | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Target:
        if (self.above is None) == (self.equals is None):
            raise ValueError("a target has either 'above' with a number or 'equals' with an entry")
        return self


class Audit(Frozen):
    """Additions to the reviewers' page, beyond what every audit measures. `predict`: the columns that models learn to predict.
    `groups`: the kept or generalised columns by whose entries it has means and errors."""

    predict: dict[Name, Target] = Field(default_factory=dict[str, Target])
    groups: Annotated[tuple[Name, ...], AfterValidator(unique)] = ()


class Review(Frozen):
    """The number of people, none of them the steward, who must approve a candidate."""

    reviewers: Annotated[StrictInt, Field(ge=1, le=10)] = 2


class Publish(Frozen):
    """The formats of the data in the package, and the embargo before which it may not go out. `dta` and `sav`, of Stata and SPSS,
    need an open format next to them."""

    formats: Annotated[tuple[Literal["parquet", "csv", "dta", "sav"], ...], Field(min_length=1), AfterValidator(unique)] = (
        "parquet",
        "csv",
    )
    not_before: Instant | None = None


# What a policy may suppress: small groups of quasi-identifiers, or what (k,epsilon)-anonymity
# drops.


class Suppress(Frozen):
    """Small groups of the released quasi-identifiers are suppressed, up to a share of the records."""

    confidence: ClassVar[None] = None  # nothing is suppressed because of its noise

    quasi_groups_below: Annotated[StrictInt, Field(ge=2)]
    at_most: Percent

    @property
    def groups_below(self) -> int:
        """Smaller groups of released quasi-identifiers are suppressed."""
        return self.quasi_groups_below

    def describe(self, *, with_masked: bool) -> str:
        """Return a sentence on what may be suppressed, and how much of it. `with_masked`: whether masked quasi-identifiers make
        groups, too."""
        least, share = self.quasi_groups_below, percent(self.at_most)
        if with_masked:
            return POLICY("suppress.kept_and_masked_groups", least=least, share=share)
        return POLICY("suppress.kept_groups", least=least, share=share)


class SuppressClasses(Frozen):
    """The records that k-epsilon may drop: those in classes that stay too small (`grouping_at_most`), and after the noise those
    that stand out in their class with this `confidence` (`confidence_at_most`); `at_most` is for both together. Shares of all
    records."""

    groups_below: ClassVar[int] = 0  # the method sets the size of its classes

    grouping_at_most: Percent = Decimal(0)
    confidence: Percent | None = None
    confidence_at_most: Percent | None = None
    at_most: Percent

    @model_validator(mode="after")
    def _agrees(self) -> SuppressClasses:
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ValueError("the confidence must lie between 0% and 100%, like 99%")
        if self.confidence_at_most is not None and self.confidence is None:
            raise ValueError("confidence_at_most limits what confidence suppresses: name the confidence, like 99%")
        if self.grouping_at_most == 1:
            raise ValueError("grouping_at_most of 100% would let everybody be dropped")
        if self.grouping_at_most > self.at_most:
            raise ValueError("grouping_at_most is above at_most, which is for all suppression together")
        return self

    def describe(self, *, with_masked: bool) -> str:
        """Return a sentence on what may be suppressed, and how much of it."""
        parts: list[str] = []
        if self.grouping_at_most:
            parts.append(POLICY("suppress.classes", share=percent(self.grouping_at_most)))
        if self.confidence is not None and self.confidence_at_most is not None:
            sure, most = percent(self.confidence), percent(self.confidence_at_most)
            parts.append(POLICY("suppress.confidence_at_most", confidence=sure, share=most))
        elif self.confidence is not None:
            parts.append(POLICY("suppress.confidence", confidence=percent(self.confidence)))
        return "; ".join([*parts, POLICY("suppress.in_all", share=percent(self.at_most))])


def _suppressed(value: Any) -> str:
    if isinstance(value, dict):
        return "groups" if "quasi_groups_below" in value else "classes"
    return "classes" if isinstance(value, SuppressClasses) else "groups"


AnySuppress: TypeAlias = Annotated[
    Annotated[Suppress, Tag("groups")] | Annotated[SuppressClasses, Tag("classes")], Discriminator(_suppressed)
]


# The steward's belief about the data: `shape`, from which a synthetic table is made to try settings on. It is not part of what is
# approved: no released value depends on it, and the hash of a policy leaves it out.
#
#     shape:
#       rows: 20000
#       columns:
#         income: {at: {0: 12%}, quantiles: {10%: 4000, 50%: 21000, 90%: 62000, 99%: 180000}}
#         sex: {shares: {1: 48%, 2: 52%}}


def _read_key(value: Any) -> Any:
    """Return a key of the file, which is a text, as a number."""
    try:
        return Decimal(value) if isinstance(value, str) else value
    except ArithmeticError:
        return value


def _ascends(quantiles: dict[Decimal, Decimal]) -> dict[Decimal, Decimal]:
    ordered = dict(sorted(quantiles.items()))
    values = list(ordered.values())
    if values != sorted(values):
        raise ValueError("must ascend with their shares")
    return ordered


Point = Annotated[Exact, BeforeValidator(_read_key)]


class ColumnSketch(Frozen):
    """The steward's belief about a column. `at`: the share of all records at single values; `quantiles`: of the other numbers;
    `missing`: the share without a value, by reason; `shares`: of listed values; those that are not named share the rest."""

    quantiles: Annotated[dict[Percent, Exact], AfterValidator(_ascends), Option(hint="Like {10%: 4000, 50%: 21000}.")] = Field(
        default_factory=dict[Decimal, Decimal]
    )
    at: Annotated[dict[Point, Percent], Option(hint="Like {0: 12%}.")] = Field(default_factory=dict[Decimal, Decimal])
    missing: Annotated[dict[str, Percent], Option(hint="Like {refused: 5%}.")] = Field(default_factory=dict[str, Decimal])
    shares: Annotated[dict[str, Percent], Option(hint="Like {a: 30%, b: 70%}.")] = Field(default_factory=dict[str, Decimal])


class Sketch(Frozen):
    """The option `shape`. A column that is not in it is uniform over its domain, or its values; columns are independent."""

    rows: Annotated[StrictInt, Field(ge=20, le=100_000_000), Option(hint="So many records as a release is expected to have.")]
    columns: dict[Name, ColumnSketch] = Field(default_factory=dict[str, ColumnSketch])
