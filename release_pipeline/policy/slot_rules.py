"""What slots must agree on with the rest of a policy: nothing that is released may show exactly who is empty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from release_pipeline.policy.families import find_family
from release_pipeline.policy.kinds import in_slots
from release_pipeline.policy.options import AnyOptions
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.sections import Person
from release_pipeline.policy.text import Problem

_EQUAL = "or declare records_per_release in their place, for a claim that does not protect how many records one has."


def fill_reasons(parts: Parts) -> Parts:
    """The parts with the reason of empty slots in every masked column, where the method could publish it."""
    if not _has_slots(parts) or (parts.protect is not None and not _counts(parts.protect)):
        return parts
    return replace(parts, columns=in_slots(parts.columns))


def check_slots(parts: Parts) -> Iterator[Problem]:
    """Slots need masked columns that are counted by value, and nothing else may be released."""
    if not _has_slots(parts):
        return
    if parts.protect is not None and not _counts(parts.protect):
        what = f"{parts.protect.method} gives every record a number, and an empty slot has none."
        yield ("person", "slots"), what, f"Use dp-cdf or dp-table, which count empty slots, {_EQUAL}"
    for name in parts.kept:
        what = f"'{name}' is released as it is, and would show exactly which slots are empty."
        yield ("columns", name, "do"), what, f"Mask or drop it (tables count by values of dropped columns, too), {_EQUAL}"
    for name, column in parts.noise.items():
        if column.role == "weight":
            what = f"an empty slot stands for nobody, and '{name}' says how many others every record stands for."
            yield ("columns", name, "role"), what, f"Give it the role confidential or drop it, {_EQUAL}"
    for name, table in parts.tables.items():
        if table.weight is not None:
            what = f"an empty slot stands for nobody, and '{table.weight}' says how many others every record stands for."
            yield ("tables", name, "weight"), what, f"Count without weights, {_EQUAL}"


def _has_slots(parts: Parts) -> bool:
    return isinstance(parts.person, Person) and parts.person.slots is not None


def _counts(protect: AnyOptions) -> bool:
    return find_family(protect).publishes_counts
