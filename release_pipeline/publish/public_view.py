"""The card of one release, from the policy, the registry's public facts and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from release_pipeline import __version__
from release_pipeline.analyst import explain_kit, law_of
from release_pipeline.analyst.facts import ANYWHERE, INSIDE, MISSING
from release_pipeline.analyst.facts import read_facts as read_card
from release_pipeline.errors import Blocked
from release_pipeline.formats.about import cite
from release_pipeline.formats.card import (
    Anonymity,
    Audience,
    Budget,
    Card,
    Claim,
    ColumnView,
    Definition,
    EntryLabel,
    Groups,
    Hashes,
    Looks,
    Method,
    PolicyName,
    RegistryHead,
    Rows,
    Scope,
    Series,
    Suppression,
    SwappedView,
    WiderScope,
)
from release_pipeline.formats.package import PackageView, files_of, view_table
from release_pipeline.formats.told import view_about
from release_pipeline.ledger.facts import PublicFacts, claimed_nano, read_facts
from release_pipeline.ledger.looks import Look, find_gap_before, find_looks_before
from release_pipeline.ledger.policies import open_population, read_caps
from release_pipeline.ledger.states import ReleaseStatus, read_statuses
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.basis.dates import DATE, MOMENT
from release_pipeline.pipeline.tables import list_data
from release_pipeline.policy import Policy
from release_pipeline.policy.families import find_family
from release_pipeline.policy.families.base import ColumnPlan, Plan, describe_block
from release_pipeline.policy.file.about import name_readers
from release_pipeline.policy.file.published import labels_of, may_be_blanked
from release_pipeline.policy.kinds import GeneraliseColumn
from release_pipeline.policy.kinds.base import SUPPRESSED, ReleasedAs, reason_column
from release_pipeline.policy.plans.loss import sum_series
from release_pipeline.policy.plans.plan import (
    describe_claim,
    describe_scopes,
    make_plan,
    not_covered_words,
    state_claim,
)
from release_pipeline.policy.values.formats import decimal_text, name_some
from release_pipeline.publish import wording
from release_pipeline.publish.public import complete_card, render_card_json
from release_pipeline.sentences import PUBLIC
from release_pipeline.store.ledger import charges_of
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.store.site import Site

_TYPES: Mapping[ReleasedAs, str] = {  # as the card says it
    "number": "number",
    "whole number": "integer",
    "text": "string",
    "date": DATE,
    "moment": MOMENT,
}


def build_view(site: Site, events: Sequence[Event], status: ReleaseStatus, policy: Policy) -> PackageView:
    """The card and files of a candidate that is being published, as of the last of these events, which its package names."""
    # Such a policy is never approved, but a site without trusted keys makes candidates of it.
    if policy.about is None or policy.audience is None:
        raise Blocked(
            "its policy does not say what the data are, or who may read them.",
            where=str(status.id),
            remedy=f"Add it: 'release-pipeline check policies/{policy.policy}.yaml --skeleton' prints what is missing.",
        )
    intent, release = events[-1], str(status.id)
    facts = read_facts(status.facts, where=release)
    plan = make_plan(policy, rows=facts.rows_in)
    about = view_about(policy.about, policy)
    card = Card(
        headline=find_family(policy.protect).describe_headline(policy) or None,
        looks=_tell_looks(find_looks_before(events, status.id)),
        about=replace(about, citation=cite(about, release, intent.noted)),
        audience=Audience(readers=name_readers(policy.audience), terms=policy.terms),
        release=release,
        published=intent.noted,
        supersedes=_find_published_before(events, status.id),
        tool=f"release-pipeline {__version__}",
        policy=PolicyName(name=policy.policy, steward=policy.steward),
        population=policy.population,
        claim=_make_claim(policy, plan, status, find_gap_before(events, status.id)),
        method=Method(
            name=policy.protect.method,
            words=find_family(policy.protect).describe_method(policy),
            paper=policy.method.paper,
            consistency=policy.consistency,
            values=INSIDE if policy.clamps else ANYWHERE,
            grid="on" if policy.lies_on_grid else "off",
        ),
        k=Groups(value=policy.protect.k, words=wording.describe_k(policy)),
        anonymity_k=Anonymity(value=facts.anonymity_k),
        series=_make_series(site, events, policy),
        parts=tuple(wording.list_parts(policy)),
        swap=_view_swap(policy),
        rows=Rows(in_=facts.rows_in, out=facts.rows_out),
        suppression=Suppression(words=wording.describe_suppression(policy), cells_blanked=facts.cells_blanked),
        columns=tuple(_list_columns(policy, plan, facts)),
        tables=tuple(
            view_table(tabulation, records=policy.records_per_person, by_rho=policy.protect.by_rho)
            for tabulation in policy.tabulations.values()
        ),
        how_to_use=tuple(wording.list_uses(policy, together=facts.together > 0, blanked=facts.cells_blanked > 0)),
        formats=tuple(policy.publish.formats),
        hashes=Hashes(policy=status.policy_hash, candidate=str(status.candidate_hash)),
        registry_head=RegistryHead(event=intent.number, hash=intent.hash, first=events[0].hash),
    )
    package = PackageView(
        card,
        hierarchies=tuple(_list_hierarchies(policy)),
        counts=files_of(policy.method.family, together=facts.together > 0),
        data_files=tuple(_count_files(site.candidate(release), policy)),
    )
    return _with_kit(complete_card(package))


def _make_claim(policy: Policy, plan: Plan, status: ReleaseStatus, gap: tuple[str, str] | None) -> Claim:
    claimed = claimed_nano(policy, status.charge)
    return Claim(
        words=describe_claim(policy),
        statement=state_claim(policy),
        definition=Definition(name=policy.definition, words=policy.claim.definition.name),
        neighbours=wording.describe_neighbours(policy),
        records_per_person=policy.records_per_person,
        privacy_unit=policy.privacy_unit,
        record_count=policy.record_count,
        epsilon=Budget(
            total=None if claimed is None else format_nano(policy.in_epsilon(claimed)),
            delta=None if policy.delta is None else decimal_text(policy.delta),
            rho=None if policy.delta is None or claimed is None else format_nano(claimed),
        ),
        scope=Scope(name=policy.protect.scope),
        wider=tuple(WiderScope(scope=scope, bound=bound) for scope, bound in describe_scopes(plan)),
        not_protected=(*not_covered_words(policy), *_tell_gap(gap)),
    )


def _make_series(site: Site, events: Sequence[Event], policy: Policy) -> Series:
    charges = charges_of(events)
    account = open_population(read_caps(site), policy.population, charges)
    series = sum_series(policy, [charge.loss for charge in charges if charge.id.policy == policy.policy])
    return Series(
        epsilon=wording.describe_series(policy, series),
        population_spent=account.spent,
        cap=account.limit,
        cap_unit=account.unit,
    )


def _view_swap(policy: Policy) -> SwappedView | None:
    """How values changed places, and whose a row has; None where they did not."""
    if policy.swap is None:
        return None
    within, columns = tuple(policy.released_quasi), tuple(policy.swapped_columns)
    words = PUBLIC("swap.words", columns=name_some(columns), people=describe_block(policy))
    return SwappedView(policy.swap.k, policy.block_size, within, columns, words)


def _count_files(candidate: Path, policy: Policy) -> Iterator[tuple[str, int]]:
    """In how many files the rows lie, of formats where it is not one."""
    for form in policy.publish.formats:
        if (count := len(list_data(candidate, form))) > 1:
            yield form, count


def _tell_gap(gap: tuple[str, str] | None) -> Iterator[str]:
    """That looks may be lost, where a backup was put back and not all is known that came after it."""
    if gap is not None:
        yield PUBLIC("looks.lost", made=gap[0][:10], restored=gap[1][:10])


def _tell_looks(looks: Sequence[Look]) -> Looks | None:
    """How many looks at the data came before the charge, and when the last; who looked, and what was compared, is for
    the people of the site."""
    if not looks:
        return None
    runs = sum(look.on == "run" for look in looks)
    return Looks(count=len(looks), runs=runs, last=looks[-1].noted[:10])


def _with_kit(package: PackageView) -> PackageView:
    """The package, its card with what the analyst's kit says of it, which reads the card."""
    card = package.card
    facts = read_card(json.loads(render_card_json(card)))
    columns = tuple(
        replace(column, law=law_of(facts, column.name).description) if column.name in facts.masked else column
        for column in card.columns
    )
    return replace(package, card=replace(card, columns=columns, analysis=tuple(explain_kit(facts))))


