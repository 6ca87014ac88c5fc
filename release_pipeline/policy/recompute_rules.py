"""What recomputed columns must agree on with the others: all that they are made of is published, and can be read there as the
function needs it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from release_pipeline.policy.derivations import Between, Derived, Merge, list_leaves, moment_of, order_derivations
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import (
    AnyColumn,
    GeneraliseColumn,
    KeepColumn,
    ListedColumn,
    MissingCategory,
    NoiseColumn,
    RecomputeColumn,
)
from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.kinds.missing import number_of_code
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.text import Path, Problem

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
