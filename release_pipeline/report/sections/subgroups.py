"""The section on declared groups: who is served worst, and what the means of groups became."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from release_pipeline.privacy.dates import Clock
from release_pipeline.privacy.figures import count_things, format_count, format_number, say_missing
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.internal_view import InternalView, SubgroupsView, SubgroupView
from release_pipeline.report.prose import Name, Sentence, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import Figure, Section, Table
from release_pipeline.report.values import format_difference, format_value
from release_pipeline.sentences import REVIEWERS

MUCH = 0.5  # standard deviations that scales of means have room for, so that small differences look small
_MOST_DRAWN = 6  # groups in one picture, the worst served
_MANY = 3  # pictures, beyond which they stand side by side
_BEYOND = 3  # standard deviations of random groups: what chance alone often does is not told as more
_FARTHEST = 1e6  # of them, that are told
_MOST_NAMED = 8  # groups that are too small


def describe_subgroups(view: InternalView) -> Section:
    """What became of each declared group, worst served first."""
    anchor, title = "subgroups", REVIEWERS("subgroups.title")
    if view.is_nobodys:
        return _describe_means(view, anchor)
    said = [sentence for found in view.subgroups for sentence in _judge(found)]
    figures = [figure for found in view.subgroups for figure in _draw(found)]
    is_late = any(one.above for found in view.subgroups for one in found.groups)
    return Section(
        anchor,
        title,
        shows=REVIEWERS("subgroups.shows"),
        read=REVIEWERS("subgroups.read_random") if is_late else REVIEWERS("subgroups.read"),
        sign=REVIEWERS("subgroups.sign"),
        says=tuple(said),
        figures=tuple(figures),
        many=len(figures) > _MANY,
    )


def _describe_means(view: InternalView, anchor: str) -> Section:
    """The means of each group before and after, of rows that are not one record's: these have no errors."""
    unasked = list_unasked(view)
    title, told = REVIEWERS("subgroups.title_means"), []
    if unasked:
        told = [review("subgroups.not_asked_swapped", columns=list_names(unasked))]
    if not view.subgroups:
        return Section(anchor, title, absent=told[0] if told else REVIEWERS("section.not_measured"))
    spreads = {column.name: column.original.deviation for column in view.columns}
    said = [sentence for found in view.subgroups for sentence in (*_judge_means(found, spreads), *_tell_small(found))]
    heads, shows, read = (
        list_heads("subgroups.head_means"),
        REVIEWERS("subgroups.shows_means"),
        REVIEWERS("subgroups.read_means"),
    )
    if view.swap is not None:
        heads, shows, read = (
            list_heads("subgroups.head_means_swapped"),
            REVIEWERS("subgroups.shows_means_swapped"),
            REVIEWERS("subgroups.read_means_swapped"),
        )
    figures = [
        _draw_group_means(found, measured, place, name, spreads.get(name, math.nan), heads)
        for found in view.subgroups
        for place, name in enumerate(found.columns)
        if (measured := [one for one in found.groups if one.means])
    ]
    return Section(
        anchor,
        title,
        shows=shows,
        read=read,
        sign=REVIEWERS("subgroups.sign_means"),
        says=(*said, *told),
        figures=tuple(figures),
        many=len(figures) > _MANY,
    )


def list_unasked(view: InternalView) -> list[str]:
    """The swapped categories by whose entries no means were measured, of a release that was audited."""
    if view.swap is None or not view.columns:
        return []
    measured = {column.name for column in view.columns} | {found.by for found in view.subgroups}
    return [name for name in view.swap.columns if name not in measured]


def _judge_means(found: SubgroupsView, spreads: Mapping[str, float]) -> list[Sentence]:
    """The mean that is furthest off, over the standard deviation of its column."""
    offs = [
        (_divide(abs(one.means[place] - one.originals[place]), spreads.get(name, math.nan)), one, place)
        for one in found.groups
        if one.means
        for place, name in enumerate(found.columns)
    ]
    known = [off for off in offs if is_number(off[0])]
    if not known:
        return []
    off, one, place = max(known, key=lambda entry: entry[0])
    name = found.columns[place]
    return [
        review(
            "subgroups.worst_mean",
            by=Name(found.by),
            label=Name(one.label),
            column=Name(name),
            records=count_things(one.records, "record"),
            original=format_value(one.originals[place], found.clocks.get(name)),
            released=format_value(one.means[place], found.clocks.get(name)),
            off=format_number(off),
        )
    ]


