"""Columns of categories, released as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from release_pipeline.policy.declared import Option
from release_pipeline.policy.kinds.base import ColumnKind, MissingCategory, QuasiOrConfidential, ReleasedAs
from release_pipeline.policy.readings import ListReading
from release_pipeline.policy.scalars import Category, Why, unique
from release_pipeline.policy.text import Path, Problem


class KeepColumn(ColumnKind):
    """Released as it is, one of the declared `values`."""

    do: Literal["keep"]
    role: QuasiOrConfidential
    values: Annotated[
        tuple[Category, ...],
        Field(min_length=1),
        AfterValidator(unique),
        Option(hint="List the categories that may occur."),
    ]
    why: Why
    missing: Literal["fail"] | MissingCategory = "fail"

    @property
    def integers(self) -> bool:
        """Whether the released column is one of whole numbers."""
        return all(isinstance(value, int) for value in self.values)

    @property
    def filled(self) -> str | None:
        """The category that missing entries become, if one may be missing."""
        return str(self.missing.category) if isinstance(self.missing, MissingCategory) else None

    @property
    def reading(self) -> ListReading:
        """How the source's column is read."""
        return ListReading(values=tuple(str(value) for value in self.values), filled=self.filled, integers=self.integers)

    @property
    def released_as(self) -> ReleasedAs:
        """The type of the released column."""
        return "whole number" if self.integers else "text"

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """Its categories."""
        return () if self.integers else tuple(str(value) for value in self.values)

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        return f"released as it is: one of {len(self.values)} declared values; {self.why}"

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        if isinstance(self.missing, MissingCategory) and self.missing.category not in self.values:
            yield (*here, "missing"), "the category for missing entries is not among the values.", "Add it to values."

    def examples(self, most: int) -> list[Any]:
        """Entries that may occur: all of them."""
        return list(self.values) if self.integers else [str(value) for value in self.values]
