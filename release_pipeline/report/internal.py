"""The internal report, a pure function of one `InternalView`: the page from which reviewers decide on a candidate.

Its figures are computed against the confidential records, so the page says on top that it is not for publication. It is
self-contained: no network, no script. The same view gives the same text. Figures are in tables, with plain words on their meaning
for this release; for what was not measured, the page gives the reason.
"""

from __future__ import annotations

from typing import Any

from release_pipeline.formats.about import About, list_facts
from release_pipeline.formats.budgets import draw_burndown, format_amount, list_sums
from release_pipeline.formats.internal_view import GateView, InternalView
from release_pipeline.mechanisms.basis.figures import count_things, format_apart, format_count
from release_pipeline.pages.escaping import load_templates
from release_pipeline.report.sections.attacks import describe_attacks
from release_pipeline.report.sections.columns import describe_correlations, describe_distributions, describe_errors
from release_pipeline.report.sections.context import describe_budget, describe_looks
from release_pipeline.report.sections.groups import describe_classes, describe_levels, describe_suppression
from release_pipeline.report.sections.models import describe_predictions, describe_structure
from release_pipeline.report.sections.parts import Section
from release_pipeline.report.sections.subgroups import describe_sample, describe_subgroups, list_unasked
from release_pipeline.sentences import REVIEWERS

ORDER = (
    describe_distributions,
    describe_errors,
    describe_subgroups,
    describe_correlations,
    describe_structure,
    describe_classes,
    describe_sample,
    describe_attacks,
    describe_predictions,
    describe_budget,
    describe_suppression,
    describe_levels,
    describe_looks,
)
_NOT_OF_SYNTHETIC = [
    describe_classes,
    describe_suppression,
    describe_levels,
]  # which are about records that are there
_MOST_ENTRIES = 100  # of a column; the policy and the package have all


def render_internal(view: InternalView) -> str:
    """Return the page: the verdict on top, then a section for each question, each with its picture or the reason why there is
    none."""
    sections = list_sections(view)
    context: dict[str, Any] = {
        "view": view,
        "verdict": describe_verdict(view),
        "passed": bool(view.gates) and not list_failed(view) and not view.stopped_at,
        "stopped": bool(view.stopped_at) or bool(list_failed(view)),
        "gates": [(gate, *format_apart(gate.value, gate.limit)) for gate in view.gates],
        "sections": sections,
        "draw_burndown": draw_burndown,
        "sums": list_sums,
        "steps": REVIEWERS.read_section("step"),
        "amount": format_amount,
        "told": [] if view.about is None else list_told(view.about),
        "most_entries": _MOST_ENTRIES,
    }
    return load_templates("html").get_template("internal-report.html").render(context)


def list_told(about: About) -> list[tuple[str, str]]:
    """Return the public description of the data as a whole, as card and note will have it. Where the policy does not say how to
    cite a release, that is made when it is published."""
    titled = [(REVIEWERS("told.title_of_data"), about.title), (REVIEWERS("told.description"), about.description)]
    told = [*titled, *list_facts(about)]
    return [*told, (REVIEWERS("told.citation"), about.citation or REVIEWERS("told.made"))]


def list_failed(view: InternalView) -> list[GateView]:
    """Return the gates that did not pass."""
    return [gate for gate in view.gates if not gate.passed]


def describe_verdict(view: InternalView) -> str:
    """Return the result of the gates, in one sentence."""
    failed, every = len(list_failed(view)), len(view.gates)
    if not every:
        gates = REVIEWERS("verdict.none")
    elif every == 1:
        gates = REVIEWERS("verdict.one_failed") if failed else REVIEWERS("verdict.one_passed")
    elif failed:
        gates = REVIEWERS("verdict.failed", failed=format_count(failed), gates=count_things(every, "gate"))
    else:
        gates = REVIEWERS("verdict.passed", gates=count_things(every, "gate"))
    return REVIEWERS("verdict.stopped", when=view.stopped_at, gates=gates) if view.stopped_at else gates


def list_sections(view: InternalView) -> list[Section]:
    """Return every section in its order; of a stopped release, sections that lack figures say so. Groups and weights have none
    where the policy has none, nor have trials on the data if there were none."""
    unasked = [] if view.subgroups or list_unasked(view) else [describe_subgroups]
    unasked += _NOT_OF_SYNTHETIC if view.is_synthetic else [describe_structure]
    unasked += [] if view.has_weights else [describe_sample]
    unasked += [] if view.looks else [describe_looks]
    sections = [show(view) for show in ORDER if show not in unasked]
    if not view.stopped_at:
        return sections
    return [
        Section(section.anchor, section.title, absent=REVIEWERS("section.stopped", when=view.stopped_at))
        if section.absent and not section.settled
        else section
        for section in sections
    ]
