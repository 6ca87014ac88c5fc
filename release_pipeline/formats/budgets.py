"""The budget of a population for a page: its charges and plans, and the picture of what remains after each.

Amounts are whole numbers (nano-epsilon, or releases), as is the geometry of the chart: nothing is rounded on the way to a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.basis.figures import format_count
from release_pipeline.sentences import REVIEWERS

MOST_SHOWN = 16  # steps of one chart; its table has all
_WIDTH, _TOP, _PLOT, _GAP = 360, 32, 140, 13  # _GAP: from one step to the next, at least
_CHAR, _LINE, _LONGEST = 6, 11, 14  # of a text in a chart: width of a character, height of a line, characters of a name


@dataclass(frozen=True, slots=True)
class StepView:
    """One charge, or planned release. `amount` is in the smallest unit of the cap; None means infinity. `state`: spent, reserved,
    planned or refused."""

    release: str
    amount: int | None
    state: str
    when: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class PopulationView:
    """One population: cap and sums in the smallest unit of the cap (nano-epsilon, or releases), None means infinity. Charges come
    in their order, planned releases after them. `endless`: the policies whose releases never end."""

    name: str
    unit: str
    in_releases: bool
    cap: int
    spent: int | None
    reserved: int | None
    remaining: int
    steps: tuple[StepView, ...]
    endless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Label:
    """A text in a chart; it begins at x, with its base line at y."""

    x: int
    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A step in a chart: the height of the line after it, its short name, and a sentence that describes it."""

    x: int
    y: int
    name: str
    description: str
    state: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A burn-down in whole units of the picture. `charged` and `planned` are the lines' paths, `planned` is empty without plans;
    `earlier` charges and `later` plans are left out where there is no room."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    ticks: tuple[Label, ...]
    cap: Label
    charged: str
    planned: str
    marks: tuple[Mark, ...]
    last: Label
    after: Label | None
    earlier: int
    later: int


def format_amount(amount: int | None, population: PopulationView) -> str:
    """Return an amount in the cap's unit, exactly; None is infinity."""
    if amount is None:
        return REVIEWERS("left.infinite")
    return format_count(amount) if population.in_releases else format_nano(amount)


def list_sums(population: PopulationView) -> list[int]:
    """Return what remains under the cap after each step, at least 0. A planned release that will be refused takes nothing."""
    remaining, sums = population.cap, list[int]()
    for step in population.steps:
        if step.state != "refused":
            remaining = 0 if step.amount is None else max(remaining - step.amount, 0)
        sums.append(remaining)
    return sums


def draw_burndown(population: PopulationView) -> Chart:
    """Return the chart of what remains: after each charge as a line in steps, and dashed after each planned release.

    Every coordinate is inside the picture, the lines never rise, and no two of the labels at the lines overlap.
    """
    sums = list_sums(population)
    spent = sum(step.state in ("spent", "reserved") for step in population.steps)
    room = max(MOST_SHOWN // 2, MOST_SHOWN - spent)
    end = min(len(sums), spent + room)
    begin = max(0, min(spent, end - MOST_SHOWN))
    shown, levels = population.steps[begin:end], sums[begin:end]
    start = sums[begin - 1] if begin else population.cap
    charged = spent - begin

    left_now = REVIEWERS("left.left", amount=format_amount(levels[charged - 1] if charged else start, population))
    as_planned = REVIEWERS("left.as_planned", amount=format_amount(levels[-1], population)) if len(shown) > charged else ""
    amounts = range(0, population.cap + 1, _find_step(population.cap))
    texts = [format_amount(amount, population) for amount in amounts]
    left = max(36, 10 + _CHAR * max(len(text) for text in texts))
    tail = 10 + _CHAR * max(len(left_now), len(as_planned))
    last_x = max(_WIDTH - 4 - tail, left + _GAP * len(shown))
    right, bottom = last_x + tail, _TOP + _PLOT

    def height_of(level: int) -> int:
        cap = max(population.cap, 1)
        return bottom - (2 * level * _PLOT + cap) // (2 * cap)

    spots = [left + (i + 1) * (last_x - left) // max(len(shown), 1) for i in range(len(shown))]
    heights = [height_of(level) for level in levels]
    names = _shorten([step.release for step in shown])
    marks = [
        Mark(x, y, name, _describe(step, level, population), step.state)
        for x, y, name, step, level in zip(spots, heights, names, shown, levels, strict=True)
    ]
    turn_x, turn_y = (spots[charged - 1], heights[charged - 1]) if charged else (left, height_of(start))
    solid = "".join(f"H{mark.x}V{mark.y}" for mark in marks[:charged])
    dashed = "".join(f"H{mark.x}V{mark.y}" for mark in marks[charged:])
    last, after = Label(turn_x + 4, turn_y - 4, left_now), None
    if as_planned:
        end_y = heights[-1]
        below = end_y + _LINE + 3 <= bottom
        after = Label(spots[-1] + 4, end_y + _LINE if below else end_y - 4, as_planned)
        if after.y - last.y < _LINE:
            last = Label(last.x, after.y - _LINE, left_now)
    crowded = last.y - _LINE < _TOP - 5
    cap = Label(left + 4, _TOP - 5 - _LINE * crowded, REVIEWERS("left.cap", amount=format_amount(population.cap, population)))
    return Chart(
        width=right + 4,
        height=bottom + 12 + 5 * max([len(mark.name) for mark in marks], default=0) + 6,
        left=left,
        right=right,
        top=_TOP,
        bottom=bottom,
        ticks=tuple(Label(left - 6, height_of(amount), text) for amount, text in zip(amounts, texts, strict=True)),
        cap=cap,
        charged=f"M{left},{height_of(start)}{solid}" + ("" if as_planned else f"H{right}"),
        planned=f"M{turn_x},{turn_y}{dashed}H{right}" if as_planned else "",
        marks=tuple(marks),
        last=last,
        after=after,
        earlier=begin,
        later=len(sums) - end,
    )


def _find_step(cap: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, ... of which at most five fit under the cap."""
    return next(step for power in count() for step in (10**power, 2 * 10**power, 5 * 10**power) if cap // step <= 5)


def _shorten(names: list[str]) -> list[str]:
    """Return the names shortened to fit a chart: without the policy if all have the same one, and long names without their
    beginning."""
    policies = {name.partition("/")[0] for name in names}
    short = [name.partition("/")[2] or name for name in names] if len(policies) == 1 else names
    return [name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}" for name in short]


def _describe(step: StepView, level: int, population: PopulationView) -> str:
    return REVIEWERS(
        "left.step",
        release=step.release,
        amount=format_amount(step.amount, population),
        state=REVIEWERS.read_section("step")[step.state],
        left=format_amount(level, population),
    )
