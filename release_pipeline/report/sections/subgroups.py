"""The section on groups: the errors for the people of each group of a declared column, the worst served first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from release_pipeline.formats.internal_view import InternalView, PopulationRisk, SubgroupColumn, SubgroupsView, SubgroupView
from release_pipeline.mechanisms.basis.dates import Clock
from release_pipeline.mechanisms.basis.figures import count_things, format_count, format_number, format_share
from release_pipeline.pages.prose import Name, Sentence, format_value, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import REVIEWERS

_MOST_NAMED = 8  # groups that are too small
_Measured = tuple[float, SubgroupView, str, SubgroupColumn]  # the sorting key, a group, and one of its columns


def describe_subgroups(view: InternalView) -> Section:
    """Return the section: the errors of each declared group, worst served first."""
    anchor, title = "subgroups", REVIEWERS("subgroups.title")
    if view.is_nobodys:
        return _describe_means(view, anchor)
    heads = list_heads("subgroups.head")
    return Section(
        anchor,
        title,
        shows=REVIEWERS("subgroups.shows"),
        read=REVIEWERS("subgroups.read"),
        sign=REVIEWERS("subgroups.sign"),
        says=tuple(sentence for groups in view.subgroups for sentence in (*_judge(groups), *_tell_small(groups))),
        tables=tuple(table for groups in view.subgroups for table in _list_tables(groups, heads, view.clocks)),
    )


def _describe_means(view: InternalView, anchor: str) -> Section:
    """Return the means of each group before and after, for rows that are not one record's and so have no errors."""
    unasked = list_unasked(view)
    title, sentences = REVIEWERS("subgroups.title_means"), []
    if unasked:
        sentences = [review("subgroups.not_asked_swapped", columns=list_names(unasked))]
    if not view.subgroups:
        return Section(anchor, title, absent=sentences[0] if sentences else REVIEWERS("section.not_measured"))
    heads, shows = list_heads("subgroups.head_means"), REVIEWERS("subgroups.shows_means")
    if view.swap is not None:
        heads, shows = list_heads("subgroups.head_means_swapped"), REVIEWERS("subgroups.shows_means_swapped")
    return Section(
        anchor,
        title,
        shows=shows,
        read=REVIEWERS("subgroups.read_means"),
        sign=REVIEWERS("subgroups.sign_means"),
        says=(
            *(sentence for groups in view.subgroups for sentence in (*_judge_means(groups, view), *_tell_small(groups))),
            *sentences,
        ),
        tables=tuple(table for groups in view.subgroups for table in _list_tables(groups, heads, view.clocks)),
    )


def list_unasked(view: InternalView) -> list[str]:
    """Return the swapped categories of an audited release by whose entries no means were measured."""
    if view.swap is None or not view.columns:
        return []
    measured = {column.name for column in view.columns} | {groups.by for groups in view.subgroups}
    return [name for name in view.swap.columns if name not in measured]


def _list_measured(groups: SubgroupsView) -> Iterator[tuple[SubgroupView, str, SubgroupColumn]]:
    for group in groups.groups:
        for name, column in group.columns.items():
            yield group, name, column


def _find_worst(measured: Iterator[_Measured]) -> _Measured | None:
    return max((entry for entry in measured if is_number(entry[0])), key=lambda entry: entry[0], default=None)


def _judge_means(groups: SubgroupsView, view: InternalView) -> list[Sentence]:
    """Return the mean that is furthest off, over the standard deviation of its column."""
    spreads = {column.name: column.original.deviation for column in view.columns}
    worst = _find_worst(
        (abs(column.released - column.original) / (spreads.get(name) or math.inf), group, name, column)
        for group, name, column in _list_measured(groups)
        if column.released is not None and column.original is not None
    )
    if worst is None:
        return []
    off, group, name, column = worst
    return [
        review(
            "subgroups.worst_mean",
            by=Name(groups.by),
            label=Name(group.label),
            column=Name(name),
            records=count_things(group.records, "record"),
            original=format_value(column.original, view.clocks.get(name)),
            released=format_value(column.released, view.clocks.get(name)),
            off=format_number(off),
        )
    ]


def _judge(groups: SubgroupsView) -> list[Sentence]:
    """Return who is served worst, and who had the largest expected error before the charge, which a limit on the errors of groups
    is about."""
    sentences: list[Sentence] = []
    worst = _find_worst(
        ((column.error or 0.0) / (groups.whole.get(name) or math.inf), group, name, column)
        for group, name, column in _list_measured(groups)
    )
    if worst is not None:
        _, group, name, column = worst
        sentences.append(
            review(
                "subgroups.worst",
                by=Name(groups.by),
                label=Name(group.label),
                column=Name(name),
                records=count_things(group.records, "record"),
                error=format_number(column.error),
                whole=format_number(groups.whole.get(name)),
            )
        )
    expected = _find_worst(
        (column.expected, group, name, column) for group, name, column in _list_measured(groups) if column.expected is not None
    )
    if expected is not None:
        error, group, name, column = expected
        sentences.append(
            review(
                "subgroups.expected",
                by=Name(groups.by),
                label=Name(group.label),
                column=Name(name),
                error=format_number(error),
                came=format_number(column.error),
            )
        )
    return sentences


def _tell_small(groups: SubgroupsView) -> list[Sentence]:
    """Return the groups that are too small to be measured."""
    small = [
        f"{group.label} ({format_count(group.records)}, {format_count(group.released)})"
        for group in groups.groups
        if not group.columns
    ]
    if not small:
        return []
    names = Name(", ".join(small[:_MOST_NAMED]))
    by, least, count = Name(groups.by), format_count(groups.least), format_count(len(small))
    if len(small) > _MOST_NAMED:
        return [review("subgroups.small_many", by=by, names=names, count=count, least=least)]
    return [review("subgroups.small", by=by, names=names, least=least)]


def _list_tables(groups: SubgroupsView, heads: tuple[str, ...], clocks: Mapping[str, Clock]) -> Iterator[Table]:
    """Yield a table for each column: the means of every group before and after, its error, and the expected one where it is
    known."""
    for name in groups.whole:
        measured = [(group, group.columns[name]) for group in groups.groups if name in group.columns]
        if not measured:
            continue
        is_foreseen = any(column.expected is not None for _, column in measured)
        rows = tuple(
            (
                Name(group.label),
                format_count(group.records),
                format_count(group.released),
                format_value(column.original, clocks.get(name)),
                format_value(column.released, clocks.get(name)),
                format_number(column.error),
                *((format_number(column.expected),) if is_foreseen else ()),
            )
            for group, column in measured
        )
        more = list_heads("subgroups.head_expected") if is_foreseen else ()
        note = REVIEWERS("subgroups.whole", error=format_number(groups.whole[name]))
        yield Table(review("subgroups.table", column=Name(name), by=Name(groups.by)), heads + more, rows, note)


# The section on records that represent others: weighted figures, and what the sample reveals about the population.


def describe_sample(view: InternalView) -> Section:
    """Return the section: the change of weighted answers, and how many people who are unique in the sample are unique in the
    population."""
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
