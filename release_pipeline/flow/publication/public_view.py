"""What is told to the public of one release, from the policy, the registry's public facts and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from release_pipeline import __version__
from release_pipeline.analyst import Facts, explain_kit, law_of
from release_pipeline.analyst.facts import ANYWHERE, INSIDE, ColumnFacts
from release_pipeline.flow.cap import open_account
from release_pipeline.flow.facts import PublicFacts, claimed_nano, read_facts
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.publication import wording
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseStatus, read_statuses
from release_pipeline.policy import Policy
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.hierarchies import list_rows
from release_pipeline.policy.kinds import GeneraliseColumn, NoiseColumn
from release_pipeline.policy.loss import sum_series
from release_pipeline.policy.options import KEpsilonOptions
from release_pipeline.policy.plan import make_plan
from release_pipeline.policy.statements import state_claim
from release_pipeline.policy.words import (
    describe_claim,
    describe_method,
    describe_scopes,
    not_covered_words,
)
from release_pipeline.privacy.budget import format_nano
from release_pipeline.report.view import ColumnView, PublicView
from release_pipeline.stages.package import ON_GRID
from release_pipeline.store.ledger import charges_of
from release_pipeline.store.registry import Event, ReleaseId


def build_view(site: Site, events: Sequence[Event], status: ReleaseStatus, policy: Policy) -> PublicView:
    """The public view of a candidate that is being published, as of the last of these events, which its package names."""
    intent = events[-1]
    protect, facts = policy.protect, read_facts(status.facts, where=str(status.id))
    plan = make_plan(policy, rows=facts.rows_in)
    charges = charges_of(events)
    account = open_account(read_caps(site), policy, charges)
    series = sum_series(policy, [charge.loss for charge in charges if charge.id.policy == policy.policy])
    claimed = claimed_nano(policy, status.charge)
    return PublicView(
        release=str(status.id),
        policy=policy.policy,
        steward=policy.steward,
        population=policy.population,
        published=intent.noted,
        tool=f"release-pipeline {__version__}",
        method=protect.method,
        method_words=describe_method(policy),
        paper=policy.method.paper,
        definition=policy.definition,
        definition_words=policy.claim.definition.name,
        neighbours=wording.describe_neighbours(policy),
        claim=describe_claim(policy),
        statement=state_claim(policy),
        epsilon=None if claimed is None else format_nano(claimed),
        records_per_person=policy.records_per_person,
        scope=protect.scope,
        wider=tuple(describe_scopes(plan)),
        k=protect.k,
        k_words=wording.describe_k(policy),
        anonymity_k=facts.anonymity_k,
        consistency=policy.consistency,
        series_epsilon=wording.describe_series(policy, series),
        cap=account.limit,
        cap_unit=account.unit,
        population_spent=account.spent,
        rows_in=facts.rows_in,
        rows_out=facts.rows_out,
        cells_blanked=facts.cells_blanked,
        suppression=wording.describe_suppression(policy),
        not_protected=tuple(not_covered_words(policy)),
        how_to_use=tuple(wording.list_uses(policy)),
        columns=tuple(_column(policy, name, plan, facts) for name in policy.released_columns),
        formats=tuple(policy.publish.formats),
        policy_hash=status.policy_hash,
        candidate_hash=str(status.candidate_hash),
        head_event=intent.number,
        head_hash=intent.hash,
        supersedes=_find_published_before(events, status.id),
        diversity=protect.l if isinstance(protect, KEpsilonOptions) else None,
        hierarchies=tuple(_list_hierarchies(policy)),
        parts=tuple(wording.list_parts(policy, facts, status)),
        values=INSIDE if policy.clamps else ANYWHERE,
        grid="on" if _lies_on_grid(policy, facts) else "off",
        analysis=tuple(explain_kit(_facts_of(policy, facts))),
    )


def _facts_of(policy: Policy, facts: PublicFacts) -> Facts:
    """What the card says, as the analyst's kit reads it: the words about the noise are its own."""
    epsilons = policy.column_epsilon
    return Facts(
        method=policy.protect.method,
        scope=policy.protect.scope,
        k=policy.protect.k,
        consistency=policy.consistency,
        clamped=policy.clamps,
        rows_in=facts.rows_in,
        rows_out=facts.rows_out,
        in_parts=policy.parts > 1,
        columns={
            name: ColumnFacts(
                name,
                "noise" if name in epsilons else "centroid",
                "number",
                column.exact_grid,
                epsilons.get(name),
                _atom_texts(column),
            )
            for name, column in policy.noise_columns.items()
        },
        on_grid=_lies_on_grid(policy, facts),
    )


def _lies_on_grid(policy: Policy, facts: PublicFacts) -> bool:
    """Whether every masked value is a point of its grid: by the method, or as it was seen of the candidate."""
    return policy.method.on_grid == "always" or facts.values == ON_GRID


def _atom_texts(column: NoiseColumn) -> tuple[str, ...]:
    return tuple(decimal_text(atom) for atom in column.atoms)


def _find_published_before(events: Sequence[Event], release: ReleaseId) -> str | None:
    """The last earlier revision that is published, if there is one."""
    mine = [
        known
        for known in read_statuses(events).values()
        if (known.id.policy, known.id.release) == (release.policy, release.release)
    ]
    before = [known.id for known in mine if known.id.revision < release.revision and known.state in ("published", "superseded")]
    return str(max(before)) if before else None


def _generalised(policy: Policy, name: str, column: GeneraliseColumn, facts: PublicFacts) -> ColumnView:
    level = facts.levels.get(name)
    return ColumnView(
        name,
        column.role,
        "generalise",
        "string",
        column.why or "",
        missing=wording.describe_missing(policy, column),
        hierarchy=wording.describe_hierarchy(policy, name, column, level),
        levels=() if name in policy.cut_columns else column.hierarchy.level_words,
        level=int(level.split()[0]) if level else None,
    )


def _list_hierarchies(policy: Policy) -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """The rows of each hierarchy that can be listed, and the file of the package that they go to."""
    used: list[str] = []
    for name, column in policy.generalised_columns.items():
        rows = list_rows(column.hierarchy, column.missing_entry)
        if rows is not None and name not in policy.cut_columns:  # whose labels are ranges that no list has
            slug = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-") or "column"
            names = (slug, *(f"{slug}-{number}" for number in range(2, len(policy.columns) + 2)))
            used.append(next(name for name in names if name not in used))
            yield f"hierarchy-{used[-1]}.csv", tuple(rows)


def _column(policy: Policy, name: str, whole: Plan, facts: PublicFacts) -> ColumnView:
    column = policy.released_columns[name]
    if isinstance(column, GeneraliseColumn):
        return _generalised(policy, name, column, facts)
    if isinstance(column, NoiseColumn):
        plan = next(part for part in whole.columns if part.name == name)
        low, high = (format(edge, "f") for edge in column.domain)
        return ColumnView(
            name,
            column.role,
            "noise" if plan.epsilon is not None else "centroid",
            "number",
            column.why,
            domain=(low, high),
            grid=format(column.grid, "f"),
            epsilon=None if plan.epsilon is None else format_nano(plan.epsilon.nano * policy.records_per_person),
            noise=None if plan.epsilon is None else plan.noise_words,
            missing=wording.describe_missing(policy, column),
            law=law_of(_facts_of(policy, facts), name).words,
            atoms=_atom_texts(column),
        )
    kind = "integer" if column.integers else "string"
    values = tuple(str(value) for value in column.values)
    return ColumnView(
        name, column.role, "keep", kind, column.why, values=values, missing=wording.describe_missing(policy, column)
    )
