"""What a policy will do, before any data is touched: the claim in words, epsilon per column, how large the noise can be.

Everything here follows from declared facts (domain, grid, k, epsilon, the least number of rows) and may be public. Where the
scales depend on the data, the worst case over all data is named, not what these data would get. The same for a script: `views`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.about import warn_of_unsaid
from release_pipeline.policy.audience import describe_audience
from release_pipeline.policy.derivations import describe_derivations
from release_pipeline.policy.families import find_family
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.families.whole_table import describe_instead
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.gate_words import describe_record_gates, explain_criteria
from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.model import Policy
from release_pipeline.policy.published import describe_labels
from release_pipeline.policy.sections import Person
from release_pipeline.policy.table_words import describe_tables
from release_pipeline.policy.ties import warn_of_ties
from release_pipeline.policy.words import describe_claim, describe_sizes, describe_suppression, describe_target
from release_pipeline.privacy.catalogue.definitions import SCALES_FIXED
from release_pipeline.privacy.figures import count_of
from release_pipeline.sentences import POLICY


def make_plan(policy: Policy, *, rows: int | None = None, rows_from: str = "as named") -> Plan:
    """The plan of one release of `policy` for `rows` records (default: the least that the policy lets through)."""
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
    """The plan in lines for a person."""
    for label, text in _paragraphs(plan):
        yield from textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)
    yield ""
    yield from _column_table(plan)
    yield ""
    crowded = (("warning", words) for words in _warn_of_combinations(plan.policy, plan.rows))
    for label, text in (*_after_masking(plan.policy), *crowded):
        yield from textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)


def _paragraphs(plan: Plan) -> Iterator[tuple[str, str]]:
    policy, protect = plan.policy, plan.policy.protect
    family = find_family(protect)
    yield "policy", f"{policy.policy} (population {policy.population}, steward {policy.steward})"
    if policy.audience is not None:
        yield "audience", describe_audience(policy.audience)
    yield "hash", policy.canonical_hash()
    yield "source", policy.source.words + _release_words(policy)
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
    records = count_of(policy.person.records, "record")
    limit = f"column {column}, at most {records} of a {unit} in a release"
    if policy.record_count is None:
        return limit
    return f"{limit}; how many records a {unit} has is not protected"


def _column_table(plan: Plan) -> Iterator[str]:
    width = max([6, *(len(name) for name in plan.policy.columns)])
    do = max(5, *(len(column.do) for column in plan.policy.columns.values()))
    yield f"{'column':<{width}}  {'role':<12}  {'do':<{do}}  what"
    masks = {part.name: part.words for part in plan.columns}
    read_too = plan.policy.expected_columns | {column for how in plan.policy.derived_before.values() for column in how.inputs}
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
    for place, words in enumerate(describe_tables(policy)):
        yield "" if place else "tables", words
    for place, words in enumerate(describe_derivations(policy.derive)):
        yield "" if place else "derive", words
    if policy.expectations:
        yield "suite", POLICY("expect.suite", count=count_of(len(policy.expectations), "expectation"))
        for number, expectation in enumerate(policy.expectations, 1):
            yield "", f"{number}. {expectation.type} {expectation.kwargs}"
    for words in warn_of_ties(policy):
        yield "warning", words
    if policy.suppress:
        yield "suppress", describe_suppression(policy)
    gates = [f"at least {policy.gates.min_rows:,} rows"] if policy.gates.min_rows else []
    gates += [*describe_record_gates(policy), *explain_criteria(policy)]
    gates += _describe_group_gates(policy)
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
    for words in warn_of_unsaid(policy.audience, policy.about, policy.columns):
        yield "warning", words
    for place, words in enumerate(describe_labels(policy.columns)):
        yield "" if place else "labels", words
    embargo = f", not before {policy.publish.not_before:%Y-%m-%d %H:%M} UTC" if policy.publish.not_before else ""
    yield "review", f"{policy.review.reviewers} reviewers, then {' and '.join(policy.publish.formats)}{embargo}"


def _warn_of_combinations(policy: Policy, rows: int | None) -> Iterator[str]:
    """More combinations of kept quasi-identifiers than so many records can fill with groups that stay."""
    below = policy.suppress.groups_below if policy.suppress is not None else 0
    kept = {name: column for name, column in policy.kept_columns.items() if column.role in RECOGNISED}
    combinations = math.prod(len(column.values) + len(column.reasons) for column in kept.values())
    if below and rows is not None and len(kept) > 1 and rows < below * combinations:
        yield (
            f"{name_some(kept)} have {combinations:,} combinations of declared values: with {rows:,} records a group has "
            f"{rows / combinations:.2g} on average, and groups below {below} lose cells or records: keep fewer columns, or bands"
        )


def _describe_group_gates(policy: Policy) -> Iterator[str]:
    """The limits on groups of released quasi-identifiers, in words."""
    gates = policy.gates
    if gates.of_groups:
        yield "after the charge, on the released table"
    if gates.anonymity_k:
        yield f"groups of released quasi-identifiers of at least {gates.anonymity_k}"
    part = "group" if policy.swap is None else "block"
    for name, least in gates.l_diversity.items():
        yield f"at least {least} different values of {name} in each {part}"
