"""Judges headers and counts against a policy. It never sees a cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from release_pipeline.policy.model import (
    KeepColumn,
    MissingCategory,
    NoiseColumn,
    Person,
    Policy,
    canonical_name,
    look_alike_key,
)

HEAVY_TIES = 0.5  # share of records with one and the same value from which a column is warned about


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts about a loaded source: of records, and per column by the name of the count."""

    records: int
    columns: Mapping[str, Mapping[str, int]]
    kinds: Mapping[str, str]


@dataclass(slots=True)
class Verdict:
    """What stops a release, and what only deserves a word."""

    refusals: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])


def match_header(header: Sequence[str], policy: Policy) -> tuple[dict[str, str], list[str]]:
    """The declared columns by the name they have in the file, and what is wrong with the header.

    Names are compared in NFC. A column of the file is named in a message only when the declared ones are mostly there: a file
    without a header would show its first record otherwise.
    """
    names = {canonical_name(name): name for name in header}
    missing = sorted(policy.declared - names.keys())
    extra = [name for name in names if name not in policy.declared]
    if len(missing) > len(policy.declared) / 2:
        return {}, [
            f"{len(missing)} of {len(policy.declared)} declared columns are not in the file. Is this the right file, "
            "and does it have a header?"
        ]
    refusals = list(_twins(header))
    refusals += [f"column {name}: declared, but not in the file." for name in missing]
    refusals += [f"column {name}: in the file, but not declared. Add it to columns, or to drop." for name in extra]
    return {name: names[name] for name in names if name in policy.declared}, refusals


def judge(facts: Facts, policy: Policy) -> Verdict:
    """Everything that the counts say against releasing these data under this policy."""
    verdict = Verdict()
    if facts.records == 0:
        verdict.refusals.append("there are no records.")
        return verdict
    verdict.refusals += _too_few(facts.records, policy)
    for name, column in policy.columns.items():
        if isinstance(column, NoiseColumn):
            verdict.refusals += _judge_numbers(name, column, facts)
            verdict.warnings += _warn_of_numbers(name, column, facts)
        elif isinstance(column, KeepColumn):
            verdict.refusals += _judge_categories(name, column, facts)
    if isinstance(policy.person, Person):
        verdict.refusals += _judge_persons(policy.person, facts)
    return verdict


def _twins(header: Sequence[str]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for position, name in enumerate(header, start=1):
        key = look_alike_key(name)
        if not key:
            yield f"column number {position} has no name."
        elif key not in seen:
            seen[key] = name
        elif canonical_name(seen[key]) == canonical_name(name):
            yield f"column {name}: stands in the header twice."
        else:
            yield f"columns {seen[key]} and {name}: look alike."


def _too_few(records: int, policy: Policy) -> Iterator[str]:
    least = max(policy.gates.min_rows or 1, 2 * (policy.protect.k or 0))
    if records < least:
        yield f"{records:,} records are fewer than the {least:,} that the policy asks for (min_rows, and never under 2 k)."


def _judge_numbers(name: str, column: NoiseColumn, facts: Facts) -> Iterator[str]:
    kind = facts.kinds[name]
    if kind not in ("text", "number"):
        yield f"column {name}: is of type {kind}, not a number."
        return
    counts = facts.columns[name]
    if counts["missing"] and isinstance(column.missing, str):
        yield f"column {name}: {_records(counts['missing'])} without a value, and missing is fail."
    if counts["not_a_number"]:
        yield f"column {name}: {_records(counts['not_a_number'])} where something else than a number stands."
    if counts["not_finite"]:
        yield f"column {name}: {_records(counts['not_finite'])} with NaN or an infinite number."
    outside = counts["below"] + counts["above"]
    if outside and column.outside == "fail":
        yield (
            f"column {name}: {_records(outside)} outside the declared domain "
            f"({counts['below']:,} below, {counts['above']:,} above), and outside is fail."
        )
    if counts["different"] == 1 and not (counts["missing"] or counts["not_a_number"]):
        yield f"column {name}: all records have the same value; publish it in the documentation and drop the column."


def _warn_of_numbers(name: str, column: NoiseColumn, facts: Facts) -> Iterator[str]:
    counts = facts.columns.get(name, {})
    outside = counts.get("below", 0) + counts.get("above", 0)
    if outside and column.outside == "clamp":
        yield f"column {name}: {_records(outside)} outside the declared domain, clamped to it."
    if counts.get("missing") and not isinstance(column.missing, str):
        yield f"column {name}: {_records(counts['missing'])} without a value, filled as declared."
    if counts.get("most_frequent", 0) >= HEAVY_TIES * facts.records:
        yield f"column {name}: heavy ties; at least half of the records share one value, so many clusters are constant."


def _judge_categories(name: str, column: KeepColumn, facts: Facts) -> Iterator[str]:
    counts = facts.columns[name]
    if counts["missing"] and not isinstance(column.missing, MissingCategory):
        yield f"column {name}: {_records(counts['missing'])} without a value, and missing is fail."
    if counts["undeclared"]:
        yield f"column {name}: {_records(counts['undeclared'])} with a category that values does not list."
    if counts["different"] == 1 and len(column.values) > 1 and not counts["missing"]:
        yield f"column {name}: all records have the same value; declare that one alone if it may be public, or drop the column."


def _judge_persons(person: Person, facts: Facts) -> Iterator[str]:
    counts = facts.columns[person.column]
    if counts["missing"]:
        yield f"column {person.column}: {_records(counts['missing'])} without a person."
    if counts["too_often"]:
        yield (
            f"column {person.column}: {counts['too_often']:,} persons have more than the {person.records_per_release} "
            "declared records (records_per_release)."
        )


def _records(count: int) -> str:
    return f"{count:,} record{'s' if count != 1 else ''}"
