"""Entries that are no value, each for a reason: codes that a source has in the place of values, and blanks.

Within the pipeline a reason is one more entry of its column. What is published has an empty cell in its place, and the reason in
a column of its own beside it, so that nobody takes a code for a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated

from pydantic import Field

from release_pipeline.policy.declared import Option
from release_pipeline.policy.kinds.labels import LabelledColumn
from release_pipeline.policy.scalars import Code, Reason
from release_pipeline.policy.text import Path, Problem

BLANK = "blank"  # the reason of one, where it is kept
SUPPRESSED = "suppressed"  # why a cell is empty that had a value
MOST_CODES = 50  # of one column
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


Codes = Annotated[
    dict[Code, Reason],
    Field(max_length=MOST_CODES),
    Option(hint="Name each code with what it means, like {-8: refused}."),
]


class CodedColumn(LabelledColumn):
    """A column whose entries may be no value. `codes`: what stands in the source in the place of a value, with its reason;
    `missing: keep` does the same for blanks."""

    codes: Codes = Field(default_factory=dict[str, str])

    @property
    def keeps_blanks(self) -> bool:
        """Whether blanks are released as such."""
        return getattr(self, "missing", "fail") == "keep"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why an entry may be no value: each reason once, in the order of the file, and that of blanks behind them."""
        return tuple(dict.fromkeys([*self.codes.values(), *[BLANK] * self.keeps_blanks]))

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """The reasons, which are published."""
        return self.reasons

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """Reasons that could be taken for something else, and codes that are written twice."""
        yield from super().find_faults(here)
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


def cell_of_reason(reason: str) -> str:
    """How the cell of a reason is named beside cells of numbers."""
    return f"missing: {reason}"


def reason_column(name: str) -> str:
    """The column beside a published one that says why its cells are empty."""
    return f"{name}_missing"
