"""Settings of a policy by what they cost and what is left: epsilon from left to right, a measure upwards, on whole coordinates.

Everything that a script may show instead, another measure, is laid out here too, so that the page has one scale and one rule for
labels: the script moves marks and knows no axis. There are two layouts, for wide windows and for phones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from release_pipeline.policy.strength import Strength, find_best
from release_pipeline.report.charts.drawing import Axis, cut_apart, make_axis, width_of
from release_pipeline.report.prose import is_number

_LINE = 14  # from one label to the next
_TOP, _BELOW = 14, 38  # above the plot and below it
_STEP = {True: 5, False: 2}  # between marks of two methods at one epsilon, where there is room and where there is little
_SIGNS = (  # of methods: told apart by their outline as well as by their colour
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "M-4.5 -4.5h9v9h-9z",
    "M0 -6L5.5 4H-5.5z",
    "M0 -6.5L6 0L0 6.5L-6 0z",
    "M0 6L5.5 -4H-5.5z",
    "M-2 -6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "M-6 0L-3 -5.2H3L6 0L3 5.2H-3z",
    "M0 -6.5L1.9 -2.1L6.2 -2L2.9 1.1L4 5.5L0 3L-4 5.5L-2.9 1.1L-6.2 -2L-1.9 -2.1z",
)
COLOURS = len(_SIGNS)


@dataclass(frozen=True, slots=True)
class Point:
    """A setting. `line`: settings of the same line differ in epsilon alone, and are joined; `kind`: what it
    claims, in words; `style`: the number of its method."""

    number: int
    style: int
    line: str
    short: str
    kind: str
    epsilon: float | None
    claim: Strength


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a setting, and where 99 of 100 releases have it."""

    low: float | None
    middle: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Layout:
    """How large a chart is, and what stands beside its plot: as much for names of lines, as much for settings without epsilon."""

    name: str
    width: int
    height: int
    left: int
    names: int
    apart: int
    is_wide: bool

    @property
    def indent(self) -> int:
        """Where names begin beside the plot, with room for a leader and a sign before them."""
        return 24 if self.is_wide else 17


LAYOUTS = (Layout("wide", 760, 470, 58, 150, 92, True), Layout("narrow", 340, 460, 42, 86, 46, False))


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a setting is, with the ends of its range; `best`: none that is like it has less of both."""

    y: int
    top: int
    bottom: int
    best: bool


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a line, `y` its base line, and where the line that it belongs to ends."""

    x: int
    y: int
    from_x: int
    from_y: int


@dataclass(frozen=True, slots=True)
class Trail:
    """Settings that differ in epsilon alone, from the least on, by their place among all."""

    style: int
    words: str
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What does not depend on the measure. `across`: where each setting is; `apart`: where those without epsilon begin."""

    layout: Layout
    right: int
    bottom: int
    across: tuple[int, ...]
    ticks: tuple[tuple[int, str], ...]
    apart: int | None
    trails: tuple[Trail, ...]

    @property
    def top(self) -> int:
        """Where the plot begins."""
        return _TOP


@dataclass(frozen=True, slots=True)
class Scene:
    """A measure. `spots`: of each setting, None where it has no figure; `names`: of each trail likewise; `one`: where a figure of
    1 is, if that says something."""

    ticks: tuple[tuple[int, str], ...]
    spots: tuple[Spot | None, ...]
    names: tuple[Name | None, ...]
    one: int | None


def sign_of(style: int) -> str:
    """The outline of a method's mark, around its middle."""
    return _SIGNS[style % COLOURS]


