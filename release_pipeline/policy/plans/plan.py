"""Sentences on what a policy will do, for the plan, the card, the registry and the reviewers: never only a number."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.basis.figures import count_of, count_things, join_names
from release_pipeline.mechanisms.catalogue.entries import PURE_TABLES, RHO_TABLES
from release_pipeline.mechanisms.catalogue.spec import SCALES_FIXED
from release_pipeline.policy.families import find_family
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.families.whole_table import describe_instead
from release_pipeline.policy.file.about import describe_audience, warn_of_unsaid
from release_pipeline.policy.file.derivations import describe_derivations
from release_pipeline.policy.file.describe import (
    describe_record_gates,
    describe_released_gates,
    describe_tables,
    explain_linkage_gate,
    tell_linkage,
)
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.published import describe_labels
from release_pipeline.policy.file.sections import Person
from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.values.formats import name_some, say_unit
from release_pipeline.sentences import POLICY


def describe_claim(policy: Policy) -> str:
    """Return the epsilon of a release with what it covers: never only a number.

    "epsilon 2 in all (0.5 for each of 4 columns), iDP, for the column lists; whole table: not bounded"
    """
    return find_family(policy.protect).describe_claim(policy)


def describe_scopes(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield every scope wider than the claim with a sentence: a bound from public facts, or that there is none."""
    policy, family = plan.policy, find_family(plan.policy.protect)
    if policy.protect.scope == "table":
        return
    if not policy.adds_up:
        yield "table", POLICY("bound.none")
        return
    if policy.protect.scope == "centroid":
        yield "column", family.describe_lists(plan)
    yield "table", family.bound_table(policy, plan.clusters, plan.rows)


