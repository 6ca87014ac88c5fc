"""The shapes of a picture, on whole coordinates, so that the same figures give the same bytes; and axes with their ticks.

A picture is as wide as a phone and as high as it needs, with letters of `SIZE`; every shape has a class (`kind`) that the page
gives a colour and a dash or an outline, so that colour never carries a meaning by itself. Texts are plain: the template escapes
them.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from release_pipeline.mechanisms.basis.dates import Clock
from release_pipeline.pages.prose import list_moments

WIDTH, SIZE, LINE = 360, 11, 14  # of a picture: width, size of its letters, from one line of text to the next
_LETTER, _LARGE, _WIDE = 7, 10, 12  # width of a letter, of a capital or an m, and of one as wide as the letters' size
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line."""

    kind: str
    x1: int
    y1: int
    x2: int
    y2: int
    tag: str = "line"


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points."""

    kind: str
    points: tuple[tuple[int, int], ...]
    tag: str = "curve"


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its base line at y; `anchor`: whether it begins, has its middle or ends at x."""

    x: int
    y: int
    text: str
    kind: str = ""
    anchor: str = "start"
    tag: str = "text"


Shape = Line | Curve | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes in the order in which they are painted, and a sentence that describes them."""

    title: str
    description: str
    width: int
    height: int
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high` on units from `begin` to `end`. `clock`: they are dates or times."""

    low: float
    high: float
    begin: int
    end: int
    clock: Clock | None = None

    def locate(self, value: float) -> int:
        """Return the coordinate of a value; one that is outside is at the end of the axis."""
        value = min(max(value, self.low), self.high)
        span = self.high / 2 - self.low / 2  # halves, for ends that are further apart than the largest float
        share = (value / 2 - self.low / 2) / span if span > 0 else 0.0
        return self.begin + round(share * (self.end - self.begin))

    def tick(self) -> list[tuple[int, str]]:
        """Return round values with their coordinates, as many as have room for their texts side by side."""
        if self.clock is not None:
            return self._spread(list(list_moments(self.low, self.high, self.clock)))
        step = _find_step(self.high / 2 - self.low / 2)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        places = max(0, -math.floor(math.log10(step)))
        small = max(abs(self.low), abs(self.high)) < 1e9 and places < 7
        digits = max(0, math.floor(math.log10(max(abs(self.low), abs(self.high)))) + 1 - math.floor(math.log10(step)))
        values = [number * step for number in range(first, last + 1)]
        return self._spread([(value, f"{value:,.{places}f}" if small else f"{value:.{digits}g}") for value in values])

    def _spread(self, ticks: list[tuple[float, str]]) -> list[tuple[int, str]]:
        """Return the ticks within the axis, or every second or third one where they would touch."""
        placed = [(self.locate(value), text) for value, text in ticks if self.low <= value <= self.high]
        for every in range(1, len(placed) + 1):
            shown = placed[::every]
            need = max(width_of(text) for _, text in shown) + 6
            if all(b[0] - a[0] >= min(need, self.end - self.begin) for a, b in pairwise(shown)):
                return shown
        return placed[:1]


def make_axis(values: Iterable[float], begin: int, end: int) -> Axis:
    """Return an axis for these finite values, with a little space at both ends."""
    known = list(values)
    low, high = min(known, default=0.0), max(known, default=1.0)
    if high / 2 - low / 2 <= 1e-9 * max(abs(low), abs(high)):
        wider = max(abs(low), abs(high)) / 2 or 1.0
        return Axis(max(low - wider, -1.7e308), min(high + wider, 1.7e308), begin, end)
    room = high / 25 - low / 25
    return Axis(max(low - room, -1.7e308), min(high + room, 1.7e308), begin, end)


def width_of(text: str) -> int:
    """Return the largest width of a text, in units."""
    return sum(
        _WIDE if unicodedata.east_asian_width(char) in "WF" else _LARGE if char.isupper() or char in "mw%@…" else _LETTER
        for char in text
    )


def draw_across(axis: Axis, top: int, bottom: int) -> Iterator[Shape]:
    """Yield the grid lines of an axis from left to right, with the texts below them."""
    free = 0  # up to where the texts before it reach
    for x, text in axis.tick():
        yield Line("grid", x, top, x, bottom)
        half = width_of(text) // 2 + 1
        middle = min(max(x, half), WIDTH - half)
        if middle - half >= free:
            yield Text(middle, bottom + LINE, text, "axis", "middle")
            free = middle + half


def _find_step(half: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten of which at most `_MOST_TICKS` fit into twice this length."""
    power = math.floor(math.log10(half)) - 2
    while True:
        for number in (1, 2, 5):
            step = float(f"{number}e{power}") if power > -324 else 5e-324
            if half / step * 2 <= _MOST_TICKS:
                return step
        power += 1
