"""Columns of categories, one of those that are listed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from release_pipeline.policy.kinds.base import (
    BLANK,
    CodedColumn,
    LabelledEntries,
    MissingCategory,
    ReleasedAs,
    ReleasedRole,
    cell_of_reason,
    number_of_code,
)
from release_pipeline.policy.values.periods import ListReading
from release_pipeline.policy.values.scalars import Category, Option, Why, unique
from release_pipeline.policy.values.text import Path, Problem

_WHOLE = re.compile("-?[0-9]{1,19}")
_LETTER = re.compile(r"\.[A-Za-z_]")  # of Stata and SAS: no value, of one of several kinds


class ListedColumn(CodedColumn, LabelledEntries):
    """Each record has one of the declared `values`, or none for a declared reason."""

    role: ReleasedRole
    values: Annotated[
        tuple[Category, ...],
        Field(min_length=1),
        AfterValidator(unique),
        Option(hint="List the categories that may occur."),
    ]
    missing: Literal["fail", "keep"] | MissingCategory = "fail"

    @property
    def integers(self) -> bool:
        """Whether the released column is one of whole numbers."""
        return all(isinstance(value, int) for value in self.values)

    @property
    def filled(self) -> str | None:
        """The category that missing entries become, if one may be missing; of kept ones what stands for them here."""
        if self.keeps_blanks:
            return self.blank
        return str(self.missing.category) if isinstance(self.missing, MissingCategory) else None

    @property
    def blank(self) -> str:
        """What stands for a blank within the pipeline: no entry of the source is that."""
        if not self.integers:
            return ""
        return str(min(int(entry) for entry in (*self.values, *self.codes) if _WHOLE.fullmatch(str(entry))) - 1)

    @property
    def stand_ins(self) -> dict[str, str]:
        """What stands within the pipeline for codes that are no whole numbers, in a column of these: a letter of Stata, as `.a`.
        Codes are taken in one order, whatever that of the file."""
        letters = sorted(code for code in self.codes if not _WHOLE.fullmatch(code)) if self.integers else []
        below = int(self.blank) if letters else 0
        return {code: str(below - number) for number, code in enumerate(letters, start=1)}

    @property
    def reason_of(self) -> dict[str, str]:
        """The reason of each entry that is no value, by what stands for it within the pipeline."""
        stand_ins = self.stand_ins
        return {
            **{stand_ins.get(code, code): reason for code, reason in self.codes.items()},
            **({self.blank: BLANK} if self.keeps_blanks else {}),
        }

    @property
    def reason_entries(self) -> Mapping[str, str]:
        """The entry of each reason; the first, where several codes have the same."""
        return {reason: entry for entry, reason in reversed(self.reason_of.items())}

    @property
    def entries(self) -> tuple[str, ...]:
        """What stands within the pipeline for each declared value, and behind these for each reason to have none."""
        first = self.reason_entries
        return (*map(str, self.values), *(first[reason] for reason in self.reasons))

    def name_entry(self, number: int) -> str:
        """The value of this number; behind the values, the cell of the reason of this number."""
        beyond = number - len(self.values)
        return str(self.values[number]) if beyond < 0 else cell_of_reason(self.reasons[beyond])

    def most_values(self, *, clamps: bool) -> int:
        """The entries, and a blank."""
        return len(self.entries) + 1

    @property
    def reading(self) -> ListReading:
        """How the source's column is read."""
        values = tuple(dict.fromkeys([*(str(value) for value in self.values), *self.codes]))
        return ListReading(
            values=values,
            filled=self.filled,
            integers=self.integers,
            stand_ins=tuple(self.stand_ins.items()),
        )

    @property
    def released_as(self) -> ReleasedAs:
        """The type of the released column."""
        return "whole number" if self.integers else "text"

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """Its categories, and the reasons for none."""
        return (*(() if self.integers else (str(value) for value in self.values)), *self.reasons)

    @property
    def value_texts(self) -> tuple[str, ...]:
        """Its values; a code is none."""
        return tuple(map(str, self.values))

    @property
    def ordered_labels(self) -> Mapping[str, str]:
        """The labels in the order of the values."""
        return {entry: self.labels[entry] for entry in map(str, self.values) if entry in self.labels}

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from super().find_faults(here)
        if set(self.codes) & {str(value) for value in self.values}:
            yield (*here, "codes"), "a code is among the values too.", "Name it in one of them."
        if self.integers and not all(_WHOLE.fullmatch(code) or _LETTER.fullmatch(code) for code in self.codes):
            what = "the values are whole numbers, and a code is neither one nor a letter of Stata, as .a."
            yield (*here, "codes"), what, "Put the values in quotes, so that they are texts."
        elif self.integers and any(int(entry) < -(2**63) for entry in (*self.stand_ins.values(), *self.reason_of)):
            what = "a value is so far below zero that nothing is left to stand for what is no value."
            yield (*here, "codes"), what, "Put the values in quotes, so that they are texts."
        if isinstance(self.missing, MissingCategory) and self.missing.category not in self.values:
            yield (*here, "missing"), "the category for missing entries is not among the values.", "Add it to values."

    def _describe_entries(self) -> str:
        reasons = f", or none: {', '.join(self.reasons)}" if self.reasons else ""
        return f"one of {len(self.values)} declared values{reasons}"

    def examples(self, most: int) -> list[Any]:
        """Entries that may occur: all of them, and what stands for the reasons for none."""
        entries = [*(str(value) for value in self.values), *self.reason_of]
        return [int(entry) for entry in entries] if self.integers else entries


