"""What published files contain besides their cells: labels, and in files of Stata and SPSS the reasons why a record has no value.

For a number that may be missing these two formats hold the reason in the cell itself (`.a` with a label in Stata, a user-missing
code with one in SPSS), so they need no second column for it. For a text they cannot, and the second column stays.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, TypeAlias

from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.sections import Suppress, SuppressClasses
from release_pipeline.policy.kinds import AnyColumn, CountedColumn
from release_pipeline.policy.kinds.base import (
    BLANK,
    SUPPRESSED,
    CodedColumn,
    ColumnKind,
    LabelledColumn,
    LabelledEntries,
    ReleasedAs,
    number_of_code,
    reason_column,
)
from release_pipeline.policy.values.formats import name_some
from release_pipeline.policy.values.periods import NumberReading
from release_pipeline.policy.values.text import Problem
from release_pipeline.sentences import POLICY

SurveyFormat: TypeAlias = Literal["dta", "sav"]
SURVEY_FORMATS: tuple[SurveyFormat, ...] = ("dta", "sav")
DISCRETE = 3  # codes of SPSS that may be anywhere; more are a range, in which no value may be
LEAST_OF_STATA, MOST_OF_STATA = -2_147_483_647, 2_147_483_620  # whole numbers of 32 bits; above are its reasons
EXACT = 2**53  # up to here a double has every whole number
_FIRST = {"dta": datetime(1960, 1, 1), "sav": datetime(1582, 10, 14)}  # moments are numbers from here on
_LETTER = re.compile(r"\.([a-z])")  # a code of Stata for no value


def name_data(form: str, files: int = 1) -> list[str]:
    """Return the names of the files that have the rows of a release in a format, so many of them, in order."""
    return [f"data.{form}"] if files == 1 else [f"data.part-{number:04}.{form}" for number in range(1, files + 1)]


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file. `reasons`: for a number in a file of Stata or SPSS, the cell for each reason for no value: a letter, or
    a code as a decimal. `decimals`: how many a number has. `is_narrow`: whether all numbers are whole numbers of 32 bits, as in
    Stata. Dates and times are numbers there, of days or milliseconds in Stata and of seconds in SPSS."""

    name: str
    kind: ReleasedAs
    label: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    decimals: int = 0
    is_narrow: bool = False


def number_of_moment(moment: datetime, kind: ReleasedAs, form: SurveyFormat) -> int:
    """Return the number for a date or a time in such a file."""
    return (moment - _FIRST[form]) // _unit_of(kind, form)


def moment_of_number(number: float, kind: ReleasedAs, form: SurveyFormat) -> datetime:
    """Return the date or time for a number."""
    return _FIRST[form] + int(number) * _unit_of(kind, form)


def _unit_of(kind: ReleasedAs, form: SurveyFormat) -> timedelta:
    if form == "sav":
        return timedelta(seconds=1)
    return timedelta(days=1) if kind == "date" else timedelta(milliseconds=1)


def labels_of(column: ColumnKind) -> Mapping[str, str]:
    """Return the labels of a column's entries, in a fixed order."""
    return column.ordered_labels if isinstance(column, LabelledEntries) else {}


def may_be_blanked(column: ColumnKind, suppress: Suppress | SuppressClasses | None) -> bool:
    """Whether cells of a column may be blank because their group was small."""
    return column.may_be_blanked and isinstance(suppress, Suppress)


def list_columns(
    columns: Mapping[str, AnyColumn],
    suppress: Suppress | SuppressClasses | None,
    form: SurveyFormat,
) -> tuple[FileColumn, ...]:
    """Return the columns of a file in this format, in order."""
    in_file: list[FileColumn] = []
    released = {name: part for name, part in columns.items() if isinstance(part, LabelledColumn)}
    for name, column in released.items():
        kind = column.released_as
        is_text = kind == "text"
        has_codes = isinstance(column, CodedColumn) and column.separate_reasons and not is_text
        reasons = _place_reasons(column, suppress, form) if isinstance(column, CodedColumn) and has_codes else {}
        how = None if is_text else column.reading
        decimals = max(0, -int(how.step.normalize().as_tuple().exponent)) if isinstance(how, NumberReading) else 0
        numbers = [] if is_text else list(map(int, column.value_texts))
        is_narrow = bool(numbers) and all(LEAST_OF_STATA <= number <= MOST_OF_STATA for number in numbers)
        in_file.append(FileColumn(name, kind, column.label or "", labels_of(column), reasons, decimals, is_narrow))
        if column.separate_reasons and is_text:
            in_file.append(FileColumn(reason_column(name), "text"))
    return tuple(in_file)


def _place_reasons(column: CodedColumn, suppress: Suppress | SuppressClasses | None, form: SurveyFormat) -> dict[str, str]:
    """Return the cell for each reason: the code that the policy gives it if the format has it, else the next free one. Codes are
    taken in a fixed order, because the canonical form of a policy has no other."""
    codes: dict[str, list[str]] = {}
    for code, reason in sorted(column.codes.items()):
        codes.setdefault(reason, []).append(code)
    reasons = [*codes, *([BLANK] if column.keeps_blanks and BLANK not in codes else [])]
    reasons += [SUPPRESSED] if may_be_blanked(column, suppress) else []
    wished = {reason: codes.get(reason, []) for reason in reasons}
    return _place_letters(wished) if form == "dta" else _place_numbers(wished, column)


