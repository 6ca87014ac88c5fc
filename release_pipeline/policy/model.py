"""The policy file as frozen objects. The shape is the contract with stewards; unknown keys are errors.

What only one value can know is checked here; what several parts must agree on is in `rules`.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictInt,
    StrictStr,
    model_validator,
)

from release_pipeline.policy.cron import Cron
from release_pipeline.policy.periods import Every
from release_pipeline.privacy import Epsilon, Grid

DIFFERENCING_BELOW = 10  # where a policy says nothing else
Role: TypeAlias = Literal["identifier", "quasi", "confidential"]
OURS = "release_pipeline"  # how columns of our own begin, beside those of the source
MethodName: TypeAlias = Literal["laplace", "dp-um", "idp-ls", "idp-cbls"]


def canonical_name(name: str) -> str:
    """How column names are compared: NFC. Two names that differ only beyond that (case, width, spaces) look alike."""
    return unicodedata.normalize("NFC", name)


def look_alike_key(name: str) -> str:
    """Equal for names that a person could take for one another: compatibility forms, case and spaces folded."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def _not_ours(name: str) -> str:
    if look_alike_key(name).startswith(OURS):
        raise ValueError(f"names that begin with {OURS} are this software's own")
    return name


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")
    return Decimal(value)


def _epsilon(value: Any) -> Epsilon:
    if isinstance(value, Epsilon):
        return value
    epsilon = Epsilon.of(_number(value))
    if epsilon.nano == 0:
        raise ValueError("must be above 0")
    return epsilon


def _percent(value: Any) -> Decimal:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%", value) if isinstance(value, str) else None
    if match is None or Decimal(match[1]) > 100:
        raise ValueError("must be a percentage from 0% to 100%, like 5%")
    return Decimal(match[1]) / 100


def _days(value: Any) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,4})\s+days?", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be a number of days, like 90 days")
    return int(match[1])


def _instant(value: Any) -> datetime:
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        instant = None
    try:
        if isinstance(instant, datetime) and instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except OverflowError:
        pass
    raise ValueError("must be a date and time with its zone, like 2027-01-15T09:30Z")


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len({str(value) for value in values}) != len(values):
        raise ValueError("holds the same entry twice")
    return values


def _decimal_text(value: Decimal) -> str:
    return format(value.normalize(), "f")


def _category(value: Any) -> int | str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if not isinstance(value, int | str):
        raise ValueError("must be a list of texts or whole numbers")
    if value == "":
        raise ValueError("must have no empty text: in CSV nobody can tell it from a blank cell")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("is beyond 64-bit integers; put it in quotes")
    return value


def _cron(value: Any) -> Cron:
    if isinstance(value, Cron):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a text of five fields, like '0 6 1 * *'")
    return Cron.parse(value)


def _release_texts(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in cast(list[Any], value)]


Exact = Annotated[Decimal, BeforeValidator(_number), PlainSerializer(_decimal_text)]
Budget = Annotated[Epsilon, BeforeValidator(_epsilon), PlainSerializer(str)]
Percent = Annotated[Decimal, BeforeValidator(_percent), PlainSerializer(_decimal_text)]
Days = Annotated[int, BeforeValidator(_days)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
Slug = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
Text = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=200), AfterValidator(canonical_name), AfterValidator(_not_ours)]
ReleaseName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
ReleaseList = Annotated[tuple[ReleaseName, ...], Field(min_length=1), AfterValidator(_unique)]
Category = Annotated[int | str, BeforeValidator(_category)]
Timetable = Annotated[Cron, BeforeValidator(_cron), PlainSerializer(lambda cron: cron.text)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Source(_Frozen):
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


class Person(_Frozen):
    """The column that says whose record it is, and how many records one person may have in a release."""

    column: Name
    records_per_release: Annotated[StrictInt, Field(ge=1, le=10_000)] = 1


class Scheduled(_Frozen):
    """Releases that a timetable opens: those of a list one after the other, or every period once it has ended. Times are UTC."""

    list: Annotated[ReleaseList, BeforeValidator(_release_texts)] | None = None
    every: Every | None = None
    cron: Timetable

    @model_validator(mode="after")
    def _one_kind(self) -> Scheduled:
        if (self.list is None) == (self.every is None):
            raise ValueError("a timetable has either a list of releases or 'every' with a period")
        return self


class Protect(_Frozen):
    """The method and its claim. `epsilon` is for the whole release, split over the noise columns by `weights`."""

    method: MethodName
    epsilon: Budget
    k: Annotated[StrictInt, Field(ge=1)] | None = None
    scope: Literal["centroid", "column"] = "column"
    consistency: Literal["isotonic", "none"] | None = None
    weights: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])


