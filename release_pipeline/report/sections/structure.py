"""The section on what synthetic rows kept of the tables of one, two and three columns, and how near they come to people."""

from __future__ import annotations

from release_pipeline.privacy.figures import count_things, format_count, format_number
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.internal_view import GroupMeansView, InternalView, StructureView
from release_pipeline.report.prose import Name, Sentence, format_interval, list_heads, review
from release_pipeline.report.sections.parts import Figure, Section, Table
from release_pipeline.report.sections.subgroups import MUCH
from release_pipeline.report.values import format_value
from release_pipeline.sentences import REVIEWERS

_MANY_COLUMNS = 12  # in one picture


def describe_structure(view: InternalView) -> Section:
    """Tables of columns beside those of records drawn anew, and the distance to the closest row."""
    anchor, title = "structure", REVIEWERS("structure.title")
    found = view.structure
    if found is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    return Section(
        anchor,
        title,
        shows=REVIEWERS("structure.shows"),
        read=REVIEWERS("structure.read"),
        sign=REVIEWERS("structure.sign"),
        says=tuple(_judge(found)),
        figures=(_draw_means(found), _draw_columns(found), *_draw_groups(found.group_means)),
    )


def _judge(found: StructureView) -> list[Sentence]:
    said: list[Sentence] = []
    for count, value, chance in found.means:
        said.append(
            REVIEWERS("structure.mean", columns=_name(count), distance=format_number(value), chance=format_number(chance))
        )
    if found.worst:
        one, other, distance = found.worst[0]
        said.append(review("structure.worst", one=Name(one), other=Name(other), distance=format_number(distance)))
    if found.triples:
        said.append(REVIEWERS("structure.lost", triples=count_things(found.triples, "set")))
    if found.group_means is not None:
        said += _judge_groups(found.group_means)
    if found.closest is not None:
        median, control, equal, control_equal = found.closest
        said.append(
            REVIEWERS(
                "structure.closest",
                median=format_number(median),
                control=format_number(control),
                equal=format_interval(equal),
                control_equal=format_interval(control_equal),
            )
        )
    return said


def _judge_groups(found: GroupMeansView) -> list[Sentence]:
    worst = found.worst[0]
    return [
        REVIEWERS(
            "structure.groups",
            groups=count_things(found.compared, "mean"),
            off=format_number(found.mean),
            chance=format_number(found.by_chance),
        ),
        review(
            "structure.worst_group",
            column=Name(worst.column),
            by=Name(worst.by),
            label=Name(worst.label),
            records=count_things(worst.records, "record"),
            original=format_value(worst.original, worst.clock),
            released=format_value(worst.released, worst.clock),
            off=format_number(worst.off),
        ),
    ]


def _draw_groups(found: GroupMeansView | None) -> list[Figure]:
    """The means of groups that are furthest off."""
    if found is None:
        return []
    groups = [
        Group(
            REVIEWERS("structure.in_group", column=one.column, by=one.by, label=one.label),
            (
                Bar(
                    "",
                    one.off,
                    "full",
                    REVIEWERS(
                        "structure.bar_mean",
                        original=format_value(one.original, one.clock),
                        released=format_value(one.released, one.clock),
                    ),
                ),
            ),
        )
        for one in found.worst
    ]
    rows = tuple(
        (
            Name(one.column),
            Name(one.by),
            Name(one.label),
            format_count(one.records),
            format_value(one.original, one.clock),
            format_value(one.released, one.clock),
            format_number(one.off),
        )
        for one in found.worst
    )
    picture = draw_bars(REVIEWERS("structure.picture_groups"), REVIEWERS("structure.picture_words_groups"), groups, most=MUCH)
    table = Table(REVIEWERS("structure.table_groups"), list_heads("structure.head_groups"), rows)
    return [Figure(picture, REVIEWERS("structure.caption_groups", worst=format_count(len(groups))), table)]


def _name(count: int) -> str:
    if count == 1:
        return REVIEWERS("structure.one")
    return REVIEWERS("structure.two") if count == 2 else REVIEWERS("structure.three")


def _draw_means(found: StructureView) -> Figure:
    groups = [
        Group(
            _name(count),
            (
                Bar(REVIEWERS("structure.bar_rows"), value, "full", format_number(value)),
                Bar(REVIEWERS("structure.bar_chance"), chance, "dashed", format_number(chance)),
            ),
        )
        for count, value, chance in found.means
    ]
    rows = [(_name(count), format_number(value), format_number(chance)) for count, value, chance in found.means]
    rows += [(f"{one}, {other}", format_number(distance), "-") for one, other, distance in found.worst]
    table = Table(REVIEWERS("structure.table"), list_heads("structure.head"), tuple(rows))
    return Figure(
        draw_bars(REVIEWERS("structure.picture"), REVIEWERS("structure.picture_words"), groups),
        REVIEWERS("structure.caption"),
        table,
    )


def _draw_columns(found: StructureView) -> Figure:
    columns = sorted(found.columns, key=lambda column: -column[1])
    shown = columns[:_MANY_COLUMNS]
    groups = [Group(name, (Bar("", distance, "full", format_number(distance)),)) for name, distance in shown]
    rows = tuple((Name(name), format_number(distance)) for name, distance in columns)
    table = Table(REVIEWERS("structure.table_columns"), list_heads("structure.head_columns"), rows)
    words = REVIEWERS("structure.picture_words_columns")
    caption = REVIEWERS("structure.caption_columns", shown=count_things(len(shown), "column"), columns=format_count(len(columns)))
    return Figure(draw_bars(REVIEWERS("structure.picture_columns"), words, groups), caption, table)
