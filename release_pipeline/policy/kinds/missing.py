"""Entries that are no value, each for a reason: codes that a source has in the place of values, and blanks.

Within the pipeline a reason is one more entry of its column. What is published has an empty cell in its place, and the reason in
a column of its own beside it, so that nobody takes a code for a number.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Self

from pydantic import Field, PrivateAttr

from release_pipeline.policy.declared import Option
from release_pipeline.policy.kinds.base import ColumnKind
from release_pipeline.policy.kinds.labels import LabelledColumn
from release_pipeline.policy.scalars import Code, Reason
from release_pipeline.policy.text import Path, Problem

BLANK = "blank"  # the reason of one, where it is kept
EMPTY = "empty"  # the reason of every column of a slot that no record fills
SUPPRESSED = "suppressed"  # why a cell is empty that had a value
MOST_CODES = 50  # of one column
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


Codes = Annotated[
    dict[Code, Reason],
    Field(max_length=MOST_CODES),
    Option(hint="Name each code with what it means, like {-8: refused}."),
]


class SlottedColumn(ColumnKind):
    """A column that may be read of people or households with slots, which are empty where no record fills them."""

    _in_slots: bool = PrivateAttr(default=False)  # whether the policy has them: no option of the column, so in no hash

    def in_slots(self) -> Self:
        """The same column where slots may be empty."""
        column = self.model_copy()
        column._in_slots = True
        return column

    @property
    def has_slots(self) -> bool:
        """Whether slots may be empty; of reasons that is the last."""
        return self._in_slots


class CodedColumn(LabelledColumn, SlottedColumn):
    """A column whose entries may be no value. `codes`: what stands in the source in the place of a value, with its reason;
    `missing: keep` does the same for blanks."""

    codes: Codes = Field(default_factory=dict[str, str])

    @property
    def keeps_blanks(self) -> bool:
        """Whether blanks are released as such."""
        return getattr(self, "missing", "fail") == "keep"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why an entry may be no value: each reason once, in the order of the file, that of blanks behind them, and that of empty
        slots last."""
        ours = [BLANK] * self.keeps_blanks + [EMPTY] * self._in_slots
        return tuple(dict.fromkeys([*self.codes.values(), *ours]))

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """The reasons, which are published."""
        return self.reasons

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """Reasons that could be taken for something else, and codes that are written twice."""
        yield from super().find_faults(here)
        if self._in_slots and EMPTY in self.codes.values():
            yield (*here, "codes"), f"'{EMPTY}' is the reason of slots that no record fills.", "Call the reason something else."
        yield from find_code_faults(self.codes, here)


def find_code_faults(codes: Mapping[str, str], here: Path) -> Iterator[Problem]:
    """The same of the codes of any column."""
    if SUPPRESSED in codes.values():
        yield (*here, "codes"), f"'{SUPPRESSED}' is why a cell is empty that had a value.", "Call the reason something else."
    if len({number_of_code(code) for code in codes}) < len(codes):
        yield (*here, "codes"), "one code stands there twice, written in two ways.", "Name each once."


def number_of_code(code: str) -> Decimal | str:
    """What is compared with entries: a number, or a text that is none."""
    try:
        return Decimal(code) if _DECIMAL.fullmatch(code.strip(" ")) else code
    except InvalidOperation:
        return code


def name_empty(known: Collection[str]) -> str:
    """What stands for an empty slot within the pipeline among texts: none of those that are known."""
    return next(text for number in itertools.count() if (text := EMPTY + "*" * number) not in known)


def cell_of_reason(reason: str) -> str:
    """How the cell of a reason is named beside cells of numbers."""
    return f"missing: {reason}"


def reason_column(name: str) -> str:
    """The column beside a published one that says why its cells are empty."""
    return f"{name}_missing"
