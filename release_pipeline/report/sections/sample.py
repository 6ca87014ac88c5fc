"""The section on records that stand for others: weighted figures, and what the sample tells of the population."""

from __future__ import annotations

from release_pipeline.privacy.figures import format_count, format_number, format_share
from release_pipeline.report.internal_view import InternalView, PopulationRisk
from release_pipeline.report.prose import Name, Sentence, list_heads, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.report.values import format_value
from release_pipeline.sentences import REVIEWERS


def describe_sample(view: InternalView) -> Section:
    """What weighted answers become, and how many of who is alone in the sample are alone in the population."""
    anchor, title = "sample", REVIEWERS("sample.title")
    sample = view.sample
    if sample is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    rows = tuple(
        (
            Name(name),
            label,
            *(
                format_value(figure, view.clocks.get(name))
                for figure in (side.mean, side.plain, side.low, side.median, side.high)
            ),
        )
        for name, pair in sample.weighted.items()
        for label, side in ((REVIEWERS("sample.original"), pair.original), (REVIEWERS("sample.released"), pair.released))
    )
    return Section(
        anchor,
        title,
        shows=REVIEWERS("sample.shows"),
        read=REVIEWERS("sample.read"),
        sign=REVIEWERS("sample.sign"),
        says=(review("sample.weight", weight=Name(sample.weight)), *_judge_population(sample.population)),
        tables=(Table(REVIEWERS("sample.table"), list_heads("sample.head"), rows),) if rows else (),
    )


def _judge_population(risk: PopulationRisk | None) -> list[Sentence]:
    if risk is None:
        return [REVIEWERS("sample.no_quasi")]
    return [
        REVIEWERS(
            "sample.uniques",
            alone=format_count(risk.sample_uniques),
            records=format_count(risk.records),
            expected=format_number(risk.population_uniques),
        ),
        REVIEWERS(
            "sample.identified",
            expected=format_number(risk.identified),
            share=format_share(risk.identified / risk.records),
            worst=format_share(risk.worst),
        ),
        REVIEWERS("sample.model"),
    ]