def _draw_group_means(
    found: SubgroupsView, measured: Sequence[SubgroupView], place: int, name: str, spread: float, heads: tuple[str, ...]
) -> Figure:
    """How far the mean of each group is off, with both means beside the bar."""
    clock = found.clocks.get(name)
    ordered = sorted(measured, key=lambda one: -_or_least(abs(one.means[place] - one.originals[place])))
    groups: list[Group] = []
    for one in ordered[:_MOST_DRAWN]:
        off = _divide(abs(one.means[place] - one.originals[place]), spread)
        both = REVIEWERS(
            "structure.bar_mean",
            original=format_value(one.originals[place], clock),
            released=format_value(one.means[place], clock),
        )
        if is_number(off):
            groups.append(Group(one.label, (Bar("", off, "full", both),)))
    rows = tuple(
        (
            Name(one.label),
            format_count(one.records),
            format_count(one.released),
            format_value(one.originals[place], clock),
            format_value(one.means[place], clock),
            format_number(one.errors[place]),
        )
        for one in ordered
    )
    table = Table(review("subgroups.table", column=Name(name), by=Name(found.by)), heads, rows)
    title = REVIEWERS("subgroups.picture_means", column=name, by=found.by)
    words = REVIEWERS("subgroups.picture_words_means")
    picture = draw_bars(title, words, groups, most=MUCH)
    return Figure(picture, review("subgroups.caption_means", column=Name(name), by=Name(found.by)), table)


def _judge(found: SubgroupsView) -> list[Sentence]:
    said: list[Sentence] = []
    measured = [one for one in found.groups if one.errors]
    if measured:
        worst = measured[0]
        ratios = [_divide(error, whole) for error, whole in zip(worst.errors, found.whole, strict=True)]
        place = max(range(len(ratios)), key=lambda at: ratios[at] if is_number(ratios[at]) else 0.0)
        said.append(
            review(
                "subgroups.worst",
                by=Name(found.by),
                label=Name(worst.label),
                column=Name(found.columns[place]),
                records=count_things(worst.records, "record"),
                error=format_number(worst.errors[place]),
                whole=format_number(found.whole[place]),
            )
        )
        said += _judge_chance(found, measured)
        said += _judge_expected(found, measured)
    return said + _tell_small(found)


def _judge_expected(found: SubgroupsView, measured: Sequence[SubgroupView]) -> list[Sentence]:
    """Of whom the largest error was to be expected before the charge: it is what a limit on the errors of groups is on."""
    known = [(one.expected[place], one, name) for one in measured if one.expected for place, name in enumerate(found.columns)]
    known = [entry for entry in known if is_number(entry[0])]
    if not known:
        return []
    error, one, name = max(known, key=lambda entry: entry[0])
    place = found.columns.index(name)
    return [
        review(
            "subgroups.expected",
            by=Name(found.by),
            label=Name(one.label),
            column=Name(name),
            error=format_number(error),
            came=format_number(one.errors[place]),
        )
    ]


def _tell_small(found: SubgroupsView) -> list[Sentence]:
    """Groups that are too small to be measured."""
    said: list[Sentence] = []
    if small := [
        f"{one.label} ({format_count(one.records)}, {format_count(one.released)})" for one in found.groups if not one.errors
    ]:
        names = Name(", ".join(small[:_MOST_NAMED]))
        by, least, count = Name(found.by), format_count(found.least), format_count(len(small))
        if len(small) > _MOST_NAMED:
            said.append(review("subgroups.small_many", by=by, names=names, count=count, least=least))
        else:
            said.append(review("subgroups.small", by=by, names=names, least=least))
    return said


def _judge_chance(found: SubgroupsView, measured: Sequence[SubgroupView]) -> list[Sentence]:
    """Who is served worst beside random groups of the same size. By Cantelli's inequality a figure of any law lies t standard
    deviations or more above its mean in at most 1 / (1 + t^2) of all cases."""
    known = [(above, one, place) for one in measured for place, above in enumerate(one.above) if is_number(above)]
    if not known:
        return []
    above, one, place = max(known, key=lambda entry: entry[0])
    if above < _BEYOND:
        return [review("subgroups.within", by=Name(found.by), limit=format_count(_BEYOND))]
    return [
        review(
            "subgroups.beyond",
            by=Name(found.by),
            label=Name(one.label),
            column=Name(found.columns[place]),
            error=format_number(one.errors[place]),
            whole=format_number(found.whole[place]),
            chance=format_number(one.chances[place]),
            above=format_number(above),
            most=format_count(math.floor(1 + min(above, _FARTHEST) ** 2)),
            tried=count_things(len(known), "comparison"),
        )
    ]


