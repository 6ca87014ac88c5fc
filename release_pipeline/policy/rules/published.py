"""Consistency rules between the tables of a policy and its columns, its method and its people."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.mechanisms.catalogue.spec import ZCDP
from release_pipeline.mechanisms.tables import MOST_CELLS, MOST_LEVELS
from release_pipeline.policy.file.options import AnyOptions, claim_of
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.published import (
    EXACT,
    LEAST_OF_STATA,
    MOST_OF_STATA,
    SURVEY_FORMATS,
    FileColumn,
    SurveyFormat,
    is_formula,
    list_columns,
)
from release_pipeline.policy.file.tables import OURS, Axis, Grouping, Table, Tabulation, name_of, weights_of
from release_pipeline.policy.kinds import (
    AnyColumn,
    CountedColumn,
    DropColumn,
    pick,
)
from release_pipeline.policy.values.formats import ask_for_near, name_some
from release_pipeline.policy.values.periods import NumberReading
from release_pipeline.policy.values.text import Path, Problem

MOST_TABLES = 50
_WEIGHED_BY = "Name the column with role: weight: kept, masked, or dropped with a domain and a grid."


def check_tables(parts: Parts) -> Iterator[Problem]:
    """Yield the faults of every table: its method, columns, cells and noise; and of every column that only tables use."""
    used = {column for table in parts.tables.values() for column in table.columns}
    for name in pick(parts.columns, CountedColumn):
        if name not in used:
            what = f"'{name}' is dropped, and no table counts by it: its values say nothing."
            yield ("columns", name, "values"), what, "Name it in a table's by, or remove values."
    if not parts.tables:
        return
    if len(parts.tables) > MOST_TABLES:
        yield ("tables",), f"there are {len(parts.tables)} tables, and a release has {MOST_TABLES} at the most.", "Remove some."
    if parts.protect is not None:
        yield from _check_method(parts, parts.protect)
    for name, table in parts.tables.items():
        yield from _check_table(parts, name, table)


def _check_method(parts: Parts, protect: AnyOptions) -> Iterator[Problem]:
    """Yield a problem if the method has no guarantee to add to, or one of another kind."""
    definition = claim_of(protect).definition
    if not definition.composes:
        what = (
            f"{protect.method} claims {definition.short}, which nothing adds up with: no sum would say what rows and tables tell."
        )
        yield ("tables",), what, "Remove them, or use a method with DP, zCDP or iDP, like dp-cdf."
        return
    for name, table in parts.tables.items():
        if table.by_rho and definition is not ZCDP:
            what = f"only under definition: zcdp is anything spent in rho; the rows claim {definition.short}."
            yield ("tables", name, "rho"), what, "Name an epsilon."
        if table.share.nano < MOST_LEVELS:
            yield ("tables", name), "it is left with nothing to spend.", "Use a larger epsilon."


def _check_table(parts: Parts, name: str, table: Table) -> Iterator[Problem]:
    here: Path = ("tables", name)
    checks = (_check_columns, _check_sum, _check_having, _check_weight)
    faults = [fault for check in checks for fault in check(parts, here, table)]
    yield from faults
    counted, noise = parts.counted_columns, parts.noise_columns
    if faults or any(column not in counted for column in table.columns) or (table.sum and table.sum not in noise):
        return
    weight = parts.columns.get(table.weight or "")
    if table.weight is not None and (weight is None or any(weight.find_faults(()))):
        return  # the column says so
    axes = [Axis.of(part, counted[name_of(part)]) for part in table.by]
    cells = sum(math.prod(len(axis.labels[min(level, len(axis.labels) - 1)]) for axis in axes) for level in _levels(axes))
    if cells > MOST_CELLS:
        what = f"it would have {cells:,} cells, and {MOST_CELLS:,} are the most."
        yield (*here, "by"), what, "Take fewer columns, or groups of their values."
        return
    if cells == len(_levels(axes)) and table.sum is None and table.weight is None and table.having is None:
        yield (*here, "by"), "it has one cell, whose count is the number of records, and that is public.", "Remove the table."
        return
    try:
        tabulation = Tabulation.of(name, table, counted, noise, weights_of(parts.columns))
        if not any(noise.amount for noise in tabulation.noise):
            what = "it has one cell, to which every record adds the same, and that is public."
            yield (*here, "by"), what, "Remove the table."
    except ReleasePipelineError as error:
        yield here, error.what, error.remedy
    values = {value for axis in axes for value in axis.values}  # `check_formulas` reports those
    for text in (label for axis in axes for level in axis.labels for label in level if label not in values):
        if is_formula(text):
            what = f"a spreadsheet takes the group '{text}' for a formula when it opens the table."
            yield (*here, "by"), what, "Give it another name."
            return


def _levels(axes: list[Axis]) -> range:
    return range(max(len(axis.labels) for axis in axes))


def _check_columns(parts: Parts, here: Path, table: Table) -> Iterator[Problem]:
    """Yield a problem for columns whose values are not declared, or that are neither kept nor in no row; and for groups that do
    not cover all values."""
    for number, part in enumerate(table.by):
        column = name_of(part)
        at = (*here, "by", number) if isinstance(part, str) else (*here, "by", number, "column")
        if column in OURS:
            yield at, f"a table has a column '{column}' of its own.", "Rename it in the source."
        if (fault := _find_unfit(parts, column)) is not None:
            yield at, *fault
        elif isinstance(part, Grouping) and column in parts.counted_columns:
            yield from _check_groups((*here, "by", number), part, {str(value) for value in parts.counted_columns[column].values})


def _find_unfit(parts: Parts, column: str) -> tuple[str, str] | None:
    """Why a column cannot make cells."""
    if column in parts.kept_columns and parts.kept_columns[column].reasons:
        why = "may have no value, and the cells of a table are declared values."
        return f"'{column}' {why}", "List its codes among the values, and blanks as one: missing: {category: NAME}."
    if column in parts.counted_columns:
        return None
    if column in parts.noise_columns:
        return (
            f"'{column}' is masked: its values are no labels.",
            "Add it up with sum, or count by derived bands of it: kept, or with do: drop and values.",
        )
    if column in parts.generalised_columns:
        return f"'{column}' is generalised.", "Keep the column, and group its values here."
    if column in parts.drop or column in parts.columns:
        what = f"'{column}' declares no values, which are the cells of a table."
        return what, "Declare its values with do: drop: it is in no row then, and tables count by it. Or keep it."
    if column in parts.names:
        return None  # a fault of the column, which says so
    known = name_some(parts.kept_columns) if parts.kept_columns else "none"
    return f"'{column}' is not declared under columns.", ask_for_near(column, parts.names, f"Columns with do: keep: {known}.")


def _check_groups(here: Path, part: Grouping, values: set[str]) -> Iterator[Problem]:
    grouped = {row[0] for row in part.rows}
    if missing := sorted(values - grouped):
        yield here, f"{name_some(missing)} of '{part.column}' is in no group.", "Put every declared value into one."
    if unknown := sorted(grouped - values):
        yield here, f"{name_some(unknown)} is no declared value of '{part.column}'.", "Group its values alone."
    if len(part.measured) > MOST_LEVELS:
        yield (*here, "levels"), f"it has more than {MOST_LEVELS} levels.", "Name those that the table needs."


def _check_sum(parts: Parts, here: Path, table: Table) -> Iterator[Problem]:
    """What is added up is a number of every record, within a declared domain."""
    if table.sum is None or table.sum in parts.noise_columns or (table.sum in parts.names and table.sum not in parts.columns):
        return
    known = name_some(parts.noise_columns) if parts.noise_columns else "none"
    why = "has no domain and grid that bound a sum" if table.sum in parts.columns else "is not declared under columns"
    otherwise = f"Columns with do: noise: {known}."
    remedy = otherwise if table.sum in parts.columns else ask_for_near(table.sum, parts.noise_columns, otherwise)
    yield (*here, "sum"), f"'{table.sum}' {why}.", remedy


def _check_having(parts: Parts, here: Path, table: Table) -> Iterator[Problem]:
    """Yield a problem unless `having` names a masked column in which some records may have no value."""
    name = table.having
    if name is None or (name in parts.names and name not in parts.columns):
        return
    at = (*here, "having")
    if name not in parts.noise_columns:
        what = "is not declared under columns" if name not in parts.columns else "is not masked"
        yield at, f"'{name}' {what}.", ask_for_near(name, parts.noise_columns, "Name a column with do: noise.")
    elif not parts.noise_columns[name].reasons:
        yield at, f"every record has a value in '{name}'.", "Leave out having: the table counts all records."


def _check_weight(parts: Parts, here: Path, table: Table) -> Iterator[Problem]:
    """Yield a problem unless the weight is the column of that role, and its declared weights bound what is added up."""
    name = table.weight
    if name is None or (name in parts.names and name not in parts.columns):
        return
    at = (*here, "weight")
    if name not in parts.columns:
        yield at, f"'{name}' is not declared under columns.", ask_for_near(name, parts.names, _WEIGHED_BY)
    elif parts.columns[name].role != "weight":
        yield at, f"'{name}' is no weight: its role is {parts.columns[name].role}.", _WEIGHED_BY
    elif name == table.sum:
        yield at, f"'{name}' would be multiplied by itself.", "Leave out sum: the weighted counts are the sums of the weight."
    elif isinstance(column := parts.columns[name], DropColumn) and column.domain is None:
        what = f"'{name}' is dropped without a domain and grid, which bound what a record adds."
        yield at, what, "Declare domain, grid and outside with the column: it is still not released."


# Content that files of Stata and SPSS cannot hold is an error of the policy, with a remedy: nothing is cut, renamed or rounded.


_PROGRAM = {"dta": "Stata", "sav": "SPSS"}
_LONGEST_NAME = {"dta": 32, "sav": 64}  # in letters for Stata, in bytes for SPSS
_LONGEST_TEXT = 2045  # bytes of a cell
_LARGEST = 10**300
_LETTERS = {"dta": r"[^\W\d]\w*", "sav": r"[^\W\d_][\w.]*"}
_NAMES = {  # words that mean something else in a command
    "dta": "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip strL using with",
    "sav": "ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH",
}
_STRING_TYPE = re.compile(r"str[0-9]+")


def check_published(parts: Parts) -> Iterator[Problem]:
    """Yield what each of these formats cannot hold; and a problem if there is no open format too."""
    wanted = parts.publish.formats if parts.publish is not None else ()
    forms: list[SurveyFormat] = [form for form in SURVEY_FORMATS if form in wanted]
    if forms and not {"parquet", "csv"} & set(wanted):
        what = "there is no format that every program reads."
        yield ("publish", "formats"), what, "Add csv or parquet: files of Stata and SPSS go beside it."
    if not parts.complete:
        return  # other rules report it
    for form in forms:
        columns = list_columns(parts.columns, parts.suppress, form)
        yield from _check_names([column.name for column in columns], form)
        for column in columns:
            if (source := parts.columns.get(column.name)) is not None:
                for what, remedy in _check_column(column, source, form):
                    path = ("columns", column.name, *(["labels"] if what.startswith("the label of") else []))
                    yield path, f"{_PROGRAM[form]} cannot hold it: {what}", remedy


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


def _check_column(column: FileColumn, source: AnyColumn, form: SurveyFormat) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with one column, and what to do."""
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
    yield from _check_values(column, source, form, without)


def _check_values(column: FileColumn, source: AnyColumn, form: SurveyFormat, without: str) -> Iterator[tuple[str, str]]:
    if column.kind == "text":
        cells = source.declared_texts
        if any(len(cell.encode()) > _LONGEST_TEXT for cell in cells):
            yield f"a value has more than {_LONGEST_TEXT:,} bytes.", f"{without} shorten it in the source."
        if any("\0" in cell or cell != cell.rstrip(" ") for cell in cells):
            yield "a value ends with a space, or has a character 0, which are lost.", f"{without} clean it in the source."
    elif isinstance(how := source.reading, NumberReading) and max(abs(how.low), abs(how.high)) > _LARGEST:
        yield "its domain goes beyond the largest number there.", f"{without} declare a narrower one."
    if column.kind == "whole number":
        if any(abs(int(value)) > EXACT for value in source.value_texts):
            yield "a whole number lies beyond 2^53, and would be rounded.", f"{without} put the values in quotes: texts."
        if form == "dta" and any(not LEAST_OF_STATA <= int(value) <= MOST_OF_STATA for value in column.labels):
            yield "the label of a value beyond 32 bits.", f"{without} leave it out."
