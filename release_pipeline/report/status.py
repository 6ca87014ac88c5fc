"""The page of a site's state, a pure function of one `StatusView`: what needs attention, budgets with their charts, releases.

Beside states, reasons and sums of charges the view has no field, so no figure against confidential data can get into the page.
Amounts are whole numbers (nano-epsilon, or releases), as is the geometry of the charts: nothing is rounded on the way to a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.figures import count_of, format_count
from release_pipeline.report.escaping import load_templates
from release_pipeline.sentences import REVIEWERS, STATUS

STATES = {  # a sign for each state, so that none is told by colour alone, and how the page may colour it
    "open": ("○", "calm"),
    "waiting": ("◌", "calm"),
    "late": ("!", "bad"),
    "reserved": ("◔", "calm"),
    "drawn": ("◑", "calm"),
    "candidate": ("◆", "due"),
    "approved": ("✓", "due"),
    "returned": ("↩", "due"),
    "rejected": ("✗", "calm"),
    "publishing": ("↑", "calm"),
    "published": ("●", "good"),
    "superseded": ("↷", "calm"),
    "retracted": ("⊘", "calm"),
    "blocked": ("■", "bad"),
    "damaged": ("▲", "bad"),
}
MOST_SHOWN = 16  # steps of one chart; its table has all
BEFORE_REVIEW = ("open", "waiting", "late", "reserved", "drawn", "blocked")
UNDERWAY = ("open", "reserved", "drawn", "publishing")
_WIDTH, _TOP, _PLOT, _GAP = 360, 32, 140, 13  # _GAP: from one step to the next, at least
_CHAR, _LINE, _LONGEST = 6, 11, 14  # of a text in a chart: width of a character, height of a line, characters of a name


@dataclass(frozen=True, slots=True)
class StepView:
    """One charge, or planned release. `amount` is in the smallest unit of the cap, None infinity; `state`: spent, reserved,
    planned or refused."""

    release: str
    amount: int | None
    state: str
    when: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class PopulationView:
    """One population: cap and sums in the smallest unit of the cap (nano-epsilon, or releases), None infinity; charges in their
    order, and after them what is planned. `endless`: the policies whose releases never end."""

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
class ReleaseView:
    """One release. `approvers`: who approved it, or who voted, as long as votes are `blind` and nobody may know how; `needed`:
    reviewers, None where the policy is not known; `given_up` and `successor`: the release that came
    instead; `card` and `note`: relative addresses, empty where there is no such file."""

    name: str
    state: str
    rows: int | None = None
    claim: str = ""
    since: str = ""
    reason: str = ""
    approvers: tuple[str, ...] = ()
    blind: bool = False
    needed: int | None = None
    given_up: str = ""
    successor: str = ""
    card: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class SeriesView:
    """The releases of one policy. Steward and population are empty when the policy cannot be read. `looks`: those at the data
    that its parameters may be chosen by, in words."""

    policy: str
    steward: str
    population: str
    releases: tuple[ReleaseView, ...]
    looks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusView:
    """One site at one moment. `broken`: what is wrong at the site beside its releases, in words."""

    site: str
    made: str
    tool: str
    populations: tuple[PopulationView, ...]
    series: tuple[SeriesView, ...]
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Matter:
    """A kind of things that need attention: how many in words, what to do about them, and which releases they are."""

    words: str
    advice: str
    releases: tuple[ReleaseView, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Label:
    """A text in a chart that begins at x with its base line at y."""

    x: int
    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A step in a chart: where the line is after it, its short name, and everything about it in words."""

    x: int
    y: int
    name: str
    words: str
    state: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A burn-down in whole units of the picture. `charged` and `planned` are the lines' paths, `planned` is empty without plans;
    `earlier` charges and `later` plans are not drawn, for want of room."""

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


def render_status(view: StatusView) -> str:
    """The page: it needs nothing else, no network and no script. The same view gives the same text."""
    releases = [release for series in view.series for release in series.releases]
    context: dict[str, Any] = {
        "view": view,
        "matters": list_matters(view),
        "releases": len(releases),
        "known": _find_anchors([release.name for release in releases]),
        "populations": [(known, draw_burndown(known), list_sums(known)) for known in view.populations],
        "states": STATES,
        "steps": REVIEWERS.read_section("step"),
        "amount": format_amount,
        "approvals": format_approvals,
        "counted": count_of,
    }
    return load_templates("html").get_template("status.html").render(context)


def list_matters(view: StatusView) -> list[Matter]:
    """What needs somebody's attention, the worst first; a release that was given up for another needs none."""
    live = [release for series in view.series for release in series.releases if not release.given_up]
    broken_off = [one for one in live if one.state in UNDERWAY and "broke off" in one.reason]
    kinds = [
        (STATUS("matter.damaged"), STATUS("advice.damaged"), [one for one in live if one.state == "damaged"]),
        (STATUS("matter.blocked"), STATUS("advice.blocked"), [one for one in live if one.state == "blocked"]),
        (STATUS("matter.late"), STATUS("advice.late"), [one for one in live if one.state == "late"]),
        (STATUS("matter.broken_off"), STATUS("advice.broken_off"), broken_off),
        (STATUS("matter.candidate"), STATUS("advice.candidate"), [one for one in live if one.state == "candidate"]),
        (STATUS("matter.returned"), STATUS("advice.returned"), [one for one in live if one.state == "returned"]),
        (STATUS("matter.approved"), STATUS("advice.approved"), [one for one in live if one.state == "approved"]),
    ]
    matters = [Matter(f"{len(found)} {words}", advice, tuple(found)) for words, advice, found in kinds if found]
    if view.broken:
        matters.append(Matter(STATUS("matter.site", count=len(view.broken)), STATUS("advice.site"), texts=view.broken))
    return matters