def not_covered_words(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each thing that the claim does not protect."""
    yield from find_family(policy.protect).list_uncovered(policy)
    yield from describe_sizes(policy)
    yield from tell_linkage(policy)


def describe_sizes(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each thing that the public numbers of records reveal about a person or household."""
    if policy.record_count == "not protected":
        yield POLICY("uncovered.record_count", unit=policy.privacy_unit)
    if policy.source.release_column is not None:
        yield POLICY("uncovered.release")


def describe_suppression(policy: Policy) -> str:
    """Return a sentence on what may be suppressed, and how much of it."""
    masked = find_family(policy.protect).makes_groups_of_masked
    return policy.suppress.describe(with_masked=masked) if policy.suppress else POLICY("suppress.nothing")


def describe_target(policy: Policy, name: str) -> str:
    """Return what a model learns to predict in a column."""
    target = policy.audit.predict[name]
    column = policy.noise_columns.get(name)
    if target.above is not None and column is not None and column.clock is not None:
        return POLICY("target.after", column=name, moment=column.say(target.above))
    if target.above is None:
        return POLICY("target.equal", column=name, entry=target.equals)
    return POLICY("target.above", column=name, number=f"{target.above:f}")


# The plan of a policy, before any data are read: the claim as a sentence, epsilon per column, how large the noise can be.
#
# Everything here follows from declared facts (domain, grid, k, epsilon, the least number of rows) and may be public. If the
# scales depend on the data, the worst case over all data is named, not the scale for these data. `views` has the plan for
# scripts.


def make_plan(policy: Policy, *, rows: int | None = None, rows_from: str = "as named") -> Plan:
    """Return the plan of one release of `policy` for `rows` records (default: the least that the policy accepts)."""
    rows_from = rows_from if rows is not None else "the fewest that the policy lets through"
    rows = rows if rows is not None else policy.gates.min_rows
    columns = find_family(policy.protect).plan_columns(policy, policy.count_clusters(rows))
    return Plan(policy, rows, tuple(columns), rows_from)


def check_rows(policy: Policy, rows: int) -> None:
    """Refuse so many rows if noise for them might not fit, as a release of them would: by public facts, before any data."""
    find_family(policy.protect).check_rows(policy, rows)
    if rows < policy.block_size:
        what = f"{rows:,} records are fewer than the {policy.block_size} of one block in which values are swapped."
        raise InvalidArgument(what, where="protect.swap", remedy="Lower k, or publish more records.")
    for name, tabulation in policy.tabulations.items():
        try:
            tabulation.check_rows(rows)
        except InvalidArgument as error:
            raise InvalidArgument(error.what, where=f"tables.{name}", remedy=error.remedy) from None


def describe_plan(plan: Plan, *, width: int = 110) -> Iterator[str]:
    """Yield the lines of the plan as text."""
    crowded = (("warning", warning) for warning in _warn_of_combinations(plan.policy, plan.rows))
    yield from _wrap(_paragraphs(plan), width)
    yield ""
    yield from _column_table(plan)
    yield ""
    yield from _wrap((*_after_masking(plan.policy), *crowded), width)


def _wrap(paragraphs: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    for label, text in paragraphs:
        yield from textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)


def _paragraphs(plan: Plan) -> Iterator[tuple[str, str]]:
    policy, protect = plan.policy, plan.policy.protect
    family = find_family(protect)
    yield "policy", f"{policy.policy} (population {policy.population}, steward {policy.steward})"
    if policy.audience is not None:
        yield "audience", describe_audience(policy.audience)
    yield "hash", policy.canonical_hash()
    yield "source", policy.source.describe() + _release_words(policy)
    yield "person", _person_words(policy)
    yield "method", f"{protect.method}: {policy.method.summary}" + (f", k = {protect.k}" if protect.k else "")
    yield from _part_paragraphs(plan)
    yield from family.before_claim(policy)
    definition = policy.claim.definition
    yield "definition", definition.name + definition.groups
    if definition.fixes_scales:
        yield "scales", SCALES_FIXED
    yield "claim", describe_claim(policy)
    yield from family.after_claim(plan)
    yield from (("instead", words) for words in describe_instead(policy))
    for words in describe_sizes(policy):
        yield "sizes", f"not covered: {words[:1].lower()}{words[1:]}"


def _part_paragraphs(plan: Plan) -> Iterator[tuple[str, str]]:
    policy = plan.policy
    if policy.parts == 1:
        return
    sizes = ""
    if plan.rows is not None:
        least, most = plan.rows // policy.parts, -(-plan.rows // policy.parts)
        sizes = f" of {least:,} rows" if least == most else f" of {least:,} to {most:,} rows"
    family = find_family(policy.protect)
    yield "parts", f"{policy.parts} random parts{sizes} by the number of the row, {family.part_words}"
    yield from (("", words) for words in family.explain_parts(policy))


def _release_words(policy: Policy) -> str:
    opened = f", opened by the timetable '{policy.cron.text}' (UTC)" if policy.cron else ""
    if policy.every:
        begins = f" from {policy.first} on" if policy.first else ""
        return f", a release for every {policy.every} that has ended{begins}{opened}"
    names = policy.release_names
    return ", released once" if names == ("once",) else f", {count_of(len(names), 'release')}: {', '.join(names)}{opened}"


def _person_words(policy: Policy) -> str:
    if not isinstance(policy.person, Person):
        return "each row is a person of its own"
    column, unit = policy.person.column, policy.privacy_unit
    records = count_of(policy.person.records_per_release, "record")
    limit = f"column {column}, at most {records} of a {unit} in a release"
    if policy.record_count is None:
        return limit
    return f"{limit}; how many records a {unit} has is not protected"


def _column_table(plan: Plan) -> Iterator[str]:
    width = max([6, *(len(name) for name in plan.policy.columns)])
    do = max(5, *(len(column.do) for column in plan.policy.columns.values()))
    yield f"{'column':<{width}}  {'role':<12}  {'do':<{do}}  what"
    masks = {part.name: part.describe() for part in plan.columns}
    read_too = plan.policy.expected_columns | {column for how in plan.policy.derive.values() for column in how.inputs}
    for name, column in plan.policy.columns.items():
        words = column.describe(masks.get(name, ""), is_read=name in read_too)
        yield f"{name:<{width}}  {column.role:<12}  {column.do:<{do}}  {words}"
    if plan.policy.drop:
        more = count_of(len(plan.policy.drop), "further column")
        yield f"{'':<{width}}  {'':<12}  {'drop':<{do}}  {more}, by name"
    if any(part.worst_case for part in plan.columns):
        yield "noise: mean absolute error of a released value from noise alone, the worst over all data; usually far less"
        if plan.rows is not None and plan.policy.protect.scope in ("column", "table"):
            yield f"       for {plan.rows:,} rows, {plan.rows_from}; it grows with their number (--rows for another one)"
    elif any(part.of_counts for part in plan.columns):
        yield "noise: mean absolute error of a count of records; released values are those that explain all counts together"
    elif plan.policy.method.is_noisy:
        before = find_family(plan.policy.protect).describe_before(plan.policy)
        yield f"noise: mean absolute error of a released value from noise alone{before}"


def _after_masking(policy: Policy) -> Iterator[tuple[str, str]]:
    yield from _list_under("tables", describe_tables(policy))
    yield from _list_under("derive", describe_derivations(policy.derive))
    if policy.expectations:
        yield "suite", POLICY("expect.suite", count=count_of(len(policy.expectations), "expectation"))
        for number, expectation in enumerate(policy.expectations, 1):
            yield "", f"{number}. {expectation.type} {expectation.kwargs}"
    if policy.suppress:
        yield "suppress", describe_suppression(policy)
    gates = [f"at least {policy.gates.min_rows:,} rows"] if policy.gates.min_rows else []
    gates += [*describe_record_gates(policy), *explain_linkage_gate(policy), *describe_released_gates(policy)]
    yield "gates", "; ".join(gates) or "none declared"
    if policy.audit.predict:
        yield "audit", f"models learn to predict: {'; '.join(describe_target(policy, name) for name in policy.audit.predict)}"
    if policy.audit.groups:
        yield "audit", f"who is served worst: means and errors by {', '.join(policy.audit.groups)}"
    if policy.retain:
        yield "retain", f"intermediate tables in the vault for {policy.retain} days"
    if policy.about is not None:
        yield "about", policy.about.describe()
    if policy.assessment is not None:
        yield "assessment", policy.assessment.describe()
    for warning in warn_of_unsaid(policy.audience, policy.about, policy.columns):
        yield "warning", warning
    yield from _list_under("labels", describe_labels(policy.columns))
    embargo = f", not before {policy.publish.not_before:%Y-%m-%d %H:%M} UTC" if policy.publish.not_before else ""
    yield "review", f"{policy.review.reviewers} reviewers, then {' and '.join(policy.publish.formats)}{embargo}"


def _list_under(label: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each line, the first one with the label."""
    for number, line in enumerate(lines):
        yield "" if number else label, line


def _warn_of_combinations(policy: Policy, rows: int | None) -> Iterator[str]:
    """Yield a warning if there are more combinations of kept quasi-identifiers than so many records can fill with large enough
    groups."""
    below = policy.suppress.groups_below if policy.suppress is not None else 0
    quasi = {name: column for name, column in policy.kept_columns.items() if column.role in RECOGNISED}
    combinations = math.prod((column.most_values(clamps=True) or 1) - 1 for column in quasi.values())  # without blanks
    if below and rows is not None and len(quasi) > 1 and rows < below * combinations:
        yield (
            f"{name_some(quasi)} have {combinations:,} combinations of declared values: with {rows:,} records a group has "
            f"{rows / combinations:.2g} on average, and groups below {below} lose cells or records: keep fewer columns, or bands"
        )


# The formal statement of each mechanism: the short form of docs/mechanisms.md, which has the proofs.
#
# The catalogue has one text for each mechanism; a policy adds the effect of records per person and of random parts. The card,
# `check` and the reviewers' page use these statements.


def _state_people(policy: Policy) -> str:
    """Return which other tables the statement covers, by the records of one person or household."""
    records = count_things(policy.records_per_person, "record")
    if policy.privacy_unit == "household":
        return POLICY("statement.household", records=records)
    return POLICY("statement.person", records=records) if policy.records_per_person > 1 else ""


def state_claim(policy: Policy) -> str:
    """Return the formal statement of a policy's mechanism, for as many records as a person has, and for random parts."""
    parts = [policy.claim.statement]
    if policy.swap is not None:
        parts.append(POLICY("statement.swapped"))
    if policy.adds_up:
        parts.append(_state_people(policy))
    if policy.tables:
        claim = RHO_TABLES if any(table.by_rho for table in policy.tables.values()) else PURE_TABLES
        parts.append(POLICY("statement.tables", tables=join_names(policy.tables), statement=claim.statement))
        if claim is RHO_TABLES and not all(table.by_rho for table in policy.tables.values()):
            parts.append(POLICY("statement.half_of_square"))
        parts.append(POLICY("statement.together", unit=say_unit(policy.unit), amount=format_nano(policy.epsilon or 0)))
    if policy.parts > 1:
        parts.append(find_family(policy.protect).state_parts(policy))
    return " ".join(part for part in parts if part)
