"""What expectations must agree on with the columns that they are about, so that each can be judged, and none is idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from release_pipeline.policy.expectations import Comparison, Condition, Expectation, Total, Unique
from release_pipeline.policy.formats import ask_for_near
from release_pipeline.policy.hierarchies import Dates, Intervals, Listed, Prefixes
from release_pipeline.policy.kinds import (
    AnyColumn,
    DropColumn,
    GeneraliseColumn,
    ListedColumn,
    NoiseColumn,
    RecomputeColumn,
)
from release_pipeline.policy.text import Path, Problem

Columns: TypeAlias = Mapping[str, AnyColumn]


def find_idle_and_unknown(
    expected: Mapping[str, Expectation],
    columns: Columns,
    *,
    names: tuple[str, ...],
    dropped: tuple[str, ...],
    release_column: str | None,
) -> Iterator[Problem]:
    """Every rule that names a column which is not read, reads it as what it is not, or can never be broken. `columns`: those that
    are valid by themselves; `names`: all that are declared."""
    for name, rule in expected.items():
        for path, column in _named(rule):
            if column not in names and names:
                yield ("expect", name, *path), *_not_read(column, names, dropped, release_column)
        yield from _compared_with_itself(name, rule)
        yield from _kinds(name, rule, columns)


def _named(rule: Expectation) -> Iterator[tuple[Path, str]]:
    """Where a rule names its columns."""
    match rule:
        case Comparison():
            yield ("compare", 0), rule.compare[0]
            yield ("compare", 2), rule.compare[2]
        case Total():
            yield from ((("sum", place), column) for place, column in enumerate(rule.sum))
            yield ("equals",), rule.equals
        case Unique():
            yield from ((("unique", place), column) for place, column in enumerate(rule.unique))
        case Condition():
            yield _subject_path(rule), rule.subject
            yield _given_path(rule), rule.given[0]


def _subject_path(rule: Condition) -> Path:
    return ("missing",) if rule.missing else ("present",) if rule.present else ("values", rule.subject)


def _given_path(rule: Condition) -> Path:
    return "when" if rule.when else "only_when", rule.given[0]


def _not_read(column: str, names: tuple[str, ...], dropped: tuple[str, ...], release_column: str | None) -> tuple[str, str]:
    if column == release_column:
        return f"'{column}' is the release column, which is the same in all records of a release.", "Name another one."
    if column in dropped:
        return (
            f"'{column}' is under drop, and what is there is not read.",
            "Declare it under columns instead, with its role and do: drop.",
        )
    remedy = ask_for_near(column, names, "Declare it there; with do: drop if it is not to be released.", cutoff=0.6)
    return f"'{column}' is not declared under columns.", remedy


def _compared_with_itself(name: str, rule: Expectation) -> Iterator[Problem]:
    if isinstance(rule, Unique) or len(set(rule.columns)) == len(rule.columns):
        return
    what = "a column is compared with itself."
    where = "compare" if isinstance(rule, Comparison) else "equals" if isinstance(rule, Total) else _given_path(rule)[0]
    yield ("expect", name, where), what, "Name different columns."


def _kinds(name: str, rule: Expectation, columns: Columns) -> Iterator[Problem]:
    """Columns that are read as numbers, dates or entries must be declared as such; a dropped one may hold anything."""
    here: Path = ("expect", name)
    if isinstance(rule, Comparison | Total):
        dates = isinstance(rule, Comparison) and rule.read_as == "dates"
        for path, column in _named(rule):
            if column in columns and not (_may_be_dates if dates else _may_be_numbers)(columns[column]):
                what = f"'{column}' is not a column of {'dates' if dates else 'numbers'}, as it is declared."
                yield (*here, *path), what, "Name another one, or change read_as." if "compare" in path else "Name another one."
    elif isinstance(rule, Condition):
        column, entries = rule.given
        yield from _entries((*here, *_given_path(rule)), column, columns.get(column), entries)
        if rule.listed is not None:
            yield from _entries((*here, "values", rule.subject), rule.subject, columns.get(rule.subject), rule.listed)
        elif (subject := columns.get(rule.subject)) is not None and not _may_be_missing(subject):
            what = f"'{rule.subject}' is never missing: its own rule is missing: fail."
            remedy = "Remove the expectation, or declare what stands for a missing value."
            yield (*here, *_subject_path(rule)), what, remedy


def _may_be_numbers(column: AnyColumn) -> bool:
    match column:
        case DropColumn() | RecomputeColumn():
            return True
        case NoiseColumn():
            return column.dated is None
        case ListedColumn():
            return all(_number(value) is not None for value in column.values)
        case GeneraliseColumn():
            if isinstance(column.hierarchy, Listed):
                return all(_number(value) is not None for value in column.hierarchy.values)
            return isinstance(column.hierarchy, Intervals)


def _may_be_dates(column: AnyColumn) -> bool:
    match column:
        case DropColumn() | RecomputeColumn():
            return True
        case NoiseColumn():
            return column.dated is not None
        case ListedColumn():
            return all(_is_date(str(value)) for value in column.values)
        case GeneraliseColumn():
            if isinstance(column.hierarchy, Listed):
                return all(_is_date(value) for value in column.hierarchy.values)
            return isinstance(column.hierarchy, Dates)


def _may_be_missing(column: AnyColumn) -> bool:
    return isinstance(column, DropColumn | RecomputeColumn) or column.missing != "fail"


def _entries(path: Path, name: str, column: AnyColumn | None, entries: tuple[int | str, ...]) -> Iterator[Problem]:
    """Entries that a column can have; those of an identifier would point at single people."""
    if column is None:
        return
    if column.role == "identifier":
        what = f"'{name}' is an identifier, and a rule about its entries would tell of single people."
        yield path, what, "Name a column with another role."
    elif is_read_as_number(column):
        for entry in entries:
            if _number(entry) is None:
                yield path, f"'{name}' is a column of numbers, and '{entry}' is none.", "List numbers."
    else:
        for entry in entries:
            if not _may_have(column, str(entry)):
                yield path, f"'{entry}' is not an entry that '{name}' declares.", "List entries that it may have."


def is_read_as_number(column: AnyColumn) -> bool:
    """Whether entries of a column are compared as numbers, so that 1 and 1.0 are one."""
    if isinstance(column, NoiseColumn):
        return column.dated is None
    return isinstance(column, GeneraliseColumn) and isinstance(column.hierarchy, Intervals)


def _may_have(column: AnyColumn, entry: str) -> bool:
    if isinstance(column, ListedColumn | GeneraliseColumn) and entry in column.codes:
        return True
    match column:
        case ListedColumn():
            return entry in map(str, column.values)
        case GeneraliseColumn(hierarchy=Listed() as spec):
            return entry in spec.values
        case GeneraliseColumn(hierarchy=(Prefixes() | Dates()) as spec):
            return spec.covers(entry)
        case _:
            return True


def _is_date(entry: str) -> bool:
    try:
        return bool(datetime.fromisoformat(entry)) and entry[4:5] == "-"
    except ValueError:
        return False


def _number(entry: int | str) -> Decimal | None:
    try:
        number = Decimal(entry)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
