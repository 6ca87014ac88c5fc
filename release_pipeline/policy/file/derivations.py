"""Columns that are made from others, record by record, before roles apply: bands, limits, sums, merged entries, periods.

A derivation is a function of one record, declared without using the data. Replacing a record replaces only what is derived from
it, so every claim holds for derived columns as for delivered ones. If an input is missing, or is one of the `codes` for no value,
the result is missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from release_pipeline.mechanisms.basis.dates import Unit
from release_pipeline.policy.values.formats import decimal_text, name_some
from release_pipeline.policy.values.periods import Every
from release_pipeline.policy.values.scalars import Category, Code, Exact, Frozen, Name, Option, unique
from release_pipeline.sentences import POLICY

_SEVERAL = Option(hint="Name two columns or more. Of one column `limit`, `bands` and `merge` make another.")
MOST_EDGES, MOST_ENTRIES = 200, 5_000


def _ascending(values: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    if list(values) != sorted(set(values)):
        raise ValueError("must ascend, each once")
    return values


class Derived(Frozen):
    """The parts that every derivation has. `codes`: entries of an input that are no value."""

    is_text: ClassVar[bool] = False
    reads: ClassVar[str] = "number"  # how an input is read: as a number, an entry or a date
    codes: Annotated[tuple[Code, ...], AfterValidator(unique)] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the columns that it is made from."""
        named: str | tuple[str, ...] = getattr(self, self.key())
        return (named,) if isinstance(named, str) else named

    @property
    def outputs(self) -> tuple[str, ...] | None:
        """Return the possible results; None if they cannot be listed."""
        return None

    def preview(self) -> Iterator[str]:
        """Yield a phrase for each effect on values."""
        raise NotImplementedError

    @classmethod
    def key(cls) -> str:
        """Return its name in a policy: sum, bands, ..."""
        return next(key for key, kind in KINDS.items() if kind is cls)

    def describe(self) -> str:
        """Return the derivation in one line."""
        without = f"; none where there is {' or '.join(self.codes)}" if self.codes else ""
        return f"of {' and '.join(self.inputs)}: {'; '.join(self.preview())}{without}"


class Bands(Derived):
    """`{bands: age, at: [18, 65], labels: [child, adult, old]}`: below the first edge, from it to below the next, and so on."""

    is_text: ClassVar[bool] = True
    bands: Name
    at: Annotated[tuple[Exact, ...], Field(min_length=1, max_length=MOST_EDGES), AfterValidator(_ascending)]
    labels: Annotated[
        tuple[Category, ...], AfterValidator(unique), Option(hint="List one label more than there are edges, or leave it out.")
    ] = ()

    @model_validator(mode="after")
    def _one_for_each(self) -> Bands:
        if self.labels and len(self.labels) != len(self.at) + 1:
            raise ValueError(f"{len(self.at)} edges make {len(self.at) + 1} bands, and there are {len(self.labels)} labels")
        return self

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the labels; made from the edges if none are named."""
        if self.labels:
            return tuple(str(label) for label in self.labels)
        edges = [decimal_text(edge) for edge in self.at]
        middle = [f"{low} to below {high}" for low, high in itertools.pairwise(edges)]
        return (f"below {edges[0]}", *middle, f"{edges[-1]} or more")

    def preview(self) -> Iterator[str]:
        """Yield each band with its label."""
        edges = [decimal_text(edge) for edge in self.at]
        lowest, *others = self.outputs
        yield POLICY("derive.below", edge=edges[0], label=lowest)
        yield from (POLICY("derive.from", edge=edge, label=label) for edge, label in zip(edges, others, strict=True))


class Limit(Derived):
    """`{limit: income, bottom: 0, top: 100000}`: values beyond a limit are moved to it."""

    limit: Name
    bottom: Exact | None = None
    top: Exact | None = None

    @model_validator(mode="after")
    def _somewhere(self) -> Limit:
        if self.bottom is None and self.top is None:
            raise ValueError("needs a bottom, a top or both")
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError("the bottom is not below the top")
        return self

    def preview(self) -> Iterator[str]:
        """Yield how numbers beyond either end are moved."""
        if self.bottom is not None:
            yield POLICY("derive.bottom", bound=decimal_text(self.bottom))
        if self.top is not None:
            yield POLICY("derive.top", bound=decimal_text(self.top))


class Sum(Derived):
    """`{sum: [wages, profits]}`, to nine digits."""

    sum: Annotated[tuple[Name, ...], Field(min_length=2, max_length=50), AfterValidator(unique), _SEVERAL]

    def preview(self) -> Iterator[str]:
        """Yield the sum."""
        yield " + ".join(self.sum)


class Difference(Derived):
    """`{difference: [income, taxes]}`: the first minus the others, to nine digits."""

    difference: Annotated[tuple[Name, ...], Field(min_length=2, max_length=50), AfterValidator(unique), _SEVERAL]

    def preview(self) -> Iterator[str]:
        """Yield the difference."""
        yield " - ".join(self.difference)


class Between(Derived):
    """`{between: [admitted, left], unit: day}`: how many units the second of two dates or times comes after the first, counted in
    whole units of the calendar; below 0 if it comes before."""

    reads: ClassVar[str] = "date"
    between: Annotated[tuple[Name, Name], AfterValidator(unique)]
    unit: Unit

    def preview(self) -> Iterator[str]:
        """Yield the difference."""
        unit, (first, last) = POLICY.read_section("unit")[self.unit], self.between
        yield POLICY("derive.units", unit=unit, first=first, last=last)


class Merge(Derived):
    """`{merge: state, into: {north: [ME, NH], south: [FL]}, other: elsewhere}`. Without `other` an entry that is not listed stops
    the release."""

    is_text: ClassVar[bool] = True
    reads: ClassVar[str] = "entry"
    merge: Name
    into: Annotated[dict[Category, Annotated[tuple[Category, ...], Field(min_length=1)]], Field(min_length=1)]
    other: Category | None = None

    @model_validator(mode="after")
    def _each_once(self) -> Merge:
        entries = [str(entry) for listed in self.into.values() for entry in listed]
        if len(set(entries)) < len(entries):
            raise ValueError("an entry is in two groups, or twice in one")
        if len(entries) > MOST_ENTRIES:
            raise ValueError(f"lists more than {MOST_ENTRIES:,} entries")
        return self

    @property
    def groups(self) -> dict[str, str]:
        """Return the group of each listed entry."""
        return {str(entry): str(group) for group, entries in self.into.items() for entry in entries}

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the groups."""
        other = [] if self.other is None else [str(self.other)]
        return tuple(dict.fromkeys([*(str(group) for group in self.into), *other]))

    def preview(self) -> Iterator[str]:
        """Yield each group with its entries, the first dozen if there are many."""
        for group, entries in self.into.items():
            yield POLICY("derive.become", entries=name_some(map(str, entries)), label=group)
        yield POLICY("derive.others_stop") if self.other is None else POLICY("derive.others_become", label=self.other)


