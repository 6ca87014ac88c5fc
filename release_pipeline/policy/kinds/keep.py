"""Columns of categories, released as they are."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Literal

from release_pipeline.policy.kinds.listed import ListedColumn
from release_pipeline.policy.kinds.missing import number_of_code
from release_pipeline.policy.scalars import Why
from release_pipeline.policy.text import Path, Problem


def is_weight(value: int | str) -> bool:
    """Whether a category can be how many others a record stands for."""
    number = number_of_code(str(value))
    return isinstance(number, Decimal) and number > 0


TELLS = "whoever knows how the sample was drawn knows the stratum by it, so that it counts as a quasi-identifier"


class KeepColumn(ListedColumn):
    """Released as it is; with `swap` each entry in a row of the same block of alike people, drawn at random."""

    do: Literal["keep", "swap"]
    why: Why

    @property
    def is_swapped(self) -> bool:
        """Whether entries change places within blocks."""
        return self.do == "swap"

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        reasons = f", or none: {', '.join(self.reasons)}" if self.reasons else ""
        told = f"{TELLS}; " if self.role == "weight" else ""
        done = "swapped within blocks" if self.is_swapped else "released as it is"
        return f"{done}: one of {len(self.values)} declared values{reasons}; {told}{self.why}"

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from super().find_faults(here)
        if self.is_swapped and self.role != "confidential":
            what = f"a column of role {self.role} keeps its place: blocks lie within the groups of kept quasi-identifiers."
            yield (*here, "do"), what, "Say do: keep; swap is for role confidential."
        if self.role == "weight" and not all(is_weight(value) for value in self.values):
            yield (*here, "values"), "a weight is a number above 0.", "List the weights that may occur."
