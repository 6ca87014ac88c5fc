"""Quasi-identifiers, released coarser than they are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from release_pipeline.policy.declared import Option
from release_pipeline.policy.hierarchies import FORMS, HierarchySpec
from release_pipeline.policy.kinds.base import ROLE, ColumnKind, MissingCategory
from release_pipeline.policy.readings import Reading
from release_pipeline.policy.scalars import Why


class GeneraliseColumn(ColumnKind):
    """A quasi-identifier, released made coarser as its hierarchy declares. `why` is needed where a domain is declared."""

    do: Literal["generalise"]
    role: Annotated[Literal["quasi"], ROLE]
    hierarchy: Annotated[HierarchySpec, Option(hint=FORMS)]
    why: Why | None = None
    missing: Literal["fail"] | MissingCategory = "fail"

    @property
    def missing_entry(self) -> str | None:
        """What stands for a missing entry, if one may be missing."""
        return str(self.missing.category) if isinstance(self.missing, MissingCategory) else None

    @property
    def reading(self) -> Reading:
        """How the source's column is read."""
        return self.hierarchy.reading(self.missing_entry)

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """The values and labels that a steward lists, and what stands for a missing one."""
        missing = () if self.missing_entry is None else (self.missing_entry,)
        return (*missing, *self.hierarchy.declared_texts)

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        return "; ".join(part for part in (self.hierarchy.words, self.why) if part)

    def examples(self, most: int) -> list[Any]:
        """Entries that may occur, or numbers all over a domain, or one that the hierarchy covers."""
        return self.hierarchy.examples(most)
