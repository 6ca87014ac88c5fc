"""Columns of categories that no record brings along: rows are made of noisy counts of them. Of numbers that is `NoiseColumn`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from release_pipeline.policy.declared import Option
from release_pipeline.policy.kinds.listed import ListedColumn
from release_pipeline.policy.scalars import Why
from release_pipeline.policy.text import Path, Problem

MOST_VALUES = 2_000  # of one column: each is a cell that is counted


class SynthesiseColumn(ListedColumn):
    """Synthetic: nobody's entry, one of the declared `values` or a declared reason for none."""

    do: Literal["synthesise"]
    why: Annotated[Why | None, Option(hint="Say why analysts need the column.")] = None

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        reasons = f", or none: {', '.join(self.reasons)}" if self.reasons else ""
        why = f"; {self.why}" if self.why else ""
        return f"synthetic: one of {len(self.values)} declared values{reasons}{why}"

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from super().find_faults(here)
        if self.role == "weight":
            what = "a weight is a number, and synthetic rows are no sample that one could belong to."
            yield (*here, "role"), what, "Drop the column, or give it the role confidential."
        if len(self.values) > MOST_VALUES:
            what = f"there are {len(self.values):,} values, and each is counted: {MOST_VALUES:,} at the most."
            yield (*here, "values"), what, "Merge rare ones first (derive: {categories: ...}), or drop the column."
