"""Checks of headers and counts against the policy, for what must not occur in the data of a release. No cell is read here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from release_pipeline.mechanisms.basis.figures import LEAST_SHARE, count_things, format_percent, percent, show_share
from release_pipeline.mechanisms.basis.utility import Clamping
from release_pipeline.policy.families import find_family
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.sections import Person
from release_pipeline.policy.kinds.base import number_of_code
from release_pipeline.policy.values.formats import find_near
from release_pipeline.policy.values.periods import ListReading, NumberReading, RuleReading
from release_pipeline.policy.values.scalars import canonical_name, look_alike_key
from release_pipeline.sentences import REVIEWERS

TENS = 10  # to which counts of records are rounded up
LONGEST_NAME = 100  # a longer header, or one of several lines, may be data behind a quote that does not end
HEAVY_CLAMPING = 0.1  # share of a column's variance lost to clamping from which on there is a warning
HEAVY_TIES = 0.5  # share of records with one and the same value from which on there is a warning


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts about a loaded source: of records, and per column by the name of the count; of persons, where a column has them."""

    records: int
    columns: Mapping[str, Mapping[str, int]]
    kinds: Mapping[str, str]
    persons: Mapping[str, int] | None = None
    unread: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])  # by derived column and input


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must not occur: how often it did, and its messages. `passed`: the judgement of Great Expectations, where
    there is one."""

    family: str
    column: str
    fact: str
    count: int
    message: str
    passed: bool | None = None

    @property
    def failed(self) -> bool:
        """Return whether it occurred: by the library's judgement, or by the count where there is none."""
        return self.count > 0 if self.passed is None else not self.passed


FAMILIES = {
    "schema": "The source has exactly the declared columns, each once.",
    "roles": "Only columns that are released go on: no identifier, no dropped and no undeclared column.",
    "types": "Every number is a finite number.",
    "domains": "No number lies outside a declared domain whose policy is fail, and of others no more than may be clamped.",
    "missing": "Nothing is missing where missing is fail.",
    "person_unit": "Every record has a person, and nobody has more records than declared.",
    "categories": "Every category is declared, and no column holds one value only.",
    "size": "There are enough records.",
}
OWN_SUITE = "suite"


def families_of(policy: Policy) -> dict[str, str]:
    """Return the families of checks that a release of this policy must pass, and the message of each."""
    suite = {OWN_SUITE: "The steward's own suite of Great Expectations holds."}
    return {**FAMILIES, **suite} if policy.expectations else FAMILIES


def match_header(header: Sequence[str], policy: Policy) -> tuple[dict[str, str], list[Check]]:
    """Return the declared columns by the name they have in the file, and the checks of the header.

    Names are compared in NFC. A column that is not declared is named in a message only when all declared ones are there: a file
    without a header would show its first record otherwise.
    """
    names = {canonical_name(name): name for name in header}
    missing = sorted(policy.declared - names.keys())
    extra = [name for name in names if name not in policy.declared and name]
    shown = [name for name in extra if name.isprintable() and len(name) <= LONGEST_NAME]
    if len(missing) > len(policy.declared) / 2:
        what = (
            f"{len(missing)} of {len(policy.declared)} declared columns are not in the file. Is this the right file, "
            "and does it have a header?"
        )
        return {}, [Check("schema", "", "header", len(missing), what)]
    checks = [Check("schema", "", "columns", 0, "")]
    checks += [Check("schema", name, "repeated", 1, message) for name, message in _twins(header)]
    checks += [Check("schema", name, "absent", 1, f"column {name}: {_describe_absent(name, shown)}") for name in missing]
    checks += [Check("schema", name, "absent", 0, f"column {name}: it is there.") for name in names if name in policy.declared]
    if extra and (missing or len(shown) < len(extra)):
        count = f"{len(extra)} columns of the file are" if len(extra) > 1 else "1 column of the file is"
        checks.append(Check("schema", "", "columns", len(extra), f"{count} not declared."))
    else:
        what = "in the file, but not declared. Add it to columns, or to drop."
        taken = "in the file, and derived too. Name the derived one otherwise."
        told = [(name, taken if name in policy.derive else what) for name in shown]
        checks += [Check("schema", name, "columns", 1, f"column {name}: {words}") for name, words in told]
    return {name: names[name] for name in names if name in policy.declared}, checks


def _describe_absent(name: str, undeclared: Sequence[str]) -> str:
    """Return a message on an absent column, with the column that was meant, if one has nearly the same name, and what to do."""
    near = find_near(name, undeclared, cutoff=0.8)
    if near is None:
        return "declared, but not in the file. Deliver it, or take it out of the policy."
    return f"declared, but not in the file, which has '{near}'. Correct the name here or there."


