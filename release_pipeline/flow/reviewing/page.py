"""The page that reviewers decide from: its view, from the evidence of a candidate and nothing else, so that the same evidence
gives the same page. It lies in the candidate's folder, so that who approves a candidate signs what this page says too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from release_pipeline import __version__
from release_pipeline.flow.reviewing.questions import ATTACKS, list_questions
from release_pipeline.policy import Policy
from release_pipeline.policy.model import NoiseColumn, ProtectClasses, Suppress, SuppressClasses
from release_pipeline.policy.plan import (
    DEFINITION_NAME,
    describe_claim,
    describe_method,
    describe_scopes,
    describe_target,
    make_plan,
    name_some,
)
from release_pipeline.policy.scalars import decimal_text
from release_pipeline.policy.statements import SCALES_FIXED, state_claim
from release_pipeline.privacy.figures import show_figure
from release_pipeline.report.internal import render_internal
from release_pipeline.report.internal_view import (
    AtomView,
    AttackView,
    ClassesView,
    CorrelationView,
    Curve,
    DiscriminationView,
    GateView,
    InternalView,
    Ladder,
    MapPoint,
    NoiseColumnView,
    PredictionView,
    ShareView,
    SpreadView,
    SuppressionView,
)
from release_pipeline.report.status import PopulationView, StepView
from release_pipeline.stages.gates import Gate

REPORT = "report.html"
PART_OF_CANDIDATE = "This page is a part of the candidate: who approves one approves the other."
COUNTED = "counted in the source"
OUTSIDE = 0.01  # by how much of its edge an error may leave the expected range before that is told
BEFORE_CHARGE, AFTER_CHARGE = "before the charge", "after the charge"


def render_report(policy: Policy, evidence: Mapping[str, Any], *, stopped_at: str = "") -> str:
    """The page of a candidate's evidence; with `stopped_at`, of a release that gates stopped."""
    return render_internal(build_internal_view(policy, evidence, stopped_at=stopped_at))


def build_internal_view(policy: Policy, evidence: Mapping[str, Any], *, stopped_at: str = "") -> InternalView:
    """All that the page says, from evidence; what was not measured before gates stopped a release is empty."""
    audit: Mapping[str, Any] = evidence.get("audit", {})
    facts: Mapping[str, Any] = evidence.get("facts", {})
    gates = (*_met_before(policy, facts, evidence), *(_view_gate(Gate.from_json(told)) for told in evidence["gates"]))
    columns = tuple(_view_columns(policy, evidence)) if audit else ()
    attacks = tuple(_view_attacks(policy, audit))
    linkage = _view_share(audit.get("record_linkage"))
    classes = _view_classes(policy, audit)
    suppression = _view_suppression(policy, facts, audit)
    view = InternalView(
        release=str(evidence["release"]),
        policy=policy.policy,
        tool=f"release-pipeline {__version__}",
        claim=describe_claim(policy),
        definition=DEFINITION_NAME[policy.definition],
        wider=tuple(describe_scopes(make_plan(policy, rows=facts.get("rows_in")))),
        method_words=describe_method(policy),
        candidate_hash_words="" if stopped_at else PART_OF_CANDIDATE,
        stopped_at=stopped_at,
        gates=gates,
        decide=(),
        warnings=tuple(evidence.get("warnings", ())),
        columns=columns,
        sse_paper=audit.get("sse_paper"),
        linkage=linkage,
        linkage_chance=audit.get("record_linkage_by_chance", 0.0),
        linkage_words=_linkage_words(policy),
        in_class_linkage=_view_share(audit.get("linking_risk")),
        in_class_guess=audit.get("linking_by_guess", 0.0),
        attacks=attacks,
        map=tuple(_view_map(evidence)) if audit else (),
        correlations=_view_correlations(audit),
        classes=classes,
        discrimination=tuple(_view_discrimination(audit)),
        predictions=tuple(_view_predictions(policy, audit)),
        prediction_words=_prediction_words(policy, audit),
        suppression=suppression,
        budget=_view_budget(evidence.get("budget")),
        ladders=tuple(_view_ladders(policy, evidence)),
        ladder_words=tuple(_ladder_words(policy, audit)),
        released_range="" if policy.clamps else "Values that the noise carried out of their domain were left where they are.",
        rows_in=int(facts.get("rows_in", 0)),
        generalises=bool(policy.generalised_columns),
        clusters=policy.protect.k is not None,
        statement=state_claim(policy),
        scales=SCALES_FIXED if policy.definition == "idp" else "",
    )
    return replace(view, decide=tuple(list_questions(view, is_dp=policy.adds_up)))


def _met_before(policy: Policy, facts: Mapping[str, Any], evidence: Mapping[str, Any]) -> Iterator[GateView]:
    """Limits that every release has met that got as far as its table."""
    if policy.gates.min_rows is not None and facts:
        yield GateView("number of records", facts["rows_in"], policy.gates.min_rows, True, True, COUNTED)
    for name, limit in policy.clamped_at_most.items():
        if name in evidence.get("clamping", {}):
            share = evidence["clamping"][name]["share"]
            yield GateView(f"share of records of {name} clamped", share, float(limit), False, share <= float(limit), COUNTED)


