"""Two empirical distribution functions over each other: the share of records with at most a value, original and released.

Both are known only at released values and at even steps, so straight lines join these points: a step of the original would be at
a place where no record has its value.
"""

from __future__ import annotations

from dataclasses import replace

from release_pipeline.formats.internal_view import Curve as Points
from release_pipeline.formats.internal_view import NoiseColumnView
from release_pipeline.mechanisms.basis.figures import format_share
from release_pipeline.pages.charts import LINE, WIDTH, Curve, Line, Picture, Shape, Text, draw_across, make_axis
from release_pipeline.pages.prose import is_number
from release_pipeline.sentences import REVIEWERS

LEFT, RIGHT, TOP, BOTTOM = 36, WIDTH - 12, 10, 150
_DASH = 4  # half the length of the dash for a line of one point
_KEY = 24  # the length of a line in the key


def draw_curves(column: NoiseColumnView) -> Picture:
    """Return the picture: both as straight lines between their points, original solid and released dashed, with a key below. The
    released line rises from nothing at its smallest value."""
    original, released = (_keep_finite(curve) for curve in (column.original_curve, column.released_curve))
    axis = replace(make_axis((value for value, _ in (*original, *released)), LEFT, RIGHT), clock=column.clock)
    shapes: list[Shape] = [*draw_across(axis, TOP, BOTTOM)]
    for share in (0, 25, 50, 75, 100):
        y = _height(share / 100)
        shapes += [Line("grid", LEFT, y, RIGHT, y), Text(LEFT - 5, y + 4, format_share(share / 100), "axis", "end")]
    lines = {
        kind: [(axis.locate(value), _height(share)) for value, share in points]
        for kind, points in (("original", original), ("released", released))
        if points
    }
    shapes += [Curve(kind, _join(kind, points)) for kind, points in lines.items()]
    shapes += _name_lines()
    title = REVIEWERS("chart.distribution", column=column.name)
    words = REVIEWERS("chart.distribution_words")
    return Picture(title, words, WIDTH, BOTTOM + 2 * LINE + 6, tuple(shapes))


def _keep_finite(curve: Points) -> Points:
    return tuple(point for point in curve if is_number(point[0]) and is_number(point[1]))


def _height(share: float) -> int:
    return BOTTOM - round(min(max(share, 0.0), 1.0) * (BOTTOM - TOP))


def _join(kind: str, points: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the corners of a straight line from point to point; points on one unit are drawn once. No released value is smaller
    than the first point's. The original outside of its points is not known, and a single point becomes a dash."""
    corners = [(points[0][0], BOTTOM)] if kind == "released" else []
    corners += [point for point in points if not corners or point != corners[-1]]
    corners = [corner for i, corner in enumerate(corners) if not i or corner != corners[i - 1]]
    if len(corners) == 1:
        [(x, y)] = corners
        return (max(x - _DASH, LEFT), y), (min(x + _DASH, RIGHT), y)
    return tuple(corners)


def _name_lines() -> list[Shape]:
    """Return the key below the axis: a piece of each line, with its name."""
    names, y = REVIEWERS.read_section("line"), BOTTOM + 2 * LINE
    shapes: list[Shape] = []
    for x, kind in ((LEFT, "original"), (WIDTH // 2, "released")):
        shapes += [Curve(kind, ((x, y - 4), (x + _KEY, y - 4))), Text(x + _KEY + 6, y, names[kind], f"of-{kind}")]
    return shapes
