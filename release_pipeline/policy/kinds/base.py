"""What every kind of columns says of itself. Each kind has its options, what is wrong with them by themselves, how the source's
column is read, and its line in the plan."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, StrictStr

from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.basis.dates import Clock
from release_pipeline.policy.values.formats import name_some
from release_pipeline.policy.values.periods import NumberReading, Reading
from release_pipeline.policy.values.scalars import Category, Code, Frozen, Option, Reason
from release_pipeline.policy.values.text import Path, Problem

Role: TypeAlias = Literal["identifier", "quasi", "confidential", "weight"]
ReleasedAs: TypeAlias = Literal["number", "whole number", "text", "date", "moment"]
ROLE = Option(hint="Say identifier, quasi, confidential or weight.")
ReleasedRole = Annotated[Literal["quasi", "confidential", "weight"], ROLE]
RECOGNISED = ("quasi", "weight")  # roles of columns that could help to recognise somebody: a weight reveals the stratum


class MissingCategory(Frozen):
    """Missing entries become this category, which `values` must list."""

    category: Category


class ColumnKind(Frozen):
    """A column under `do`. `missing_form`: what `missing` may be other than fail. `is_kept`: whether it is released with its
    record and without noise, so that it makes groups, of which small ones are suppressed."""

    missing_form: ClassVar[type[Frozen]] = MissingCategory
    is_released: ClassVar[bool] = True
    is_kept: ClassVar[bool] = False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why an entry may be no value."""
        return ()

    @property
    def reading(self) -> Reading | None:
        """How the source's column is read; None where its values are not."""
        return None

    @property
    def exact_grid(self) -> Grid | None:
        """The grid that its numbers are moved onto; None where it has no numbers, or no such grid."""
        return None

    @property
    def outside_domain(self) -> str | None:
        """What becomes of numbers outside the declared domain: clamp or fail; None of a column without one."""
        return self.reading.outside if isinstance(self.reading, NumberReading) else None

    @property
    def released_as(self) -> ReleasedAs:
        """The type of the released column."""
        return "text"

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """The texts that may be released as they are declared: categories and labels."""
        return ()

    @property
    def may_be_blanked(self) -> bool:
        """Whether its cells are blanked where a group is small."""
        return False

    @property
    def is_swapped(self) -> bool:
        """Whether entries change places within blocks."""
        return False

    @property
    def domain_texts(self) -> tuple[str, str] | None:
        """The ends of the declared domain that released numbers have, as people write them."""
        return None

    @property
    def grid_text(self) -> str | None:
        """The step of their grid, likewise."""
        return None

    @property
    def value_texts(self) -> tuple[str, ...]:
        """The declared values that released records may have, where they are listed."""
        return ()

    def may_release(self, entry: str) -> bool:
        """Whether released records may have an entry that is not among them."""
        return False

    @property
    def atom_texts(self) -> tuple[str, ...]:
        """The declared numbers that readers count."""
        return ()

    @property
    def clock(self) -> Clock | None:
        """How its numbers count days or seconds; None where they are not of dates or times."""
        return None

    @property
    def separate_reasons(self) -> tuple[str, ...]:
        """Why a cell may have no value, where a column of its own says so in the published table."""
        return ()

    @property
    def reason_entries(self) -> Mapping[str, str | float]:
        """What stands in a cell of the pipeline for each of these reasons."""
        return {}

    @property
    def is_coded(self) -> bool:
        """Whether entries may be no value, and are released as such."""
        return bool(self.separate_reasons)

    @property
    def is_delivered_as_number(self) -> bool:
        """Whether the source's cells are numbers for the policy's own suite."""
        return False

    def most_values(self, *, clamps: bool) -> int | None:
        """How many different cells may be released at most; None where nothing bounds that. `clamps`: numbers stay in their
        domain."""
        return None

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


# What a column and its entries are called: for readers, who see `sex` and 2 and cannot know what
# they mean. Labels are of the policy and never of the source; what `init` found there is a
# proposal.


