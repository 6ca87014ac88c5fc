"""What is told to the public of one release, from the policy, the registry's public facts and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from release_pipeline import __version__
from release_pipeline.flow.admission import open_account
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import Standing, read_standings
from release_pipeline.policy import Policy
from release_pipeline.policy.model import KeepColumn, MissingCategory, NoiseColumn
from release_pipeline.policy.plan import (
    DEFINITION_NAME,
    METHOD_NAME,
    ColumnPlan,
    describe_claim,
    describe_scopes,
    make_plan,
    not_covered_words,
    show_figure,
)
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.methods import DEFINITION
from release_pipeline.report.view import ColumnView, PublicView
from release_pipeline.store.ledger import charges_of
from release_pipeline.store.registry import Event, ReleaseId

NONE = "none: a record without a value would have stopped the release"
BLANKED = "blank where that protects a small group"
PAPERS = {
    "laplace": "Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, TCC 2006",
    "dp-um": "Sanchez et al., Utility-preserving differentially private data releases via individual ranking microaggregation, "
    "Information Fusion 30, 2016",
    "idp-ls": "Soria-Comas et al., Conciliating Privacy and Utility in Data Releases via Individual Differential Privacy and "
    "Microaggregation, Transactions on Data Privacy 18, 2025 (Prop. 8)",
    "idp-cbls": "Soria-Comas et al., Conciliating Privacy and Utility in Data Releases via Individual Differential Privacy and "
    "Microaggregation, Transactions on Data Privacy 18, 2025 (Prop. 9)",
}


def build_view(site: Site, events: Sequence[Event], standing: Standing, policy: Policy) -> PublicView:
    """The public view of a candidate that is being published, as of the last of these events, which its package names."""
    intent = events[-1]
    protect, facts = policy.protect, standing.facts
    definition = DEFINITION[protect.method]
    rows_in = int(facts["rows_in"])
    plan = make_plan(policy, rows=rows_in)
    charges = charges_of(events)
    account = open_account(read_caps(site), policy, charges)
    series = [charge.loss.of(definition, protect.scope) for charge in charges if charge.id.policy == policy.policy]
    rule = policy.suppress
    return PublicView(
        release=str(standing.id),
        policy=policy.policy,
        steward=policy.steward,
        population=policy.population,
        published=intent.noted,
        tool=f"release-pipeline {__version__}",
        method=protect.method,
        method_words=METHOD_NAME[protect.method],
        paper=PAPERS[protect.method],
        definition=definition,
        definition_words=DEFINITION_NAME[definition],
        neighbours="two tables are neighbours when one record is replaced; their number of records is public",
        claim=describe_claim(policy),
        epsilon=format_nano(protect.epsilon.nano * policy.records_per_person),
        records_per_person=policy.records_per_person,
        scope=protect.scope,
        wider=tuple(describe_scopes(plan)),
        k=protect.k,
        k_words="records per cluster of one column; not k-anonymity" if protect.k else "the method makes no clusters",
        anonymity_k=facts["anonymity_k"],
        consistency=choose_consistency(protect.consistency, method=protect.method, scope=protect.scope),
        series_epsilon="infinity" if None in series else format_nano(sum(part or 0 for part in series)),
        cap=account.limit,
        cap_unit=account.unit,
        population_spent=account.spent,
        rows_in=rows_in,
        rows_out=int(facts["rows_out"]),
        cells_blanked=int(facts["cells_blanked"]),
        suppression=f"groups of released quasi-identifiers below {rule.quasi_groups_below} lose a cell, or else the record"
        if rule
        else "none",
        not_protected=tuple(not_covered_words(policy)),
        how_to_use=tuple(_how_to_use(policy)),
        columns=tuple(_column(policy, name, {part.name: part for part in plan.columns}) for name in _released(policy)),
        formats=tuple(policy.publish.formats),
        policy_hash=policy.canonical_hash(),
        candidate_hash=str(standing.candidate_hash),
        head_event=intent.number,
        head_hash=intent.hash,
        supersedes=_find_published_before(events, standing.id),
    )


def _how_to_use(policy: Policy) -> Iterator[str]:
    """What an analyst must know to draw right conclusions, from the policy alone."""
    if policy.protect.k:
        yield (
            f"Treat a masked value as that of a group of {policy.protect.k} or more records that are neighbours in its column, "
            "not as one person's."
        )
        yield "Grouping takes away the spread within the groups, above all at the ends of a column: do not read extremes from it."
    else:
        yield "Treat a masked value as one that was measured with the noise named here, not as one person's."
    yield "Prefer means, quantiles and models over many records. Links between masked columns come out weaker than they are."
    if policy.suppress is not None:
        yield "Blank cells protect small groups: they are not missing at random."
    if policy.releases != "once":
        yield "Rows of two releases do not belong together: each is in a random order of its own."
    yield "Whatever you compute from these data costs no further privacy. Whoever combines releases adds up their epsilons."


def _find_published_before(events: Sequence[Event], release: ReleaseId) -> str | None:
    """The last earlier revision that is published, if there is one."""
    mine = [
        known
        for known in read_standings(events).values()
        if (known.id.policy, known.id.release) == (release.policy, release.release)
    ]
    before = [known.id for known in mine if known.id.revision < release.revision and known.state in ("published", "superseded")]
    return str(max(before)) if before else None


def _released(policy: Policy) -> list[str]:
    return [name for name in policy.columns if name in policy.noise_columns or name in policy.kept_columns]


def _column(policy: Policy, name: str, plans: dict[str, ColumnPlan]) -> ColumnView:
    column = policy.columns[name]
    if isinstance(column, NoiseColumn):
        plan = plans[name]
        bound = "at most " if plan.worst_case else ""
        noise = "depends on the number of rows" if plan.noise is None else f"{bound}{show_figure(plan.noise)}"
        low, high = (format(edge, "f") for edge in column.domain)
        filled = NONE if isinstance(column.missing, str) else f"missing values were set to {column.missing.fill:f}"
        return ColumnView(
            name,
            column.role,
            "noise",
            "number",
            column.why,
            domain=(low, high),
            grid=format(column.grid, "f"),
            epsilon=format_nano(policy.column_epsilon[name].nano * policy.records_per_person),
            noise=noise,
            missing=filled,
        )
    assert isinstance(column, KeepColumn)  # noqa: S101  only these two are released
    filled = f"missing entries are {column.missing.category}" if isinstance(column.missing, MissingCategory) else NONE
    if policy.suppress is not None and column.role == "quasi":
        filled = BLANKED if filled == NONE else f"{filled}; {BLANKED}"
    kind = "integer" if column.integers else "string"
    values = tuple(str(value) for value in column.values)
    return ColumnView(name, column.role, "keep", kind, column.why, values=values, missing=filled)
