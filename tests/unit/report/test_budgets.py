"""The picture of a budget shows what the ledger says: sums, exact amounts, and labels that fit."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.formats.budgets import MOST_SHOWN, Label, PopulationView, StepView, draw_burndown, format_amount, list_sums

NANO = 10**9


def population(
    *amounts: int | None, cap: int = 10 * NANO, planned: tuple[int | None, ...] = (), releases: bool = False
) -> PopulationView:
    """A population with these charges and plans; what no longer fits will be refused."""
    steps = [StepView(f"people/{i}/r1", amount, "spent", "2026-11-20") for i, amount in enumerate(amounts)]
    total = None if None in amounts else sum(amount or 0 for amount in amounts)
    remaining = 0 if total is None else max(cap - total, 0)
    room = remaining
    for i, amount in enumerate(planned):
        fits = amount is not None and amount <= room
        room -= (amount or 0) if fits else room + 1
        steps.append(StepView(f"people/{len(amounts) + i}/r1", amount, "planned" if fits else "refused"))
    unit = "releases" if releases else "epsilon, iDP, column"
    return PopulationView("folk", unit, releases, cap, total, 0, remaining, tuple(steps))


AMOUNTS = st.none() | st.integers(0, 12 * NANO) | st.integers(0, 10**20)
POPULATIONS = st.builds(
    lambda amounts, planned, cap, releases: population(*amounts, planned=tuple(planned), cap=cap, releases=releases),
    st.lists(AMOUNTS, max_size=40),
    st.lists(AMOUNTS, max_size=20),
    st.sampled_from([1, 3, NANO, 10 * NANO, 123456789123]) | st.integers(1, 10**20),
    st.booleans(),
)


def points(path: str) -> list[tuple[int, int]]:
    """The corners of a line that is drawn with M, H and V alone; a coordinate that is not a whole number is an error."""
    parts = re.findall(r"([MHV])([^MHV]*)", path)
    assert "".join(f"{kind}{rest}" for kind, rest in parts) == path
    x, y = (int(part) for part in parts[0][1].split(","))
    corners = [(x, y)]
    for kind, rest in parts[1:]:
        x, y = (int(rest), y) if kind == "H" else (x, int(rest))
        corners.append((x, y))
    return corners


def boxes_overlap(one: Label, other: Label) -> bool:
    """Whether two texts of ten units' height, and at most six for each character, touch."""
    across = one.x < other.x + 6 * len(other.text) and other.x < one.x + 6 * len(one.text)
    return across and abs(one.y - other.y) < 10


# the page


# the amounts


@pytest.mark.slow
@given(POPULATIONS)
def test_amounts_are_exact_decimals(folk: PopulationView) -> None:
    """At most nine places of epsilon, whole releases, and no trace of a float."""
    chart = draw_burndown(folk)
    text = " ".join(mark.description for mark in chart.marks) + chart.last.text + chart.cap.text
    assert not re.search(r"\d\.\d{10,}|\de[-+]?\d|nan\b|\binf\b|None", text)
    assert not (folk.in_releases and re.search(r"\d\.\d", text))


def test_infinity_is_a_word_and_leaves_nothing() -> None:
    """After a charge without bound nothing remains, whatever comes next."""
    folk = population(NANO, None, NANO)
    assert (format_amount(folk.spent, folk), list_sums(folk)) == ("infinity", [9 * NANO, 0, 0])
    chart = draw_burndown(folk)
    assert [mark.y for mark in chart.marks][1:] == [chart.bottom, chart.bottom]
    assert chart.marks[1].description == "people/1/r1: infinity, spent; 0 left"


def test_a_plan_that_will_be_refused_takes_nothing_and_says_so() -> None:
    """The dashed line goes on at the same height."""
    folk = population(8 * NANO, planned=(NANO, 5 * NANO))
    assert list_sums(folk) == [2 * NANO, NANO, NANO]
    chart = draw_burndown(folk)
    assert [mark.state for mark in chart.marks] == ["spent", "planned", "refused"]
    assert chart.after is not None
    assert (chart.last.text, chart.after.text) == ("2 left", "1 as planned")
    assert "planned: will be refused" in chart.marks[-1].description


