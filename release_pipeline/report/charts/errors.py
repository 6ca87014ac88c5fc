"""The error of each column beside what was expected of it, and the limits of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from release_pipeline.privacy.figures import format_number
from release_pipeline.report.charts.drawing import (
    LINE,
    WIDTH,
    Box,
    Line,
    Mark,
    Picture,
    Shape,
    Text,
    cut,
    draw_across,
    make_axis,
    width_of,
)
from release_pipeline.report.internal_view import GateView, NoiseColumnView
from release_pipeline.report.prose import is_number
from release_pipeline.sentences import REVIEWERS

LEFT, RIGHT, TOP, ROW = 8, WIDTH - 14, 8, 40
MOST_ROWS = 12  # of one picture, which must not break over two pages


def draw_errors(
    columns: Sequence[NoiseColumnView], limits: Mapping[str, GateView], among: Sequence[NoiseColumnView] = ()
) -> Picture:
    """A row for each column: a bar from the smallest to the largest error expected, its middle a line, the error that came a
    diamond, the limit a dashed line with a triangle. A figure that is not finite has no mark. The scale is for all the columns
    `among` which these are, so that several pictures can be compared."""
    values: list[float | None] = [1.0]
    everything = among or columns
    for column in everything:
        values += [column.actual_error, column.expected_error, column.expected_low, column.expected_high]
    values += [limits[column.name].limit for column in everything if column.name in limits]
    axis = make_axis(values, LEFT, RIGHT, zero=True, logarithmic=True)
    bottom = TOP + ROW * len(columns) + 4
    shapes: list[Shape] = [*draw_across(axis, bottom - 4, bottom)]
    worthless = axis.place(1.0)
    for row, column in enumerate(columns):
        y = TOP + row * ROW
        came = f"{format_number(column.actual_error)} {describe_place(column)}".strip()
        shapes.append(Text(0, y + 12, cut(column.name, WIDTH - width_of(came) - 12), "strong"))
        shapes.append(Text(WIDTH, y + 12, came, "bad" if column.partitioned else "", "end"))
        low, high, middle = (
            axis.place(value) if value is not None and is_number(value) else None
            for value in (column.expected_low, column.expected_high, column.expected_error)
        )
        if low is not None and high is not None:
            shapes.append(Box("expected", min(low, high), y + 20, max(abs(high - low), 1), 10))
        if middle is not None:
            shapes.append(Line("middle", middle, y + 18, middle, y + 32))
        shapes.append(Line("worthless", worthless, y + 17, worthless, y + 33))
        if column.name in limits and is_number(limits[column.name].limit):
            limit = axis.place(limits[column.name].limit)
            shapes += [Line("limit", limit, y + 16, limit, y + 34), Mark("limit-mark", limit, y + 18, "triangle")]
        if is_number(column.actual_error):
            shapes.append(Mark("actual", axis.place(column.actual_error), y + 25, "diamond"))
    shapes.append(Text(WIDTH, bottom + 2 * LINE, REVIEWERS("chart.error"), "axis", "end"))
    words = REVIEWERS("chart.error_words")
    return Picture(REVIEWERS("chart.errors"), words, WIDTH, bottom + 2 * LINE + 6, tuple(shapes))


def describe_place(column: NoiseColumnView) -> str:
    """Where the error that came lies, in a word or two; empty where there is no range to compare it with. `parted` alone tells
    whether it is outside, for who made the view knows how exact the range is."""
    low, high = column.expected_low, column.expected_high
    if not is_number(column.actual_error) or low is None or high is None:
        return ""
    if not column.partitioned:
        return REVIEWERS("chart.as_expected")
    if column.actual_error > high:
        return REVIEWERS("chart.above")
    return REVIEWERS("chart.below") if column.actual_error < low else REVIEWERS("chart.outside")