def _view_gate(gate: Gate) -> GateView:
    told = {**gate.to_json(), "passed": gate.passed, "error_of": gate.column if gate.is_of_error else ""}
    return GateView(**{name: value for name, value in told.items() if name != "column"})


def _view_share(told: Mapping[str, Any] | None) -> ShareView | None:
    return None if told is None else ShareView(**told)


def _view_columns(policy: Policy, evidence: Mapping[str, Any]) -> Iterator[NoiseColumnView]:
    audit, plan = evidence["audit"], make_plan(policy, rows=evidence["facts"]["rows_in"])
    is_alike = evidence.get("errors_against") == audit.get("errors_against")  # not where an earlier version expected the error
    clamping: Mapping[str, Any] = evidence.get("clamping", {})
    for name, column in policy.noise_columns.items():
        noted, curves, spread = evidence["columns"][name], audit["curves"][name], audit["spread"][name]
        planned = next(part for part in plan.columns if part.name == name)
        expected, low, high = (noted.get(figure) if is_alike else None for figure in ("error", "error_low", "error_high"))
        actual, taken = audit["error"][name], clamping.get(name, {})
        parted = low is not None and high is not None and not low * (1 - OUTSIDE) <= actual <= high * (1 + OUTSIDE)
        yield NoiseColumnView(
            name=name,
            role=column.role,
            epsilon=None if planned.epsilon is None else str(planned.epsilon),
            forecast="no noise" if planned.noise == 0 else planned.share_words,  # as `check` says it
            expected_error=expected,
            expected_low=low,
            expected_high=high,
            actual_error=actual,
            mean_absolute_error=audit["absolute_error"][name],
            parted=parted,
            original=_view_spread(spread["original"]),
            released=_view_spread(spread["released"]),
            ks=audit["ks"][name],
            wasserstein=audit["wasserstein"][name],
            original_curve=_view_curve(curves["places"], curves["original"]),
            released_curve=_view_curve(curves["places"], curves["released"]),
            clamped=taken.get("share"),
            clamped_variance=taken.get("variance"),
            expected_ks=noted.get("ks"),
            atoms=tuple(_view_atoms(column, audit.get("atoms", {}).get(name), noted.get("at_atoms") or ())),
        )


def _view_atoms(column: NoiseColumn, told: Mapping[str, Any] | None, expected: Sequence[float]) -> Iterator[AtomView]:
    """The share at each atom; nothing where it was not measured."""
    if told is None:
        return
    for place, atom in enumerate(column.atoms):
        forecast = expected[place] if place < len(expected) else None
        yield AtomView(decimal_text(atom), told["original"][place], told["released"][place], forecast)


def _view_curve(places: Sequence[float], shares: Sequence[float | None]) -> Curve:
    """The points that may be told."""
    return tuple((place, share) for place, share in zip(places, shares, strict=True) if share is not None)


def _view_spread(told: Mapping[str, Any]) -> SpreadView:
    mean, deviation, *quantiles = (
        math.nan if value is None else value for value in (told["mean"], told["deviation"], *told["quantiles"])
    )
    return SpreadView(mean, deviation, tuple(quantiles))


def _view_attacks(policy: Policy, audit: Mapping[str, Any]) -> Iterator[AttackView]:
    """Each attack; of inference, that on every column instead of their mean, which would hide the worst."""
    by_column: Mapping[str, Any] = audit.get("inference", {})
    yield from (_view_attack(told) for told in audit.get("attacks", ()) if told["name"] != "inferring")
    yield from (_view_attack(by_column[name]) for name in policy.released_columns if name in by_column)


def _view_attack(told: Mapping[str, Any]) -> AttackView:
    shares = {side: ShareView(**told[side]) for side in ("attack", "control", "risk")}
    words = next(words for name, words in ATTACKS.items() if str(told["name"]).startswith(name))
    return AttackView(name=told["name"], words=words, guess=told["guess"], worst=told["worst"], **shares)


def _view_map(evidence: Mapping[str, Any]) -> Iterator[MapPoint]:
    for point in evidence.get("predecessors", ()):
        yield MapPoint(point["release"], point["error"], point["linkage"], is_this=False)
    audit = evidence["audit"]
    yield MapPoint(str(evidence["release"]), median(audit["error"].values()), audit["record_linkage"]["value"], is_this=True)


def _view_correlations(audit: Mapping[str, Any]) -> CorrelationView | None:
    told = audit.get("correlations")
    if told is None or len(told["names"]) < 2:
        return None
    original, released = (tuple(tuple(row) for row in told[side]) for side in ("original", "released"))
    return CorrelationView(tuple(told["names"]), original, released)


