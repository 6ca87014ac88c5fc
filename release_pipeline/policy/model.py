"""The policy file as frozen objects. The shape is the contract with stewards; unknown keys are errors.

What only one value can know is checked here; what several parts must agree on is in `rules`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StrictInt,
    Tag,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.cron import Cron
from release_pipeline.policy.expectations import Expectation
from release_pipeline.policy.hierarchies import HierarchySpec, Intervals
from release_pipeline.policy.periods import Every, end_of
from release_pipeline.policy.scalars import (
    Budget,
    Category,
    Days,
    Exact,
    Frozen,
    Instant,
    Name,
    Percent,
    ReleaseList,
    Slug,
    Text,
    Timetable,
    YesNo,
    ascending,
    period_text,
    release_texts,
    unique,
)
from release_pipeline.privacy import Epsilon, Grid
from release_pipeline.privacy.catalogue import ClaimSpec, MethodSpec, find_claim, find_method
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.lattice import Metric
from release_pipeline.privacy.vectors import (
    Alike,
    Insensitive,
    Order,
    Statistic,
    Transform,
    VectorScope,
)

DIFFERENCING_BELOW = 10  # where a policy says nothing else
CLAMPED_AT_MOST = Decimal("0.01")  # of the records of a column, where a policy says nothing else
Role: TypeAlias = Literal["identifier", "quasi", "confidential"]


class Source(Frozen):
    """Where the confidential table is, and the column (compared as text) that tells releases apart.

    `path` names a CSV or Parquet file, or with `table` a DuckDB file; `postgres` an address, with `table`. ${NAME} in path or
    address is taken from the environment when the source is read, so that no password stands in a policy.
    """

    path: Text | None = None
    postgres: Text | None = None
    table: Text | None = None
    release_column: Name | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Source:
        if (self.path is None) == (self.postgres is None):
            raise ValueError("a source has either a path or a postgres address")
        if self.postgres is not None and self.table is None:
            raise ValueError("a postgres source needs its table")
        return self

    @property
    def words(self) -> str:
        """The source as it may be shown: never the address of a server."""
        if self.path is None:
            return f"Postgres table {self.table}"
        return self.path if self.table is None else f"{self.path} table {self.table}"


class Person(Frozen):
    """The column that says whose record it is, and how many records one person may have in a release."""

    column: Name
    records_per_release: Annotated[StrictInt, Field(ge=1, le=10_000)] = 1


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
        if first is None or "every" not in info.data:  # what is wrong with `every` is told already
            return first
        every: Every | None = info.data["every"]
        if every is None:
            raise ValueError("says which period a series begins with, and is for 'every': a list begins with its first release")
        try:
            end_of(every, first)
        except InvalidArgument as error:
            raise ValueError(error.what.removesuffix(".")) from None
        return first

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Policies that were approved before a series could say where it begins keep their hash."""
        told: dict[str, Any] = dump(self)
        return {name: value for name, value in told.items() if name != "first" or value is not None}