def check_release_column(counts: Mapping[str, int], policy: Policy) -> list[Check]:
    """Return the checks for records that no declared release takes: without a release they stop everything, of another release
    they do not."""
    name = policy.source.release_column or ""
    missing = counts["missing"]
    return [Check("missing", name, "without_release", missing, f"column {name}: {say_records(missing)} without a release.")]


def notice_releases(counts: Mapping[str, int], policy: Policy) -> list[str]:
    """Return a warning about records of releases that the policy does not declare: they are in none."""
    if not counts["undeclared"]:
        return []
    column = policy.source.release_column or ""
    return [REVIEWERS("warning.of_other_releases", column=column, records=_count(counts["undeclared"]))]


def readable_without(check: Check, policy: Policy) -> bool:
    """Return whether the rest of the source can be read all the same, so that one message has all checks."""
    return check.fact == "columns" or (check.fact == "absent" and check.column != policy.source.release_column)


def check_facts(facts: Facts, policy: Policy) -> list[Check]:
    """Return every check of the counts against the policy, passed ones included. Absent columns are among the checks of the
    header."""
    checks = [_enough_records(facts.records, policy)]
    limits = policy.clamped_at_most
    for name, column in policy.columns.items():
        if name not in facts.kinds:
            continue
        match column.reading:
            case NumberReading() as numbers:
                checks += _check_numbers(name, facts, numbers, limit=limits.get(name), coded=_advise_codes(name, policy))
            case RuleReading() as entries:
                checks += _check_entries(name, entries, facts)
            case ListReading() as categories:
                checks += _check_categories(name, categories, facts)
            case None:
                pass
    checks += _check_derived(facts, policy)
    if isinstance(policy.person, Person) and facts.persons is not None:
        checks += check_persons(policy.person, facts.persons)
    elif not isinstance(policy.person, Person):
        checks.append(Check("person_unit", "", "each_row", 0, ""))
    checked = {check.family for check in checks}  # where no number is read, that check has passed, too
    checks += [Check(family, "", "numbers", 0, "") for family in ("types", "domains") if family not in checked]
    return checks


def check_roles(going_on: Sequence[str], policy: Policy) -> list[Check]:
    """Return one check per column that goes on after validation: the policy must release it, or add it up in tables."""
    released = policy.working_columns
    return [
        Check("roles", name, "not_released", int(name not in released), f"column {name}: goes on without being released.")
        for name in going_on
    ]


def refusals(checks: Sequence[Check]) -> list[str]:
    """Return the messages of the checks that failed."""
    return [check.message for check in checks if check.failed]


def notice(facts: Facts, policy: Policy) -> list[str]:
    """Return a sentence on each warning, by the counts: clamped and filled records, heavy ties. It names columns and counts,
    never a cell."""
    sentences: list[str] = []
    for name, column in policy.columns.items():
        if isinstance(column.reading, NumberReading):
            reading = column.reading
            is_kept = reading.blank is not None
            sentences += _notice_numbers(name, facts, outside=reading.outside, filled=not reading.must_have, is_kept=is_kept)
        if name in policy.noise_columns and policy.claim.rule is not None:
            sentences += _notice_ties(name, facts)
    return sentences


def notice_clamping(taken: Mapping[str, Clamping], policy: Policy) -> list[str]:
    """Return warnings about noise columns that lost much variance to clamping, however few records were clamped. The share is not
    shown, since it is no count."""
    return [
        REVIEWERS("warning.heavily_clamped", column=name, share=format_percent(HEAVY_CLAMPING, 0))
        for name, clamping in taken.items()
        if name in policy.noise_columns and clamping.variance > HEAVY_CLAMPING
    ]


def _twins(header: Sequence[str]) -> Iterator[tuple[str, str]]:
    seen: dict[str, str] = {}
    for position, name in enumerate(header, start=1):
        key = look_alike_key(name)
        if not key:
            yield "", f"column number {position} has no name."
        elif key not in seen:
            seen[key] = name
        elif canonical_name(seen[key]) == canonical_name(name):
            yield name, f"column {name}: stands in the header twice."
        else:
            yield name, f"columns {seen[key]} and {name}: look alike."


def count_least_records(policy: Policy) -> int:
    """Return the fewest records that a release may have."""
    return max(policy.gates.min_rows or 1, 2 * (policy.protect.k or 0) * policy.parts)