def _view_classes(policy: Policy, audit: Mapping[str, Any]) -> ClassesView | None:
    told = audit.get("groups")
    if told is None:
        return None
    return ClassesView(
        quasi=tuple(policy.released_quasi),
        groups=told["number"],
        smallest=told["smallest"],
        mean=told["mean"],
        largest=told["largest"],
        least=max(policy.groups_below, policy.gates.anonymity_k or 0),
        bars=tuple((low, high, count) for low, high, count in told["bars"]),
        diversity=tuple(told["diversity"].items()),
        closeness=tuple(told["closeness"].items()),
        prosecutor=told["prosecutor"],
        marketer=told["marketer"],
        journalist=told["journalist"],
    )


def _view_discrimination(audit: Mapping[str, Any]) -> Iterator[DiscriminationView]:
    for told in audit.get("discrimination", ()):
        ratio = told["pmse"] / told["by_chance"] if told["by_chance"] else None
        yield DiscriminationView(told["model"], told["pmse"], 0.25, ratio, **audit["model_sample"])


def _view_predictions(policy: Policy, audit: Mapping[str, Any]) -> Iterator[PredictionView]:
    for name, told in audit.get("predictions", {}).items():
        for model in told["models"]:
            yield PredictionView(
                target=describe_target(policy, name),
                model=model["model"],
                released=model["released"],
                original=model["original"],
                guess=told["guess"],
                trained=told["trained"],
                tested=told["tested"],
            )


def _prediction_words(policy: Policy, audit: Mapping[str, Any]) -> str:
    if not policy.audit.predict:
        return (
            "No prediction was asked for. A policy names what models should learn: audit: {predict: {COLUMN: {above: NUMBER}}}."
        )
    alike = [name for name, told in audit.get("predictions", {}).items() if not told["models"]]
    return f"No model can learn {name_some(alike)}: it is the same for all records that train or test." if alike else ""


def _view_suppression(policy: Policy, facts: Mapping[str, Any], audit: Mapping[str, Any]) -> SuppressionView | None:
    rule = policy.suppress
    if rule is None or not audit:
        return None
    rows_in, rows_out = int(facts["rows_in"]), int(facts["rows_out"])
    words = {
        "grouping": "in classes that were too small",
        "confidence": "stood out in their class after the noise",
        "classes_left_too_small": "in classes left too small after that",
    }
    reasons = [(words[name], int(count)) for name, count in audit.get("suppressed", {}).items() if name in words]
    if isinstance(rule, Suppress):
        reasons = [("dropped: no blank cell was enough", rows_in - rows_out), ("cells blanked", int(facts["cells_blanked"]))]
    return SuppressionView(
        rows_in=rows_in,
        rows_out=rows_out,
        cells=int(facts["cells_blanked"]),
        share=audit["share_suppressed"] if audit["share_suppressed"] is not None else (rows_in - rows_out) / rows_in,
        limit=float(rule.at_most) if isinstance(rule, Suppress | SuppressClasses) else None,
        reasons=tuple((words, count) for words, count in reasons if count),
    )


def _view_budget(told: Mapping[str, Any] | None) -> PopulationView | None:
    if told is None:
        return None
    steps = tuple(StepView(step["release"], step["amount"], "spent") for step in told["steps"])
    return PopulationView(
        name=told["name"],
        unit=told["unit"],
        in_releases=told["in_releases"],
        cap=told["cap"],
        spent=told["spent"],
        reserved=0,
        remaining=told["remaining"],
        steps=steps,
    )


def _view_ladders(policy: Policy, evidence: Mapping[str, Any]) -> Iterator[Ladder]:
    noted: Mapping[str, Any] = evidence.get("columns", {})
    for name, column in policy.generalised_columns.items():
        figures = noted.get(name)
        if figures is None:
            continue
        if "mean_width" in figures:
            yield Ladder(name, ("its own range",), 0)
        else:
            yield Ladder(name, column.hierarchy.level_words, figures.get("level", figures.get("mean_level")))


def _ladder_words(policy: Policy, audit: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, lost in audit.get("information_loss", {}).items():
        yield f"information lost in {name}", f"{lost:.1%}"
    for name, told in audit.get("relative_error", {}).items():
        if told is not None:
            yield f"mean relative error of {name}", show_figure(told)


def _linkage_words(policy: Policy) -> str:
    """What record linkage says under this claim, and what not."""
    supposed = f"It supposes somebody who has {name_some(policy.noise_columns)} of everybody, as exact as the original."
    if isinstance(policy.protect, ProtectClasses):
        return f"{supposed} Within a class it is the linking risk of (k,epsilon)-anonymity. No gate looks at it."
    if policy.adds_up and policy.protect.scope != "table" and policy.protect.k is not None:
        return (
            f"{supposed} Where columns are nearly exact it is high: which records share a cluster is not covered by the claim. "
            "No gate looks at it."
        )
    return f"{supposed} No gate looks at it."
