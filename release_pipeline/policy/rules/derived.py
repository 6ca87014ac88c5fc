"""Consistency rules for derived columns."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.file.derivations import Derived, order_derivations
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.sections import Person
from release_pipeline.policy.kinds import (
    AnyColumn,
    CountedColumn,
    ListedColumn,
    NoiseColumn,
)
from release_pipeline.policy.values.formats import ask_for_near
from release_pipeline.policy.values.text import Problem


def check_derivations(parts: Parts) -> Iterator[Problem]:
    """Yield a problem for every derivation from a missing column, from itself, or from a column that cannot be read that way; and
    for every one whose column is not declared, or cannot have the result."""
    ordered = order_derivations(parts.derive)
    for name, how in parts.derive.items():
        here = ("derive", name)
        if name in parts.drop or (parts.names and name not in parts.names):
            yield here, f"'{name}' is derived, and not under columns.", "Declare there what becomes of it, or remove it."
        if parts.source is not None and name == parts.source.release_column:
            yield here, "the release column is one of the source.", "Name the derived one otherwise."
        if isinstance(parts.person, Person) and name == parts.person.column:
            yield here, "persons are told apart by a column of the source.", "Name the derived one otherwise."
        if name not in ordered:
            yield here, f"'{name}' is derived of itself, by a circle.", "Derive it of columns of the source."
        for column in how.inputs:
            yield from _check_derived_input(parts, name, how, column)
        if (declared := parts.columns.get(name)) is not None:
            yield from _check_output(name, how, declared)


def _check_derived_input(parts: Parts, name: str, how: Derived, column: str) -> Iterator[Problem]:
    here = ("derive", name)
    declared = parts.columns.get(column)
    is_person = isinstance(parts.person, Person) and column == parts.person.column
    if is_person or (declared is not None and declared.role == "identifier"):
        yield here, f"'{column}' identifies people: nothing is derived of it.", "Derive it of a column that identifies nobody."
    elif column in parts.derive:
        if parts.derive[column].is_text and how.reads != "entry":
            yield here, f"'{column}' is derived as text, and a {how.reads} is needed.", "Derive it of a column of the source."
    elif parts.names and column not in (*parts.names, *parts.drop):
        is_release = parts.source is not None and column == parts.source.release_column
        what = "the release column tells releases apart, and nothing else" if is_release else "is no column of the source"
        remedy = "Declare it under columns or drop, or name another."
        yield here, f"'{column}': {what}.", remedy if is_release else ask_for_near(column, (*parts.names, *parts.drop), remedy)


def _check_output(name: str, how: Derived, column: AnyColumn) -> Iterator[Problem]:
    if isinstance(column, NoiseColumn) and column.dated is not None:
        what = f"'{name}' is derived as {'text' if how.is_text else 'numbers'}, and declared as a column of dates."
        yield ("columns", name, "domain"), what, "Mask the column that it is derived of, or declare what comes of it."
    elif isinstance(column, NoiseColumn) and how.is_text:
        yield ("columns", name, "do"), f"'{name}' is derived as text, and noise is for numbers.", "Keep or generalise it."
    if isinstance(column, ListedColumn | CountedColumn) and how.outputs is not None:
        lacking = [entry for entry in how.outputs if entry not in {str(value) for value in column.values}]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            yield ("columns", name, "values"), f"'{lacking[0]}'{more} may come of it, and values does not list it.", "Add it."
