"""Consistency rules across several parts of a policy. Each rule runs as soon as the parts that it needs are valid, so that one
broken part does not hide faults elsewhere. Rules of a family of methods are in `families`; gates, derived columns and tables have
files next to this one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import BaseModel

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.mechanisms.catalogue import find_definition
from release_pipeline.policy.families import find_family
from release_pipeline.policy.families.base import find_groupless
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import AnyOptions, WholeTableOptions, claim_of
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.published import check_formulas
from release_pipeline.policy.file.sections import Gates, Person
from release_pipeline.policy.kinds import DropColumn, NoiseColumn, SynthesiseColumn
from release_pipeline.policy.kinds.base import CodedColumn, reason_column
from release_pipeline.policy.rules.derived import check_derivations
from release_pipeline.policy.rules.gates import (
    check_audit,
    check_gates,
    check_group_gates,
    check_readers,
    check_sketch,
    check_swap,
)
from release_pipeline.policy.rules.published import check_published, check_tables
from release_pipeline.policy.values.formats import ask_for_near
from release_pipeline.policy.values.scalars import find_refused, look_alike_key
from release_pipeline.policy.values.text import Path, Problem

NUMBERS_ALL = (
    "Use dp-cdf, which counts records without a number; or fill them (missing: {fill: 0}) where that is what they mean; or give "
    "who has none a category of a kept column."
)


def find_contradictions(parts: Parts) -> Iterator[Problem]:
    """Yield every contradiction between the valid parts, in the order of the file."""
    fault = _find_unknown_claim(parts.protect) if parts.protect is not None else None
    yield from _names(parts)
    yield from _weights(parts)
    yield from _reasons(parts)
    yield from _source(parts)
    if fault is not None:  # nothing else can be checked for a method that promises nothing
        yield fault
        parts = replace(parts, protect=None)
    if parts.protect is not None:
        yield from _protect(parts, parts.protect)
    else:
        yield from find_groupless(parts)
    yield from _person(parts)
    yield from check_sketch(parts)
    for name, column in parts.columns.items():
        yield from column.find_faults(("columns", name))
    yield from check_derivations(parts)
    yield from check_readers(parts)
    yield from check_gates(parts)
    yield from check_group_gates(parts)
    yield from check_audit(parts)
    yield from check_tables(parts)
    yield from check_formulas(parts)
    yield from check_published(parts)


def find_unproved(policy: Policy) -> Iterator[Problem]:
    """Yield why a policy that was accepted earlier would claim what is not proved, by today's rules for its method, columns and
    people. Rules of other kinds are for new policies, and stop no release of an old one."""
    parts = Parts(
        source=policy.source,
        person=policy.person,
        releases=policy.releases,
        protect=policy.protect,
        suppress=policy.suppress,
        gates=None if policy.gates == Gates() else policy.gates,  # as in a file without gates
        columns=dict(policy.columns),
        drop=policy.drop,
        tables=policy.tables,
        names=tuple(policy.columns),
    )
    fault = _find_unknown_claim(policy.protect)
    if fault is not None:
        yield fault
        return
    yield from _protect(parts, policy.protect)
    yield from _person(parts)
    yield from check_tables(parts)


def _find_unknown_claim(protect: AnyOptions) -> Problem | None:
    """Return the problem of a method, or a scope of it, for which the catalogue has no claim; None if it has one."""
    try:
        find_definition(claim_of(protect).definition.key)
        find_family(protect)
    except ReleasePipelineError as error:
        return ("protect", "scope" if error.where == "scope" else "method"), error.what, error.remedy
    return None


def _protect(parts: Parts, protect: AnyOptions) -> Iterator[Problem]:
    """Yield the contradictions between the method and everything else."""
    family = find_family(protect)
    yield from _find_halves(protect)
    yield from family.find_contradictions(parts, protect)
    if not isinstance(protect, WholeTableOptions):
        yield from _find_synthetic(parts, protect)
    elif parts.complete and not (parts.noise_columns or parts.listed_columns):
        yield ("columns",), "no column has do: synthesise, so there is nothing to make rows of.", "Declare at least one."
    if parts.complete and not parts.noise_columns and not isinstance(protect, WholeTableOptions):
        yield (
            ("columns",),
            "no column has do: noise, so there is nothing to protect with noise.",
            "Declare at least one.",
        )
    for name, column in parts.noise_columns.items():
        yield from _find_refused(column, protect, ("columns", name))
        if column.reasons and not family.publishes_counts:
            option = "codes" if column.codes else "missing"
            yield (
                ("columns", name, option),
                f"{protect.method} gives every record a number, and some would have none.",
                NUMBERS_ALL,
            )
        if column.dated is not None and getattr(protect, "clamp", "yes") == "no":
            what = f"noise can carry '{name}' to where no calendar is."
            yield ("protect", "clamp"), what, "Leave clamp out: dates are moved back into their domain."
    if parts.gates is not None:
        yield from _find_refused(parts.gates, protect, ("gates",))
    for name in protect.weights:
        if parts.complete and name not in parts.noise_columns:
            remedy = "Remove the weight."
            remedy = remedy if name in parts.names else ask_for_near(name, parts.noise_columns, remedy)
            yield ("protect", "weights", name), f"'{name}' is not a column with do: noise.", remedy
    if parts.complete and len(parts.noise_columns) == 1 and protect.weights:
        yield ("protect", "weights"), "weights share epsilon between several columns; there is one.", "Remove them."
    if parts.noise_columns or protect.is_synthetic:
        yield from family.check_noise(parts, protect)
    yield from _partitions(parts, protect)
    yield from family.check_suppression(parts, protect)
    yield from check_swap(parts, protect)


def _find_synthetic(parts: Parts, protect: AnyOptions) -> Iterator[Problem]:
    """Yield a problem for synthetic columns with a method that releases values of records."""
    for name, column in parts.columns.items():
        if isinstance(column, NoiseColumn | SynthesiseColumn) and column.do == "synthesise":
            is_number = isinstance(column, NoiseColumn)
            instead = "noise" if is_number else "keep"
            what = f"{protect.method} releases a value for every record, and makes none up."
            yield ("columns", name, "do"), what, f"Say do: {instead}, or use dp-table."


def _find_halves(protect: AnyOptions) -> Iterator[Problem]:
    """Yield a problem for a definition by rho without its delta, or the other way round."""
    definition, delta = getattr(protect, "definition", None), getattr(protect, "delta", None)
    if definition is not None and delta is None:
        yield ("protect",), "delta is missing: under zcdp an epsilon is said at a delta.", "Add one, like delta: 0.000001."
    elif delta is not None and definition is None:
        yield ("protect", "delta"), "only definition: zcdp has a delta.", "Remove it, or add definition: zcdp."
    elif definition is not None and protect.charged is not None and protect.charged.nano == 0:
        yield ("protect", "epsilon"), "it is so small that nothing of rho is left at this delta.", "Use a larger epsilon."


def _find_refused(part: BaseModel, protect: AnyOptions, here: Path) -> Iterator[Problem]:
    """Yield a problem for options without meaning for a method of this family."""
    for name, option in find_refused(part, protect.family).items():
        yield (*here, name), option.not_for[protect.family].format(method=protect.method), option.instead


def _names(parts: Parts) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name in parts.names:
        other = seen.setdefault(look_alike_key(name), name)
        if other != name:
            yield ("columns", name), f"'{name}' and '{other}' look alike.", "Rename one of them in the source."
    for i, name in enumerate(parts.drop):
        if name in parts.names:
            yield ("drop", i), f"'{name}' is under columns too.", "Declare it in one place."
        elif (other := seen.setdefault(look_alike_key(name), name)) != name:
            yield ("drop", i), f"'{name}' and '{other}' look alike.", "Rename one of them in the source."


def _reasons(parts: Parts) -> Iterator[Problem]:
    """Yield a problem for published columns whose reason column has a taken name."""
    for name, column in parts.columns.items():
        if column.separate_reasons and reason_column(name) in (*parts.names, *parts.drop):
            what = f"why '{name}' has no value is published as '{reason_column(name)}', and there is a column of that name."
            yield ("columns", name), what, "Rename that column in the source."


def _weights(parts: Parts) -> Iterator[Problem]:
    """Yield a problem if there are several weights, if a record may lack one, or if the domain of a dropped weight has no use."""
    names = [name for name, column in parts.columns.items() if column.role == "weight"]
    used = [name for name in names if parts.columns[name].reading is not None]  # other columns are not read
    for name in used[1:]:
        yield ("columns", name, "role"), f"'{used[0]}' is the weight already.", "Give it another role, or drop it."
    for name in names:
        column = parts.columns[name]
        if isinstance(column, CodedColumn) and (column.reasons or column.missing != "fail"):
            what = f"every record stands for some number of others, and '{name}' may lack one."
            yield ("columns", name), what, "Set missing to fail, and name no codes."
        if isinstance(column, DropColumn) and column.domain is not None and not any(t.weight for t in parts.tables.values()):
            what = f"'{name}' is dropped, and no table counts by it: its domain says nothing."
            yield ("columns", name, "domain"), what, "Name it as the weight of a table, or remove domain, grid and outside."


def _source(parts: Parts) -> Iterator[Problem]:
    if parts.source is None:
        return
    column = parts.source.release_column
    if column is not None and (column in parts.names or column in parts.drop):
        yield (
            ("source", "release_column"),
            f"'{column}' is declared again under columns or drop.",
            "The release column is never released: name it here only.",
        )
    if parts.releases == "once" and column is not None:
        yield (
            ("source", "release_column"),
            "a policy that is released once has no release column.",
            "List the releases, or leave release_column out and drop the column.",
        )
    if parts.is_series and column is None:
        yield (
            ("releases",),
            "several releases need source.release_column to tell their records apart.",
            "Name the column, or set releases to once.",
        )


def _person(parts: Parts) -> Iterator[Problem]:
    if not isinstance(parts.person, Person):
        return
    column = parts.columns.get(parts.person.column)
    if parts.names and column is None and parts.person.column not in parts.names:
        add = "Add it there with {role: identifier, do: drop}."
        dropped = parts.person.column in parts.drop
        yield (
            ("person", "column"),
            f"'{parts.person.column}' is {'under drop, and ' if dropped else ''}not declared under columns.",
            f"Move it there: {parts.person.column}: {{role: identifier, do: drop}}."
            if dropped
            else ask_for_near(parts.person.column, parts.names, add),
        )
    elif column is not None and column.role != "identifier":
        yield (
            ("person", "column"),
            f"'{parts.person.column}' must have the role identifier.",
            "Set its role, with do: drop.",
        )
    protect = parts.protect
    if protect is None or parts.person.records_per_release == 1 or claim_of(protect).definition.covers_groups:
        return
    name, why = find_family(protect).describe_protected(protect)
    yield (
        ("person", "records_per_release"),
        f"{name} protects single records: {why}",
        "Aggregate to one record per person, or use laplace, dp-um or dp-mdav with plain sums.",
    )


def _partitions(parts: Parts, protect: AnyOptions) -> Iterator[Problem]:
    """Yield a problem for random parts that are not large enough."""
    if protect.partitions is None:
        return
    least = protect.partitions * max(2 * (protect.k or 1), 1)
    if parts.gates is not None and parts.gates.min_rows is None:
        what = f"{protect.partitions} parts need gates.min_rows: how many rows there are at least, so that no part is too small."
        yield ("protect", "partitions"), what, f"Declare min_rows of {least:,} or more."
    elif parts.gates is not None and parts.gates.min_rows is not None and parts.gates.min_rows < least:
        what = f"min_rows is below {least:,}, twice k in each of {protect.partitions} parts."
        yield ("gates", "min_rows"), what, "Raise it, or lower partitions or k."
