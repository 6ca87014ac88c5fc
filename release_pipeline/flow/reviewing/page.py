"""The page that reviewers decide from: its view, from the evidence of a candidate and nothing else, so that the same evidence
gives the same page. It lies in the candidate's folder, so that who approves a candidate signs what this page says too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from statistics import fmean, median

from release_pipeline import __version__
from release_pipeline.flow.evidence import AuditFigures, Budget, Claim, Difference, Evidence, GroupMeans
from release_pipeline.flow.reviewing.columns import find_clock, view_columns, view_recomputed, view_sample, view_subgroups
from release_pipeline.flow.reviewing.questions import Question, list_questions, name_attacks
from release_pipeline.flow.told import tell_about, tell_column
from release_pipeline.policy import Policy
from release_pipeline.policy.assessment import Assessment
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import pick
from release_pipeline.policy.kinds.labels import LabelledColumn
from release_pipeline.policy.options import KEpsilonOptions
from release_pipeline.policy.plan import make_plan
from release_pipeline.policy.published import describe_labels
from release_pipeline.policy.statements import state_claim
from release_pipeline.policy.suppression import Suppress
from release_pipeline.policy.table_words import describe_tables
from release_pipeline.policy.words import describe_claim, describe_method, describe_scopes, describe_target
from release_pipeline.privacy.catalogue.definitions import SCALES_FIXED
from release_pipeline.privacy.figures import count_of, count_things, format_count, format_percent, show_figure
from release_pipeline.report.budgets import PopulationView, StepView
from release_pipeline.report.internal import render_internal
from release_pipeline.report.internal_view import (
    AttackView,
    ClaimView,
    ClassesView,
    CriterionView,
    DiscriminationView,
    GateView,
    GroupMeansView,
    GroupMeanView,
    HierarchyView,
    InternalView,
    LookView,
    MapPoint,
    NearView,
    PredictionView,
    StructureView,
    SuppressionView,
    SwapView,
    TieView,
)
from release_pipeline.sentences import REVIEWERS
from release_pipeline.stages.gates import BLOCKED, NOBODYS, Gate

REPORT = "report.html"
NOTHING = AuditFigures(error={}, absolute_error={}, ks={}, wasserstein={}, curves={}, spread={})
BEFORE_CHARGE, AFTER_CHARGE = "before the charge", "after the charge"
_STOPPED: Mapping[str, Callable[[], str]] = {
    BEFORE_CHARGE: lambda: REVIEWERS("verdict.before_charge"),
    AFTER_CHARGE: lambda: REVIEWERS("verdict.after_charge"),
}


def render_report(policy: Policy, evidence: Evidence, *, stopped_at: str = "") -> str:
    """The page of a candidate's evidence; with `stopped_at`, of a release that gates stopped."""
    return render_internal(build_internal_view(policy, evidence, stopped_at=stopped_at))