def _place_letters(wished: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return a letter of Stata for each reason; an empty text if there are none left."""
    placed: dict[str, str] = {}
    for reason, codes in wished.items():
        letters = [match[1] for code in codes if (match := _LETTER.fullmatch(code))]
        placed |= {reason: letters[0]} if letters else {}
    free = iter(sorted(set(string.ascii_lowercase) - set(placed.values())))
    return {reason: placed.get(reason) or next(free, "") for reason in wished}


def _place_numbers(wished: Mapping[str, Sequence[str]], column: CodedColumn) -> dict[str, str]:
    """Return a code of SPSS for each reason: different from all values of the column, and if codes are a range, all below it."""
    low, high, values = _values_of(column)
    is_range = len(wished) > DISCRETE
    placed: dict[str, Decimal] = {}
    for reason, codes in wished.items():
        for code in codes:
            number = number_of_code(code)
            is_whole = isinstance(number, Decimal) and abs(number) < EXACT and number == number.to_integral_value()
            if isinstance(number, Decimal) and is_whole and _is_free(number, low, high, values, is_range=is_range):
                placed.setdefault(reason, number)
    below = Decimal(int(min(low, *placed.values(), Decimal(0)))) - 1
    for reason in wished:
        if reason not in placed:
            placed[reason], below = below, below - 1
    return {reason: format(placed[reason].to_integral_value(), "f") for reason in wished}


def _values_of(column: CodedColumn) -> tuple[Decimal, Decimal, frozenset[Decimal] | None]:
    """The least and the largest value that a record may have, as SPSS has them; all of them where they are listed."""
    how = column.reading
    if isinstance(how, NumberReading) and how.clock is not None:
        low, high = (Decimal(number_of_moment(how.clock.moment(float(end)), "moment", "sav")) for end in (how.low, how.high))
        return low, high, None
    if isinstance(how, NumberReading):
        return how.low, how.high, None
    values = frozenset(map(Decimal, column.value_texts))
    return min(values), max(values), values


def _is_free(number: Decimal, low: Decimal, high: Decimal, values: frozenset[Decimal] | None, *, is_range: bool) -> bool:
    if is_range:
        return number < low
    return number not in values if values is not None else not low <= number <= high


def describe_labels(columns: Mapping[str, AnyColumn]) -> Iterator[str]:
    """Yield each column with labels, in one line."""
    for name, column in columns.items():
        if isinstance(column, LabelledColumn):
            entries = name_some(f"{entry} = {label}" for entry, label in labels_of(column).items())
            if column.label is not None and entries:
                yield f"{name}: {POLICY('label.with', label=column.label, entries=entries)}"
            elif column.label is not None or entries:
                yield f"{name}: {column.label or entries}"


# Texts that a spreadsheet takes for a formula when it opens a CSV: it would compute them instead of showing them, and a malicious
# one can send away the content of other cells. What may be released is declared, so the rule is one of the policy: no such text
# gets into a CSV. Texts are not prefixed instead: every other program would read a different value.


_BEGINNINGS = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")  # the last four: full-width, taken for the first by some
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|-+")  # computed, it and dashes are unchanged

# Not at a comma: a text with one is in quotes.
_CELLS_END = re.compile(r"[;\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")  # where some locale or program begins another cell
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cf", "Cc"})


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may take the text, or a part of it, for a formula if it splits cells at other separators than
    ours.

    >>> is_formula("=1+1"), is_formula("-8"), is_formula("+49 30"), is_formula("a=b"), is_formula("-"), is_formula("a;=b")
    (True, False, True, False, False, True)
    """
    return _begins_formula(text.lstrip(" ")) or any(_begins_formula(_strip(part)) for part in _CELLS_END.split(text))


def _begins_formula(text: str) -> bool:
    return text.startswith(_BEGINNINGS) and _NUMBER.fullmatch(text) is None


def _strip(part: str) -> str:
    """Return the text without invisible characters and quotes at its ends: some programs drop them before they look for a
    formula."""
    seen = [index for index, letter in enumerate(part) if letter != '"' and unicodedata.category(letter) not in _UNSEEN]
    return part[seen[0] : seen[-1] + 1] if seen else ""


def find_formulas(columns: Mapping[str, ColumnKind]) -> dict[str, str]:
    """Return the released columns, in rows or in tables, whose name or declared texts include a formula, each with the first such
    text."""
    formulas: dict[str, str] = {}
    for name, column in columns.items():
        texts = [text for text in (name, *column.declared_texts) if is_formula(text)]
        if texts and (column.is_released or isinstance(column, CountedColumn)):
            formulas[name] = texts[0]
    return formulas


def check_formulas(parts: Parts) -> Iterator[Problem]:
    """Yield a problem for each column in whose CSV a spreadsheet would find a formula."""
    if parts.publish is None or not parts.complete:
        return
    formulas = find_formulas(parts.columns) if "csv" in parts.publish.formats else {}
    if formulas:
        name, *others = formulas
        more = f"; so it is in {name_some(others)}" if others else ""
        what = f"a spreadsheet takes '{formulas[name]}' of {name} for a formula when it opens data.csv{more}."
        yield ("publish", "formats"), what, "Rename it in the source, or release no CSV (formats: [parquet])."
