"""What a steward expects of the data beyond single columns: rules across columns, judged on counts before anything is charged.

A rule has a name, and is about the records of one release as the source delivered them: before anything is filled, clamped or
put on a grid. Where a column that it compares is missing, a record does not break it: what may be missing is said of the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StrictInt,
    Tag,
    model_serializer,
    model_validator,
)

from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.scalars import Category, Exact, Name, Percent, Text, unique
from release_pipeline.sentences import POLICY


def _one_or_more(value: Any) -> Any:
    """A single entry is a list of one."""
    return cast(Any, value) if isinstance(value, list | tuple | dict) else [value]


def _count_or_share(value: Any) -> str:
    return "share" if isinstance(value, str | Decimal) else "count"


def _not_everybody(share: Decimal) -> Decimal:
    if share == 1:
        raise ValueError("would let every record break it")
    return share


Entries: TypeAlias = Annotated[
    tuple[Category, ...], BeforeValidator(_one_or_more), Field(min_length=1), AfterValidator(unique)
]  # what may stand in a column
Entry: TypeAlias = dict[Name, Entries]  # the column, and what may stand in it
Tolerance: TypeAlias = Annotated[
    Annotated[StrictInt, Field(ge=0), Tag("count")] | Annotated[Percent, AfterValidator(_not_everybody), Tag("share")],
    Discriminator(_count_or_share),
]


class Rule(Frozen):
    """What every rule has: how many records, or what share of all, may break it, and why it is expected."""

    at_most: Tolerance = 0
    why: Text | None = None

    @model_serializer(mode="wrap")
    def _what_it_says(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what it does not say, so that what is added later changes no hash."""
        content: dict[str, Any] = dump(self)
        return {name: value for name, value in content.items() if value is not None}

    def allowed(self, records: int) -> int:
        """How many of so many records may break it."""
        return self.at_most if isinstance(self.at_most, int) else int(self.at_most * records)

    @property
    def tolerance(self) -> str:
        """The same in words."""
        if isinstance(self.at_most, Decimal):
            return f"at most {decimal_text(self.at_most * 100)}% of records may"
        if self.at_most == 0:
            return "none may"
        return f"at most {self.at_most:,} record{'s' if self.at_most > 1 else ''} may"


class Comparison(Rule):
    """`compare: [came, <=, left]`: the first is not after the second, with < before it. Both are read as numbers, or as dates."""

    compare: tuple[Name, Literal["<", "<="], Name]
    read_as: Literal["numbers", "dates"] = "numbers"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return self.compare[0], self.compare[2]

    @property
    def words(self) -> str:
        """It in words."""
        rule = " ".join(self.compare)
        return POLICY("expect.dates", rule=rule) if self.read_as == "dates" else rule


class Total(Rule):
    """`sum: [wages, benefits], equals: income, grid: 0.01`: each is rounded to the grid, so that sums are exact; they may differ
    `within` so much."""

    sum: Annotated[tuple[Name, ...], Field(min_length=2), AfterValidator(unique)]
    equals: Name
    grid: Annotated[Exact, Field(gt=0), Option(hint="Declare the step between two values, like 1 or 0.01.")]
    within: Annotated[Exact, Field(ge=0)] = Decimal(0)

    @model_validator(mode="after")
    def _on_the_grid(self) -> Total:
        if self.within % self.grid:
            raise ValueError("'within' must be a whole number of steps of its grid")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return (*self.sum, self.equals)

    @property
    def words(self) -> str:
        """It in words."""
        parts, grid = " + ".join(self.sum), decimal_text(self.grid)
        if not self.within:
            return POLICY("expect.total", parts=parts, sum=self.equals, grid=grid)
        within = decimal_text(self.within)
        return POLICY("expect.total_within", parts=parts, sum=self.equals, grid=grid, within=within)