LONGEST_LABEL, LONGEST_WORDS = 200, 4000
MOST_LABELS = 10_000  # of one column
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _tidy(label: str) -> str:
    """A label on one line, without what nobody sees."""
    if any(unicodedata.category(letter) in _UNSEEN for letter in label):
        raise ValueError("must have no line ends, and no characters that are not seen")
    if label != label.strip():
        raise ValueError("must not begin or end with a space")
    return unicodedata.normalize("NFC", label)


def _flow(text: str) -> str:
    """A text as one paragraph: the lines of the file are joined."""
    joined = " ".join(text.split())
    if not joined:
        raise ValueError("must have words")
    return _tidy(joined)


Label = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_LABEL), AfterValidator(_tidy)]
Words = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_WORDS), AfterValidator(_flow)]


class LabelledColumn(ColumnKind):
    """A released column. `label`: what it has, for its readers; `description`: what there is to know of it; `unit`: what its
    numbers count or measure; `question`: what people were asked, word for word."""

    label: Annotated[Label | None, Option(hint="Say in a few words what the column has.")] = None
    description: Annotated[Words | None, Option(hint="Say what there is to know of the column.")] = None
    unit: Annotated[Label | None, Option(hint="Say what the numbers count or measure.")] = None
    question: Annotated[Words | None, Option(hint="Say what people were asked, word for word.")] = None


class LabelledEntries(LabelledColumn):
    """A released column of entries. `labels`: what they mean."""

    labels: Annotated[
        dict[Code, Label],
        Field(max_length=MOST_LABELS),
        Option(hint="Name each value with what it means, like {1: male, 2: female}."),
    ] = Field(default_factory=dict[str, str])

    @property
    def listed_entries(self) -> frozenset[str]:
        """The entries that released records may have, where they are listed."""
        return frozenset(self.value_texts or self.declared_texts)

    @property
    def ordered_labels(self) -> Mapping[str, str]:
        """The labels in one order, however they were listed."""
        return dict(sorted(self.labels.items()))

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """Labels of what no record has, and labels that do not tell entries apart."""
        yield from super().find_faults(here)
        listed = self.listed_entries
        unknown = [entry for entry in self.labels if entry not in listed and not self.may_release(entry)]
        if unknown:
            what = f"there is a label of {name_some(unknown)}, which no released record may have."
            remedy = "Label declared values alone; the reason that `codes` gives for a code is its label."
            yield (*here, "labels"), what, remedy
        same = [label for label, count in Counter(self.labels.values()).items() if count > 1]
        if same:
            what = f"two values have the label '{same[0]}', so that readers cannot tell them apart."
            yield (*here, "labels"), what, "Give each a label of its own."


# Entries that are no value, each for a reason: codes that a source has in the place of values, and
# blanks.
#
# Within the pipeline a reason is one more entry of its column. What is published has an empty cell
# in its place, and the reason in a column next to it, so that nobody takes a code for a number.


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
    def separate_reasons(self) -> tuple[str, ...]:
        """All of them."""
        return self.reasons

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """The reasons, which are published."""
        return self.reasons

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """Reasons that could be taken for something else, and codes that are written twice."""
        yield from super().find_faults(here)
        yield from find_code_faults(self.codes, here)


def find_code_faults(codes: Mapping[str, str], here: Path) -> Iterator[Problem]:
    """What is wrong with the codes of a column."""
    if SUPPRESSED in codes.values():
        yield (*here, "codes"), f"'{SUPPRESSED}' is why a cell is empty that had a value.", "Call the reason something else."
    if len({number_of_code(code) for code in codes}) < len(codes):
        yield (*here, "codes"), "one code stands there twice, written in two ways.", "Name each once."


def number_of_code(code: str) -> Decimal | str:
    """What is compared with entries: a number, or a text that is not one."""
    try:
        return Decimal(code) if _DECIMAL.fullmatch(code.strip(" ")) else code
    except InvalidOperation:
        return code


def cell_of_reason(reason: str) -> str:
    """How the cell of a reason is named among cells of numbers."""
    return f"missing: {reason}"


def reason_column(name: str) -> str:
    """The name of the column that says why cells of a published one are empty."""
    return f"{name}_missing"