def _of_person(policy: Policy, nano: int) -> int:
    """What a column costs a person with all of their records."""
    records = policy.records_per_person
    return nano * (records * records if policy.protect.by_rho else records)


def _find_published_before(events: Sequence[Event], release: ReleaseId) -> str | None:
    """The last earlier revision that is published, if there is one."""
    mine = [
        known
        for known in read_statuses(events).values()
        if (known.id.policy, known.id.release) == (release.policy, release.release)
    ]
    before = [known.id for known in mine if known.id.revision < release.revision and known.state in ("published", "superseded")]
    return str(max(before)) if before else None


def _list_hierarchies(policy: Policy) -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """The rows of each hierarchy that can be listed, and the file of the package that they go to."""
    used: list[str] = []
    for name, column in policy.generalised_columns.items():
        rows = column.list_rows()
        if rows is not None and name not in policy.cut_columns:  # whose labels are ranges that no list has
            slug = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-") or "column"
            names = (slug, *(f"{slug}-{number}" for number in range(2, len(policy.columns) + 2)))
            used.append(next(name for name in names if name not in used))
            yield f"hierarchy-{used[-1]}.csv", tuple(rows)


def _list_columns(policy: Policy, plan: Plan, facts: PublicFacts) -> Iterator[ColumnView]:
    """The columns of the data, in their order."""
    masks = {part.name: part for part in plan.columns}
    for name, column in policy.released_columns.items():
        view = ColumnView(
            name,
            column.role,
            "centroid" if column.do == "noise" and not policy.column_epsilon else column.do,
            _TYPES[column.released_as],
            column.why or "",
            domain=column.domain_texts,
            grid=column.grid_text,
            values=column.value_texts,
            missing=wording.describe_missing(policy, name),
            atoms=column.atom_texts,
            label=column.label,
            description=column.description,
            unit=column.unit,
            question=column.question,
            labels=tuple(EntryLabel(*entry) for entry in labels_of(column).items()),
        )
        if (mask := masks.get(name)) is not None:
            view = _with_noise(view, policy, mask)
        elif (coarser := policy.generalised_columns.get(name)) is not None:
            view = _with_levels(view, policy, coarser, facts.levels.get(name))
        yield view
        if column.separate_reasons:
            reasons = (*column.reasons, *([SUPPRESSED] if may_be_blanked(column, policy.suppress) else []))
            why = PUBLIC("missing.why_column", column=name)
            yield ColumnView(reason_column(name), column.role, MISSING, "string", why, values=reasons)


def _with_noise(view: ColumnView, policy: Policy, mask: ColumnPlan) -> ColumnView:
    """A masked column with its part of the budget and the size of its noise."""
    column = policy.noise_columns[view.name]
    cost = None if mask.epsilon is None else format_nano(_of_person(policy, mask.epsilon.nano))
    by_value = find_family(policy.protect).publishes_counts and not policy.protect.is_synthetic
    return replace(
        view,
        epsilon=cost if policy.delta is None else None,
        rho=None if policy.delta is None else cost,
        noise=None if mask.epsilon is None else mask.noise_words,
        centre=column.say_units(column.exact_centre) if by_value else None,
    )


def _with_levels(view: ColumnView, policy: Policy, column: GeneraliseColumn, level: str | None) -> ColumnView:
    """A generalised column with its hierarchy, and the level of all records where they have one."""
    return replace(
        view,
        hierarchy=wording.describe_hierarchy(policy, view.name, column, level),
        levels=() if view.name in policy.cut_columns else column.hierarchy.level_words,
        level=int(level.split()[0]) if level else None,
    )