class Unique(Rule):
    """`unique: [household, number]`: no two records have the same entries in these columns."""

    unique: Annotated[tuple[Name, ...], Field(min_length=1), AfterValidator(unique)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return self.unique

    @property
    def words(self) -> str:
        """It in words."""
        return f"no two records have the same {' and '.join(self.unique)}"


class Condition(Rule):
    """`missing: rent, only_when: {tenure: owner}`: what one column is like `when` another has one of some entries, or only then.

    What it is like: `missing`, `present`, or one of the `values` that are listed.
    """

    missing: Name | None = None
    present: Name | None = None
    values: Entry | None = None
    when: Entry | None = None
    only_when: Entry | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Condition:
        if [self.missing, self.present, self.values].count(None) != 2:
            raise ValueError("one of missing, present and values says what is expected")
        if (self.when is None) == (self.only_when is None):
            raise ValueError("either 'when' or 'only_when' says of which records, like when: {COLUMN: ENTRY}")
        for part in (self.values, self.when, self.only_when):
            if part is not None and len(part) != 1:
                raise ValueError("values, when and only_when name one column each")
        return self

    @property
    def subject(self) -> str:
        """The column of which something is expected."""
        return self.missing or self.present or next(iter(self.values or ()))

    @property
    def listed(self) -> tuple[int | str, ...] | None:
        """The entries that it may have, if that is what is expected."""
        return None if self.values is None else next(iter(self.values.values()))

    @property
    def given(self) -> tuple[str, tuple[int | str, ...]]:
        """The other column, and its entries."""
        return next(iter((self.when or self.only_when or {}).items()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return self.subject, self.given[0]

    @property
    def words(self) -> str:
        """It in words."""
        state = "missing" if self.missing else "present" if self.present else f"one of {_list(self.listed or ())}"
        column, entries = self.given
        return f"{self.subject} {state} {'when' if self.when else 'only when'} {column} is {_list(entries)}"


def _list(entries: tuple[int | str, ...]) -> str:
    return " or ".join(str(entry) for entry in entries)


KINDS: dict[str, type[Comparison | Total | Unique | Condition]] = {
    "compare": Comparison,
    "sum": Total,
    "unique": Unique,
    "missing": Condition,
    "present": Condition,
    "values": Condition,
}


def _says_something(value: Any) -> Any:
    if isinstance(value, dict) and not KINDS.keys() & cast(dict[str, Any], value).keys():
        raise ValueError(f"must say what is expected, with one of {', '.join(KINDS)}")
    return cast(Any, value)


def _kind(value: Any) -> str:
    """Which model a rule is of: its first key that says what is expected decides."""
    keys = cast(dict[str, Any], value) if isinstance(value, dict) else ()
    model = next((KINDS[key] for key in keys if key in KINDS), Comparison)
    return type(cast(object, value)).__name__ if isinstance(value, Rule) else model.__name__


Expectation: TypeAlias = Annotated[
    Annotated[
        Annotated[Comparison, Tag("Comparison")]
        | Annotated[Total, Tag("Total")]
        | Annotated[Unique, Tag("Unique")]
        | Annotated[Condition, Tag("Condition")],
        Discriminator(_kind),
    ],
    BeforeValidator(_says_something),
]


def known_keys(value: Any) -> list[str]:
    """The keys that a rule may have, by what it says so far."""
    model = form_of(value)
    return list(KINDS) if model is None else list(model.model_fields)


def form_of(value: Any) -> type[Rule] | None:
    """What was meant by a rule, by its first key that says what is expected."""
    return next((KINDS[key] for key in cast(dict[str, Any], value) if key in KINDS), None) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class ExpectationView:
    """A rule of the steward about the records."""

    name: Annotated[str, "its name in the policy"]
    rule: Annotated[str, "what it says, in words"]
    columns: Annotated[tuple[str, ...], "the columns that it is about"]
    at_most: Annotated[str, "how many records may break it: a number, or a percentage of all"]
    why: Annotated[str | None, "why it is expected, if the policy says so"]


def view_expectations(expected: Mapping[str, Expectation]) -> Iterator[ExpectationView]:
    """Each rule for a script."""
    for name, rule in expected.items():
        share = isinstance(rule.at_most, Decimal)
        at_most = f"{decimal_text(Decimal(rule.at_most) * 100)}%" if share else str(rule.at_most)
        yield ExpectationView(name, rule.words, tuple(dict.fromkeys(rule.columns)), at_most, rule.why)


def describe_expectations(expected: Mapping[str, Expectation]) -> Iterator[str]:
    """Each rule in a line: its name, what it says, how many records may break it, and why."""
    for name, rule in expected.items():
        why = f" ({rule.why})" if rule.why else ""
        broken = "" if rule.at_most == 0 else f"; {rule.tolerance} break it"
        yield f"{name}: {rule.words}{broken}{why}"