# the geometry


@given(POPULATIONS)
def test_the_lines_never_rise_and_stay_in_the_picture(folk: PopulationView) -> None:
    """From the left edge to the right one, in whole units, the dashed line from where the full one ends."""
    chart = draw_burndown(folk)
    solid = points(chart.charged)
    dashed = points(chart.planned) if chart.planned else []
    if dashed:
        assert solid[-1] == dashed[0]
    line = [*solid, *dashed]
    assert (line[0][0], line[-1][0]) == (chart.left, chart.right)
    assert line == sorted(line, key=lambda corner: corner[0])
    assert [y for _, y in line] == sorted(y for _, y in line)
    assert all(chart.left <= x <= chart.right < chart.width and chart.top <= y <= chart.bottom < chart.height for x, y in line)


@given(POPULATIONS)
def test_the_heights_are_the_sums(folk: PopulationView) -> None:
    """Each mark is where its sum belongs, to half a unit; nothing left is at the bottom, the whole cap at the top."""
    chart, sums = draw_burndown(folk), list_sums(folk)
    drawn = sums[chart.earlier : len(sums) - chart.later]
    assert len(drawn) == len(chart.marks) <= MOST_SHOWN
    for mark, level in zip(chart.marks, drawn, strict=True):
        assert abs((chart.bottom - mark.y) * folk.cap - level * (chart.bottom - chart.top)) * 2 <= folk.cap
    assert sums == sorted(sums, reverse=True)


@given(POPULATIONS)
def test_the_labels_fit_and_do_not_overlap(folk: PopulationView) -> None:
    """Those at the lines, and those of the axis; names below it stand a line apart."""
    chart = draw_burndown(folk)
    labels = [chart.cap, chart.last, *([chart.after] if chart.after else [])]
    for i, label in enumerate(labels):
        assert label.x >= chart.left
        assert label.x + 6 * len(label.text) <= chart.width or label is chart.cap
        assert 10 <= label.y <= chart.bottom
        assert not any(boxes_overlap(label, other) for other in labels[i + 1 :])
    heights = [tick.y for tick in chart.ticks]
    assert heights == sorted(heights, reverse=True)
    assert 1 <= len(heights) <= 6
    assert all(a - b >= 10 for a, b in pairwise(heights))
    assert all(tick.x - 6 * len(tick.text) >= 0 for tick in chart.ticks)
    spots = [mark.x for mark in chart.marks]
    assert all(b - a >= 12 for a, b in pairwise(spots))


def test_the_last_charges_and_the_next_plans_are_drawn() -> None:
    """Of a long series; what is not drawn is counted, and the line begins at what remained before."""
    folk = population(*[NANO] * 30, planned=(NANO,) * 20, cap=100 * NANO)
    chart = draw_burndown(folk)
    assert (chart.earlier, chart.later, len(chart.marks)) == (22, 12, MOST_SHOWN)
    assert chart.marks[0].description == "people/22/r1: 1, spent; 77 left"
    assert points(chart.charged)[0][1] == chart.bottom - 78 * (chart.bottom - chart.top) // 100


def test_names_are_short_in_a_chart_and_whole_in_its_words() -> None:
    """Without the policy when all have the same; of a long one the end, which tells it from the others."""
    steps = (StepView("people/1/r1", 1, "spent"), StepView("people/a-very-long-partition-name/r2", 1, "reserved"))
    chart = draw_burndown(dataclasses.replace(population(), steps=steps))
    assert [mark.name for mark in chart.marks] == ["1/r1", "…ition-name/r2"]
    assert chart.marks[1].description.startswith("people/a-very-long-partition-name/r2: ")
    other = StepView("others/1/r1", 1, "spent")
    assert [mark.name for mark in draw_burndown(dataclasses.replace(population(), steps=(steps[0], other))).marks] == [
        "people/1/r1",
        "others/1/r1",
    ]
