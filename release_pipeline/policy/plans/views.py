"""The plan of a release for a script: what `check --json` prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.policy.documents import OPTIONAL, Delta, Exactly, Hash
from release_pipeline.policy.families import find_family
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.file.about import find_unsaid
from release_pipeline.policy.file.sections import PrivacyUnit
from release_pipeline.policy.file.tables import Tabulation
from release_pipeline.policy.plans.loss import depends_on_records, release_loss
from release_pipeline.policy.plans.plan import describe_claim, not_covered_words
from release_pipeline.policy.values.formats import decimal_text, exact_text


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A masked column of a plan."""

    name: str
    epsilon: Annotated[Exactly | None, "its part of epsilon, for one record; null without noise; under zcdp alone, at that delta"]
    noise: Annotated[
        float | None,
        "mean absolute noise of a released value, of dates and times in the unit of their grid; null where the number of rows "
        "decides, or counts have it",
    ]
    noise_is_worst_case: Annotated[bool, "whether `noise` is the worst over all data; usually it is far less then"]
    noise_share: Annotated[float | None, "`noise` as a share of the declared domain"]
    rho: Annotated[Exactly | None, "its part of rho, for one record"] = field(default=None, metadata=OPTIONAL)
    atoms: Annotated[tuple[str, ...] | None, "the values that readers count, as the policy declares them"] = field(
        default=None, metadata=OPTIONAL
    )


@dataclass(frozen=True, slots=True)
class LevelView:
    """A level of a table next to the rows."""

    level: Annotated[int, "its number: 0 has the values themselves, or what is declared of them there"]
    cells: Annotated[int, "how many cells it has: every combination of declared labels"]
    noise: Annotated[str, "the law of the noise of each cell: Laplace and its scale, or Gaussian and its variance, in steps"]
    magnitude: Annotated[float, "its mean absolute noise, in records or in the unit of what is added up"]


