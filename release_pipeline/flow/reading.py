"""What `mask` and the governed pipeline read alike: which columns are needed, the counts about them, typed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from release_pipeline.errors import DataRefused
from release_pipeline.flow.expectations import count_broken
from release_pipeline.policy import Policy
from release_pipeline.policy.periods import PATTERN
from release_pipeline.policy.readings import ListReading, NumberReading, Reading, RuleReading
from release_pipeline.policy.sections import Person
from release_pipeline.stages.checks import Check, Facts, refusals
from release_pipeline.store.raw import RawTable
from release_pipeline.store.source import ReleaseFilter, SourceDoor, open_raw

NUMERIC = ("text", "number")  # kinds of columns of a source that numbers are read from
NO_RELEASES = {"missing": 0, "undeclared": 0}


def needed_columns(policy: Policy) -> list[str]:
    """The columns of the source that are read at all: those that are released, the person's, and those of expectations."""
    return [name for name in policy.columns if is_needed(policy, name)]


def is_needed(policy: Policy, name: str) -> bool:
    """Whether a column is read to be released, says whose record it is, or is one that an expectation is about."""
    is_person = isinstance(policy.person, Person) and policy.person.column == name
    return is_person or policy.columns[name].reading is not None or name in policy.expected_columns


def release_filter(policy: Policy, names: Mapping[str, str], release: str | None) -> ReleaseFilter | None:
    """What tells the records of one release from the others in the source, or None if all are of it."""
    column = policy.source.release_column
    return (names[column], release) if column is not None and release is not None else None


def count_releases(policy: Policy, source: SourceDoor, names: Mapping[str, str]) -> dict[str, int] | None:
    """How many records of the source have no release, or one that is not declared; None where releases are not told apart."""
    column = policy.source.release_column
    if column is None:
        return None
    with open_raw(source, {column: names[column]}) as table:
        if policy.every:
            return table.count_other_texts(column, PATTERN[policy.every])
        return table.count_categories(column, policy.release_names)


def collect_facts(policy: Policy, table: RawTable) -> Facts:
    """Counts about every column that a rule needs."""
    counts: dict[str, Mapping[str, int]] = {}
    for name, column in policy.columns.items():
        if name not in table.kinds:
            continue
        if column.reading is not None:
            counts |= _count(name, column.reading, table)
        elif isinstance(policy.person, Person) and name == policy.person.column:
            counts[name] = table.count_persons(name, allowed=policy.person.records_per_release)
    return Facts(table.count_records(), counts, table.kinds, count_broken(policy, table))


def _count(name: str, reading: Reading, table: RawTable) -> dict[str, Mapping[str, int]]:
    match reading:
        case NumberReading() as how:
            if table.kinds[name] not in NUMERIC:
                return {}
            low, high, fill = float(how.low), float(how.high), None if how.fill is None else float(how.fill)
            return {name: table.count_numbers(name, low=low, high=high, step=float(how.step), fill=fill)}
        case RuleReading(covers=covers, filled=filled):
            return {name: table.count_entries(name, lambda entry: covers(entry) or entry == filled, filled=filled)}
        case ListReading(values=values, filled=filled):
            return {name: table.count_categories(name, values, filled=filled)}


def typed_column(policy: Policy, name: str, table: RawTable) -> pa.Array | None:
    """A column of the source as the records have it: numbers, or entries, with what is declared for the missing ones; None where
    it is absent or of a type that cannot be read so, which the checks tell."""
    kind = table.kinds.get(name)
    if kind is None:
        return None
    match policy.columns[name].reading:
        case NumberReading() as how:
            if kind not in NUMERIC:
                return None
            numbers = table.numbers(name)
            if how.fill is not None:
                numbers = np.where(np.isnan(numbers), float(how.fill), numbers)
            return pa.array(numbers, from_pandas=how.keeps_missing)  # NaN stands for a missing one, which the checks have counted
        case RuleReading(filled=filled):
            return _fill(table.categories(name), filled)
        case ListReading(filled=filled, integers=integers):
            entries = _fill(table.categories(name), filled)
            return entries.cast(pa.int64()) if integers else entries
        case None:
            return None


def _fill(entries: pa.ChunkedArray, filled: str | None) -> pa.Array:
    """Entries with the declared category in the place of missing ones."""
    whole = entries.combine_chunks()
    return whole if filled is None else whole.fill_null(filled)


def refuse(name: str, checks: Sequence[Check]) -> None:
    """Raise `DataRefused` with a sentence for every check that found something."""
    findings = refusals(checks)
    if findings:
        count = f"{len(findings)} reasons" if len(findings) > 1 else "one reason"
        raise DataRefused(f"the data do not meet the policy, for {count}.", findings=tuple(findings), where=name)
