"""What every kind of columns says of itself. A kind is one file beside this one: its options, what is wrong with them by
themselves, how the source's column is read, and its words in the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.readings import Reading
from release_pipeline.policy.scalars import Category
from release_pipeline.policy.text import Path, Problem

Role: TypeAlias = Literal["identifier", "quasi", "confidential", "weight"]
ReleasedAs: TypeAlias = Literal["number", "whole number", "text", "date", "moment"]
ROLE = Option(hint="Say identifier, quasi, confidential or weight.")
ReleasedRole = Annotated[Literal["quasi", "confidential", "weight"], ROLE]
RECOGNISED = ("quasi", "weight")  # roles of columns that could help to recognise somebody: a weight tells of the stratum


class MissingCategory(Frozen):
    """Missing entries become this category, which `values` must list."""

    category: Category


class ColumnKind(Frozen):
    """A column under `do`. `missing_form`: what `missing` may be beside fail."""

    missing_form: ClassVar[type[Frozen]] = MissingCategory
    is_released: ClassVar[bool] = True

    @property
    def reading(self) -> Reading | None:
        """How the source's column is read; None where its values are not."""
        return None

    @property
    def released_as(self) -> ReleasedAs:
        """The type of the released column."""
        return "text"

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """The texts that may be released as they are declared: categories and labels."""
        return ()

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line; `mask` says how large the noise of a masked one is, where that is known;
        `is_read` whether a rule needs it."""
        raise NotImplementedError

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from ()

    def examples(self, most: int) -> list[Any]:
        """Entries that may occur, about so many where there are too many to list; none of a masked column."""
        return []
