"""The page of a site's state: every state is told in words, no text becomes anything but text, the charts are what they say."""

from __future__ import annotations

import dataclasses
import html
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.flow.states import MOVES, ReleaseStatus
from release_pipeline.report.status import (
    MOST_SHOWN,
    STATES,
    Label,
    PopulationView,
    ReleaseView,
    SeriesView,
    StatusView,
    StepView,
    draw_burndown,
    format_amount,
    list_matters,
    list_sums,
    render_status,
)
from tests.unit.report.pages import Page
from tests.unit.report.views import HOSTILE, TEXTS

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


def site(*releases: ReleaseView, broken: tuple[str, ...] = (), populations: tuple[PopulationView, ...] = ()) -> StatusView:
    """A site with one policy."""
    return StatusView(
        "office", "2026-11-20 12:00 UTC", "tool 1", populations, (SeriesView("people", "ana", "folk", releases),), broken
    )


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


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_told_in_words_and_with_a_sign(state: str) -> None:
    """Never by colour alone."""
    text = Page(render_status(site(ReleaseView("people/1/r1", state)))).text
    assert f"{STATES[state][0]}{state}" in text


def test_the_states_of_the_flow_all_have_a_sign_of_their_own() -> None:
    """Those that the registry has, and those that the clock and the candidate's folder make of them."""
    assert set().union(*MOVES.values()) - {""} | {ReleaseStatus.__dataclass_fields__["state"].default} <= STATES.keys()
    assert {"late", "waiting", "damaged", "rejected"} <= STATES.keys()
    assert len({sign for sign, _ in STATES.values()}) == len(STATES)


def test_a_state_that_nobody_has_heard_of_is_shown() -> None:
    """A newer flow does not break the page."""
    assert "?dreaming" in Page(render_status(site(ReleaseView("people/1/r1", "dreaming")))).text


def test_what_needs_attention_is_said_and_linked_and_the_rest_is_not() -> None:
    """By kind, the worst first; what was given up for another release needs none."""
    view = site(
        ReleaseView("people/1/r1", "candidate", approvers=("ben",), needed=2),
        ReleaseView("people/2/r1", "blocked", reason="no room", given_up="people/2/r2"),
        ReleaseView("people/2/r2", "blocked", reason="no room"),
        ReleaseView("people/3/r1", "published"),
        ReleaseView("people/4", "late", reason="due"),
        ReleaseView("people/5/r1", "reserved", reason="The last run broke off: killed"),
        ReleaseView("people/6/r1", "damaged"),
        ReleaseView("people/7/r1", "approved"),
        broken=("census.yaml: 2 errors.",),
    )
    words = "1 damaged, 1 blocked, 1 late, 1 broken off, 1 waiting for approval, 1 waiting for publication, 1 broken at the site"
    assert ", ".join(matter.words for matter in list_matters(view)) == words
    page = Page(render_status(view))
    assert f"Needs attention: {words}." in page.text
    assert "people/1/r1: candidate, approvals 1 of 2: ben." in page.text
    assert "census.yaml: 2 errors." in page.text
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links[:6] == [f"#release-people/{name}" for name in ("6/r1", "2/r2", "4", "5/r1", "1/r1", "7/r1")]


def test_nothing_needs_attention() -> None:
    """It is said too, and an empty site is a page."""
    assert "Nothing needs attention." in render_status(site(ReleaseView("people/1/r1", "open")))
    assert "No population can be read." in render_status(dataclasses.replace(site(), series=()))


def test_every_link_within_the_page_arrives() -> None:
    """Of successors, of charges, and of plans for releases that are not begun, whatever they are called."""
    names = ("people/1 a%/r1", "people/2", 'people/"3"/r1')
    view = site(
        ReleaseView(names[0], "superseded", successor=names[2]),
        ReleaseView(names[1], "open"),
        ReleaseView(names[2], "rejected", given_up=names[0]),
        populations=(
            dataclasses.replace(population(), steps=tuple(StepView(name, 1, "spent") for name in (*names, "people/2/r1"))),
        ),
    )
    page = Page(render_status(view))
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert len(set(ids)) == len(ids)
    assert not any(re.search(r"[\s\"]", str(name)) for name in ids)
    assert {str(link) for link in links} <= {f"#{name}" for name in ids}
    assert len(links) == 2 + 2 + 4  # navigation, successors, charges


