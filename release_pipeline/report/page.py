"""The page that reviewers decide from: its view, from the evidence of a candidate and nothing else, so that the same evidence
gives the same page. It is in the candidate's folder, so that a signature on a candidate also covers this page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from release_pipeline import __version__
from release_pipeline.audit.gates import BLOCKED, NOBODYS, Gate
from release_pipeline.formats.attack_views import CriterionView
from release_pipeline.formats.budgets import PopulationView, StepView
from release_pipeline.formats.evidence import AuditFigures, Budget, Evidence
from release_pipeline.formats.internal_view import (
    ClassesView,
    GateView,
    HierarchyView,
    InternalView,
    PredictionView,
    SuppressionView,
    SwapView,
)
from release_pipeline.formats.told import view_about, view_column
from release_pipeline.mechanisms.basis.figures import count_of, count_things, format_count, format_percent, show_figure
from release_pipeline.mechanisms.catalogue.spec import SCALES_FIXED
from release_pipeline.policy import Policy
from release_pipeline.policy.families import find_family
from release_pipeline.policy.file.about import Assessment
from release_pipeline.policy.file.describe import describe_tables
from release_pipeline.policy.file.options import KEpsilonOptions
from release_pipeline.policy.file.published import describe_labels
from release_pipeline.policy.file.sections import Suppress
from release_pipeline.policy.kinds import pick
from release_pipeline.policy.kinds.base import LabelledColumn
from release_pipeline.policy.plans.plan import (
    describe_claim,
    describe_scopes,
    describe_target,
    make_plan,
    state_claim,
)
from release_pipeline.policy.values.formats import name_some
from release_pipeline.report.columns import view_columns, view_subgroups
from release_pipeline.report.internal import render_internal
from release_pipeline.report.questions import Question, list_questions, name_attacks
from release_pipeline.sentences import REVIEWERS

REPORT = "report.html"
BEFORE_CHARGE, AFTER_CHARGE = "before the charge", "after the charge"
_STOPPED: Mapping[str, Callable[[], str]] = {
    BEFORE_CHARGE: lambda: REVIEWERS("verdict.before_charge"),
    AFTER_CHARGE: lambda: REVIEWERS("verdict.after_charge"),
}


def render_report(policy: Policy, evidence: Evidence, *, stopped_at: str = "") -> str:
    """Return the page of a candidate's evidence; with `stopped_at`, of a release that gates stopped."""
    return render_internal(build_internal_view(policy, evidence, stopped_at=stopped_at))


def build_internal_view(policy: Policy, evidence: Evidence, *, stopped_at: str = "") -> InternalView:
    """Return the content of the page, from evidence; what was not measured before gates stopped a release is empty."""
    audit = evidence.read_audit()
    facts = evidence.facts
    linked = audit.rank_correlations or audit.correlations
    view = InternalView(
        release=evidence.release,
        policy=policy.policy,
        tool=f"release-pipeline {__version__}",
        claim=describe_claim(policy),
        definition=policy.claim.definition.name,
        wider=tuple(describe_scopes(make_plan(policy, rows=facts.get("rows_in")))),
        method_words=find_family(policy.protect).describe_method(policy),
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
        correlations=linked if linked and len(linked.names) > 1 else None,
        are_ranks=audit.rank_correlations is not None,
        classes=_view_classes(policy, audit),
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
        sample=audit.sample,
        has_weights=policy.weight is not None,
        tables=tuple(describe_tables(policy)),
        labels=tuple(describe_labels(policy.columns)),
        structure=audit.structure,
        closest=audit.closest,
        nearest=audit.nearest,
        is_synthetic=policy.protect.is_synthetic,
        swap=_view_swap(policy, audit),
        looks=evidence.looks,
        about=None if policy.about is None else view_about(policy.about, policy),
        output_check=tuple(_answer_output_check(policy, evidence)),
        column_words=tuple(view_column(name, column) for name, column in pick(policy.columns, LabelledColumn).items()),
        criteria=tuple(_view_criteria(policy, evidence)),
    )
    return replace(view, decide=tuple(question.words for question in list_questions(view, is_dp=policy.adds_up)))


def _answer_output_check(policy: Policy, evidence: Evidence) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the questions of an output checker by the five safes, each with its answers."""
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
    """Return the questions of a page, each with its yardstick."""
    return list(list_questions(view, is_dp=policy.adds_up))


def _met_before(policy: Policy, evidence: Evidence) -> Iterator[GateView]:
    """Yield the limits that every release has met that got as far as its table."""
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


def _view_criteria(policy: Policy, evidence: Evidence) -> Iterator[CriterionView]:
    """Yield each attack, with its attacker's knowledge."""
    attackers = name_attacks(is_synthetic=policy.protect.is_synthetic, is_swapped=policy.swap is not None)
    for attack in evidence.criteria:
        yield replace(attack, words=next((words for name, words in attackers.items() if attack.attack.startswith(name)), ""))


def _view_classes(policy: Policy, audit: AuditFigures) -> ClassesView | None:
    if audit.groups is None:
        return None
    least = max(policy.groups_below, policy.gates.anonymity_k or 0)
    return replace(audit.groups, quasi=tuple(policy.released_quasi), least=least)


def _view_swap(policy: Policy, audit: AuditFigures) -> SwapView | None:
    if policy.swap is None:
        return None
    blocks, smallest = (audit.suppressed.get(figure, 0) for figure in ("blocks", "smallest_block"))
    return SwapView(policy.swap.k, tuple(policy.swapped_columns), tuple(policy.released_quasi), blocks, smallest)


def _view_predictions(policy: Policy, audit: AuditFigures) -> Iterator[PredictionView]:
    for name, prediction in audit.predictions.items():
        yield replace(prediction, target=describe_target(policy, name))


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
    reason_words = REVIEWERS.read_section("suppressed")
    reasons = [(reason_words[name], count) for name, count in audit.suppressed.items() if name in reason_words]
    if isinstance(rule, Suppress):
        dropped, blanked = REVIEWERS("suppression.dropped"), REVIEWERS("suppression.cells_blanked")
        reasons = [(dropped, rows_in - rows_out), (blanked, int(facts["cells_blanked"]))]
    return SuppressionView(
        rows_in=rows_in,
        rows_out=rows_out,
        cells=int(facts["cells_blanked"]),
        share=audit.share_suppressed if audit.share_suppressed is not None else (rows_in - rows_out) / rows_in,
        limit=float(rule.at_most),
        reasons=tuple((reason_words, count) for reason_words, count in reasons if count),
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
    """Return what record linkage shows under this claim, and what not."""
    if policy.protect.is_synthetic:
        return ""
    if policy.swap is not None:
        return REVIEWERS("attacks.linkage_words_swapped")
    if isinstance(policy.protect, KEpsilonOptions):
        return REVIEWERS("attacks.linkage_words_in_class")
    if policy.adds_up and policy.protect.scope != "table" and policy.protect.k is not None:
        return REVIEWERS("attacks.linkage_words_of_clusters")
    return REVIEWERS("attacks.linkage_words")