def build_internal_view(policy: Policy, evidence: Evidence, *, stopped_at: str = "") -> InternalView:
    """All that the page says, from evidence; what was not measured before gates stopped a release is empty."""
    audit = evidence.figures_of(AuditFigures) if evidence.audit else NOTHING
    facts = evidence.facts
    linked = audit.rank_correlations or audit.correlations
    view = InternalView(
        release=evidence.release,
        policy=policy.policy,
        tool=f"release-pipeline {__version__}",
        claim=describe_claim(policy),
        definition=policy.claim.definition.name,
        wider=tuple(describe_scopes(make_plan(policy, rows=facts.get("rows_in")))),
        method_words=describe_method(policy),
        candidate_hash_words="" if stopped_at else REVIEWERS("page.part_of_candidate"),
        before_charge=stopped_at == BEFORE_CHARGE,
        stopped_at=_STOPPED[stopped_at]() if stopped_at in _STOPPED else stopped_at,
        gates=(*_met_before(policy, evidence), *map(_view_gate, evidence.gates)),
        decide=(),
        warnings=evidence.warnings,
        columns=tuple(view_columns(policy, evidence, audit)) if evidence.audit else (),
        sse_paper=audit.sse_paper,
        linkage=audit.record_linkage,
        linkage_chance=audit.record_linkage_by_chance,
        linkage_words=_linkage_words(policy),
        attacked=None if (sample := audit.attacked_sample) is None else (sample.tried, sample.among),
        linkage_ladder=audit.linkage_ladder or evidence.foreseen_ladder,
        attacks=tuple(_view_attacks(policy, audit)),
        map=tuple(_view_map(evidence, audit)) if evidence.audit else (),
        correlations=linked if linked and len(linked.names) > 1 else None,
        are_ranks=audit.rank_correlations is not None,
        classes=_view_classes(policy, audit),
        discrimination=tuple(_view_discrimination(audit)),
        predictions=tuple(_view_predictions(policy, audit)),
        prediction_words=_prediction_words(policy, audit),
        subgroups=tuple(view_subgroups(policy, evidence, audit)),
        suppression=_view_suppression(policy, evidence, audit),
        budget=_view_budget(evidence.budget),
        ladders=tuple(_view_ladders(policy, evidence)),
        ladder_words=tuple(_ladder_words(policy, audit)),
        released_range="" if policy.clamps else REVIEWERS("distributions.left_outside"),
        rows_in=int(facts.get("rows_in", 0)),
        generalises=bool(policy.generalised_columns),
        clusters=policy.protect.k is not None,
        statement=state_claim(policy),
        scales=SCALES_FIXED if policy.definition == "idp" else "",
        sample=view_sample(policy, audit),
        has_weights=policy.weight is not None,
        tables=tuple(describe_tables(policy)),
        ties=tuple(TieView(tie.name, tie.words, tie.before, tie.after) for tie in audit.ties),
        recomputed=tuple(view_recomputed(policy, audit)),
        rows_out=int(facts.get("rows_out", 0)),
        labels=tuple(describe_labels(policy.columns)),
        structure=_view_structure(policy, audit),
        nearest=_view_nearest(audit),
        is_synthetic=policy.protect.is_synthetic,
        swap=_view_swap(policy, audit),
        looks=tuple(LookView(look.noted[:10], look.by, look.on, look.compared) for look in evidence.looks),
        about=None if policy.about is None else tell_about(policy.about, policy),
        output_check=tuple(_answer_output_check(policy, evidence)),
        column_words=tuple(tell_column(name, column) for name, column in pick(policy.columns, LabelledColumn).items()),
        criteria=tuple(
            CriterionView(
                one.criterion,
                one.attack,
                one.rate,
                one.guess,
                one.control,
                one.beyond,
                one.foreseen,
                one.most,
                one.limit,
            )
            for one in evidence.criteria
        ),
    )
    return replace(view, decide=tuple(question.words for question in list_questions(view, is_dp=policy.adds_up)))


