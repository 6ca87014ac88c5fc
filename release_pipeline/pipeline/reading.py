"""The reading that `mask` and the governed pipeline share: the needed columns, the counts about them, typed columns."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.errors import DataRefused
from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.policy import Policy
from release_pipeline.policy.file.sections import Person
from release_pipeline.policy.values.periods import PATTERN, ListReading, NumberReading, Reading, RuleReading
from release_pipeline.rows.checks import Check, Facts, refusals
from release_pipeline.rows.columns import PART, Parts
from release_pipeline.store.people import as_rows, count_persons, sort_people
from release_pipeline.store.raw import RawTable, ReleaseFilter, count_unread
from release_pipeline.store.source import SourceReader, open_raw

_compute: Any = pyarrow.compute  # its functions are made at run time
NO_RELEASES = {"missing": 0, "undeclared": 0}


def needed_columns(policy: Policy) -> list[str]:
    """Return the columns of the source that are read at all: those that are released, the person's, those of expectations, and
    the inputs of derived ones."""
    inputs = {column for how in policy.derive.values() for column in how.inputs}
    needed = [name for name in policy.columns if is_needed(policy, name) or name in inputs]
    return [name for name in (*needed, *sorted(inputs - set(needed))) if name not in policy.derive]


def is_needed(policy: Policy, name: str) -> bool:
    """Return whether a column is read: to be released, as the person's, or for an expectation."""
    return name == policy.person_column or policy.columns[name].reading is not None or name in policy.expected_columns


def release_filter(policy: Policy, names: Mapping[str, str], release: str | None) -> ReleaseFilter | None:
    """Return the filter for the records of one release in the source, or None if all belong to it."""
    column = policy.source.release_column
    return (names[column], release) if column is not None and release is not None else None


def count_releases(policy: Policy, source: SourceReader, names: Mapping[str, str]) -> dict[str, int] | None:
    """Return how many records of the source have no release, or one that is not declared; None where no column names releases."""
    column = policy.source.release_column
    if column is None:
        return None
    with open_raw(source, {column: names[column]}) as table:
        if policy.every:
            return table.count_other_texts(column, PATTERN[policy.every])
        return table.count_categories(column, policy.release_names)


def collect_facts(policy: Policy, table: RawTable, persons: Mapping[str, int] | None) -> Facts:
    """Return counts about every column that a rule needs; those of persons are known."""
    facts = count_columns(policy, dict.fromkeys(table.kinds, table), table.count_records(), persons)
    return replace(facts, unread=count_unread(table, policy.derive))


def count_people(policy: Policy, table: RawTable) -> dict[str, int] | None:
    """Return counts of persons, by hashes under a key that is used only here; None where no column has them."""
    if not isinstance(policy.person, Person) or policy.person.column not in table.kinds:
        return None
    hashes, records = table.persons(policy.person.column, secrets.token_bytes(32)), table.count_records()
    return count_persons(sort_people(map(as_rows, hashes), records), records=records, allowed=policy.person.records_per_release)


def count_columns(policy: Policy, tables: Mapping[str, RawTable], records: int, persons: Mapping[str, int] | None) -> Facts:
    """Return counts about single columns, each in the table that it is in."""
    counts: dict[str, Mapping[str, int]] = {}
    for name, column in policy.columns.items():
        if (table := tables.get(name)) is None:
            continue
        if column.reading is not None:
            counts |= _count(name, column.reading, table)
    return Facts(records, counts, {name: table.kinds[name] for name, table in tables.items()}, persons)


def _count(name: str, reading: Reading, table: RawTable) -> dict[str, Mapping[str, int]]:
    match reading:
        case NumberReading() as how:
            if not how.can_read(table.kinds[name]):
                return {}
            offset = 0 if how.clock is None else how.clock.offset
            counts = table.count_numbers(
                name,
                low=float(how.low + offset),
                high=float(how.high + offset),
                step=float(how.step),
                fill=None if how.fill is None else float(how.fill + offset),
                codes=list(how.coded_numbers),
                texts=list(how.coded_texts),
                unit=None if how.clock is None else how.clock.unit,
            )
            return {name: counts}
        case RuleReading(covers=covers, filled=filled, codes=reasons):
            known = {*reasons, filled}
            return {name: table.count_entries(name, lambda entry: covers(entry) or entry in known, filled=filled)}
        case ListReading(values=values, filled=filled):
            return {name: table.count_categories(name, values, filled=filled)}


def typed_column(policy: Policy, name: str, table: RawTable, *, only_declared: bool = False) -> pa.Array | None:
    """Return a column of the source as the records have it: numbers, or entries, with the declared value for the missing ones;
    None where it is absent or of an unreadable type, which the checks report. With `only_declared` entries that are not declared
    are null, where no check refuses them."""
    if not has_type(policy, name, table):
        return None
    match policy.columns[name].reading:
        case NumberReading() as how:
            numbers = _read_numbers(name, how, table)
            if how.has_points:
                numbers = _code(name, how, table, numbers)
            if how.fill is not None:
                numbers = np.where(np.isnan(numbers), float(how.fill), numbers)
            return pa.array(numbers, from_pandas=how.keeps_missing)  # NaN means missing, which the checks have counted
        case RuleReading(covers=covers, filled=filled, codes=reasons):
            entries = _fill(table.categories(name), filled)
            if only_declared:
                distinct = [entry for entry in entries.unique().to_pylist() if entry is not None]
                entries = _leave(entries, [str(entry) for entry in distinct if entry in {*reasons, filled} or covers(entry)])
            found = _compute.index_in(entries, value_set=pa.array(list(reasons), pa.string()))
            return _compute.coalesce(pa.array(list(reasons.values()), pa.string()).take(found), entries) if reasons else entries
        case ListReading(values=values, filled=filled, integers=integers, stand_ins=stand_ins):
            entries = _fill(table.categories(name), filled)
            if only_declared:
                entries = _leave(entries, [*map(str, values), *([] if filled is None else [filled])])
            for code, entry in stand_ins:
                entries = _compute.if_else(_compute.equal(entries, code), entry, entries)
            return entries.cast(pa.int64()) if integers else entries
        case None:
            return None


