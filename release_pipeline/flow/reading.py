"""What `mask` and the governed pipeline read alike: which columns are needed, the counts about them, typed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from release_pipeline.errors import DataRefused
from release_pipeline.policy import Policy
from release_pipeline.policy.hierarchies import Intervals, Listed
from release_pipeline.policy.kinds import DropColumn, GeneraliseColumn, KeepColumn, MissingCategory, NoiseColumn
from release_pipeline.policy.periods import PATTERN
from release_pipeline.policy.sections import Person
from release_pipeline.stages.checks import Check, Facts, refusals
from release_pipeline.stages.microaggregate import fill_missing
from release_pipeline.store.raw import RawTable
from release_pipeline.store.source import ReleaseFilter, SourceDoor, open_raw

NO_RELEASES = {"missing": 0, "undeclared": 0}


def needed_columns(policy: Policy) -> list[str]:
    """The columns of the source that are read at all: those that are released, and the person's."""
    return [name for name in policy.columns if is_needed(policy, name)]


def is_needed(policy: Policy, name: str) -> bool:
    """Whether a column is released or says whose record it is."""
    is_person = isinstance(policy.person, Person) and policy.person.column == name
    return is_person or policy.columns[name].do != "drop"


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
        if isinstance(column, NoiseColumn):
            if table.kinds[name] in ("text", "number"):
                low, high = (float(bound) for bound in column.domain)
                fill = None if isinstance(column.missing, str) else float(column.missing.fill)
                counts[name] = table.count_numbers(name, low=low, high=high, step=float(column.grid), fill=fill)
        elif isinstance(column, GeneraliseColumn):
            counts |= _count_generalised(name, column, table)
        elif isinstance(column, KeepColumn):
            filled = str(column.missing.category) if isinstance(column.missing, MissingCategory) else None
            counts[name] = table.count_categories(name, [str(value) for value in column.values], filled=filled)
        elif isinstance(policy.person, Person) and name == policy.person.column:
            counts[name] = table.count_persons(name, allowed=policy.person.records_per_release)
    return Facts(table.count_records(), counts, table.kinds)


def _count_generalised(name: str, column: GeneraliseColumn, table: RawTable) -> dict[str, Mapping[str, int]]:
    spec, filled = column.hierarchy, column.missing_entry
    if not isinstance(spec, Intervals):
        covers = frozenset(spec.values).__contains__ if isinstance(spec, Listed) else spec.covers
        return {name: table.count_entries(name, lambda entry: covers(entry) or entry == filled, filled=filled)}
    if table.kinds[name] not in ("text", "number"):
        return {}
    low, high = (float(bound) for bound in spec.domain)
    return {name: table.count_numbers(name, low=low, high=high, step=float(spec.grid), fill=None)}


def typed_column(policy: Policy, name: str, table: RawTable) -> pa.Array | None:
    """A column of the source as the records have it: numbers, or entries, with what is declared for the missing ones; None where
    it is absent or of a type that cannot be read so, which the checks tell."""
    column, kind = policy.columns[name], table.kinds.get(name)
    is_cut = isinstance(column, GeneraliseColumn) and isinstance(column.hierarchy, Intervals)
    numeric = is_cut or isinstance(column, NoiseColumn)
    if isinstance(column, DropColumn) or kind is None or (numeric and kind not in ("text", "number")):
        return None
    if isinstance(column, NoiseColumn):
        return pa.array(fill_missing(column, table.numbers(name)), from_pandas=False)
    if numeric:
        return pa.array(table.numbers(name), from_pandas=True)  # NaN stands for a missing one, which the checks have counted
    if isinstance(column, GeneraliseColumn):
        entries = table.categories(name).combine_chunks()
        return entries if column.missing_entry is None else entries.fill_null(column.missing_entry)
    return _kept_entries(column, table.categories(name))


def _kept_entries(column: KeepColumn, entries: pa.ChunkedArray) -> pa.Array:
    """A kept column in its declared type, missing entries in their declared category."""
    if isinstance(column.missing, MissingCategory):
        entries = entries.fill_null(str(column.missing.category))
    whole = entries.combine_chunks()
    return whole.cast(pa.int64()) if column.integers else whole


def refuse(name: str, checks: Sequence[Check]) -> None:
    """Raise `DataRefused` with a sentence for every check that found something."""
    findings = refusals(checks)
    if findings:
        count = f"{len(findings)} reasons" if len(findings) > 1 else "one reason"
        raise DataRefused(f"the data do not meet the policy, for {count}.", findings=tuple(findings), where=name)