def _answer_output_check(policy: Policy, evidence: Evidence) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What an output checker asks by the five safes, each with its answers."""
    assessment, facts = policy.assessment or Assessment(), evidence.facts
    unstated = REVIEWERS("safes.not_stated")
    purpose = REVIEWERS("safes.purpose", words=assessment.purpose or unstated)
    basis = REVIEWERS("safes.lawful_basis", words=assessment.lawful_basis or unstated)
    yield REVIEWERS("safes.projects"), (purpose, basis)
    reviewers = count_of(policy.review.reviewers, "reviewer")
    yield REVIEWERS("safes.people"), (REVIEWERS("safes.reviewers", steward=policy.steward, reviewers=reviewers),)
    environment = REVIEWERS("safes.environment", words=assessment.environment or unstated)
    yield REVIEWERS("safes.settings"), (environment, REVIEWERS("safes.controls", words=assessment.controls or unstated))
    trials = REVIEWERS("safes.trials", trials=format_count(len(evidence.looks)))
    rows: tuple[str, ...] = ()
    if "rows_out" in facts:
        rows_in, rows_out = (count_things(int(facts[name]), "record") for name in ("rows_in", "rows_out"))
        rows = (REVIEWERS("safes.rows", rows_in=rows_in, rows_out=rows_out),)
    yield REVIEWERS("safes.data"), (*rows, trials)
    checks = tuple(
        REVIEWERS("safes.family", family=family, checks=count_of(count, "check"))
        for family, count in sorted(evidence.checks_passed.items())
    )
    checks += tuple(
        REVIEWERS("safes.own", expectation=own.type, columns=own.columns or "-", records=count_things(own.broken, "record"))
        for own in evidence.own_suite
    )
    yield REVIEWERS("safes.output"), (*(checks or (REVIEWERS("safes.no_checks"),)), REVIEWERS("safes.limits"))
    yield REVIEWERS("safes.decision"), (assessment.decision or unstated,)


def ask_reviewers(policy: Policy, view: InternalView) -> list[Question]:
    """What a page asks, each with what to weigh it by."""
    return list(list_questions(view, is_dp=policy.adds_up))


def _met_before(policy: Policy, evidence: Evidence) -> Iterator[GateView]:
    """Limits that every release has met that got as far as its table."""
    if policy.gates.min_rows is not None and evidence.facts:
        name = REVIEWERS("gate.records")
        yield GateView(name, evidence.facts["rows_in"], policy.gates.min_rows, True, True, REVIEWERS("basis.counted"))
    for name, limit in policy.clamped_at_most.items():
        if name in evidence.clamping:
            share = evidence.clamping[name].share
            gate, basis = REVIEWERS("gate.clamped", column=name), REVIEWERS("basis.counted")
            yield GateView(gate, share, float(limit), False, share <= float(limit), basis)


def _view_gate(gate: Gate) -> GateView:
    return GateView(
        name=gate.name,
        value=gate.figure,
        limit=gate.limit,
        at_least=gate.at_least,
        passed=gate.passed,
        basis=gate.basis,
        error_of=gate.column if gate.is_of_error else "",
        is_proved=gate.basis in (BLOCKED, NOBODYS),
    )


def _view_attacks(policy: Policy, audit: AuditFigures) -> Iterator[AttackView]:
    """Each attack; of inference, that on every column instead of their mean, which would hide the worst."""
    attackers = name_attacks(is_synthetic=policy.protect.is_synthetic, is_swapped=policy.swap is not None)
    inferring = [audit.inference[name] for name in policy.released_columns if name in audit.inference]
    for attack in (*(attack for attack in audit.attacks if attack.name != "inferring"), *inferring):
        words = next(words for name, words in attackers.items() if attack.name.startswith(name))
        yield AttackView(attack.name, words, attack.attack, attack.control, attack.guess, attack.risk, attack.worst)


def _view_map(evidence: Evidence, audit: AuditFigures) -> Iterator[MapPoint]:
    for point in evidence.predecessors:
        yield MapPoint(point.release, point.error, point.linkage, is_this=False)
    if audit.record_linkage is not None:
        yield MapPoint(evidence.release, median(audit.error.values()), audit.record_linkage.value, is_this=True)


def _view_nearest(audit: AuditFigures) -> NearView | None:
    found = audit.nearest
    if found is None:
        return None
    return NearView(
        found.known,
        found.equal,
        found.strangers_equal,
        _view_difference(found.beyond),
        found.median,
        found.strangers_median,
        tuple(map(_view_claim, found.claims)),
        None if found.overall is None else _view_claim(found.overall),
    )


def _view_claim(claim: Claim) -> ClaimView:
    return ClaimView(claim.name, claim.people, claim.strangers, claim.guess, _view_difference(claim.beyond))


def _view_difference(found: Difference) -> tuple[float, float, float]:
    return found.value, found.low, found.high


def _view_group_means(policy: Policy, found: GroupMeans | None) -> GroupMeansView | None:
    if found is None:
        return None
    worst = tuple(
        GroupMeanView(
            one.by, one.label, one.column, one.original, one.released, one.off, one.records, find_clock(policy, one.column)
        )
        for one in found.worst
    )
    return GroupMeansView(found.mean, found.by_chance, found.compared, worst)


def _view_structure(policy: Policy, audit: AuditFigures) -> StructureView | None:
    found, closest = audit.structure, audit.closest
    if found is None:
        return None
    by_columns = fmean(found.columns.values())
    means = (
        (1, by_columns, found.columns_by_chance),
        (2, found.pairs, found.pairs_by_chance),
        (3, found.triples, found.triples_by_chance),
    )
    return StructureView(
        columns=tuple(found.columns.items()),
        means=tuple((count, value, chance) for count, value, chance in means if value is not None and chance is not None),
        worst=tuple((pair.one, pair.other, pair.distance) for pair in found.worst_pairs),
        triples=found.triples_tried,
        group_means=_view_group_means(policy, found.group_means),
        closest=None
        if closest is None or closest.equal is None or closest.control_equal is None
        else (closest.median, closest.control_median, closest.equal, closest.control_equal),
    )


def _view_classes(policy: Policy, audit: AuditFigures) -> ClassesView | None:
    groups = audit.groups
    if groups is None:
        return None
    return ClassesView(
        quasi=tuple(policy.released_quasi),
        groups=groups.number,
        smallest=groups.smallest,
        mean=groups.mean,
        largest=groups.largest,
        least=max(policy.groups_below, policy.gates.anonymity_k or 0),
        bars=groups.bars,
        diversity=tuple(groups.diversity.items()),
        prosecutor=groups.prosecutor,
        journalist=groups.journalist,
    )


def _view_swap(policy: Policy, audit: AuditFigures) -> SwapView | None:
    if policy.swap is None:
        return None
    blocks, smallest = (audit.suppressed.get(figure, 0) for figure in ("blocks", "smallest_block"))
    return SwapView(policy.swap.k, tuple(policy.swapped_columns), tuple(policy.released_quasi), blocks, smallest)


def _view_discrimination(audit: AuditFigures) -> Iterator[DiscriminationView]:
    sample = audit.model_sample
    if sample is None:
        return
    for found in audit.discrimination:
        ratio = found.pmse / found.by_chance if found.by_chance else None
        yield DiscriminationView(found.model, found.pmse, 0.25, ratio, tried=sample.tried, among=sample.among)


def _view_predictions(policy: Policy, audit: AuditFigures) -> Iterator[PredictionView]:
    for name, found in audit.predictions.items():
        for model in found.models:
            yield PredictionView(
                target=describe_target(policy, name),
                model=model.model,
                released=model.released,
                original=model.original,
                guess=found.guess,
                trained=found.trained,
                tested=found.tested,
            )


def _prediction_words(policy: Policy, audit: AuditFigures) -> str:
    if not policy.audit.predict:
        return REVIEWERS("predictions.not_asked")
    alike = [name for name, found in audit.predictions.items() if not found.models]
    return REVIEWERS("predictions.all_alike", columns=name_some(alike)) if alike else ""


def _view_suppression(policy: Policy, evidence: Evidence, audit: AuditFigures) -> SuppressionView | None:
    rule, facts = policy.suppress, evidence.facts
    if rule is None or not evidence.audit:
        return None
    rows_in, rows_out = int(facts["rows_in"]), int(facts["rows_out"])
    words = REVIEWERS.read_section("suppressed")
    reasons = [(words[name], count) for name, count in audit.suppressed.items() if name in words]
    if isinstance(rule, Suppress):
        dropped, blanked = REVIEWERS("suppression.dropped"), REVIEWERS("suppression.cells_blanked")
        reasons = [(dropped, rows_in - rows_out), (blanked, int(facts["cells_blanked"]))]
    return SuppressionView(
        rows_in=rows_in,
        rows_out=rows_out,
        cells=int(facts["cells_blanked"]),
        share=audit.share_suppressed if audit.share_suppressed is not None else (rows_in - rows_out) / rows_in,
        limit=float(rule.at_most),
        reasons=tuple((words, count) for words, count in reasons if count),
    )


def _view_budget(budget: Budget | None) -> PopulationView | None:
    if budget is None:
        return None
    return PopulationView(
        name=budget.name,
        unit=budget.unit,
        in_releases=budget.in_releases,
        cap=budget.cap,
        spent=budget.spent,
        reserved=0,
        remaining=budget.remaining,
        steps=tuple(StepView(step.release, step.amount, "spent") for step in budget.steps),
    )


def _view_ladders(policy: Policy, evidence: Evidence) -> Iterator[HierarchyView]:
    for name, column in policy.generalised_columns.items():
        figures = evidence.columns.get(name)
        if figures is None:
            continue
        if figures.mean_width is not None:
            yield HierarchyView(name, (REVIEWERS("levels.own_range"),), 0)
        else:
            yield HierarchyView(
                name, column.hierarchy.level_words, figures.mean_level if figures.level is None else figures.level
            )


def _ladder_words(policy: Policy, audit: AuditFigures) -> Iterator[tuple[str, str]]:
    for name, lost in audit.information_loss.items():
        yield REVIEWERS("levels.lost", column=name), format_percent(lost)
    for name, error in audit.relative_error.items():
        if error is not None:
            yield REVIEWERS("levels.relative_error", column=name), show_figure(error)


def _linkage_words(policy: Policy) -> str:
    """What record linkage says under this claim, and what not."""
    if policy.protect.is_synthetic:
        return ""
    if policy.swap is not None:
        return REVIEWERS("attacks.linkage_words_swapped")
    if isinstance(policy.protect, KEpsilonOptions):
        return REVIEWERS("attacks.linkage_words_in_class")
    if policy.adds_up and policy.protect.scope != "table" and policy.protect.k is not None:
        return REVIEWERS("attacks.linkage_words_of_clusters")
    return REVIEWERS("attacks.linkage_words")