@dataclass(frozen=True, slots=True)
class TableView:
    """A table that is released next to the rows."""

    name: Annotated[str, "its name, and that of its file"]
    by: Annotated[tuple[str, ...], "the columns whose labels make its cells"]
    sum: Annotated[str | None, "the column that is added up; null where records are counted"]
    epsilon: Annotated[Exactly | None, "what it may lose for one record; null where that is rho"]
    rho: Annotated[Exactly | None, "the same in rho, under zcdp"]
    step: Annotated[str, "a step of its noise, in records or in the unit of what is added up"]
    levels: Annotated[tuple[LevelView, ...], "the coarsest first"]
    weight: Annotated[str | None, "the column of weights that records count by"] = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class BoundView:
    """What is known of a wider scope."""

    bounded: Annotated[bool, "whether anything bounds it"]
    epsilon: Annotated[Exactly | None, "the bound, from public facts; null where nothing bounds it, or the rows are not known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """What a policy will do, from declared facts alone."""

    policy: Annotated[str, "the name of the policy"]
    steward: Annotated[str, "who is responsible for it"]
    population: Annotated[str, "whose budget it spends"]
    hash: Annotated[Hash, "SHA-256 of its canonical form: what the officer approves"]
    method: Annotated[str, "of `protect`"]
    grouping: Annotated[str | None, "how `k-epsilon` makes classes: ola or mondrian"] = field(default=None, metadata=OPTIONAL)
    order: Annotated[str | None, "what `dp-mdav` cuts its clusters from"] = field(default=None, metadata=OPTIONAL)
    statistic: Annotated[str | None, "of `dp-mdav`: plain or trimmed"] = field(default=None, metadata=OPTIONAL)
    clamp: Annotated[str | None, "no, where released values stay where the noise put them"] = field(
        default=None, metadata=OPTIONAL
    )
    partitions: Annotated[int | None, "random parts of the records, where there are several"] = field(
        default=None, metadata=OPTIONAL
    )
    k: Annotated[int | None, "records per cluster or class; null without"]
    definition: Annotated[Literal["dp", "zcdp", "idp", "k-epsilon", "k-anonymity"], "what is claimed"]
    scope: Annotated[
        Literal["centroid", "column", "table", "cluster", "class"],
        "what the claim covers: with `definition` and `epsilon` the claim",
    ]
    epsilon: Annotated[Exactly | None, "of one release, in all, for one person; null for a method without"]
    delta: Annotated[Delta | None, "under zcdp: the delta at which every epsilon here holds"] = field(
        default=None, metadata=OPTIONAL
    )
    rho: Annotated[Exactly | None, "under zcdp: what one release costs in all, for one person"] = field(
        default=None, metadata=OPTIONAL
    )
    claim: Annotated[str, "the claim in words"]
    records_per_person: Annotated[int, "how many records of a release one person, or household, may have"]
    privacy_unit: Annotated[PrivacyUnit, "whose records the claim is about"]
    record_count: Annotated[
        Literal["not protected"] | None,
        "that the claim does not protect how many records one has; absent where nobody has more than one",
    ] = field(default=None, metadata=OPTIONAL)
    wider: Annotated[dict[str, BoundView], "what holds for wider scopes, in the same definition: `column`, `table`"]
    not_covered: Annotated[tuple[str, ...], "what the claim does not cover, a sentence each"]
    rows: Annotated[int | None, "the records that this is planned for: --rows, or the policy's min_rows; null without either"]
    warnings: Annotated[tuple[str, ...] | None, "what noise will not leave as it is, a sentence each"] = field(
        default=None, metadata=OPTIONAL
    )
    unsaid: Annotated[
        tuple[str, ...] | None, "what it must say of its data and columns before an officer can approve it, a sentence each"
    ] = field(default=None, metadata=OPTIONAL)
    columns: Annotated[tuple[ColumnView, ...], "the masked columns"]
    tables: Annotated[tuple[TableView, ...] | None, "tables next to the rows; `epsilon` has what they may lose"] = field(
        default=None, metadata=OPTIONAL
    )
    kept: Annotated[tuple[str, ...], "the columns that are released as they are"]
    generalised: Annotated[tuple[str, ...], "the columns that are released coarser"]


def view_plan(plan: Plan) -> PlanView:
    """Return the plan for a script."""
    policy, protect = plan.policy, plan.policy.protect
    partitioned = policy.parts > 1
    return PlanView(
        policy=policy.policy,
        steward=policy.steward,
        population=policy.population,
        hash=policy.canonical_hash(),
        method=protect.method,
        **find_family(protect).view_options(policy),
        partitions=policy.parts if partitioned else None,
        k=protect.k,
        definition=cast(Any, policy.definition),
        scope=cast(Any, protect.scope),
        epsilon=None if policy.epsilon is None else format_nano(policy.in_epsilon(policy.epsilon)),
        delta=None if policy.delta is None else decimal_text(policy.delta),
        rho=None if policy.delta is None else format_nano(policy.epsilon or 0),
        claim=describe_claim(policy),
        records_per_person=policy.records_per_person,
        privacy_unit=policy.privacy_unit,
        record_count=policy.record_count,
        wider={scope: _view_bound(plan, scope) for scope in ("column", "table")},
        not_covered=tuple(not_covered_words(policy)),
        rows=plan.rows,
        warnings=tuple(find_family(protect).list_warnings(policy, plan.rows)) or None,
        unsaid=tuple(find_unsaid(policy.audience, policy.about, policy.columns)) or None,
        columns=tuple(
            ColumnView(
                name=part.name,
                epsilon=None if part.epsilon is None else format_nano(policy.in_epsilon(part.epsilon.nano)),
                rho=None if part.epsilon is None or policy.delta is None else str(part.epsilon),
                noise=part.noise,
                noise_is_worst_case=part.worst_case,
                noise_share=part.share,
                atoms=policy.noise_columns[part.name].atom_texts or None,
            )
            for part in plan.columns
        ),
        tables=tuple(map(_view_table, policy.tabulations.values())) or None,
        kept=tuple(policy.kept_columns),
        generalised=tuple(policy.generalised_columns),
    )


def _view_table(tabulation: Tabulation) -> TableView:
    table, step = tabulation.table, float(tabulation.step)
    return TableView(
        name=tabulation.name,
        by=table.columns,
        sum=table.sum,
        epsilon=None if table.epsilon is None else str(table.epsilon),
        rho=None if table.rho is None else str(table.rho),
        step=exact_text(tabulation.step),
        weight=table.weight,
        levels=tuple(
            LevelView(number, cells, noise.name, noise.magnitude * step)
            for number, cells, noise in zip(tabulation.levels, tabulation.shape.cells, tabulation.noise, strict=True)
        ),
    )


def _view_bound(plan: Plan, scope: str) -> BoundView:
    """Return what `release_loss` charges in a wider scope."""
    policy = plan.policy
    if not policy.adds_up or (scope == "table" and not policy.covers_table):
        return BoundView(bounded=False, epsilon=None)
    if plan.rows is None and depends_on_records(policy):
        return BoundView(bounded=True, epsilon=None)
    nano = release_loss(policy, records=plan.rows or 0).of(policy.definition, scope)
    return BoundView(bounded=nano is not None, epsilon=None if nano is None else format_nano(policy.in_epsilon(nano)))
