"""Bars beside each other, with whiskers for what is not certain and a line for a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from release_pipeline.report.charts.drawing import (
    LINE,
    WIDTH,
    Axis,
    Box,
    Line,
    Mark,
    Picture,
    Shape,
    Text,
    cut,
    make_axis,
    width_of,
)
from release_pipeline.report.prose import is_number

ROW, HIGH = 18, 11  # from one bar to the next, and how high a bar is


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `kind` says how it is filled. `words` stands at its end; without an interval, low and high are None."""

    label: str
    value: float | None
    kind: str
    words: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Bars under one heading, with the limit that they stand against."""

    name: str
    bars: tuple[Bar, ...]
    limit: float | None = None
    limit_words: str = ""


def draw_bars(title: str, words: str, groups: Sequence[Group], *, most: float | None = None, own: bool = False) -> Picture:
    """The groups under each other, all on one scale that begins at nothing, or each on its `own`; `most`: what the scale holds at
    least. Every limit is a dashed line with its words; a value that is not finite has no bar, and its words say so."""
    everything = [bar for group in groups for bar in group.bars]
    left = max([width_of(bar.label) for bar in everything], default=0)
    left += 8 if left else 6  # half a triangle
    right = WIDTH - 8 - max([width_of(bar.words) for bar in everything], default=0)
    shared = make_axis([most, *_list_values(groups)], left, right, zero=True)
    shapes: list[Shape] = []
    y = 0
    for group in groups:
        axis = make_axis([most, *_list_values([group])], left, right, zero=True) if own else shared
        shapes.append(Text(0, y + 12, cut(group.name, WIDTH), "strong"))
        begin = y + LINE + 5
        y = begin
        for bar in group.bars:
            shapes += _draw_bar(bar, axis, y, left)
            y += ROW
        if group.limit is not None and is_number(group.limit):
            x = axis.place(group.limit)
            shapes += [
                Line("casing", x, begin - 3, x, y + 1),
                Line("limit", x, begin - 3, x, y + 1),
                Mark("limit-mark", x, y + 4, "triangle"),
            ]
            text = Text(x, y + LINE + 6, group.limit_words, "bad", "middle")
            begins, ends = text.extent
            anchor = "start" if begins < 0 else "end" if ends > WIDTH else "middle"
            shapes.append(Text(x, text.y, text.text, "bad", anchor))
            y += LINE + 8
        y += 10
    return Picture(title, words, WIDTH, max(y, 10), tuple(shapes))


def _list_values(groups: Sequence[Group]) -> list[float | None]:
    values: list[float | None] = [group.limit for group in groups]
    for group in groups:
        for bar in group.bars:
            values += [bar.value, bar.low, bar.high]
    return values


def _draw_bar(bar: Bar, axis: Axis, y: int, left: int) -> list[Shape]:
    middle = y + HIGH // 2 + 1
    shapes: list[Shape] = [Text(left - 8, y + 10, bar.label, "axis", "end")] if bar.label else []
    zero, end = axis.place(0.0), axis.place(0.0)
    if bar.value is not None and is_number(bar.value):
        end = axis.place(bar.value)
        shapes.append(Box(bar.kind, min(zero, end), y, max(abs(end - zero), 1), HIGH))
    shapes.append(Line("zero", zero, y - 3, zero, y + HIGH + 3))
    if bar.low is not None and bar.high is not None and is_number(bar.low) and is_number(bar.high) and bar.low < bar.high:
        low, high = axis.place(bar.low), axis.place(bar.high)
        for kind in ("casing", "whisker"):
            shapes.append(Line(kind, low, middle, high, middle))
            shapes += [Line(kind, x, middle - 3, x, middle + 3) for x in (low, high)]
        end = max(end, high)
    return [*shapes, Text(max(end, zero) + 6, y + 10, bar.words)]
