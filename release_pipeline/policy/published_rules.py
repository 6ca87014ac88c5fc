"""What files of Stata and SPSS cannot hold is an error of the policy, with the way out: nothing is cut, renamed or rounded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from release_pipeline.policy.derivations import Derived, order_derivations
from release_pipeline.policy.kinds import AnyColumn, GeneraliseColumn, ListedColumn, NoiseColumn, RecomputeColumn
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.published import (
    EXACT,
    LEAST_OF_STATA,
    MOST_OF_STATA,
    SURVEY_FORMATS,
    FileColumn,
    SurveyFormat,
    list_columns,
)
from release_pipeline.policy.text import Path, Problem

_PROGRAM = {"dta": "Stata", "sav": "SPSS"}
_LONGEST_NAME = {"dta": 32, "sav": 64}  # of Stata in letters, of SPSS in bytes
_LONGEST_TEXT = 2045  # bytes of a cell
_LARGEST = 10**300
_LETTERS = {"dta": r"[^\W\d]\w*", "sav": r"[^\W\d_][\w.]*"}
_NAMES = {  # words that mean something else in a command
    "dta": "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip strL using with",
    "sav": "ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH",
}
_STRING_TYPE = re.compile(r"str[0-9]+")


def check_published(parts: Parts) -> Iterator[Problem]:
    """Of each of these formats what it cannot hold; and that an open one is beside it."""
    wanted = parts.publish.formats if parts.publish is not None else ()
    forms: list[SurveyFormat] = [form for form in SURVEY_FORMATS if form in wanted]
    if forms and not {"parquet", "csv"} & set(wanted):
        what = "there is no format that every program reads."
        yield ("publish", "formats"), what, "Add csv or parquet: files of Stata and SPSS go beside it."
    ordered = order_derivations(parts.derive)
    if not parts.complete or any(name not in ordered for name in parts.recomputed):
        return  # others say what is wrong
    for form in forms:
        columns = list_columns(parts.columns, parts.derive, parts.suppress, form)
        yield from _check_names([column.name for column in columns], form)
        for column in columns:
            if (source := parts.columns.get(column.name)) is not None:
                cells = _texts_of(source, parts.derive.get(column.name))
                for what, remedy in _check_column(column, source, cells, form):
                    yield _place(column.name, what), f"{_PROGRAM[form]} cannot hold it: {what}", remedy


def _place(name: str, what: str) -> Path:
    return ("columns", name, "labels") if what.startswith("the label of") else ("columns", name)


def _check_names(names: list[str], form: SurveyFormat) -> Iterator[Problem]:
    reserved = set(_NAMES[form].split())
    seen: dict[str, str] = {}
    for name in names:
        written = name if form == "dta" else name.upper()
        size = len(name) if form == "dta" else len(name.encode())
        why = ""
        if size > _LONGEST_NAME[form]:
            why = f"it has more than {_LONGEST_NAME[form]} {'letters' if form == 'dta' else 'bytes'}"
        elif re.fullmatch(_LETTERS[form], name) is None or name.endswith("."):
            why = "it has other signs than letters, digits and _, or begins with a digit"
        elif written in reserved or (form == "dta" and _STRING_TYPE.fullmatch(name)):
            why = "it is a word of its commands"
        elif (other := seen.setdefault(name.casefold(), name)) != name:
            why = f"it differs from '{other}' in upper and lower case alone"
        if why:
            what = f"{_PROGRAM[form]} takes no column of the name '{name}': {why}."
            yield ("publish", "formats"), what, f"Rename it in the source, or release no {form}."


def _texts_of(source: AnyColumn, how: Derived | None) -> set[str]:
    """The texts that a column may have, as they are declared."""
    if isinstance(source, RecomputeColumn) and how is not None:
        return set(how.outputs or ())
    return set(source.declared_texts) if isinstance(source, ListedColumn | GeneraliseColumn) else set()


def _check_column(column: FileColumn, source: AnyColumn, cells: set[str], form: SurveyFormat) -> Iterator[tuple[str, str]]:
    """What is wrong and what to do, of one column."""
    without = f"Release no {form}, or"
    if form == "dta" and len(column.label) > 80:
        yield "its label has more than 80 letters.", f"{without} shorten it."
    if form == "sav" and len(column.label.encode()) > 256:
        yield "its label has more than 256 bytes.", f"{without} shorten it."
    texts = [*column.labels.values(), *column.reasons]
    if form == "sav" and any(len(text.encode()) > 120 for text in texts):
        yield "the label of a value, or a reason, has more than 120 bytes.", f"{without} shorten it."
    if form == "dta" and column.labels and column.kind == "text":
        what = "the label of a text: it labels whole numbers alone."
        yield what, f"{without} release whole numbers in place of texts, or leave the labels out."
    if form == "sav" and any(abs(int(code)) >= EXACT for code in column.reasons.values()):
        yield (
            "it leaves no room for codes of its reasons: its least value is below -2^53.",
            f"{without} declare a narrower domain.",
        )
    if "" in column.reasons.values():
        yield "it has more reasons for no value than there are letters, 26.", f"{without} give several codes one reason."
    yield from _check_values(column, source, cells, form, without)


def _check_values(
    column: FileColumn, source: AnyColumn, cells: set[str], form: SurveyFormat, without: str
) -> Iterator[tuple[str, str]]:
    if column.kind == "text":
        if any(len(cell.encode()) > _LONGEST_TEXT for cell in cells):
            yield f"a value has more than {_LONGEST_TEXT:,} bytes.", f"{without} shorten it in the source."
        if any("\0" in cell or cell != cell.rstrip(" ") for cell in cells):
            yield "a value ends with a space, or has a character 0, which are lost.", f"{without} clean it in the source."
    elif isinstance(source, NoiseColumn) and max(map(abs, source.domain)) > _LARGEST:
        yield "its domain goes beyond the largest number there.", f"{without} declare a narrower one."
    elif isinstance(source, ListedColumn):
        if any(abs(int(value)) > EXACT for value in source.values):
            yield "a whole number lies beyond 2^53, and would be rounded.", f"{without} put the values in quotes: texts."
        if form == "dta" and any(not LEAST_OF_STATA <= int(value) <= MOST_OF_STATA for value in column.labels):
            yield "the label of a value beyond 32 bits.", f"{without} leave it out."
