"""Tables that are released next to the rows, with their cells, noise and weights. Everything follows from declared facts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    StrictInt,
    Tag,
    model_validator,
)

from release_pipeline.mechanisms import Epsilon, Grid
from release_pipeline.mechanisms.accounting.budget import rho_of_pure
from release_pipeline.mechanisms.tables import (
    CellNoise,
    Sensitivity,
    Shape,
    check_sum,
    ends_of,
    multiply_ends,
    noise_of_share,
    of_amounts,
    of_counts,
)
from release_pipeline.policy.hierarchies.listed import Rows
from release_pipeline.policy.kinds import AnyColumn, CountedColumn, DropColumn, KeepColumn, NoiseColumn
from release_pipeline.policy.values.scalars import Budget, Frozen, Name, Option
from release_pipeline.sentences import POLICY


@dataclass(frozen=True)
class Weights:
    """The declared weights. `step`: the size of a unit; `ends`: the least and the largest weight, in units. `grid`: for numbers;
    `listed`: the units of each weight of a list, by its text."""

    column: str
    step: Fraction
    ends: tuple[int, int]
    grid: Grid | None = None
    listed: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, name: str, column: AnyColumn) -> Weights | None:
        """Return the weights of a column; None if it declares neither a list nor a domain and grid."""
        if isinstance(column, KeepColumn):
            return cls._listed(name, column)
        grid = column.exact_grid if isinstance(column, NoiseColumn | DropColumn) else None
        return None if grid is None else cls(name, grid.step, ends_of(grid), grid=grid)

    @classmethod
    def _listed(cls, name: str, column: KeepColumn) -> Weights:
        """Return the weights of a list, with the largest step of which all of its weights are whole multiples."""
        exact = {str(value): Fraction(Decimal(str(value))) for value in column.values}
        denominator = math.lcm(*(weight.denominator for weight in exact.values()))
        step = Fraction(math.gcd(*(int(weight * denominator) for weight in exact.values())), denominator)
        listed = {text: int(weight / step) for text, weight in exact.items()}
        return cls(name, step, (min(listed.values()), max(listed.values())), listed=listed)

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The least and the largest weight."""
        return self.ends[0] * self.step, self.ends[1] * self.step


def weights_of(columns: Mapping[str, AnyColumn]) -> Weights | None:
    """Return the weights of the column with this role; None if there is none, or it declares none."""
    name = next((name for name, column in columns.items() if column.role == "weight"), None)
    return None if name is None else Weights.of(name, columns[name])


# The tables: counts of records, or sums of a masked column, weighted if declared, in every combination of declared labels. Each
# has separate noise and a separate share of epsilon, or of rho.


MOST_COLUMNS = 8  # in one table
OURS = ("level", "within", "value", "noisy")  # columns that every table's file has


class Grouping(Frozen):
    """A column by groups of its values, as in a hierarchy. `levels`: which of its levels the table has, 0 being the values
    themselves; by default all except one that is everything."""

    column: Name
    rows: Annotated[Rows, Option(hint="Name groups: {LABEL: [values]}; a column without groups stands by its name.")]
    levels: Annotated[
        tuple[Annotated[StrictInt, Field(ge=0)], ...] | None,
        Field(min_length=1),
        Option(hint="List levels, like [1, 0]; 0 is the values themselves."),
    ] = None

    @model_validator(mode="after")
    def _known_levels(self) -> Grouping:
        if self.levels is not None and (len(set(self.levels)) < len(self.levels) or max(self.levels) >= len(self.rows[0])):
            raise ValueError(f"levels are different numbers from 0 to {len(self.rows[0]) - 1}")
        return self

    @property
    def measured(self) -> tuple[int, ...]:
        """The levels of the table, the coarsest first."""
        if self.levels is not None:
            return tuple(sorted(self.levels, reverse=True))
        return tuple(level for level in reversed(range(len(self.rows[0]))) if len({row[level] for row in self.rows}) > 1) or (0,)


def _one_or_group(value: Any) -> str:
    return "group" if isinstance(value, dict | Grouping) else "name"


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


