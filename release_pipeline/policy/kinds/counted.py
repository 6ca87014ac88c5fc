"""Columns that are counted by in tables beside the rows, and are in no row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from release_pipeline.policy.declared import Option
from release_pipeline.policy.kinds.base import MissingCategory
from release_pipeline.policy.kinds.drop import DropColumn
from release_pipeline.policy.readings import ListReading
from release_pipeline.policy.scalars import Category, unique
from release_pipeline.policy.text import Path, Problem


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
