"""The page of a site's state: every state is told in words, no text becomes anything but text, the charts are what they say."""

from __future__ import annotations

import dataclasses
import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.report.status import (
    MOST_SHOWN,
    STATES,
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


# the page


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_told_in_words_and_with_a_sign(state: str) -> None:
    """Never by colour alone."""
    text = Page(render_status(site(ReleaseView("people/1/r1", state)))).text
    assert f"{STATES[state][0]}{state}" in text


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
        release = ReleaseView("people/1/r1", text, 5, text, text, f"x{text}", (f"x{text}",), False, 2, f"x{text}", f"x{text}")
        step = StepView(f"x{text}", 1, "spent", f"x{text}", f"x{text}")
        folk = PopulationView(text, text, False, 10, 1, 0, 9, (step,), (f"x{text}",))
        return StatusView(text, text, text, (folk,), (SeriesView(text, f"x{text}", text, (release,)),), (text,))

    rendered = render_status(fill(text))
    page, plain = Page(rendered), Page(render_status(fill("x")))
    assert page.open == []
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert [list(attributes) for _, attributes in page.tags] == [list(attributes) for _, attributes in plain.tags]
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f\ud800-\udfff]", rendered)


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


def test_what_is_left_after_a_step_is_what_the_ledger_says() -> None:
    """Of disjoint cohorts the most of one is spent: by hand, four of 1 leave 1 of 2, and a fifth that takes nothing more."""
    steps = [StepView(f"people/{i}/r1", NANO, "spent", remaining=NANO) for i in range(4)]
    steps += [
        StepView("people/4/r1", NANO, "planned", remaining=NANO),
        StepView("people/5/r1", 3 * NANO, "refused", remaining=NANO),
    ]
    folk = PopulationView("folk", "epsilon, iDP, column", False, 2 * NANO, NANO, 0, NANO, tuple(steps))
    assert list_sums(folk) == [NANO] * 6
    chart = draw_burndown(folk)
    assert chart.after is not None
    assert (chart.last.text, chart.after.text) == ("1 left", "1 as planned")


# the geometry


@given(POPULATIONS)
def test_the_heights_are_the_sums(folk: PopulationView) -> None:
    """Each mark is where its sum belongs, to half a unit; nothing left is at the bottom, the whole cap at the top."""
    chart, sums = draw_burndown(folk), list_sums(folk)
    drawn = sums[chart.earlier : len(sums) - chart.later]
    assert len(drawn) == len(chart.marks) <= MOST_SHOWN
    for mark, level in zip(chart.marks, drawn, strict=True):
        assert abs((chart.bottom - mark.y) * folk.cap - level * (chart.bottom - chart.top)) * 2 <= folk.cap
    assert sums == sorted(sums, reverse=True)
