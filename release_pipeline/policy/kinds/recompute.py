"""Derived columns that are made anew of what is published, after the masking."""

from __future__ import annotations

from typing import Annotated, Literal

from release_pipeline.policy.kinds.base import ROLE
from release_pipeline.policy.kinds.labels import LabelledEntries
from release_pipeline.policy.scalars import Why


class RecomputeColumn(LabelledEntries):
    """A derived column whose published values are made of the published values of what it is derived of, by the same function.
    The method never sees it: it costs nothing, and the rule that ties it to the others holds in what is published."""

    do: Literal["recompute"]
    role: Annotated[Literal["quasi", "confidential"], ROLE]
    why: Why | None = None

    def may_have(self, entry: str) -> bool:
        """Which texts it has its derivation says."""
        return True

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        return "; ".join(part for part in ("made of what is published, after the masking", self.why) if part)
