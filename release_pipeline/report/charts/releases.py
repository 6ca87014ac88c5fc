"""The risk-utility map: releases as points, error to the right, linked records upwards."""

from __future__ import annotations

import math
from collections.abc import Sequence

from release_pipeline.report.charts.drawing import (
    LINE,
    SIZE,
    WIDTH,
    Mark,
    Picture,
    Shape,
    Text,
    cut,
    draw_across,
    draw_up,
    make_axis,
    width_of,
)
from release_pipeline.report.escaping import format_name
from release_pipeline.report.internal_view import MapPoint
from release_pipeline.report.prose import is_number
from release_pipeline.sentences import REVIEWERS

LEFT, RIGHT, TOP, BOTTOM = 44, WIDTH - 10, 24, 224
_LONGEST, _ROOMS = 98, (290, 240, 190, 140)  # of a name: where names may crowd, and where there is room


def draw_map(points: Sequence[MapPoint]) -> Picture:
    """Each release whose two figures are finite: a ring, this one a filled diamond. A name that has no room beside its mark
    is left out, that of this release never is, and no two names overlap."""
    drawn = [point for point in points if is_number(point.error) and is_number(point.linkage)]
    errors, linked = [point.error for point in drawn], [100 * point.linkage for point in drawn]
    spread = min(errors, default=0) > 0 and max(errors) / min(errors) > 10
    across = make_axis(errors if spread else _give_room(errors), LEFT, RIGHT, logarithmic=spread, air=False)
    up = make_axis(_give_room(linked, most=100.0), BOTTOM, TOP, air=False)
    shapes: list[Shape] = [*draw_across(across, TOP, BOTTOM)]
    shapes += draw_up(up, LEFT, RIGHT)
    shapes.append(Text(0, 11, REVIEWERS("chart.linked"), "axis"))
    shapes.append(Text(RIGHT, BOTTOM + 2 * LINE + 2, REVIEWERS("chart.median_error"), "axis", "end"))
    marks = [
        Mark("this" if point.is_this else "earlier", across.place(point.error), up.place(100 * point.linkage), shape)
        for point in drawn
        for shape in ["diamond" if point.is_this else "ring"]
    ]
    shapes += [*sorted(marks, key=lambda mark: mark.kind == "this"), *_name_marks(marks, drawn)]
    words = REVIEWERS("chart.map_words")
    return Picture(REVIEWERS("chart.map"), words, WIDTH, BOTTOM + 2 * LINE + 8, tuple(shapes))


def _name_marks(marks: Sequence[Mark], points: Sequence[MapPoint]) -> list[Text]:
    """As many names as have room when they are cut, and then each of these as long as there is room left for it."""
    taken = [(mark.x - 6, mark.x + 6, mark.y - 6, mark.y + 6) for mark in marks]
    named: list[tuple[Mark, MapPoint, Text]] = []
    for mark, point in sorted(zip(marks, points, strict=True), key=lambda pair: not pair[1].is_this):
        spots = _place_name(mark, cut(point.release, _LONGEST), _choose_kind(point))
        free = [spot for spot in spots if not _touches(spot, taken)]
        if free or (point.is_this and not named):
            name = (free or spots)[0]
            named.append((mark, point, name))
            taken.append(_box(name))
    names = [name for _, _, name in named]
    for i, (mark, point, name) in enumerate(named):
        others = taken[: len(marks)] + [_box(other) for other in names if other is not name]
        rooms = _ROOMS if width_of(format_name(point.release)) > _LONGEST else ()
        spots = [spot for room in rooms for spot in _place_name(mark, cut(point.release, room), _choose_kind(point))]
        names[i] = next((spot for spot in spots if not _touches(spot, others)), name)
    return names


def _choose_kind(point: MapPoint) -> str:
    return "strong" if point.is_this else ""


def _give_room(values: list[float], *, most: float = math.inf) -> list[float]:
    """The ends of an axis around these values: not from nothing on, or releases that are alike would lie on each other, but
    never so near that a tenth more or less looks large, and not beyond the `most` that can be."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high <= 0:
        return [0.0, 1.0]
    room = max((high - low) / 2, high / 8)
    return [max(low - room, 0.0), min(high + room, max(most, high))]


def _place_name(mark: Mark, name: str, kind: str) -> list[Text]:
    """Where a name may stand: right, left, above, below; always within the picture."""
    half = width_of(name) // 2
    middle = min(max(mark.x, LEFT + half), RIGHT - half)
    spots = [
        Text(mark.x + 9, mark.y + 4, name, kind),
        Text(mark.x - 9, mark.y + 4, name, kind, "end"),
        Text(middle, mark.y - 9, name, kind, "middle"),
        Text(middle, mark.y + 17, name, kind, "middle"),
    ]
    inside = [spot for spot in spots if spot.extent[0] >= LEFT and spot.extent[1] <= WIDTH and TOP <= spot.y <= BOTTOM - 2]
    return inside or [Text(middle, BOTTOM - 4, name, kind, "middle")]


def _box(text: Text) -> tuple[int, int, int, int]:
    return *text.extent, text.y - SIZE, text.y + 2


def _touches(text: Text, taken: Sequence[tuple[int, int, int, int]]) -> bool:
    left, right, top, bottom = _box(text)
    return any(left < end and begin < right and top < low and high < bottom for begin, end, high, low in taken)
