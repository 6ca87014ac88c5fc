"""Two empirical distribution functions over each other: the share of records with at most a value, original and released.

Both are known at released values and at even steps alone, so straight lines join these points: a step of the original would
stand where no record of it has its value.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from release_pipeline.formats.internal_view import Curve as Points
from release_pipeline.formats.internal_view import NoiseColumnView
from release_pipeline.mechanisms.basis.figures import format_share
from release_pipeline.pages.charts import LINE, WIDTH, Curve, Line, Picture, Shape, Text, draw_across, make_axis, width_of
from release_pipeline.pages.prose import is_number
from release_pipeline.sentences import REVIEWERS

LEFT, RIGHT, TOP, BOTTOM = 36, WIDTH - 12, 10, 150
_DASH = 4  # half of what stands for a line of one point


def draw_curves(column: NoiseColumnView) -> Picture:
    """Both as straight lines between their points, original solid and released dashed, each named next to its line where the two
    are furthest apart and there is room for the names. The released line rises from nothing at its smallest value."""
    original, released = (_keep_finite(curve) for curve in (column.original_curve, column.released_curve))
    axis = replace(make_axis((value for value, _ in (*original, *released)), LEFT, RIGHT), clock=column.clock)
    shapes: list[Shape] = [*draw_across(axis, TOP, BOTTOM)]
    for share in (0, 25, 50, 75, 100):
        y = _height(share / 100)
        shapes += [Line("grid", LEFT, y, RIGHT, y), Text(LEFT - 5, y + 4, format_share(share / 100), "axis", "end")]
    lines = {
        kind: [(axis.place(value), _height(share)) for value, share in points]
        for kind, points in (("original", original), ("released", released))
        if points
    }
    shapes += [Curve(kind, _join(kind, points)) for kind, points in lines.items()]
    shapes += _name_lines(lines)
    title = REVIEWERS("chart.distribution", column=column.name)
    words = REVIEWERS("chart.distribution_words")
    return Picture(title, words, WIDTH, BOTTOM + LINE + 6, tuple(shapes))


def _keep_finite(curve: Points) -> Points:
    return tuple(point for point in curve if is_number(point[0]) and is_number(point[1]))


def _height(share: float) -> int:
    return BOTTOM - round(min(max(share, 0.0), 1.0) * (BOTTOM - TOP))


def _join(kind: str, points: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The corners of a straight line from point to point; what falls on one unit is drawn once. No released value is smaller than
    the first point's; what the original does outside of its points is not known, and of one point alone there is a dash."""
    corners = [(points[0][0], BOTTOM)] if kind == "released" else []
    corners += [point for point in points if not corners or point != corners[-1]]
    corners = [corner for i, corner in enumerate(corners) if not i or corner != corners[i - 1]]
    if len(corners) == 1:
        [(x, y)] = corners
        return (max(x - _DASH, LEFT), y), (min(x + _DASH, RIGHT), y)
    return tuple(corners)


def _height_at(points: list[tuple[int, int]], x: int) -> int:
    """How high a line is at a place; before its first point and after its last one, as high as these."""
    for (begin, before), (end, after) in pairwise(points):
        if begin <= x < end:
            return before + round((after - before) * (x - begin) / (end - begin))
    return points[0][1] if x < points[0][0] else points[-1][1]


def _name_lines(lines: dict[str, list[tuple[int, int]]]) -> list[Shape]:
    """The upper line's name above it and to the left, the lower one's below it and to the right, a line of text apart at
    least."""
    places = sorted({x for points in lines.values() for x, _ in points})
    if not places:
        return []
    heights = {x: {kind: _height_at(points, x) for kind, points in lines.items()} for x in places}
    names = REVIEWERS.read_section("line")
    longest = max(map(width_of, names.values())) + 8
    roomy = [x for x in places if LEFT + longest <= x <= RIGHT - longest]
    if roomy:
        places = roomy
    x = max(places, key=lambda place: (max(heights[place].values()) - min(heights[place].values()), -abs(place - WIDTH // 2)))
    order = sorted(lines, key=lambda kind: (heights[x][kind], kind))
    named: list[Shape] = []
    upper = min(max(heights[x][order[0]] - 4, TOP + 12), BOTTOM - 4 - LINE)
    before = Text(x - 5, upper, names[order[0]], f"of-{order[0]}", "end")
    named.append(before if before.extent[0] >= LEFT else Text(LEFT + 3, upper, names[order[0]], f"of-{order[0]}"))
    if len(order) == 2:
        lower = min(max(heights[x][order[1]] + LINE, upper + LINE), BOTTOM - 4)
        behind = Text(x + 5, lower, names[order[1]], f"of-{order[1]}")
        named.append(behind if behind.extent[1] <= RIGHT else Text(RIGHT - 3, lower, names[order[1]], f"of-{order[1]}", "end"))
    return named
