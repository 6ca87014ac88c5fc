"""Columns that are read where a rule needs them, and never released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.mechanisms import Grid
from release_pipeline.policy.kinds.base import ROLE, ColumnKind, MissingCategory, Role
from release_pipeline.policy.values.periods import ListReading, NumberReading, Reading
from release_pipeline.policy.values.scalars import Category, Domain, Option, Outside, Step, unique
from release_pipeline.policy.values.text import Path, Problem

_OF_WEIGHTS = "is for a weight that tables add up; nothing else is read of a dropped column."


class DropColumn(ColumnKind):
    """Read where a rule (a person's identifier) or a derived column needs it, never released. A weight by which tables count has
    a `domain`, a `grid`, and what happens `outside`, as a masked number has."""

    is_released: ClassVar[bool] = False
    do: Literal["drop"]
    role: Annotated[Role, ROLE]
    domain: Domain | None = None
    grid: Step | None = None
    outside: Outside | None = None

    @property
    def exact_grid(self) -> Grid | None:
        """The grid of a weight that tables add up."""
        return None if self.domain is None or self.grid is None else Grid.declare(self.domain, self.grid)

    @property
    def reading(self) -> Reading | None:
        """How the source's column is read: that of a weight that tables add up."""
        if self.domain is None or self.grid is None or self.outside is None:
            return None
        low, high = self.domain
        return NumberReading(low=low, high=high, step=self.grid, outside=self.outside)

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        if self.domain is not None and self.grid is not None:
            low, high = (format(bound, "f") for bound in self.domain)
            how = f"domain {low} to {high} by {self.grid:f}, {self.outside} outside"
            return f"added up in tables with noise, never released; {how}"
        return "read for the rules, never released" if is_read or self.role == "identifier" else "never released"

    def examples(self, most: int) -> list[Any]:
        """The ends of a weight that tables add up."""
        return [] if self.domain is None else [float(end) for end in self.domain]

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """Options that only a weight has, and has together."""
        options = {"domain": self.domain, "grid": self.grid, "outside": self.outside}
        declared = [name for name, value in options.items() if value is not None]
        if declared and self.role != "weight":
            yield (*here, declared[0]), f"{declared[0]} {_OF_WEIGHTS}", "Remove it, or say role: weight."
        elif declared and len(declared) < len(options):
            lacking = next(name for name in options if name not in declared)
            yield here, f"{lacking} is missing.", "A dropped weight that tables add up has a domain, a grid and outside."
        elif self.domain is not None and self.domain[0] < 0:
            yield (*here, "domain"), "a weight is no number below 0.", "Begin the domain at 0 or above."
        else:
            try:
                _ = self.exact_grid
            except ReleasePipelineError as error:
                yield (*here, "grid"), error.what, error.remedy


# Columns that tables next to the rows count by, and that are in no row.


class CountedColumn(DropColumn):
    """Never released with the rows. Tables count by its `values`, of which each record has one."""

    values: Annotated[
        tuple[Category, ...],
        Field(min_length=1),
        AfterValidator(unique),
        Option(hint="List the categories that tables count by."),
    ]
    missing: Literal["fail"] | MissingCategory = "fail"

    @property
    def reading(self) -> ListReading:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How the source's column is read: as texts, for these alone are labels of cells."""
        filled = str(self.missing.category) if isinstance(self.missing, MissingCategory) else None
        return ListReading(values=self.declared_texts, filled=filled, integers=False)

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """Its categories, which tables have."""
        return tuple(map(str, self.values))

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        return f"tables count by its {len(self.values)} declared values; in no row"

    def examples(self, most: int) -> list[Any]:
        """All of its values."""
        return list(self.declared_texts)

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What only weights have, and a category for missing entries that is none."""
        if self.role == "weight":
            yield (*here, "values"), "a weight is added up, and no table counts by it.", "Give the column another role."
            return
        yield from super().find_faults(here)
        if isinstance(self.missing, MissingCategory) and self.missing.category not in self.values:
            yield (*here, "missing"), "the category for missing entries is not among the values.", "Add it to values."
