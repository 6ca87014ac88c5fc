"""Columns that are read where a rule needs them, and never released."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from release_pipeline.policy.kinds.base import ROLE, ColumnKind, Role


class DropColumn(ColumnKind):
    """Read where a rule needs it (a person's identifier), never released."""

    is_released: ClassVar[bool] = False
    do: Literal["drop"]
    role: Annotated[Role, ROLE]

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        return "read for the rules, never released" if is_read or self.role == "identifier" else "never released"