def _enough_records(records: int, policy: Policy) -> Check:
    least = count_least_records(policy)
    in_each = " in each part" * (policy.parts > 1)
    message = (
        f"{records:,} records are fewer than the {least:,} that the policy asks for (min_rows, and never under 2 k{in_each}). "
        "Lower what asks for so many, or wait for more records."
    )
    return Check("size", "", "records_too_few", max(least - records, 0), message)


_WRITTEN_SO = {"number": "", "date": " (like 2020-01-31 or 2020-01-31T09:30, in UTC or without a zone)"}
_WRITE_SO = {
    "number": "Write numbers like 1234.5 in the source, with a decimal point, no comma and no unit",
    "date": "Write dates like 2020-01-31 in the source, not 31.01.2020 or 01/31/2020",
    "entry": "Correct the source, or list the entry",
}


def _advise_codes(name: str, policy: Policy) -> str:
    """Return what to do with codes outside the domain, as the last of a list of remedies; empty where a column can have no codes.
    Methods that give every record a number have no place for them."""
    if not hasattr(policy.columns[name], "codes"):
        return ""
    if name in policy.noise_columns and not find_family(policy.protect).publishes_counts:
        return "; if these are codes for no answer, use dp-cdf and declare them: codes: {CODE: reason}"
    return "; if these are codes for no answer, declare them: codes: {CODE: reason}"


def _check_numbers(name: str, facts: Facts, how: NumberReading, *, limit: Decimal | None, coded: str) -> Iterator[Check]:
    """Yield the checks of numbers. `limit`: the share of records that may be clamped; None where outside is fail. `coded`: what
    to do if they are codes."""
    kind = facts.kinds[name]
    what = "number" if how.clock is None else "date"
    if not how.can_read(kind):
        remedy = " Deliver dates as dates, or as texts like 2020-01-31." if how.clock is not None else ""
        yield Check("types", name, "of_another_type", facts.records, f"column {name}: is of type {kind}, not a {what}.{remedy}")
        return
    counts = facts.columns[name]
    yield Check("missing", name, "missing", *_unless_declared(name, counts["missing"], fails=how.must_have))
    yield Check(
        "types",
        name,
        "not_a_number",
        counts["not_a_number"],
        f"column {name}: {say_records(counts['not_a_number'])} where something else than a {what} stands{_WRITTEN_SO[what]}. "
        f"{_WRITE_SO[what]}{coded}.",
    )
    yield Check(
        "types",
        name,
        "not_finite",
        counts["not_finite"],
        f"column {name}: {say_records(counts['not_finite'])} with NaN or an infinite number.",
    )
    beyond = counts["below"] + counts["above"]
    where = f"outside the declared domain ({_at_most(counts['below'])} below, {_at_most(counts['above'])} above)"
    yield Check(
        "domains",
        name,
        "outside",
        beyond if limit is None else 0,
        f"column {name}: {say_records(beyond)} {where}, and outside is fail. Correct the source, or widen the domain by what "
        f"is known of the variable{coded}.",
    )
    if limit is not None:
        yield Check(
            "domains",
            name,
            "clamped_too_many",
            max(beyond - int(limit * facts.records), 0),
            f"column {name}: {_at_most(beyond)} of {facts.records:,} records {where}, and at most {percent(limit)} may be "
            "clamped. Widen the domain by what is known of the variable, or name the share that you accept: gates, "
            f"clamped_at_most{coded}.",
        )
    others = counts.get("coded", 0) + (counts["missing"] if how.blank is not None else 0)  # entries without a value, kept as such
    constant = counts["different"] == 1 and not counts["not_a_number"] and not others
    yield Check(
        "categories",
        name,
        "constant",
        int(constant),
        f"column {name}: on its domain and grid all records are the same; document the value and drop it.",
    )
    if how.codes or how.blank is not None:
        nobody = counts["different"] == 0 and others > 0
        yield Check("categories", name, "empty", int(nobody), f"column {name}: no record has a {what}; drop the column.")


def _unless_declared(name: str, count: int, *, fails: bool) -> tuple[int, str]:
    return count if fails else 0, f"column {name}: {say_records(count)} without a value, and missing is fail."


