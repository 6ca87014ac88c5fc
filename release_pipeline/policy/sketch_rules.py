"""What a sketch of the data must agree on with the columns of a policy."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from release_pipeline.policy.formats import ask_for_near, decimal_text
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn, pick
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.sketch import ColumnSketch
from release_pipeline.policy.text import Path, Problem

_ALL = Decimal(1)
_SOME = Decimal("0.000001")


def check_sketch(parts: Parts) -> Iterator[Problem]:
    """What a sketch says of columns that there are not, or that they cannot have."""
    sketch = parts.shape
    if sketch is None or not parts.complete:
        return
    numbers, listed = pick(parts.columns, NoiseColumn), pick(parts.columns, ListedColumn)
    for name, said in sketch.columns.items():
        here: Path = ("shape", "columns", name)
        if name in numbers:
            yield from _check_number(here, said, numbers[name])
        elif name in listed:
            yield from _check_listed(here, said, listed[name])
        else:
            known = {**numbers, **listed}
            otherwise = "Leave it out: it is not released as numbers or listed values."
            yield here, f"'{name}' is no column that a table is made up of.", ask_for_near(name, known, otherwise)


def _check_number(here: Path, said: ColumnSketch, column: NoiseColumn) -> Iterator[Problem]:
    if said.shares:
        yield (*here, "shares"), "shares are of listed values.", "Say at, for single numbers."
    if column.dated is not None and (said.quantiles or said.at):
        yield here, "of dates no quantiles are sketched: they are even over the domain.", "Leave it out."
        return
    low, high = column.domain
    for key, values in (("quantiles", said.quantiles.values()), ("at", said.at)):
        if outside := [value for value in values if not low <= value <= high]:
            told = decimal_text(outside[0])
            yield (*here, key), f"{told} is outside the domain.", "Records there are moved to its ends: say what is left of them."
    for reason in said.missing:
        if reason not in column.reasons:
            known = ", ".join(column.reasons) or "none"
            yield (*here, "missing"), f"'{reason}' is no reason of this column.", f"There are: {known}."
    if sum([*said.at.values(), *said.missing.values()], Decimal(0)) > _ALL:
        yield here, "these are more than all records.", "Shares of at and missing add up to 100% at the most."


def _check_listed(here: Path, said: ColumnSketch, column: ListedColumn) -> Iterator[Problem]:
    for key in ("quantiles", "at", "missing"):
        if getattr(said, key):
            yield (*here, key), f"{key} is for numbers.", "Say shares, of the listed values."
    known = [*map(str, column.values), *column.reasons]
    for value in said.shares:
        if value not in known:
            yield (*here, "shares"), f"'{value}' is not among its values.", ask_for_near(value, known, "Name one of them.")
    total = sum(said.shares.values(), Decimal(0))
    if total > _ALL + _SOME or (total < _ALL - _SOME and not set(known) - said.shares.keys()):
        yield (*here, "shares"), f"these add up to {decimal_text(total * 100)}%.", "They are of all records: 100%."
