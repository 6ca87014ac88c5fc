"""A masked column in one picture: the share of the records up to each place, and beside it that of a release under a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from release_pipeline.privacy.dates import Clock
from release_pipeline.report.charts.drawing import LINE, WIDTH, Curve, Line, Picture, Shape, Text, draw_across, make_axis
from release_pipeline.report.prose import is_number
from release_pipeline.sentences import EXPLORE

LEFT, RIGHT, TOP, BOTTOM = 36, WIDTH - 12, 10, 150


@dataclass(frozen=True, slots=True)
class Drawn:
    """A column: its picture without a release, and where its places are, from left to right."""

    across: tuple[int, ...]
    picture: Picture


def draw_column(
    name: str, places: Sequence[float], curve: Sequence[float], tried: str, clock: Clock | None = None
) -> Drawn | None:
    """The column as it is; None where no value of it is known. `tried`: what its records are called; `clock`: its values are
    dates."""
    known = [(place, share) for place, share in zip(places, curve, strict=False) if is_number(place) and is_number(share)]
    if len(known) != len(places) or not known:
        return None
    axis = replace(make_axis(places, LEFT, RIGHT), clock=clock)
    across = tuple(axis.place(place) for place in places)
    shapes: list[Shape] = [*draw_across(axis, TOP, BOTTOM)]
    for share in (0, 50, 100):
        y = height_of(share / 100)
        shapes += [Line("grid", LEFT, y, RIGHT, y), Text(LEFT - 5, y + 4, f"{share}%", "axis", "end")]
    shapes.append(Curve("original", _join(across, [height_of(share) for _, share in known])))
    shapes.append(Text(RIGHT - 4, BOTTOM - 8 - LINE, tried, "of-original", "end"))
    title = EXPLORE("curve.title", column=name)
    return Drawn(across, Picture(title, EXPLORE("curve.words"), WIDTH, BOTTOM + LINE + 6, tuple(shapes)))


def add_release(drawn: Drawn, heights: Sequence[int]) -> Picture:
    """The same with a release, dashed; a script adds the same two shapes."""
    plain = drawn.picture
    released = Curve("released", _join(drawn.across, heights))
    name = Text(RIGHT - 4, BOTTOM - 8, EXPLORE("script.released"), "of-released", "end")
    return Picture(plain.title, plain.words, plain.width, plain.height, (*plain.shapes, released, name))


def height_of(share: float) -> int:
    """Where a share is."""
    return BOTTOM - round(min(max(share, 0.0), 1.0) * (BOTTOM - TOP))


def _join(across: Sequence[int], heights: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The corners of a line from place to place; of one place alone there is a dash."""
    points = list(dict.fromkeys(zip(across, heights, strict=False)))
    if len(points) == 1:
        [(x, y)] = points
        return (max(x - 4, LEFT), y), (min(x + 4, RIGHT), y)
    return tuple(points)
