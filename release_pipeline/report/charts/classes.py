"""How many groups there are of which size, with the limit between those that are too small and the others."""

from __future__ import annotations

from release_pipeline.privacy.figures import format_count
from release_pipeline.report.charts.drawing import LINE, WIDTH, Box, Line, Picture, Shape, Text, width_of
from release_pipeline.report.internal_view import ClassesView
from release_pipeline.sentences import REVIEWERS

TOP, ROW = 18, 20


def draw_classes(view: ClassesView) -> Picture:
    """A bar for each range of sizes, the smallest on top, with its number of groups; the limit is a line across. Sizes of
    which the largest is under the limit have bars in outline alone, those around it have a dashed outline."""
    names = [format_sizes(low, high) for low, high, _ in view.bars]
    left = max([width_of(name) for name in names], default=0) + 8
    right = WIDTH - 8 - max([width_of(format_count(count)) for _, _, count in view.bars], default=0)
    most = max([count for _, _, count in view.bars], default=1) or 1
    shapes: list[Shape] = [Text(0, 11, REVIEWERS("chart.group_size"), "axis")]
    y, limited = TOP, view.least <= 0
    for name, (low, high, count) in zip(names, view.bars, strict=True):
        if not limited and low >= view.least:
            shapes += _draw_limit(y, view.least)
            y, limited = y + LINE + 6, True
        kind = "groups" if low >= view.least else "partly" if high >= view.least else "too-small"
        shapes += _draw_bar(y, left, right, name, count, most, kind)
        y += ROW
    if not limited:
        shapes += _draw_limit(y, view.least)
        y += LINE + 6
    words = REVIEWERS("chart.group_words", smallest=format_count(view.smallest), largest=format_count(view.largest))
    return Picture(REVIEWERS("chart.groups"), words, WIDTH, y + 6, tuple(shapes))


def format_sizes(low: int, high: int) -> str:
    """A range of sizes."""
    return format_count(low) if low == high else REVIEWERS("chart.sizes", low=format_count(low), high=format_count(high))


def _draw_limit(y: int, least: int) -> list[Shape]:
    return [
        Line("limit", 0, y + 3, WIDTH, y + 3),
        Text(WIDTH, y + 15, REVIEWERS("chart.group_limit", limit=format_count(least)), "bad", "end"),
    ]


def _draw_bar(y: int, left: int, right: int, name: str, count: int, most: int, kind: str) -> list[Shape]:
    long = max((right - left) * count // most, 1 if count else 0)
    bars: list[Shape] = [Box(kind, left, y, long, ROW - 6)] if long else []
    return [Text(left - 6, y + 11, name, "axis", "end"), *bars, Text(left + long + 5, y + 11, format_count(count))]