class PeriodOf(Derived):
    """`{period: admitted, every: quarter}`: the period of a date (ISO 8601), like 2026-Q3."""

    is_text: ClassVar[bool] = True
    reads: ClassVar[str] = "date"
    period: Name
    every: Every

    def preview(self) -> Iterator[str]:
        """Yield the period."""
        yield POLICY.read_section("period")[self.every]


KINDS: dict[str, type[Derived]] = {
    "bands": Bands,
    "limit": Limit,
    "sum": Sum,
    "difference": Difference,
    "between": Between,
    "merge": Merge,
    "period": PeriodOf,
}


def form_of(value: Any) -> type[Derived] | None:
    """Return the kind of derivation that was meant, by the first key that names one; None if there is none."""
    return next((KINDS[key] for key in cast(dict[str, Any], value) if key in KINDS), None) if isinstance(value, dict) else None


def known_keys(value: Any) -> list[str]:
    """Return the keys that a derivation may have, given those that it has so far."""
    model = form_of(value)
    return list(KINDS) if model is None else list(model.model_fields)


def _says_something(value: Any) -> Any:
    if isinstance(value, dict) and form_of(value) is None:
        raise ValueError(f"must say how it is derived, with one of {', '.join(KINDS)}")
    return cast(Any, value)


def _kind(value: Any) -> str:
    if isinstance(value, Derived):
        return type(value).__name__
    return (form_of(value) or Bands).__name__


Derivation: TypeAlias = Annotated[
    Annotated[
        Annotated[Bands, Tag("Bands")]
        | Annotated[Limit, Tag("Limit")]
        | Annotated[Sum, Tag("Sum")]
        | Annotated[Difference, Tag("Difference")]
        | Annotated[Between, Tag("Between")]
        | Annotated[Merge, Tag("Merge")]
        | Annotated[PeriodOf, Tag("PeriodOf")],
        Discriminator(_kind),
    ],
    BeforeValidator(_says_something),
]


def order_derivations(derive: Mapping[str, Derived]) -> list[str]:
    """Return their names, each after its inputs; derivations in a circle are left out."""
    ordered: list[str] = []
    waiting = list(derive)
    while ready := [name for name in waiting if not set(derive[name].inputs) & set(waiting)]:
        ordered += ready
        waiting = [name for name in waiting if name not in ready]
    return ordered


def list_leaves(derive: Mapping[str, Derived], name: str) -> list[str]:
    """Return the source columns from which a derived column is finally made, each once."""
    leaves: dict[str, None] = {}
    for column in derive[name].inputs:
        leaves |= dict.fromkeys(list_leaves(derive, column) if column in derive else [column])
    return list(leaves)


def describe_derivations(derive: Mapping[str, Derived]) -> Iterator[str]:
    """Yield each derivation in one line."""
    for name, how in derive.items():
        yield f"{name}: {how.describe()}"
