"""The section on records that stand for others: weighted figures, and what the sample tells of the population."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.figures import format_count, format_number, format_share
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.internal_view import InternalView, SampleView, WeightedView
from release_pipeline.report.prose import Name, Sentence, list_heads, review
from release_pipeline.report.sections.parts import Figure, Section, Table
from release_pipeline.report.values import format_value
from release_pipeline.sentences import REVIEWERS


def describe_sample(view: InternalView) -> Section:
    """What weighted answers become, and how many of who is alone in the sample are alone in the population."""
    anchor, title = "sample", REVIEWERS("sample.title")
    sample = view.sample
    if sample is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    said: list[Sentence] = [review("sample.weight", weight=Name(sample.weight))]
    said += _judge_population(sample)
    return Section(
        anchor,
        title,
        shows=REVIEWERS("sample.shows"),
        read=REVIEWERS("sample.read"),
        sign=REVIEWERS("sample.sign"),
        says=tuple(said),
        figures=(_draw_means(sample),) if sample.columns else (),
    )


def _judge_population(sample: SampleView) -> list[Sentence]:
    if sample.records is None or sample.population_uniques is None or sample.identified is None or sample.worst is None:
        return [REVIEWERS("sample.no_quasi")]
    return [
        REVIEWERS(
            "sample.uniques",
            alone=format_count(sample.sample_uniques or 0),
            records=format_count(sample.records),
            expected=format_number(sample.population_uniques),
        ),
        REVIEWERS(
            "sample.identified",
            expected=format_number(sample.identified),
            share=format_share(sample.identified / sample.records),
            worst=format_share(sample.worst),
        ),
        REVIEWERS("sample.model"),
    ]


def _draw_means(sample: SampleView) -> Figure:
    """How far means moved, in parts of the distance between the quartiles of the original."""
    groups = [Group(column.name, tuple(_make_bars(column))) for column in sample.columns]
    rows = tuple(
        (Name(column.name), label, *(format_value(number, column.clock) for number in side))
        for column in sample.columns
        for label, side in ((REVIEWERS("sample.original"), column.original), (REVIEWERS("sample.released"), column.released))
    )
    table = Table(REVIEWERS("sample.table"), list_heads("sample.head"), rows)
    picture = draw_bars(REVIEWERS("sample.picture"), REVIEWERS("sample.picture_words"), groups)
    return Figure(picture, REVIEWERS("sample.caption"), table)


def _make_bars(column: WeightedView) -> Iterator[Bar]:
    for place, label, kind in ((1, REVIEWERS("sample.plain"), "hollow"), (0, REVIEWERS("sample.weighted"), "full")):
        moved = _moved(column, place)
        yield Bar(label, moved, kind, format_number(moved))


def _moved(column: WeightedView, place: int) -> float | None:
    """The difference of a mean over the distance between the quartiles; None where there is none."""
    before, after, low, high = column.original[place], column.released[place], column.original[2], column.original[4]
    if before is None or after is None or low is None or high is None or high == low:
        return None
    return abs(after - before) / (high - low)
