"""What a picture is made of, on whole coordinates, so that the same figures give the same bytes; and axes with their ticks.

A picture is as wide as a phone and as high as it needs, with letters of `SIZE`; every shape has a class (`kind`) that the
page gives a colour and a dash or an outline, so that nothing is told by colour alone. Texts are plain: the template escapes them.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from release_pipeline.privacy.dates import Clock
from release_pipeline.report.escaping import format_name
from release_pipeline.report.prose import is_number
from release_pipeline.report.values import list_moments

WIDTH, SIZE, LINE = 360, 11, 14  # of a picture: width, size of its letters, from one line of text to the next
_LETTER, _LARGE, _WIDE = 7, 10, 12  # width of a letter, of a capital or an m, and of one as wide as it is high
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    kind: str
    x: int
    y: int
    width: int
    height: int
    tag: str = "box"


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
class Mark:
    """A sign around a point, four units to each side: `shape` is diamond, ring or triangle."""

    kind: str
    x: int
    y: int
    shape: str
    tag: str = "mark"


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its base line at y; `anchor` says whether it begins, has its middle or ends at x."""

    x: int
    y: int
    text: str
    kind: str = ""
    anchor: str = "start"
    tag: str = "text"

    @property
    def extent(self) -> tuple[int, int]:
        """From where to where it reaches, at most."""
        wide = width_of(self.text)
        begin = {"start": self.x, "middle": self.x - wide // 2, "end": self.x - wide}[self.anchor]
        return begin, begin + wide


Shape = Box | Line | Curve | Mark | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes in the order in which they are painted, and what they show in words."""

    title: str
    words: str
    width: int
    height: int
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high` on units from `begin` to `end`, which may run downwards. `clock`: they are dates or times."""

    low: float
    high: float
    begin: int
    end: int
    logarithmic: bool = False
    clock: Clock | None = None

    def place(self, value: float) -> int:
        """Where a value lies; one that is outside is at the end of the axis."""
        low, high, value = (self._scale(one) for one in (self.low, self.high, min(max(value, self.low), self.high)))
        span = high / 2 - low / 2  # halves, for ends that are further apart than the largest float
        share = (value / 2 - low / 2) / span if span > 0 else 0.0
        return self.begin + round(share * (self.end - self.begin))

    def tick(self) -> list[tuple[int, str]]:
        """Round values with their places, as many as have room for their texts side by side."""
        if self.clock is not None:
            return self._spread(list(list_moments(self.low, self.high, self.clock)))
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            few = len(powers) <= 3
            rounds = [float(f"{m}e{p}") for p in powers for m in ((1, 2, 5) if few else (1,))]
            return self._spread([(value, f"{value:.12g}" if 1e-4 <= value < 1e6 else f"{value:.0e}") for value in rounds])
        step = _find_step(self.high / 2 - self.low / 2)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        places = max(0, -math.floor(math.log10(step)))
        small = max(abs(self.low), abs(self.high)) < 1e9 and places < 7
        digits = max(0, math.floor(math.log10(max(abs(self.low), abs(self.high)))) + 1 - math.floor(math.log10(step)))
        values = [number * step for number in range(first, last + 1)]
        return self._spread([(value, f"{value:,.{places}f}" if small else f"{value:.{digits}g}") for value in values])

    def _scale(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value

    def _spread(self, ticks: list[tuple[float, str]]) -> list[tuple[int, str]]:
        """Those within the axis, every second or third of them where they would touch."""
        placed = [(self.place(value), text) for value, text in ticks if self.low <= value <= self.high]
        across = abs(self.end - self.begin)
        for every in range(1, len(placed) + 1):
            kept = placed[::every]
            need = max(width_of(text) for _, text in kept) + 6
            gaps = [abs(b[0] - a[0]) for a, b in pairwise(kept)]
            if all(gap >= min(need, across) for gap in gaps):
                return kept
        return placed[:1]


def make_axis(
    values: Iterable[float | None], begin: int, end: int, *, zero: bool = False, logarithmic: bool = False, air: bool = True
) -> Axis:
    """An axis for these values, with a little air at both ends; those that are no finite number do not count.

    `zero`: nothing is a value too. `logarithmic`: if all are above nothing and they spread by more than ten times.
    """
    found = [float(value) for value in values if value is not None and is_number(value)]
    if zero and not logarithmic:
        found.append(0.0)
    low, high = min(found, default=0.0), max(found, default=1.0)
    if logarithmic and low > 0 and high / low > 10:
        room = (high / low) ** 0.05 if high / low < math.inf else 10.0
        return Axis(max(low / room, 5e-324), min(high * room, 1.7e308), begin, end, logarithmic=True)
    if zero or logarithmic:
        low, high = min(low, 0.0), max(high, 0.0)
    if high / 2 - low / 2 <= 1e-9 * max(abs(low), abs(high)):
        wider = max(abs(low), abs(high)) / 2 or 1.0
        low, high = max(low - wider, -1.7e308), min(high + wider, 1.7e308)
    elif air:
        room = high / 25 - low / 25
        low, high = (low if zero and low == 0 else max(low - room, -1.7e308)), min(high + room, 1.7e308)
    return Axis(low, high, begin, end)


def width_of(text: str) -> int:
    """How wide a text is at most, in units."""
    return sum(
        _WIDE if unicodedata.east_asian_width(char) in "WF" else _LARGE if char.isupper() or char in "mw%@…" else _LETTER
        for char in text
    )


def cut(text: str, room: int) -> str:
    """A name as it is shown, or as much of its beginning as there is room for.

    >>> cut("a_rather_long_name", 70)
    'a_rather…'
    """
    shown = format_name(text)
    if width_of(shown) <= room:
        return shown
    while shown and width_of(shown) + _LARGE > room:
        shown = shown[:-1]
    return f"{shown}…"


def cut_apart(names: Sequence[str], room: int) -> list[str]:
    """Names as there is room for them; those that would look alike, because they share their beginning, lose their middle, and
    those that share their end too have their number before them.

    >>> cut_apart(["a_rather_long_name", "income", "a_rather_long_tale"], 84)
    ['a_rat…_name', 'income', 'a_rat…_tale']
    """
    shown = [cut(name, room) for name in names]
    middles = [_cut_middle(name, room) for name in names]
    numbered = [cut(f"{number} {name}", room) for number, name in enumerate(names, start=1)]
    for shorter in (middles, numbered):
        alike = {words for words, count in Counter(shown).items() if count > 1}
        shown = [other if words in alike else words for words, other in zip(shown, shorter, strict=True)]
    return shown


def _cut_middle(text: str, room: int) -> str:
    """A name with as much of its beginning and of its end as there is room for."""
    shown = format_name(text)
    if width_of(shown) <= room:
        return shown
    begin, end = "", ""
    for i in range(len(shown)):
        longer = (begin + shown[i // 2], end) if i % 2 == 0 else (begin, shown[-1 - i // 2] + end)
        if width_of("".join(longer)) + _LARGE > room:
            break
        begin, end = longer
    return f"{begin}…{end}"


def draw_across(axis: Axis, top: int, bottom: int) -> Iterator[Shape]:
    """Grid lines of an axis from left to right, with the texts below them."""
    free = 0  # up to where the texts before it reach
    for x, text in axis.tick():
        yield Line("grid", x, top, x, bottom)
        half = width_of(text) // 2 + 1
        middle = min(max(x, half), WIDTH - half)
        if middle - half >= free:
            yield Text(middle, bottom + LINE, text, "axis", "middle")
            free = middle + half


def draw_up(axis: Axis, left: int, right: int) -> Iterator[Shape]:
    """Grid lines of an axis from below upwards, with the texts left of them that have room there."""
    for y, text in axis.tick():
        yield Line("grid", left, y, right, y)
        if width_of(text) <= left - 5:
            yield Text(left - 5, y + 4, text, "axis", "end")


def _find_step(half: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten of which at most `_MOST_TICKS` fit into twice this length."""
    power = math.floor(math.log10(half)) - 2
    while True:
        for number in (1, 2, 5):
            step = float(f"{number}e{power}") if power > -324 else 5e-324
            if half / step * 2 <= _MOST_TICKS:
                return step
        power += 1