def lay_out(points: Sequence[Point], layout: Layout) -> Frame:
    """The places of the settings from left to right: by epsilon, of which each step multiplies; those without stand on the right,
    since nothing bounds what they tell. Methods at one epsilon stand side by side."""
    epsilons = sorted({point.epsilon for point in points if point.epsilon is not None})
    lacking = [i for i, point in enumerate(points) if point.epsilon is None]
    edge = layout.width - (layout.apart if lacking and epsilons else 0)
    styles = sorted({point.style for point in points})
    step = _STEP[layout.is_wide]
    aside = {style: round((place - (len(styles) - 1) / 2) * step) for place, style in enumerate(styles)}
    room = (len(styles) * step) // 2 + 8
    right = edge - layout.names if epsilons else layout.left + 8
    low, high = (epsilons[0], epsilons[-1]) if epsilons else (1.0, 1.0)
    if low == high:
        low, high = low / 2, high * 2
    axis = Axis(low, high, layout.left + room, max(right - room, layout.left + room), logarithmic=True)
    begin = layout.width - layout.apart + 12 if epsilons else layout.left + 30
    every = (
        min(10, (layout.width - begin - 12) // max(len(lacking), 1))
        if epsilons
        else (layout.width - begin - 30) // max(len(lacking), 1)
    )
    slots = {i: begin + place * max(every, 0) for place, i in enumerate(lacking)}
    across = tuple(
        slots[i] if point.epsilon is None else axis.place(point.epsilon) + aside[point.style] for i, point in enumerate(points)
    )
    trails: dict[tuple[int, str], list[int]] = {}
    for i, point in enumerate(points):
        trails.setdefault((point.style, point.line), []).append(i)
    return Frame(
        layout,
        right if epsilons else layout.width - 8,
        layout.height - _BELOW,
        across,
        tuple(_thin(axis, epsilons)) if epsilons else (),
        (layout.width - layout.apart if epsilons else layout.left) if lacking else None,
        tuple(
            Trail(
                style,
                line if layout.is_wide else points[places[0]].short,
                tuple(sorted(places, key=lambda i: (points[i].epsilon or 0.0, points[i].number))),
            )
            for (style, line), places in trails.items()
            if points[places[0]].epsilon is not None
        ),
    )


def draw_measure(points: Sequence[Point], figures: Sequence[Measured], frame: Frame, *, errors: bool) -> Scene:
    """A measure in a frame: from nothing on, or where figures spread by more than ten times each step upwards multiplies. A range
    that leaves the axis ends with it. `errors`: 1 is no better than nothing, and is drawn where it is near."""
    middles = [one.middle for one in figures if one.middle is not None and is_number(one.middle)]
    positive = [value for value in middles if value > 0]
    low, high = min(positive, default=1.0), max(positive, default=1.0)
    ends = [end for one in figures for end in (one.low, one.high) if end is not None and low / 5 <= end <= high * 5]
    axis = make_axis([*positive, *ends] or [0.0, 1.0], frame.bottom, _TOP, logarithmic=True)
    spots: list[Spot | None] = []
    best = find_best([one.claim for one in points], [one.epsilon for one in points], [one.middle for one in figures])
    for one, is_best in zip(figures, best, strict=True):
        if one.middle is None or not is_number(one.middle):
            spots.append(None)
            continue
        y = axis.place(one.middle)
        ends_at = [axis.place(end) if end is not None and is_number(end) else y for end in (one.high, one.low)]
        spots.append(Spot(y, min(ends_at[0], y), max(ends_at[1], y), is_best))
    shows_one = errors and axis.low < 1 < axis.high
    return Scene(tuple(axis.tick()), tuple(spots), _name_trails(frame, spots), axis.place(1.0) if shows_one else None)


def _thin(axis: Axis, epsilons: Sequence[float]) -> list[tuple[int, str]]:
    """The values of epsilon that have room for their texts, the ends first."""
    kept: list[tuple[int, str]] = []
    for value in [epsilons[0], epsilons[-1], *epsilons[1:-1]]:
        x, text = axis.place(value), f"{value:g}"
        if all(abs(x - other) >= (width_of(text) + width_of(words)) // 2 + 6 for other, words in kept):
            kept.append((x, text))
    return sorted(kept)


def _name_trails(frame: Frame, spots: Sequence[Spot | None]) -> tuple[Name | None, ...]:
    """The names of the lines beside their ends, a line of text apart. Where there is no room for all, lines with a setting
    that is among the best come first."""
    ends: list[tuple[int, int, int, bool]] = []
    for number, trail in enumerate(frame.trails):
        there = [(i, spot) for i in trail.places if (spot := spots[i]) is not None]
        if there:
            i, spot = there[-1]
            ends.append((spot.y, number, frame.across[i], any(spot.best for _, spot in there)))
    room = (frame.bottom - _TOP) // _LINE
    if len(ends) > room:
        ends = sorted(ends, key=lambda end: not end[3])[:room]
    ends.sort()
    heights = [end[0] for end in ends]
    for at in range(1, len(heights)):
        heights[at] = max(heights[at], heights[at - 1] + _LINE)
    limit = frame.bottom
    for at in reversed(range(len(heights))):
        heights[at] = limit = min(heights[at], limit)
        limit -= _LINE
    named: list[Name | None] = [None] * len(frame.trails)
    for height, (y, number, x, _) in zip(heights, ends, strict=True):
        named[number] = Name(frame.right + frame.layout.indent, height + 4, x, y)
    return tuple(named)


def shorten_names(frame: Frame) -> list[str]:
    """The names of the trails as there is room for them."""
    return cut_apart(drop_shared([trail.words for trail in frame.trails]), frame.layout.names - frame.layout.indent)


def drop_shared(names: Sequence[str]) -> list[str]:
    """Names without the parts that all of several have, which tell none from another; one that has no other stays.

    >>> drop_shared(["dp-um, by rho, k 3", "dp-um, by rho, k 30", "by rho"])
    ['dp-um, k 3', 'dp-um, k 30', 'by rho']
    """
    parts = [name.split(", ") for name in names]
    shared = {part for own in parts[:1] for part in own if len(names) > 1 and all(part in other for other in parts)}
    return [", ".join(part for part in own if part not in shared) or name for name, own in zip(names, parts, strict=True)]


def list_styles(methods: Sequence[str]) -> Mapping[str, int]:
    """The number of each method's sign and colour."""
    return {method: number for number, method in enumerate(dict.fromkeys(methods))}