By: TypeAlias = Annotated[Annotated[Name, Tag("name")] | Annotated[Grouping, Tag("group")], Discriminator(_one_or_group)]


def _different(by: tuple[Name | Grouping, ...]) -> tuple[Name | Grouping, ...]:
    names = [name_of(part) for part in by]
    if len(set(names)) < len(names):
        raise ValueError("names a column twice")
    if sum(isinstance(part, Grouping) and len(part.measured) > 1 for part in by) > 1:
        raise ValueError("has several levels of more than one column; one is all that values are made to add up for")
    return by


def name_of(part: str | Grouping) -> str:
    """Return the column that a part of `by` is about."""
    return part if isinstance(part, str) else part.column


class Table(Frozen):
    """A table of a policy. `by`: the columns whose labels make its cells. `sum`: the masked column that is added up, over records
    with a value there; without it records are counted. `having`: only records with a value in this masked column are counted.
    `weight`: the weight of each record, by which its number is multiplied. `epsilon`, or `rho` under zcdp: what it may lose for
    one record, on top of the rows."""

    by: Annotated[
        tuple[By, ...],
        BeforeValidator(_as_list),
        AfterValidator(_different),
        Field(min_length=1, max_length=MOST_COLUMNS),
        Option(hint="List columns with do: keep, like [state, sex]."),
    ]
    sum: Annotated[Name | None, Option(hint="Name a column with do: noise.")] = None
    having: Annotated[Name | None, Option(hint="Name a column with do: noise where records may have no value.")] = None
    weight: Annotated[Name | None, Option(hint="Name the column with role: weight.")] = None
    epsilon: Annotated[Budget | None, Option(hint="There is no default.")] = None
    rho: Annotated[Budget | None, Option(hint="There is no default.")] = None

    @model_validator(mode="after")
    def _one_budget(self) -> Table:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("a table has either an epsilon, or under zcdp a rho; there is no default")
        if self.sum is not None and self.having is not None:
            raise ValueError("a sum is of the records that have a value: 'having' is for tables of counts")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose labels make its cells."""
        return tuple(name_of(part) for part in self.by)

    @property
    def by_rho(self) -> bool:
        """Return whether its noise is the discrete Gaussian, which no epsilon bounds."""
        return self.rho is not None

    @property
    def share(self) -> Epsilon:
        """Return what it may lose for one record: epsilon, or rho."""
        return self.rho or self.epsilon or Epsilon(0)

    def in_epsilon(self, records: int) -> int | None:
        """Return what it costs a person with so many records, in nano-epsilon; None if no epsilon bounds it."""
        return None if self.epsilon is None else self.epsilon.nano * records

    def in_rho(self, records: int) -> int:
        """Return what it costs a person with so many records, in nano-rho: eps-DP is (eps^2 / 2)-zCDP, and rho grows with the
        square of the records."""
        return self.share.nano * records * records if self.epsilon is None else rho_of_pure(self.epsilon.nano * records)


def by_name(tables: dict[str, Table]) -> dict[str, Table]:
    """Return the tables in the order of their names: the canonical form has no other order, and sentences must not depend on
    it."""
    return dict(sorted(tables.items()))


@dataclass(frozen=True, slots=True)
class Axis:
    """A column of a table. `values`: those of records; for each level of the table, the coarsest first, its number, its labels,
    and the label of each value."""

    column: str
    values: tuple[str, ...]
    numbers: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]
    places: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, part: str | Grouping, column: KeepColumn | CountedColumn) -> Axis:
        """Return the axis of a column with declared values, by these or by groups of them."""
        values = tuple(str(value) for value in column.values)
        if isinstance(part, str):
            return cls(part, values, (0,), (values,), (tuple(range(len(values))),))
        rows = {row[0]: row for row in part.rows}
        labels: list[tuple[str, ...]] = []
        places: list[tuple[int, ...]] = []
        for level in part.measured:
            numbers = {label: number for number, label in enumerate(dict.fromkeys(rows[value][level] for value in values))}
            labels.append(tuple(numbers))
            places.append(tuple(numbers[rows[value][level]] for value in values))
        return cls(part.column, values, part.measured, tuple(labels), tuple(places))

    @property
    def is_deep(self) -> bool:
        """Return whether it has several levels."""
        return len(self.numbers) > 1

    def list_above(self, level: int) -> dict[str, str]:
        """Return the label of the level above for each label of a level (by its position); empty for the coarsest."""
        if level == 0:
            return {}
        above, below = ([self.labels[number][place] for place in self.places[number]] for number in (level - 1, level))
        return dict(zip(below, above, strict=True))


@dataclass(frozen=True)
class Tabulation:
    """A declared table with its cells, its noise and the grid of what it adds up: all public before any data are read.
    `counted_in`: the unit of the sum of a column of dates, like "days since 1990-01-01"."""

    name: str
    table: Table
    axes: tuple[Axis, ...]
    grid: Grid | None
    weights: Weights | None = None
    counted_in: str = ""
    lacking: int = 0  # reasons for which a record may have nothing to add up, or no label

    @classmethod
    def of(
        cls,
        name: str,
        table: Table,
        counted: Mapping[str, KeepColumn | CountedColumn],
        noise: Mapping[str, NoiseColumn],
        weights: Weights | None = None,
    ) -> Tabulation:
        """The tabulation of a table whose columns fit (`rules.published`); `weights`: of the column with that role."""
        axes = tuple(Axis.of(part, counted[name_of(part)]) for part in table.by)
        weights = None if table.weight is None else weights
        if table.sum is None:
            lacking = 0 if table.having is None else len(noise[table.having].reasons)
            return cls(name, table, axes, None, weights, lacking=lacking)
        column = noise[table.sum]
        unit = "" if column.dated is None else POLICY("derive.since", unit=column.noise_unit, first=column.dated.first)
        return cls(name, table, axes, column.exact_grid, weights, unit, len(column.reasons))

    @cached_property
    def shape(self) -> Shape:
        """Its cells."""
        return Shape.of([axis.places for axis in self.axes])

    @property
    def levels(self) -> tuple[int, ...]:
        """The numbers of its levels, the coarsest first: those of the column that has several."""
        return next((axis.numbers for axis in self.axes if axis.is_deep), (self.axes[0].numbers[0],))

    @property
    def is_deep(self) -> bool:
        """Return whether it has several levels."""
        return len(self.levels) > 1

    @cached_property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """Return how much one record changes each level."""
        return tuple(of_counts(cells) if self.ends is None else of_amounts(*self.ends, cells) for cells in self.shape.cells)

    @property
    def step(self) -> Fraction:
        """Return the unit of its cells: a record, or so much of what is added up."""
        grid = Fraction(1) if self.grid is None else self.grid.step
        return grid if self.weights is None else grid * self.weights.step

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """Return the least and the most that a record adds, in units; None if every record counts as one. A record without a
        value adds nothing."""
        numbers = None if self.grid is None else ends_of(self.grid)
        if self.weights is not None:
            numbers = self.weights.ends if numbers is None else multiply_ends(self.weights.ends, numbers)
        if not self.lacking:
            return numbers
        least, most = numbers or (1, 1)
        return min(least, 0), max(most, 0)

    @cached_property
    def noise(self) -> tuple[CellNoise, ...]:
        """The noise of the cells of each level: the table's budget is shared evenly by the levels that one record can change."""
        touched = [sensitivity.l1 > 0 for sensitivity in self.sensitivities]
        shares = iter(self.table.share.split([1] * sum(touched)) if any(touched) else ())
        return tuple(
            noise_of_share(sensitivity, next(shares).fraction if is_touched else Fraction(1), by_rho=self.table.by_rho)
            for sensitivity, is_touched in zip(self.sensitivities, touched, strict=True)
        )

    def check_rows(self, rows: int) -> None:
        """Refuse so many rows if their sums might not fit, as a release of them would: by public facts, before any data."""
        if self.ends is not None:
            check_sum(rows, max(map(abs, self.ends)))

    def list_cells(self, level: int) -> Iterator[tuple[str, ...]]:
        """Yield the labels of the cells of a level (by its position), in the order of the cells."""
        return itertools.product(*(axis.labels[level] if axis.is_deep else axis.labels[0] for axis in self.axes))
