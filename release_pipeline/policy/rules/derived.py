"""What recomputed columns must agree on with the others: all that they are made of is published, and can be read there as the
function needs it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from release_pipeline.policy.file.derivations import Between, Derived, Merge, list_leaves, moment_of, order_derivations
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.sections import Person
from release_pipeline.policy.kinds import (
    AnyColumn,
    CountedColumn,
    GeneraliseColumn,
    KeepColumn,
    ListedColumn,
    MissingCategory,
    NoiseColumn,
    RecomputeColumn,
)
from release_pipeline.policy.kinds.base import RECOGNISED, number_of_code
from release_pipeline.policy.values.formats import ask_for_near, name_some
from release_pipeline.policy.values.text import Path, Problem

ANEW = "Give this one a share of its own (do: noise), or derive it of columns that are kept or masked."


def check_recomputed(parts: Parts) -> Iterator[Problem]:
    """Every column that cannot be made of what is published."""
    ordered = order_derivations(parts.derive)
    for name in parts.recomputed:
        if name not in parts.derive:
            what = f"'{name}' is no derived column, and of what it would be made anew nobody knows."
            yield ("columns", name, "do"), what, "Say it under derive, or choose keep, noise or drop."
        elif name in ordered:  # of a circle the derivations tell
            how = parts.derive[name]
            faults = [fault for column in how.inputs for fault in _check_input(parts, name, how, column)]
            yield from faults
            yield from _check_labels(parts.columns[name], name, how)
            if not faults:
                yield from _check_role(parts, name)


def _check_labels(column: AnyColumn, name: str, how: Derived) -> Iterator[Problem]:
    """Labels are of texts that it is made of, all of which the derivation lists."""
    labels = column.labels if isinstance(column, RecomputeColumn) else {}
    listed = how.outputs or ()
    if unknown := [entry for entry in labels if entry not in listed]:
        what = f"there is a label of {name_some(unknown)}, which no released record may have."
        known = f"Label what it is made: {name_some(listed)}." if listed else "Leave labels out: it has no listed entries."
        yield ("columns", name, "labels"), what, known


def _check_input(parts: Parts, name: str, how: Derived, column: str) -> Iterator[Problem]:
    here: Path = ("columns", name, "do")
    if column in parts.drop or (column in parts.columns and not parts.columns[column].is_released):
        yield here, f"'{name}' would be made of '{column}', which is not published.", ANEW
        return
    declared = parts.columns.get(column)
    if isinstance(how, Between):
        yield here, f"'{name}' is what lies between two dates, which is not made anew of published ones.", ANEW
    elif isinstance(declared, NoiseColumn) and declared.dated is not None:
        yield here, f"'{name}' would be made of '{column}', which is masked and published as dates.", ANEW
    elif isinstance(declared, GeneraliseColumn):
        yield here, f"'{name}' would be made of '{column}', whose published entries are labels of a hierarchy.", ANEW
    elif isinstance(declared, NoiseColumn):
        yield from _check_masked(parts, name, how, column, declared)
    elif isinstance(declared, ListedColumn):
        yield from _check_entries(name, how, column, [str(value) for value in declared.values], declared)
    elif isinstance(declared, RecomputeColumn) and column in parts.derive:
        yield from _check_chain(name, how, column, parts.derive[column])


def _check_masked(parts: Parts, name: str, how: Derived, column: str, declared: NoiseColumn) -> Iterator[Problem]:
    """A masked number is no entry and no date; and it must not be taken for a code."""
    if how.reads != "number":
        what, instead = ("an entry", "Use bands.") if how.reads == "entry" else ("a date", ANEW)
        yield ("columns", name, "do"), f"'{column}' is masked: a number, and {what} is needed.", instead
        return
    low, high = declared.domain
    everywhere = parts.protect is not None and not parts.protect.clamps
    for code in how.codes:
        number = number_of_code(code)
        if isinstance(number, Decimal) and (everywhere or low <= number <= high):
            what = f"a masked value of '{column}' may be {code} by chance, and would be taken for none."
            yield (
                ("derive", name, "codes"),
                what,
                f"Name the code with '{column}', or keep it out of the domain, with clamp: yes.",
            )


def _check_entries(name: str, how: Derived, column: str, entries: list[str], declared: AnyColumn) -> Iterator[Problem]:
    """Each entry that is published and no code must be read as what is needed."""
    here: Path = ("columns", name, "do")
    if how.reads != "entry" and isinstance(getattr(declared, "missing", None), MissingCategory):
        yield here, f"'{column}' has a category for missing entries, and a {how.reads} is needed.", "Use missing: keep there."
        return
    for entry in entries:
        if entry in how.codes or _is_read(how, entry):
            continue
        if isinstance(how, Merge):
            yield ("derive", name, "into"), f"'{entry}' of '{column}' is in no group.", "Put it into one, or name another: other."
        else:
            yield here, f"'{entry}' of '{column}' is no {how.reads}, and one is needed.", ANEW
        return


def _check_chain(name: str, how: Derived, column: str, made: Derived) -> Iterator[Problem]:
    if how.reads == "entry":
        if not made.is_text:
            yield ("columns", name, "do"), f"'{column}' is a number that is made anew, and an entry is needed.", "Use bands."
        elif made.outputs is not None:
            yield from _check_entries(name, how, column, list(made.outputs), RecomputeColumn(do="recompute", role="quasi"))
        elif isinstance(how, Merge) and how.other is None:
            yield ("derive", name), f"which periods there may be of '{column}' is not listed.", "Name another group: other."


def _is_read(how: Derived, entry: str) -> bool:
    if isinstance(how, Merge):
        return how.other is not None or entry in how.groups
    if how.reads == "date":
        return moment_of(entry) is not None
    number = number_of_code(entry)
    return isinstance(number, Decimal) and number.is_finite()


def _check_role(parts: Parts, name: str) -> Iterator[Problem]:
    """What is made of others helps to recognise somebody no more than they do: those that are published exactly must count as
    quasi-identifiers where it does."""
    if parts.columns[name].role not in RECOGNISED:
        return
    masks = parts.protect is not None and parts.protect.spec.is_noisy
    for leaf in list_leaves(parts.derive, parts.recomputed, name):
        column = parts.columns.get(leaf)
        exact = isinstance(column, KeepColumn) or (isinstance(column, NoiseColumn) and not masks)
        if column is not None and exact and column.role not in RECOGNISED:
            what = f"'{name}' is a quasi-identifier and made of '{leaf}', which is published as it is and is said to be none."
            yield ("columns", name, "role"), what, f"Give '{leaf}' the role quasi, or '{name}' the role confidential."


# What derived columns must agree on with the others.


def check_derivations(parts: Parts) -> Iterator[Problem]:
    """Every derivation of what is not there, of itself, or of what cannot be read so; and every one whose column is not declared,
    or cannot have what comes of it."""
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
    yield from check_recomputed(parts)


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