class Fill(_Frozen):
    """Missing numbers become this one."""

    fill: Exact


class MissingCategory(_Frozen):
    """Missing entries become this category, which `values` must list."""

    category: Category


class DropColumn(_Frozen):
    """Read where a rule needs it (a person's identifier), never released."""

    do: Literal["drop"]
    role: Role


class KeepColumn(_Frozen):
    """Released as it is, one of the declared `values`."""

    do: Literal["keep"]
    role: Literal["quasi", "confidential"]
    values: Annotated[tuple[Category, ...], Field(min_length=1), AfterValidator(_unique)]
    why: Text
    missing: Literal["fail"] | MissingCategory = "fail"

    @property
    def integers(self) -> bool:
        """Whether the released column is one of whole numbers."""
        return all(isinstance(value, int) for value in self.values)


class NoiseColumn(_Frozen):
    """A number, released with noise. Domain, grid and what happens outside are declared, never learned from data."""

    do: Literal["noise"]
    role: Literal["quasi", "confidential"]
    domain: tuple[Exact, Exact]
    grid: Exact
    outside: Literal["clamp", "fail"]
    why: Text
    missing: Literal["fail"] | Fill = "fail"

    @property
    def exact_grid(self) -> Grid:
        """The grid of this column."""
        return Grid.declare(self.domain, self.grid)


Column: TypeAlias = Annotated[DropColumn | KeepColumn | NoiseColumn, Field(discriminator="do")]


class Suppress(_Frozen):
    """Small groups of the released quasi-identifiers are suppressed, up to a share of the records."""

    quasi_groups_below: Annotated[StrictInt, Field(ge=2)]
    at_most: Percent


class Gates(_Frozen):
    """What a release must meet before anybody reviews it."""

    min_rows: Annotated[StrictInt, Field(ge=1)] | None = None
    differencing_below: Annotated[StrictInt, Field(ge=0)] | None = None
    expected_error: dict[Name, Annotated[Exact, Field(gt=0)]] = Field(default_factory=dict[str, Decimal])


class Review(_Frozen):
    """How many people, none of them the steward, must approve a candidate."""

    reviewers: Annotated[StrictInt, Field(ge=1, le=10)] = 2


class Publish(_Frozen):
    """The formats of the data in the package, and the embargo before which it may not go out."""

    formats: Annotated[tuple[Literal["parquet", "csv"], ...], Field(min_length=1), AfterValidator(_unique)] = (
        "parquet",
        "csv",
    )
    not_before: Instant | None = None


def split_epsilon(protect: Protect, names: Iterable[str]) -> dict[str, Epsilon]:
    """What each of the columns may spend. The odd nano-epsilon go by name: the hash ignores the order in the file."""
    listed = list(names)
    ordered = sorted(listed)
    shares = dict(zip(ordered, protect.epsilon.split([protect.weights.get(name, Decimal(1)) for name in ordered]), strict=True))
    return {name: shares[name] for name in listed}


class Policy(_Frozen):
    """One policy file. Made by `load_policy`, which reports all errors at once and applies `rules` to the whole."""

    policy: Slug
    steward: Slug
    population: Slug
    source: Source
    person: Person | Literal["each-row"]
    releases: Annotated[ReleaseList | Scheduled | Literal["once"], BeforeValidator(_release_texts)]
    protect: Protect
    columns: Annotated[dict[Name, Column], Field(min_length=1)]
    drop: Annotated[tuple[Name, ...], AfterValidator(_unique)] = ()
    suppress: Suppress | None = None
    gates: Gates = Gates()
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
    def records_per_person(self) -> int:
        """How many records of a release one person may have."""
        return self.person.records_per_release if isinstance(self.person, Person) else 1

    @property
    def declared(self) -> frozenset[str]:
        """Every column that the source may have."""
        release = [self.source.release_column] if self.source.release_column else []
        return frozenset([*self.columns, *self.drop, *release])

    def canonical_json(self) -> str:
        """The policy without comments, order of keys and spelling of numbers: what the hash is of."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def canonical_hash(self) -> str:
        """SHA-256 of the canonical form."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()