@pytest.mark.slow
@given(TEXTS | HOSTILE)
def test_no_text_becomes_anything_but_text(text: str) -> None:
    """With the same text everywhere the page has the same tags as with a plain one, and none of the unseen characters."""

    def fill(text: str) -> StatusView:
        release = ReleaseView("people/1/r1", text, 5, text, text, f"x{text}", (f"x{text}",), 2, f"x{text}", f"x{text}")
        step = StepView(f"x{text}", 1, "spent", f"x{text}", f"x{text}")
        folk = PopulationView(text, text, False, 10, 1, 0, 9, (step,), (f"x{text}",))
        return StatusView(text, text, text, (folk,), (SeriesView(text, f"x{text}", text, (release,)),), (text,))

    rendered = render_status(fill(text))
    page, plain = Page(rendered), Page(render_status(fill("x")))
    assert page.open == []
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert [list(attributes) for _, attributes in page.tags] == [list(attributes) for _, attributes in plain.tags]
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f\ud800-\udfff]", rendered)


def test_a_reason_is_shown_as_it_was_written() -> None:
    """Escaped, not dropped."""
    reason = "<script>alert('1')</script> & \"more\""
    rendered = render_status(site(ReleaseView("people/1/r1", "blocked", reason=reason)))
    assert "<script" not in rendered
    assert reason in Page(rendered).text


def test_it_needs_nothing_from_elsewhere() -> None:
    """No script, no address but within the page and its site, and a policy that forbids the browser to load anything."""
    view = site(ReleaseView("people/1/r1", "published", card="r1/privacy-card.html"), populations=(population(NANO),))
    rendered = render_status(view)
    page = Page(rendered)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert "default-src 'none'" in rendered
    assert not re.search(r"https?:|url\(|@import| on\w+=", rendered)
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")


# the amounts


@pytest.mark.slow
@given(POPULATIONS)
def test_amounts_are_exact_decimals(folk: PopulationView) -> None:
    """At most nine places of epsilon, whole releases, and no trace of a float."""
    text = Page(render_status(site(populations=(folk,)))).text
    assert not re.search(r"\d\.\d{10,}|\de[-+]?\d|nan\b|\binf\b|None", text)
    assert not (folk.in_releases and re.search(r"\d\.\d", text))


def test_a_tenth_and_two_tenths_are_three_tenths() -> None:
    """Not 0.30000000000000004."""
    folk = population(NANO // 10, NANO // 5, cap=NANO)
    assert format_amount(folk.spent, folk) == "0.3"
    assert [format_amount(amount, folk) for amount in list_sums(folk)] == ["0.9", "0.7"]
    assert "Spent0.3" in Page(render_status(site(populations=(folk,)))).text.replace(" ", "")


def test_infinity_is_a_word_and_leaves_nothing() -> None:
    """After a charge without bound nothing remains, whatever comes next."""
    folk = population(NANO, None, NANO)
    assert (format_amount(folk.spent, folk), list_sums(folk)) == ("infinity", [9 * NANO, 0, 0])
    chart = draw_burndown(folk)
    assert [mark.y for mark in chart.marks][1:] == [chart.bottom, chart.bottom]
    assert "people/1/r1: infinity, spent; 0 left" in html.unescape(render_status(site(populations=(folk,))))


def test_a_plan_that_will_be_refused_takes_nothing_and_says_so() -> None:
    """The dashed line goes on at the same height."""
    folk = population(8 * NANO, planned=(NANO, 5 * NANO))
    assert list_sums(folk) == [2 * NANO, NANO, NANO]
    chart = draw_burndown(folk)
    assert [mark.state for mark in chart.marks] == ["spent", "planned", "refused"]
    assert chart.after is not None
    assert (chart.last.text, chart.after.text) == ("2 left", "1 as planned")
    assert "planned: will be refused" in Page(render_status(site(populations=(folk,)))).text


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
    assert chart.marks[0].words == "people/22/r1: 1, spent; 77 left"
    assert points(chart.charged)[0][1] == chart.bottom - 78 * (chart.bottom - chart.top) // 100
    text = Page(render_status(site(populations=(folk,)))).text
    assert "Not drawn: 22 earlier charges. Not drawn: 12 later releases." in text


def test_names_are_short_in_a_chart_and_whole_in_its_words() -> None:
    """Without the policy when all have the same; of a long one the end, which tells it from the others."""
    steps = (StepView("people/1/r1", 1, "spent"), StepView("people/a-very-long-partition-name/r2", 1, "reserved"))
    chart = draw_burndown(dataclasses.replace(population(), steps=steps))
    assert [mark.name for mark in chart.marks] == ["1/r1", "…ition-name/r2"]
    assert chart.marks[1].words.startswith("people/a-very-long-partition-name/r2: ")
    other = StepView("others/1/r1", 1, "spent")
    assert [mark.name for mark in draw_burndown(dataclasses.replace(population(), steps=(steps[0], other))).marks] == [
        "people/1/r1",
        "others/1/r1",
    ]