class Partitioned(Frozen):
    """What every method takes: `partitions`, so many random parts, each masked on its own; `publish_parts`, each part in a
    release of its own, so that everybody's data are used once; `amplification`, charging what the random choice of the part
    saves."""

    added_later: ClassVar[dict[str, Any]] = {"partitions": None, "publish_parts": None, "amplification": None}

    partitions: Annotated[StrictInt, Field(ge=2, le=10_000)] | None = None
    publish_parts: Literal["one per release"] | None = None
    amplification: Literal["sampling"] | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Policies that were approved before these options were known keep their hash."""
        told: dict[str, Any] = dump(self)
        return {name: value for name, value in told.items() if name not in self.added_later or value != self.added_later[name]}


class Protect(Partitioned):
    """A method that works column by column, and its claim. `epsilon` is for the whole release, split over the noise columns by
    `weights`. With `clamp: no` released values stay where the noise put them: the claim is the same, since what is done to noisy
    values costs nothing, and the law of the noise is then exact."""

    added_later: ClassVar[dict[str, Any]] = Partitioned.added_later | {"clamp": "yes"}

    method: Literal["laplace", "dp-um", "idp-ls", "idp-cbls"]
    epsilon: Budget
    k: Annotated[StrictInt, Field(ge=1)] | None = None
    scope: Literal["centroid", "column"] = "column"
    consistency: Literal["isotonic", "none"] | None = None
    clamp: YesNo = "yes"
    weights: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])


class ProtectVectors(Partitioned):
    """dp-mdav: clusters of all noise columns together, cut from an order of single records, and noise on their centroids.

    `order`: by distance to the domain's `corner` (the paper's), or along a `hilbert` curve. `statistic`: `plain` sums for eps-DP,
    `trimmed` ones for eps-iDP. `scope`: each `centroid` on its own (the paper's), or the whole `table`.
    """

    method: Literal["dp-mdav"]
    epsilon: Budget
    k: Annotated[StrictInt, Field(ge=1)]
    order: Order
    statistic: Statistic = "plain"
    scope: VectorScope = "table"
    weights: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])


class ProtectAlike(Partitioned):
    """mdav: k-anonymity on the noise columns together. Each record gets the centroid of k records or more that are like it; there
    is no noise, and no epsilon. `blocks: kd` cuts millions of rows into cells first."""

    method: Literal["mdav"]
    k: Annotated[StrictInt, Field(ge=2)]
    blocks: Literal["kd"] | None = None

    @property
    def scope(self) -> str:
        """What the claim covers: which of the records of its cluster a released one is."""
        return "cluster"


class ProtectClasses(Partitioned):
    """(k,epsilon)-anonymity: classes of k records or more that share their generalised quasi-identifiers, with noise inside them.

    `grouping` makes the classes: `ola` one level of every hierarchy for all records, the best by `metric`; `mondrian` cuts class
    by class. With `l` each class has that many different values of every confidential column. `epsilon` is split over the noise
    columns by `weights`.
    """

    method: Literal["k-epsilon"]
    grouping: Literal["ola", "mondrian"]
    metric: Metric | None = None
    k: Annotated[StrictInt, Field(ge=2)]
    l: Annotated[StrictInt, Field(ge=2)] | None = None  # noqa: E741  the literature's name
    epsilon: Budget
    weights: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])

    @property
    def scope(self) -> str:
        """What the claim covers: what a record's released numbers tell of it among the records of its class."""
        return "class"

    @property
    def chosen_metric(self) -> Metric:
        """The metric of `ola`."""
        return self.metric or "categorical-precision"


FAMILIES = {"k-epsilon": "classes", "dp-mdav": "vectors", "mdav": "alike"}


def _family(value: Any) -> str:
    name = cast(dict[str, Any], value).get("method") if isinstance(value, dict) else getattr(value, "method", None)
    return FAMILIES.get(name, "columns") if isinstance(name, str) else "columns"


PlainProtect: TypeAlias = Protect | ProtectVectors | ProtectAlike | ProtectClasses
AnyProtect: TypeAlias = Annotated[
    Annotated[Protect, Tag("columns")]
    | Annotated[ProtectVectors, Tag("vectors")]
    | Annotated[ProtectAlike, Tag("alike")]
    | Annotated[ProtectClasses, Tag("classes")],
    Discriminator(_family),
]


class Fill(Frozen):
    """Missing numbers become this one."""

    fill: Exact


class MissingCategory(Frozen):
    """Missing entries become this category, which `values` must list."""

    category: Category


class DropColumn(Frozen):
    """Read where a rule needs it (a person's identifier), never released."""

    do: Literal["drop"]
    role: Role


class KeepColumn(Frozen):
    """Released as it is, one of the declared `values`."""

    do: Literal["keep"]
    role: Literal["quasi", "confidential"]
    values: Annotated[tuple[Category, ...], Field(min_length=1), AfterValidator(unique)]
    why: Text
    missing: Literal["fail"] | MissingCategory = "fail"

    @property
    def integers(self) -> bool:
        """Whether the released column is one of whole numbers."""
        return all(isinstance(value, int) for value in self.values)


@lru_cache(maxsize=4096)
def _declare_grid(domain: tuple[Decimal, Decimal], step: Decimal) -> Grid:
    """A declared grid, which is asked for in every stage of every column."""
    return Grid.declare(domain, step)


class NoiseColumn(Frozen):
    """A number, released masked. Domain, grid and what happens outside are declared, never learned from data. `transform`: what
    the order of dp-mdav sees of it. `atoms`: values that readers count, which consistency does not move."""

    added_later: ClassVar[dict[str, Any]] = {"transform": None, "atoms": []}

    do: Literal["noise"]
    role: Literal["quasi", "confidential"]
    domain: tuple[Exact, Exact]
    grid: Exact
    outside: Literal["clamp", "fail"]
    why: Text
    missing: Literal["fail"] | Fill = "fail"
    transform: Transform | None = None
    atoms: Annotated[tuple[Exact, ...], AfterValidator(unique), AfterValidator(ascending)] = ()

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Policies that were approved before these options were known keep their hash."""
        told: dict[str, Any] = dump(self)
        return {
            name: value
            for name, value in told.items()
            if name not in self.added_later or value not in (self.added_later[name], ())
        }

    @property
    def seen_as(self) -> Transform:
        """What the order sees of it."""
        return self.transform or "linear"

    @property
    def exact_grid(self) -> Grid:
        """The grid of this column."""
        return _declare_grid(self.domain, self.grid)

    @property
    def exact_atoms(self) -> tuple[int, ...]:
        """Its atoms in units of the grid."""
        return self.exact_grid.units_of(self.atoms)


class GeneraliseColumn(Frozen):
    """A quasi-identifier, released made coarser as its hierarchy declares. `why` is needed where a domain is declared."""

    do: Literal["generalise"]
    role: Literal["quasi"]
    hierarchy: HierarchySpec
    why: Text | None = None
    missing: Literal["fail"] | MissingCategory = "fail"

    @property
    def missing_entry(self) -> str | None:
        """What stands for a missing entry, if one may be missing."""
        return str(self.missing.category) if isinstance(self.missing, MissingCategory) else None


AnyColumn: TypeAlias = DropColumn | KeepColumn | NoiseColumn | GeneraliseColumn
Column: TypeAlias = Annotated[AnyColumn, Field(discriminator="do")]
ReleasedColumn: TypeAlias = KeepColumn | NoiseColumn | GeneraliseColumn


class Suppress(Frozen):
    """Small groups of the released quasi-identifiers are suppressed, up to a share of the records."""

    quasi_groups_below: Annotated[StrictInt, Field(ge=2)]
    at_most: Percent


class SuppressClasses(Frozen):
    """What k-epsilon may drop: records in classes that stay too small (`grouping_at_most`), and after the noise those that stand
    out in their class with this `confidence` (`confidence_at_most`); `at_most` is for both together. Shares of all records."""

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


def _suppressed(value: Any) -> str:
    if isinstance(value, dict):
        return "groups" if "quasi_groups_below" in value else "classes"
    return "classes" if isinstance(value, SuppressClasses) else "groups"


AnySuppress: TypeAlias = Annotated[
    Annotated[Suppress, Tag("groups")] | Annotated[SuppressClasses, Tag("classes")], Discriminator(_suppressed)
]


def _one_or_each(value: Any) -> str:
    return "each" if isinstance(value, dict) else "one"


class Gates(Frozen):
    """What a release must meet before anybody reviews it: of the data; of what to expect, which are errors, by how much the
    share of records at an atom may differ, and the Kolmogorov-Smirnov distance; and, from `anonymity_k` to `marketer_risk`, of
    the released table alone. `clamped_at_most`: the share of its records that may lie outside the domain of a column with
    `outside: clamp`, one for all such columns or one for each that is named. No limit is set on a figure that compares released
    values with the original: it would tell of the noise that was drawn (methods.md section 2)."""

    min_rows: Annotated[StrictInt, Field(ge=1)] | None = None
    differencing_below: Annotated[StrictInt, Field(ge=0)] | None = None
    expected_error: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])
    relative_error: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])
    atom_share: dict[Name, Annotated[Exact, Field(gt=0, le=1)]] = Field(default_factory=dict[str, Decimal])
    ks: dict[Name, Annotated[Exact, Field(gt=0, le=1)]] = Field(default_factory=dict[str, Decimal])
    anonymity_k: Annotated[StrictInt, Field(ge=2)] | None = None
    l_diversity: dict[Name, Annotated[StrictInt, Field(ge=2)]] = Field(default_factory=dict[str, int])
    t_closeness: dict[Name, Annotated[Exact, Field(gt=0, le=1)]] = Field(default_factory=dict[str, Decimal])
    marketer_risk: Percent | None = None
    clamped_at_most: (
        Annotated[
            Annotated[Percent, Tag("one")] | Annotated[dict[Name, Percent], Tag("each")],
            Discriminator(_one_or_each),
        ]
        | None
    ) = None

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Policies that were approved before the later limits were known keep their hash."""
        told: dict[str, Any] = dump(self)
        return {
            name: value for name, value in told.items() if value or name in ("min_rows", "differencing_below", "expected_error")
        }

    @property
    def of_groups(self) -> dict[str, tuple[str, ...]]:
        """The limits on groups of released quasi-identifiers that are set, by name, with the columns that they are for."""
        limits: dict[str, tuple[str, ...]] = {"l_diversity": tuple(self.l_diversity), "t_closeness": tuple(self.t_closeness)}
        set_ones = {name: columns for name, columns in limits.items() if columns}
        if self.anonymity_k is not None:
            set_ones["anonymity_k"] = ()
        if self.marketer_risk is not None:
            set_ones["marketer_risk"] = ()
        return set_ones


def find_clamping(columns: Mapping[str, AnyColumn]) -> list[str]:
    """The released columns whose numbers are moved into a declared domain where they lie outside of it."""
    found: list[str] = []
    for name, column in columns.items():
        declared = column.hierarchy if isinstance(column, GeneraliseColumn) else column
        if isinstance(declared, NoiseColumn | Intervals) and declared.outside == "clamp":
            found.append(name)
    return found


class Target(Frozen):
    """What a model says yes to: numbers `above` one, or an entry that `equals` one."""

    above: Exact | None = None
    equals: Category | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Target:
        if (self.above is None) == (self.equals is None):
            raise ValueError("a target has either 'above' with a number or 'equals' with an entry")
        return self


class Audit(Frozen):
    """What the reviewers are told beyond what every audit measures. `predict`: the columns that models learn to predict."""

    predict: dict[Name, Target] = Field(default_factory=dict[str, Target])


class Review(Frozen):
    """How many people, none of them the steward, must approve a candidate."""

    reviewers: Annotated[StrictInt, Field(ge=1, le=10)] = 2


class Publish(Frozen):
    """The formats of the data in the package, and the embargo before which it may not go out."""

    formats: Annotated[tuple[Literal["parquet", "csv"], ...], Field(min_length=1), AfterValidator(unique)] = (
        "parquet",
        "csv",
    )
    not_before: Instant | None = None


def split_epsilon(protect: PlainProtect, names: Iterable[str]) -> dict[str, Epsilon]:
    """What each of the columns may spend; nothing where the method has no noise. The odd nano-epsilon go by name: the hash
    ignores the order in the file."""
    listed = list(names)
    if isinstance(protect, ProtectAlike):
        return {}
    ordered = sorted(listed)
    shares = dict(zip(ordered, protect.epsilon.split([protect.weights.get(name, Decimal(1)) for name in ordered]), strict=True))
    return {name: shares[name] for name in listed}


def order_of(protect: ProtectVectors, columns: Mapping[str, NoiseColumn]) -> Insensitive:
    """How dp-mdav makes clusters of these columns, and noise."""
    return Insensitive(
        epsilons=tuple(split_epsilon(protect, columns).values()),
        k=protect.k,
        order=protect.order,
        statistic=protect.statistic,
        scope=protect.scope,
        transforms=tuple(column.seen_as for column in columns.values()),
    )


class Policy(Frozen):
    """One policy file. Made by `load_policy`, which reports all errors at once and applies `rules` to the whole."""

    policy: Slug
    steward: Slug
    population: Slug
    source: Source
    person: Person | Literal["each-row"]
    releases: Annotated[ReleaseList | Scheduled | Literal["once"], BeforeValidator(release_texts)]
    protect: AnyProtect
    columns: Annotated[dict[Name, Column], Field(min_length=1)]
    drop: Annotated[tuple[Name, ...], AfterValidator(unique)] = ()
    expect: dict[Slug, Expectation] = Field(default_factory=dict[str, Expectation])
    suppress: AnySuppress | None = None
    gates: Gates = Gates()
    audit: Audit = Audit()
    review: Review = Review()
    publish: Publish = Publish()
    retain: Days | None = None

    @property
    def noise_columns(self) -> dict[str, NoiseColumn]:
        """The columns that get noise, in the order of the file."""
        return {name: column for name, column in self.columns.items() if isinstance(column, NoiseColumn)}

    @property
    def kept_columns(self) -> dict[str, KeepColumn]:
        """The columns that are released as they are, in the order of the file."""
        return {name: column for name, column in self.columns.items() if isinstance(column, KeepColumn)}

    @property
    def generalised_columns(self) -> dict[str, GeneraliseColumn]:
        """The columns that are released made coarser, in the order of the file."""
        return {name: column for name, column in self.columns.items() if isinstance(column, GeneraliseColumn)}

    @property
    def cut_columns(self) -> dict[str, Intervals]:
        """The generalised columns that mondrian cuts as numbers: each class is released with the range of its own."""
        if not isinstance(self.protect, ProtectClasses) or self.protect.grouping != "mondrian":
            return {}
        specs = {name: column.hierarchy for name, column in self.generalised_columns.items()}
        return {name: spec for name, spec in specs.items() if isinstance(spec, Intervals)}

    @property
    def released_columns(self) -> dict[str, ReleasedColumn]:
        """The columns that are released, in the order of the file."""
        return {name: column for name, column in self.columns.items() if not isinstance(column, DropColumn)}

    @property
    def released_quasi(self) -> list[str]:
        """The quasi-identifiers whose combinations make a group: those that are released as they are, made coarser, or replaced
        by exact centroids."""
        exact = isinstance(self.protect, ProtectAlike)
        quasi = {name: column for name, column in self.released_columns.items() if column.role == "quasi"}
        return [name for name, column in quasi.items() if exact or not isinstance(column, NoiseColumn)]

    @property
    def groups_below(self) -> int:
        """Groups of equal released quasi-identifiers are at least this large, by suppression or by the method; 0 for any."""
        if isinstance(self.protect, ProtectClasses):
            return self.protect.k
        if isinstance(self.protect, ProtectAlike) and self.released_quasi and not self.kept_columns:
            return self.protect.k
        return self.suppress.quasi_groups_below if isinstance(self.suppress, Suppress) else 0

    @property
    def definition(self) -> str:
        """What is claimed: dp, idp, k-epsilon or k-anonymity."""
        return self.claim.definition.key

    @property
    def method(self) -> MethodSpec:
        """What the catalogue says of the method."""
        return find_method(self.protect.method)

    @property
    def claim(self) -> ClaimSpec:
        """What the catalogue says of the method, at the scope and with the options of the policy."""
        protect = self.protect
        options = {"statistic": protect.statistic, "order": protect.order} if isinstance(protect, ProtectVectors) else {}
        return find_claim(protect.method, protect.scope, **options)

    @property
    def adds_up(self) -> bool:
        """Whether the epsilons of releases about the same people add up to a bound, so that a cap can name one."""
        return self.claim.definition.composes

    @property
    def epsilon(self) -> int | None:
        """The nano-epsilon of one release for one person, with as many records as one may have; None for a method without."""
        if isinstance(self.protect, ProtectAlike):
            return None
        return self.protect.epsilon.nano * self.records_per_person

    @property
    def consistency(self) -> str:
        """Whether the order of released values is restored: isotonic or none."""
        protect = self.protect
        if not isinstance(protect, Protect):
            return "none"
        return choose_consistency(protect.consistency, method=protect.method, scope=protect.scope)

    @property
    def clamps(self) -> bool:
        """Whether released values are moved back into their declared domain."""
        return not isinstance(self.protect, Protect) or self.protect.clamp == "yes"

    @property
    def vectors(self) -> Insensitive | Alike | None:
        """How clusters of all noise columns together are made, where the method makes such."""
        match self.protect:
            case ProtectAlike():
                return Alike(self.protect.k, self.protect.blocks)
            case ProtectVectors():
                return order_of(self.protect, self.noise_columns)
            case _:
                return None

    @property
    def parts(self) -> int:
        """How many random parts the records of the source are masked in, each on its own."""
        return self.protect.partitions or 1

    @property
    def publishes_parts(self) -> bool:
        """Whether each release is one part of the same records."""
        return self.protect.publish_parts is not None

    @property
    def column_epsilon(self) -> dict[str, Epsilon]:
        """What each noise column may spend: the release's epsilon, split exactly."""
        return split_epsilon(self.protect, self.noise_columns)

    @property
    def release_names(self) -> tuple[str, ...]:
        """The releases that the policy names; none where a period gives them their names."""
        if isinstance(self.releases, Scheduled):
            return self.releases.list or ()
        return ("once",) if isinstance(self.releases, str) else self.releases

    @property
    def every(self) -> Every | None:
        """The period that every release is of, if that is how they are named."""
        return self.releases.every if isinstance(self.releases, Scheduled) else None

    @property
    def first(self) -> str | None:
        """The period that the series begins with, if the policy names it."""
        return self.releases.first if isinstance(self.releases, Scheduled) else None

    @property
    def cron(self) -> Cron | None:
        """When the next release is opened, if nobody need do it."""
        return self.releases.cron if isinstance(self.releases, Scheduled) else None

    @property
    def is_series(self) -> bool:
        """Whether there are several releases."""
        return self.every is not None or len(self.release_names) > 1

    @property
    def differencing_below(self) -> int:
        """Between two releases at least this many people join, or nobody does; likewise leave. 0 where nobody can be counted."""
        if not self.is_series or not isinstance(self.person, Person):
            return 0
        below = self.gates.differencing_below
        return DIFFERENCING_BELOW if below is None else below

    @property
    def clamped_at_most(self) -> dict[str, Decimal]:
        """The share of its records that may lie outside the domain of each column that clamps them."""
        limit, names = self.gates.clamped_at_most, find_clamping(self.columns)
        if isinstance(limit, dict):
            return {name: limit.get(name, CLAMPED_AT_MOST) for name in names}
        return dict.fromkeys(names, CLAMPED_AT_MOST if limit is None else limit)

    @property
    def expected_columns(self) -> frozenset[str]:
        """The columns that expectations are about, released or not."""
        return frozenset(column for rule in self.expect.values() for column in rule.columns)

    @property
    def records_per_person(self) -> int:
        """How many records of a release one person may have."""
        return self.person.records_per_release if isinstance(self.person, Person) else 1

    @property
    def declared(self) -> frozenset[str]:
        """Every column that the source may have."""
        release = [self.source.release_column] if self.source.release_column else []
        return frozenset([*self.columns, *self.drop, *release])

    def canonical_json(self) -> str:
        """The policy without comments, order of keys and spelling of numbers: what the hash is of. Where the order of columns
        decides between equally good classes, it is part of it."""
        told = self.model_dump(mode="json")
        if self.audit == Audit():  # policies that were approved before there was such a part keep their hash
            del told["audit"]
        if not self.expect:  # likewise
            del told["expect"]
        if isinstance(self.protect, ProtectClasses):
            told["protect"]["order"] = list(self.generalised_columns)
        if isinstance(self.protect, ProtectVectors | ProtectAlike):
            told["protect"]["columns"] = list(self.noise_columns)
        return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def canonical_hash(self) -> str:
        """SHA-256 of the canonical form."""
        return self.known_hash

    @cached_property
    def known_hash(self) -> str:
        """The same, made once: a policy does not change."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def __copy__(self) -> Policy:
        """A copy makes its own hash: `model_copy` gives it other parts."""
        copied = super().__copy__()
        vars(copied).pop("known_hash", None)
        return copied
