"""Quasi-identifiers, released coarser than they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from release_pipeline.mechanisms import Grid
from release_pipeline.policy.hierarchies import ALL, FORMS, HierarchySpec, Intervals, Listed
from release_pipeline.policy.hierarchies.intervals import Row
from release_pipeline.policy.kinds.base import (
    BLANK,
    ROLE,
    Codes,
    LabelledEntries,
    MissingCategory,
    find_code_faults,
    number_of_code,
)
from release_pipeline.policy.values.periods import Reading, RuleReading
from release_pipeline.policy.values.scalars import Option, Why
from release_pipeline.policy.values.text import Path, Problem


class GeneraliseColumn(LabelledEntries):
    """A quasi-identifier, released made coarser as its hierarchy declares. `why` is needed where a domain is declared. `codes`:
    entries that are no value, each with its reason, which is a label of its own up to the last level; `missing: keep` gives
    blanks such a label."""

    do: Literal["generalise"]
    role: Annotated[Literal["quasi"], ROLE]
    hierarchy: Annotated[HierarchySpec, Option(hint=FORMS)]
    why: Why | None = None
    missing: Literal["fail", "keep"] | MissingCategory = "fail"
    codes: Codes = Field(default_factory=dict[str, str])

    @property
    def is_coded(self) -> bool:
        """Whether codes are released as labels of their own."""
        return bool(self.codes)

    @property
    def is_delivered_as_number(self) -> bool:
        """Where its hierarchy is one of intervals."""
        return isinstance(self.hierarchy, Intervals)

    @property
    def exact_grid(self) -> Grid | None:
        """That of a hierarchy of intervals."""
        return self.hierarchy.exact_grid if isinstance(self.hierarchy, Intervals) else None

    @property
    def missing_entry(self) -> str | None:
        """What stands for a missing entry, if one may be missing."""
        if self.missing == "keep":
            return BLANK
        return str(self.missing.category) if isinstance(self.missing, MissingCategory) else None

    @property
    def reasons(self) -> tuple[str, ...]:
        """The labels of records without a value: each once, that of blanks last."""
        blank = [] if self.missing_entry is None else [self.missing_entry]
        return tuple(dict.fromkeys([*self.codes.values(), *blank]))

    @property
    def reason_points(self) -> tuple[float, ...]:
        """Behind the upper end of a domain, the numbers that stand for the reasons within the pipeline, where there are codes."""
        spec = self.hierarchy
        if not self.codes or not isinstance(spec, Intervals):
            return ()
        return tuple(float(spec.domain[1] + number * spec.grid) for number in range(1, len(self.reasons) + 1))

    def most_values(self, *, clamps: bool) -> int:
        """The values of the hierarchy, and the reasons to have none."""
        return self.hierarchy.most_values + len(self.reasons)

    @property
    def reading(self) -> Reading:
        """How the source's column is read."""
        how = self.hierarchy.reading(self.missing_entry)
        if not self.codes:
            return how
        if isinstance(how, RuleReading):
            return dataclasses.replace(how, codes=self.codes)
        points = dict(zip(self.reasons, self.reason_points, strict=True))
        return dataclasses.replace(
            how,
            keeps_missing=False,
            codes=tuple((number_of_code(code), points[reason]) for code, reason in self.codes.items()),
            blank=None if self.missing_entry is None else points[self.missing_entry],
        )

    @property
    def listed_rows(self) -> tuple[Row, ...]:
        """The rows of a hierarchy that lists its values, with one for every reason that it does not list."""
        spec = self.hierarchy
        if not isinstance(spec, Listed):
            return ()
        unlisted = [reason for reason in self.reasons if reason not in spec.values] if self._adds_rows else []
        return (*spec.rows, *(self.row_of(reason, spec.rows[0][-1]) for reason in unlisted))

    @property
    def _adds_rows(self) -> bool:
        """Not of a category for missing entries alone, which the steward lists."""
        return bool(self.codes) or self.missing == "keep"

    def row_of(self, reason: str, last: str = ALL) -> Row:
        """A reason stays itself until the last level."""
        return (*[reason] * max(self.hierarchy.levels - 1, 1), last)[: self.hierarchy.levels]

    def list_rows(self) -> list[Row] | None:
        """Every value with its label on each level, for a reader of the release; None where they are too many to list."""
        if isinstance(self.hierarchy, Listed):
            return list(self.listed_rows)
        rows = self.hierarchy.list_rows()
        return None if rows is None else [*rows, *map(self.row_of, self.reasons)]

    def label_entries(self, entries: list[str]) -> list[Row]:
        """A row for each of these entries, by a rule."""
        spec, values = self.hierarchy, [entry for entry in entries if entry not in self.reasons]
        assert not isinstance(spec, Intervals | Listed)  # noqa: S101  for the type checker
        rows = dict(zip(values, spec.labels_of(values), strict=True))
        return [rows[entry] if entry in rows else self.row_of(entry) for entry in entries]

    def may_release(self, entry: str) -> bool:
        """Whether the released column may have this label, on any level."""
        if isinstance(self.hierarchy, Listed):
            return any(entry in row for row in self.listed_rows)
        return entry in self.reasons or self.hierarchy.may_release(entry)

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """The values and labels that a steward lists, and what stands for none."""
        return (*self.reasons, *self.hierarchy.declared_texts)

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        reasons = f"without a value: {', '.join(self.reasons)}" if self._adds_rows else ""
        return "; ".join(part for part in (self.hierarchy.describe(), reasons, self.why) if part)

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """Codes and reasons that could be taken for something else."""
        yield from super().find_faults(here)
        yield from find_code_faults(self.codes, here)
        if not self._adds_rows:
            return
        spec = self.hierarchy
        at: Path = (*here, "codes" if self.codes else "missing")
        if isinstance(spec, Listed):
            if set(self.codes) & set(spec.values):
                yield at, "a code is among the hierarchy's values too.", "Name it in one of them."
            unlisted = [reason for reason in self.reasons if reason not in spec.values]
            if unlisted and spec.levels > 1 and len({row[-1] for row in spec.rows}) > 1:
                what = f"'{unlisted[0]}' has no place: the hierarchy does not end in one label."
                yield at, what, "Add a level with * for all values, or list it among them with its labels."
            taken = [reason for reason in unlisted if reason in spec.declared_texts]
        else:
            taken = [reason for reason in self.reasons if spec.may_release(reason)]
        if taken:
            yield at, f"'{taken[0]}' reads like one of the hierarchy's labels.", "Call the reason something else."

    def examples(self, most: int) -> list[Any]:
        """Entries that may occur, or numbers all over a domain, or one that the hierarchy covers; and what stands for none."""
        entries = self.hierarchy.examples(most)
        if not self._adds_rows:
            return entries
        is_number = isinstance(self.hierarchy, Intervals)
        return [*entries, *(self.reason_points if is_number else [reason for reason in self.reasons if reason not in entries])]

    def find_reason(self, units: int) -> str | None:
        """The reason that stands so many steps above the lower end of its domain; None where a value does."""
        assert isinstance(self.hierarchy, Intervals)  # noqa: S101  for the type checker
        number = units - self.hierarchy.exact_grid.width - 1
        return self.reasons[number] if number >= 0 else None