def _divide(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _find_worst(one: SubgroupView) -> int:
    """The place of the column in which a group is farthest above random groups."""
    return max(range(len(one.above)), key=lambda place: _or_least(one.above[place]))


def _draw(found: SubgroupsView) -> list[Figure]:
    measured = [one for one in found.groups if one.errors]
    every = [_draw_all(found, measured)] if any(one.above for one in measured) else []
    return every + [_draw_column(found, measured, place, name) for place, name in enumerate(found.columns) if measured]


def _draw_all(found: SubgroupsView, measured: Sequence[SubgroupView]) -> Figure:
    """Every group in the column in which it is served worst, beside random groups of its size; all counts."""
    ordered = sorted((one for one in measured if one.above), key=lambda one: -_or_least(one.above[_find_worst(one)]))
    groups: list[Group] = []
    for one in ordered[:_MOST_DRAWN]:
        place = _find_worst(one)
        ratio, spread = (_divide(figure, found.whole[place]) for figure in (one.errors[place], one.chances[place]))
        bars = (
            Bar(REVIEWERS("subgroups.bar_group"), ratio, "full", format_number(ratio)),
            Bar(
                REVIEWERS("subgroups.bar_random"),
                1.0,
                "hollow",
                REVIEWERS("subgroups.give_or_take", spread=format_number(spread)),
                max(1 - spread, 0.0),
                1 + spread,
            ),
        )
        if is_number(ratio) and is_number(spread):
            groups.append(Group(REVIEWERS("subgroups.in_column", label=one.label, column=found.columns[place]), bars))
    is_weighted = any(one.weights for one in found.groups)
    rows = tuple(_list_row(found, one, is_weighted) for one in (*ordered, *(one for one in found.groups if not one.above)))
    heads = list_heads("subgroups.head_all_weighted") if is_weighted else list_heads("subgroups.head_all")
    table = Table(review("subgroups.table_all", by=Name(found.by)), heads, rows)
    picture = draw_bars(REVIEWERS("subgroups.picture_all", by=found.by), REVIEWERS("subgroups.picture_all_words"), groups)
    return Figure(picture, review("subgroups.caption_chance", by=Name(found.by), most=format_count(_MOST_DRAWN)), table)


def _list_row(found: SubgroupsView, one: SubgroupView, is_weighted: bool) -> tuple[str, ...]:
    sums = [format_number(weight) for weight in one.weights or (math.nan, math.nan)] if is_weighted else []
    counts = (Name(one.label), format_count(one.records), format_count(one.released), *sums)
    if not one.above:
        return (*counts, *[say_missing()] * 5)
    place = _find_worst(one)
    figures = one.errors[place], found.whole[place], one.chances[place], one.above[place]
    return (*counts, Name(found.columns[place]), *map(format_number, figures))


def _or_least(figure: float) -> float:
    return figure if is_number(figure) else -math.inf


def _draw_column(found: SubgroupsView, measured: Sequence[SubgroupView], place: int, name: str) -> Figure:
    groups = [
        Group(
            one.label,
            (
                Bar(REVIEWERS("subgroups.bar_group"), one.errors[place], "full", format_number(one.errors[place])),
                Bar(REVIEWERS("subgroups.bar_all"), found.whole[place], "hollow", format_number(found.whole[place])),
            ),
        )
        for one in measured[:_MOST_DRAWN]
        if is_number(one.errors[place]) and is_number(found.whole[place])
    ]
    is_weighted, is_late = any(one.weighted for one in measured), any(one.above for one in measured)
    is_foreseen = any(one.expected for one in measured)
    rows = tuple(
        (
            *_list_figures(one, place, found.clocks.get(name), is_weighted, is_late),
            *((format_number(_at(one.expected, place)),) if is_foreseen else ()),
        )
        for one in measured
    )
    title = REVIEWERS("subgroups.picture", column=name, by=found.by)
    words = REVIEWERS("subgroups.picture_words")
    heads = list_heads("subgroups.head_weighted") if is_weighted else list_heads("subgroups.head")
    if is_late:
        heads += list_heads("subgroups.head_more_weighted") if is_weighted else list_heads("subgroups.head_more")
    heads += list_heads("subgroups.head_expected") if is_foreseen else ()
    note = REVIEWERS("subgroups.whole", error=format_number(found.whole[place]))
    table = Table(review("subgroups.table", column=Name(name), by=Name(found.by)), heads, rows, note)
    if len(measured) > _MOST_DRAWN:
        caption = review("subgroups.caption", column=Name(name), by=Name(found.by), most=format_count(_MOST_DRAWN))
    else:
        caption = review("subgroups.caption_all", column=Name(name), by=Name(found.by))
    return Figure(draw_bars(title, words, groups), caption, table)


def _list_figures(one: SubgroupView, place: int, clock: Clock | None, is_weighted: bool, is_late: bool) -> tuple[str, ...]:
    """What a group has of one column."""
    means = [one.originals[place], one.means[place], *(one.weighted[place] if one.weighted else (math.nan,) * 2 * is_weighted)]
    found = [Name(one.label), format_count(one.records), format_count(one.released)]
    found += [*(format_value(mean, clock) for mean in means), format_number(one.errors[place])]
    if is_late:
        found += [format_number(_at(one.weighted_errors, place))] if is_weighted else []
        found += [format_number(_at(figures, place)) for figures in (one.chances, one.above)]
        found.append(format_difference(_at(one.absolutes, place), clock))
    return tuple(found)


def _at(figures: Sequence[float], place: int) -> float | None:
    return figures[place] if figures else None
