"""What is told to the public of one release, from the policy, the registry's public facts and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from release_pipeline import __version__
from release_pipeline.analyst import Facts, explain_kit, law_of
from release_pipeline.analyst.facts import ANYWHERE, INSIDE, ColumnFacts
from release_pipeline.flow.admission import open_account
from release_pipeline.flow.facts import PublicFacts, claimed_nano, read_facts
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import Standing, read_standings
from release_pipeline.policy import Policy
from release_pipeline.policy.atoms import keeps_atoms, list_atoms
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.formats import decimal_text, name_some
from release_pipeline.policy.hierarchies import list_rows
from release_pipeline.policy.kinds import GeneraliseColumn, MissingCategory, NoiseColumn
from release_pipeline.policy.loss import sum_series
from release_pipeline.policy.options import DpMdavOptions, KEpsilonOptions, MdavOptions
from release_pipeline.policy.plan import make_plan
from release_pipeline.policy.statements import state_claim
from release_pipeline.policy.suppression import Suppress, SuppressClasses
from release_pipeline.policy.words import (
    charge_words,
    describe_claim,
    describe_method,
    describe_scopes,
    describe_suppression,
    not_covered_words,
)
from release_pipeline.privacy.budget import format_nano
from release_pipeline.report.view import ColumnView, PublicView
from release_pipeline.stages.package import ALWAYS_ON_GRID, ON_GRID
from release_pipeline.stages.ways.parts import UNITED
from release_pipeline.store.ledger import charges_of
from release_pipeline.store.registry import Event, ReleaseId

COVERED = {
    "dp": ". Epsilon is for all the records that one person may have; g such people together lose at most g times as much",
    "idp": "",
}
NO_NEIGHBOURS = "the claim compares no two tables: it counts how many records share their masked values"
WITHIN = "the claim compares the records of one class, as what one masked record could come from. It compares no two tables"
NONE = "none: a record without a value would have stopped the release"
BLANKED = "blank where that protects a small group"
PAPERS = {
    "laplace": "Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, TCC 2006",
    "dp-um": "Sanchez et al., Utility-preserving differentially private data releases via individual ranking microaggregation, "
    "Information Fusion 30, 2016",
    "dp-mdav": "Soria-Comas et al., Improving the Utility of Differentially Private Data Releases via k-Anonymity, TrustCom 2013",
    "mdav": "Domingo-Ferrer and Torra, Ordinal, Continuous and Heterogeneous k-Anonymity through Microaggregation, Data "
    "Mining and "
    "Knowledge Discovery 11, 2005",
    "k-epsilon": "Holohan et al., (k,epsilon)-Anonymity: k-Anonymity with epsilon-Differential Privacy, arXiv 1710.01615, 2017",
    "idp-ls": "Soria-Comas et al., Conciliating Privacy and Utility in Data Releases via Individual Differential Privacy and "
    "Microaggregation, Transactions on Data Privacy 18, 2025 (Prop. 8)",
    "idp-cbls": "Soria-Comas et al., Conciliating Privacy and Utility in Data Releases via Individual Differential Privacy and "
    "Microaggregation, Transactions on Data Privacy 18, 2025 (Prop. 9)",
}


def build_view(site: Site, events: Sequence[Event], standing: Standing, policy: Policy) -> PublicView:
    """The public view of a candidate that is being published, as of the last of these events, which its package names."""
    intent = events[-1]
    protect, facts = policy.protect, read_facts(standing.facts, where=str(standing.id))
    plan = make_plan(policy, rows=facts.rows_in)
    charges = charges_of(events)
    account = open_account(read_caps(site), policy, charges)
    series = sum_series(policy, [charge.loss for charge in charges if charge.id.policy == policy.policy])
    claimed = claimed_nano(policy, standing.charge)
    return PublicView(
        release=str(standing.id),
        policy=policy.policy,
        steward=policy.steward,
        population=policy.population,
        published=intent.noted,
        tool=f"release-pipeline {__version__}",
        method=protect.method,
        method_words=describe_method(policy),
        paper=PAPERS[protect.method],
        definition=policy.definition,
        definition_words=policy.claim.definition.name,
        neighbours=_neighbours(policy),
        claim=describe_claim(policy),
        statement=state_claim(policy),
        epsilon=None if claimed is None else format_nano(claimed),
        records_per_person=policy.records_per_person,
        scope=protect.scope,
        wider=tuple(describe_scopes(plan)),
        k=protect.k,
        k_words=_k_words(policy),
        anonymity_k=facts.anonymity_k,
        consistency=policy.consistency,
        series_epsilon=_series_epsilon(policy, series),
        cap=account.limit,
        cap_unit=account.unit,
        population_spent=account.spent,
        rows_in=facts.rows_in,
        rows_out=facts.rows_out,
        cells_blanked=facts.cells_blanked,
        suppression=_suppression_words(policy),
        not_protected=tuple(not_covered_words(policy)),
        how_to_use=tuple(_how_to_use(policy)),
        columns=tuple(_column(policy, name, plan, facts) for name in policy.released_columns),
        formats=tuple(policy.publish.formats),
        policy_hash=standing.policy_hash,
        candidate_hash=str(standing.candidate_hash),
        head_event=intent.number,
        head_hash=intent.hash,
        supersedes=_find_published_before(events, standing.id),
        diversity=protect.l if isinstance(protect, KEpsilonOptions) else None,
        hierarchies=tuple(_list_hierarchies(policy)),
        parts=tuple(_part_words(policy, facts, standing)),
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
    return policy.protect.method in ALWAYS_ON_GRID or facts.values == ON_GRID


def _atom_texts(column: NoiseColumn) -> tuple[str, ...]:
    return tuple(decimal_text(atom) for atom in column.atoms)


def _neighbours(policy: Policy) -> str:
    if isinstance(policy.protect, KEpsilonOptions):
        return WITHIN
    if isinstance(policy.protect, MdavOptions):
        return NO_NEIGHBOURS
    return "two tables are neighbours when one record is replaced; their number of records is public" + COVERED[policy.definition]


def _part_words(policy: Policy, facts: PublicFacts, standing: Standing) -> Iterator[str]:
    """What random parts mean for a reader, the two bounds of amplification side by side."""
    if policy.parts == 1:
        return
    if not policy.publishes_parts:
        yield from _whole_part_words(policy, facts)
    else:
        yield f"This is part {facts.part} of one confidential table, chosen at random: no record is in two parts"
    if policy.adds_up:
        yield "One change of a record is in one part, so that all parts together cost what one costs"
    if not policy.publishes_parts or not policy.adds_up:
        return
    yield f"Charged: {'; '.join(charge_words(policy, standing.charge.records if standing.charge else None))}"
    if policy.protect.amplification is not None:
        yield "Until the last part is out, nobody may learn who is in which: the smaller charge rests on that"


def _whole_part_words(policy: Policy, facts: PublicFacts) -> Iterator[str]:
    """Of random parts that are all in one release."""
    put = f"The records were put into {policy.parts} parts at random, and each part was"
    if not isinstance(policy.protect, KEpsilonOptions):
        yield f"{put} masked on its own"
        return
    yield f"{put} grouped on its own"
    if facts.classes == UNITED:
        yield "A class is all records with the same labels, of whatever parts, and its noise is as large as all of them are apart"
    else:  # a candidate of an earlier version
        yield (
            "A class is the records of one part with the same labels: the claim says nothing of two records with the same "
            "labels in different parts, whose noise may differ so much that their values tell them apart"
        )


def _k_words(policy: Policy) -> str:
    if isinstance(policy.protect, KEpsilonOptions):
        return f"records in every class at least: k-anonymity on {name_some(policy.generalised_columns)}"
    if isinstance(policy.protect, MdavOptions):
        return f"records in every cluster at least: k-anonymity on {name_some(policy.noise_columns)} together"
    if isinstance(policy.protect, DpMdavOptions):
        return "records per cluster of all masked columns together; not k-anonymity"
    return "records per cluster of one column; not k-anonymity" if policy.protect.k else "the method makes no clusters"


def _series_epsilon(policy: Policy, series: int | None) -> str | None:
    if not policy.adds_up:
        return None
    return "infinity" if series is None else format_nano(series)


def _suppression_words(policy: Policy) -> str:
    rule = policy.suppress
    if isinstance(rule, Suppress):
        return f"groups of released quasi-identifiers below {rule.quasi_groups_below} lose a cell, or else the record"
    return "none" if rule is None else describe_suppression(policy)


def _how_to_use(policy: Policy) -> Iterator[str]:
    """What an analyst must know to draw right conclusions, from the policy alone."""
    if isinstance(policy.protect, KEpsilonOptions):
        yield (
            "The labels of the generalised columns are exact and coarse: analyse them as categories, and keep in mind that finer "
            "differences inside a label are gone."
        )
        yield "Each masked value is one record's own with noise; the noise is larger in classes that spread more."
        yield (
            "Where many masked values stand at an end of their domain, noise was moved back into it: means and totals are then "
            "drawn towards the middle of the domain, and medians are safer."
        )
        yield "The label * stands for every value."
    elif isinstance(policy.protect, MdavOptions):
        yield f"Treat the masked values of a row as the means of {policy.protect.k} or more records like it, not as one person's."
        yield "Grouping takes away the spread within the clusters: do not read extremes, variances or tails from it."
    elif isinstance(policy.protect, DpMdavOptions):
        yield f"Treat the masked values of a row as those of a group of {policy.protect.k} or more records, not as one person's."
        yield "Grouping takes away the spread within the groups: do not read extremes from it."
    elif policy.protect.k:
        for name, column in policy.noise_columns.items():
            if column.atoms and keeps_atoms(policy):
                yield (
                    f"Of {name} records at {list_atoms(column)} were left there, and can be counted. Noise may have brought "
                    "others, above all to an end of the domain: where records are few the count can be too large."
                )
        yield (
            f"Treat a masked value as that of a group of {policy.protect.k} or more records that are neighbours in its column, "
            "not as one person's."
        )
        yield "Grouping takes away the spread within the groups, above all at the ends of a column: do not read extremes from it."
    else:
        yield "Treat a masked value as one that was measured with the noise named here, not as one person's."
    if policy.definition != "k-epsilon":
        yield "Prefer means, quantiles and models over many records."
    if isinstance(policy.protect, DpMdavOptions):
        yield "Links between masked columns can come out stronger than they are, by the common clusters, or weaker, by the noise."
    elif not isinstance(policy.protect, MdavOptions):
        yield "Links between masked columns come out weaker than they are."
    if isinstance(policy.suppress, SuppressClasses):
        yield "Records are missing where classes were small, or where a record stood out in its class: not at random."
    elif policy.suppress is not None:
        yield "Blank cells protect small groups: they are not missing at random."
    if policy.releases != "once":
        yield "Rows of two releases do not belong together: each is in a random order of its own."
    if policy.publishes_parts:
        parts = policy.parts
        yield f"This is one of {parts} random parts. For a total of the whole table take {parts} times its, or add all up."
        yield "The parts of the series can be put together: no record is in two of them."
        return
    if not policy.adds_up:
        yield "Do not combine releases about the same people: nothing bounds what they tell together."
        return
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


def _generalised(policy: Policy, name: str, column: GeneraliseColumn, facts: PublicFacts) -> ColumnView:
    level = facts.levels.get(name)
    filled = NONE if column.missing_entry is None else f"missing entries have the label '{column.missing_entry}'"
    is_cut = name in policy.cut_columns
    labels = "as the range of each class's own numbers" if is_cut else "with labels of several levels side by side"
    how = f"at level {level} for all records" if level else f"class by class, {labels}"
    ladder = () if is_cut else column.hierarchy.level_words
    return ColumnView(
        name,
        column.role,
        "generalise",
        "string",
        column.why or "",
        missing=filled,
        hierarchy=f"{column.hierarchy.words}; released {how}",
        levels=ladder,
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
        filled = NONE if isinstance(column.missing, str) else f"missing values were set to {column.missing.fill:f}"
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
            missing=filled,
            law=law_of(_facts_of(policy, facts), name).words,
            atoms=_atom_texts(column),
        )
    filled = f"missing entries are {column.missing.category}" if isinstance(column.missing, MissingCategory) else NONE
    if isinstance(policy.suppress, Suppress) and column.role == "quasi":
        filled = BLANKED if filled == NONE else f"{filled}; {BLANKED}"
    kind = "integer" if column.integers else "string"
    values = tuple(str(value) for value in column.values)
    return ColumnView(name, column.role, "keep", kind, column.why, values=values, missing=filled)