def read_delivered(policy: Policy, table: RawTable, name: str, *, is_calculated_with: bool = False) -> Any:
    """Return a column as it was delivered: numbers where the policy reads numbers, where a source with types has them in a column
    that is not released, and where an expectation calculates with entries that all are numbers; else texts."""
    column, kind = policy.columns[name], table.kinds[name]
    is_unread_number = column.reading is None and column.role != "identifier" and kind == "number"
    if is_unread_number or column.is_delivered_as_number:
        return table.numbers(name)
    texts = table.categories(name).to_pandas()
    if is_calculated_with and kind in ("text", "number"):
        numbers = table.numbers(name)
        if np.isfinite(numbers[texts.notna()]).all():
            return numbers
    return texts


def number_records(records: int) -> Iterator[Any]:
    """Yield the numbers of the records, part by part."""
    return (pa.array(np.arange(part.start, part.stop, dtype=np.int64)) for part in pieces(records, PART))


def typed_parts(policy: Policy, name: str, table: RawTable, records: int) -> Any:
    """Return a typed column that can be read, part by part, where there is more than one."""
    if records <= PART:
        return typed_column(policy, name, table)

    def make() -> Iterator[Any]:
        for part in pieces(records, PART):
            yield typed_column(policy, name, table.between(part.start, part.stop))

    nothing = typed_column(policy, name, table.between(0, 0))
    return Parts(None if nothing is None else nothing.type, make)


def has_type(policy: Policy, name: str, table: RawTable) -> bool:
    """Return whether a column is there, and of a type that can be read as the policy declares."""
    kind, reading = table.kinds.get(name), policy.columns[name].reading
    return kind is not None and reading is not None and (not isinstance(reading, NumberReading) or reading.can_read(kind))


def read_values(policy: Policy, name: str, table: RawTable) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the numbers of a column of the source as they came, and which of them are values: neither codes, nor missing for
    good; both (records,)."""
    how = policy.columns[name].reading
    if not isinstance(how, NumberReading):
        numbers = table.numbers(name)
        return numbers, np.ones(len(numbers), dtype=np.bool_)
    numbers = _read_numbers(name, how, table)
    is_code = np.isin(numbers, list(how.coded_numbers))
    if how.coded_texts:
        is_code |= _find_texts(name, list(how.coded_texts), table)
    if how.fill is not None:
        numbers = np.where(np.isnan(numbers), float(how.fill), numbers)
    return numbers, ~(is_code | np.isnan(numbers))


def _code(name: str, how: NumberReading, table: RawTable, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return numbers in their domain; entries without a value become the point that represents their reason."""
    coded = np.clip(numbers, float(how.low), float(how.high))
    if how.blank is not None:
        coded[np.isnan(numbers)] = how.blank
    for code, point in how.coded_numbers.items():
        coded[numbers == code] = point
    if how.coded_texts:
        for code, point in how.coded_texts.items():
            coded[_find_texts(name, [code], table)] = point
    return coded


def _find_texts(name: str, codes: Sequence[str], table: RawTable) -> npt.NDArray[np.bool_]:
    """Return which records have one of these entries."""
    return _compute.is_in(table.categories(name), value_set=pa.array(codes, pa.string())).to_numpy()


def _read_numbers(name: str, how: NumberReading, table: RawTable) -> npt.NDArray[np.float64]:
    """Return the numbers of a column as they came; of dates and times the units that they come after the first of the domain.
    There is one zero: a negative one would be sorted to any place among the others."""
    if how.clock is None:
        return table.numbers(name) + 0.0
    return table.numbers(name, unit=how.clock.unit) - how.clock.offset


def _fill(entries: pa.ChunkedArray, filled: str | None) -> pa.Array:
    """Return entries with the declared category in place of missing ones."""
    whole = entries.combine_chunks()
    return whole if filled is None else whole.fill_null(filled)


def _leave(entries: pa.Array, declared: Sequence[str]) -> pa.Array:
    """Return entries that are declared, null in place of others."""
    return _compute.if_else(
        _compute.is_in(entries, value_set=pa.array(declared, pa.string())), entries, pa.scalar(None, pa.string())
    )


def refuse(name: str, checks: Sequence[Check]) -> None:
    """Raise `DataRefused` with a sentence for every check that failed."""
    findings = refusals(checks)
    if findings:
        count = f"{len(findings)} reasons" if len(findings) > 1 else "one reason"
        refused = DataRefused(f"the data do not meet the policy, for {count}.", findings=tuple(findings), where=name)
        refused.families = tuple(dict.fromkeys(check.family for check in checks if check.failed))
        raise refused