def _notice_numbers(name: str, facts: Facts, *, outside: str, filled: bool, is_kept: bool) -> Iterator[str]:
    counts = facts.columns.get(name, {})
    beyond = counts.get("below", 0) + counts.get("above", 0)
    if beyond and outside == "clamp":
        most = min(round_up(beyond), facts.records)
        share = most / facts.records
        words = format_percent(share, 2) if share >= LEAST_SHARE else show_share(share)
        yield REVIEWERS("warning.clamped", column=name, records=count_things(most, "record"), share=words)
    if counts.get("coded"):
        yield REVIEWERS("warning.coded", column=name, records=_count(counts["coded"]))
    if counts.get("missing") and is_kept:
        yield REVIEWERS("warning.blank", column=name, records=_count(counts["missing"]))
    elif counts.get("missing") and filled:
        yield REVIEWERS("warning.filled", column=name, records=_count(counts["missing"]))


def _notice_ties(name: str, facts: Facts) -> Iterator[str]:
    counts = facts.columns.get(name, {})
    if counts.get("most_frequent", 0) >= HEAVY_TIES * facts.records:
        yield REVIEWERS("warning.ties", column=name)


def _check_categories(name: str, column: ListReading, facts: Facts) -> Iterator[Check]:
    counts = facts.columns[name]
    fails = column.filled is None
    are_numbers = all(isinstance(number_of_code(value), Decimal) for value in column.values)
    as_texts = " Entries of a text file are compared as texts: 1.0 is not 1, and is declared as '1.0'." if are_numbers else ""
    yield Check("missing", name, "missing", *_unless_declared(name, counts["missing"], fails=fails))
    yield Check(
        "categories",
        name,
        "undeclared",
        counts["undeclared"],
        f"column {name}: {say_records(counts['undeclared'])} with a category that values does not list.{as_texts}",
    )
    constant = counts["different"] == 1 and len(column.values) > 1 and not (fails and counts["missing"])
    yield Check(
        "categories",
        name,
        "constant",
        int(constant),
        f"column {name}: all records have the same value; declare that one alone if it may be public, or drop the column.",
    )


def _check_derived(facts: Facts, policy: Policy) -> Iterator[Check]:
    """Yield checks of inputs that a derivation cannot read."""
    for name, counts in facts.unread.items():
        how = policy.derive[name]
        for column, count in counts.items():
            what = "an entry that the policy does not list" if how.reads == "entry" else f"something else than a {how.reads}"
            message = f"column {column}: {say_records(count)} with {what}, of which {name} is derived. {_WRITE_SO[how.reads]}."
            yield Check("types", column, f"unread for {name}", count, message)


def _check_entries(name: str, column: RuleReading, facts: Facts) -> Iterator[Check]:
    counts = facts.columns[name]
    yield Check("missing", name, "missing", *_unless_declared(name, counts["missing"], fails=column.filled is None))
    entries = f"{_at_most(counts['uncovered_entries'])} different entries"
    yield Check(
        "categories",
        name,
        "uncovered",
        counts["uncovered"],
        f"column {name}: {say_records(counts['uncovered'])} with {entries} that the hierarchy does not cover. "
        "Add them to it, or correct the source.",
    )
    yield Check(
        "categories",
        name,
        "constant",
        int(counts["different"] == 1 and not column.only_one and not counts["missing"]),
        f"column {name}: all records have the same entry; drop the column, or list that one alone if it may be public.",
    )


def check_persons(person: Person, counts: Mapping[str, int]) -> Iterator[Check]:
    """Yield checks for records without a person or household, and for those with too many records."""
    unit, missing = person.privacy_unit, counts["missing"]
    yield Check(
        "person_unit",
        person.column,
        "without_person",
        missing,
        f"column {person.column}: {say_records(missing)} without a {unit}. "
        "Fill in whose they are, or remove them from the source.",
    )
    most = person.records_per_release
    allowed = f"{most} declared record{'s' if most != 1 else ''} (records_per_release)"
    remedy = f"Remove duplicates from the source; if a {unit} may have more records, declare how many."
    yield Check(
        "person_unit",
        person.column,
        "too_often",
        counts["too_often"],
        f"column {person.column}: {_persons(counts['too_often'], unit)} more than the {allowed}. {remedy}",
    )


def round_up(count: int) -> int:
    """Return a count of records rounded up to the next ten, as everything outside the vault shows it: a domain or a rule may
    single out one person, and no budget is spent for the answer.

    >>> [round_up(count) for count in (0, 1, 10, 11)]
    [0, 10, 10, 20]
    """
    return -(-count // TENS) * TENS


def _at_most(count: int) -> str:
    return f"up to {round_up(count):,}" if count else "none"


def _persons(count: int, unit: str) -> str:
    return f"{_at_most(count)} {unit}s have"


def _count(count: int) -> str:
    return count_things(round_up(count), "record")


def say_records(count: int) -> str:
    return f"{_at_most(count)} records"