# Columns of categories, released as they are.


def is_weight(value: int | str) -> bool:
    """Whether a category can be how many others a record stands for."""
    number = number_of_code(str(value))
    return isinstance(number, Decimal) and number > 0


TELLS = "whoever knows how the sample was drawn knows the stratum by it, so that it counts as a quasi-identifier"


class KeepColumn(ListedColumn):
    """Released as it is; with `swap` each entry in a row of the same block of alike people, drawn at random."""

    is_kept: ClassVar[bool] = True

    do: Literal["keep", "swap"]
    why: Why

    @property
    def may_be_blanked(self) -> bool:
        """Of a quasi-identifier; of a weight not, without which a record would stand for nobody."""
        return self.role == "quasi"

    @property
    def is_swapped(self) -> bool:
        """Whether entries change places within blocks."""
        return self.do == "swap"

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        caution = f"{TELLS}; " if self.role == "weight" else ""
        done = "swapped within blocks" if self.is_swapped else "released as it is"
        return f"{done}: {self._describe_entries()}; {caution}{self.why}"

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from super().find_faults(here)
        if self.is_swapped and self.role != "confidential":
            what = f"a column of role {self.role} keeps its place: blocks lie within the groups of kept quasi-identifiers."
            yield (*here, "do"), what, "Say do: keep; swap is for role confidential."
        if self.role == "weight" and not all(is_weight(value) for value in self.values):
            yield (*here, "values"), "a weight is a number above 0.", "List the weights that may occur."


# Columns of categories that no record brings along: rows are made of noisy counts of them. Of
# numbers that is `NoiseColumn`.


MOST_VALUES = 2_000  # of one column: each is a cell that is counted


class SynthesiseColumn(ListedColumn):
    """Synthetic: nobody's entry, one of the declared `values` or a declared reason for none."""

    do: Literal["synthesise"]
    why: Annotated[Why | None, Option(hint="Say why analysts need the column.")] = None

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        return f"synthetic: {self._describe_entries()}{f'; {self.why}' if self.why else ''}"

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from super().find_faults(here)
        if self.role == "weight":
            what = "a weight is a number, and synthetic rows are no sample that one could belong to."
            yield (*here, "role"), what, "Drop the column, or give it the role confidential."
        if len(self.values) > MOST_VALUES:
            what = f"there are {len(self.values):,} values, and each is counted: {MOST_VALUES:,} at the most."
            yield (*here, "values"), what, "Merge rare ones first (derive: {categories: ...}), or drop the column."