def format_amount(amount: int | None, population: PopulationView) -> str:
    """An amount in the cap's unit, exactly; None is infinity."""
    if amount is None:
        return REVIEWERS("left.infinite")
    return format_count(amount) if population.in_releases else format_nano(amount)


def name_anchor(release: str) -> str:
    """The id of a release's row, which is also how a link names it: without spaces or quotes, whatever the release is called.

    >>> name_anchor("people/2026 q1/r1")
    'release-people/2026%20q1/r1'
    """
    return f"release-{quote(release, safe='/')}"


def format_approvals(release: ReleaseView) -> str:
    """Who approved a candidate, and how many of how many, or who voted, while no more may be told; empty before there is anything
    to approve."""
    if release.state in BEFORE_REVIEW and not release.approvers:
        return ""
    count = f"{len(release.approvers)} of {'?' if release.needed is None else release.needed}"
    count = STATUS("page.voted", count=count) if release.blind and release.approvers else count
    return f"{count}: {', '.join(release.approvers)}" if release.approvers else count


def list_sums(population: PopulationView) -> list[int]:
    """What remains under the cap after each step, never below nothing. A planned release that will be refused takes nothing."""
    remaining, sums = population.cap, list[int]()
    for step in population.steps:
        if step.state != "refused":
            remaining = 0 if step.amount is None else max(remaining - step.amount, 0)
        sums.append(remaining)
    return sums


def draw_burndown(population: PopulationView) -> Chart:
    """What remains after each charge as a line in steps, then, dashed, what would remain after what is planned.

    Every coordinate lies in the picture, the lines never rise, and no two of the labels beside the lines overlap.
    """
    sums = list_sums(population)
    count = sum(step.state in ("spent", "reserved") for step in population.steps)
    room = max(MOST_SHOWN // 2, MOST_SHOWN - count)
    end = min(len(sums), count + room)
    begin = max(0, min(count, end - MOST_SHOWN))
    shown, levels = population.steps[begin:end], sums[begin:end]
    start = sums[begin - 1] if begin else population.cap
    charged = count - begin

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


def _find_anchors(names: list[str]) -> dict[str, str]:
    """The anchor of each release; one that is declared and not begun is also found by the name of its first revision."""
    first = {f"{name}/r1": name_anchor(name) for name in names if name.count("/") == 1}
    return first | {name: name_anchor(name) for name in names}


def _find_step(cap: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... of which at most five fit under the cap."""
    return next(step for step in _round_numbers() if cap // step <= 5)


def _round_numbers() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


def _shorten(names: list[str]) -> list[str]:
    """The names as a chart has room for them: without the policy where all have the same, and the end of long ones."""
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
