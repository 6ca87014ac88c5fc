"""The internal report: every figure is told in words too, no text becomes anything but text, and no picture breaks on any
number."""

from __future__ import annotations

import dataclasses
import functools
import html
import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from release_pipeline.formats.about import list_facts
from release_pipeline.formats.internal_view import CorrelationView, GateView, InternalView
from release_pipeline.mechanisms.basis.figures import format_apart, format_number, format_share
from release_pipeline.pages.charts import make_axis, width_of
from release_pipeline.report.internal import render_internal
from tests.unit.report.internal_views import (
    ABOUT,
    FLOATS,
    column,
    empty_view,
    many_columns,
    sample_view,
    share,
    shorten,
    stopped_view,
)
from tests.unit.report.pages import VOID, Page
from tests.unit.report.views import HOSTILE, TEXTS

UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f\ud800-\udfff]")
SECTIONS = (
    "distributions",
    "errors",
    "correlations",
    "classes",
    "attacks",
    "models",
    "budget",
    "suppression",
    "levels",
)
ASKED = (*SECTIONS[:2], "subgroups", *SECTIONS[2:4], "sample", *SECTIONS[4:])  # with groups and weights


def read(view: InternalView) -> str:
    """The words of the page, without the pictures."""
    return Page(render_internal(view)).text


def glance(view: InternalView) -> str:
    """The same without parsing it, in half the time: with all of its spaces and references."""
    return re.sub(r"<style.*?</style>|<svg.*?</svg>|<[^>]*>", "", render_internal(view), flags=re.DOTALL)


@pytest.mark.parametrize("view", [sample_view(), empty_view(), stopped_view(), many_columns(1), many_columns(40)])
def test_it_is_one_page_that_needs_nothing_from_elsewhere(view: InternalView) -> None:
    """Well-formed, without script, style or picture from elsewhere, and with a policy that forbids the browser to load any."""
    rendered = render_internal(view)
    page = Page(rendered)
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "object", "use", "image", "foreignobject"} & {tag for tag, _ in page.tags}
    assert "default-src 'none'; style-src 'unsafe-inline'" in rendered
    without_names = re.sub(r"<bdi>[^<]*</bdi>", "", rendered)  # the policy may name an address, as text
    assert not re.search(r"https?:|url\(|@import| on\w+=", without_names)
    links = [str(attributes["href"]) for tag, attributes in page.tags if tag == "a"]
    ids = [str(attributes["id"]) for _, attributes in page.tags if attributes.get("id")]
    assert len(set(ids)) == len(ids)
    assert set(links) <= {f"#{name}" for name in ids}
    assert [link for link in links if link != "#verdict"] == [
        f"#{name}" for name in ASKED if name in SECTIONS or f"#{name}" in links
    ]
    assert len(rendered) < 1_500_000
    for picture in re.findall(r"<svg.*?</svg>", rendered, re.DOTALL):
        ET.fromstring(picture)  # noqa: S314


def test_the_verdict_comes_first_and_then_the_sections_in_their_order() -> None:
    """Confidential on top, the gates with value, limit and basis, what to decide, warnings, claim, contents, sections."""
    page = Page(render_internal(sample_view()))
    ids = [str(attributes["id"]) for tag, attributes in page.tags if tag == "h2" and attributes.get("id")]
    assert ids == ["verdict", "claim", "told", *ASKED]
    order = (
        "CONFIDENTIAL: for reviewers, not for publication",
        "Under the policy rand-hie.",
        "All 5 gates passed.",
        "at most 0.2",
        "5,638",
        "at least 1,000",
        "What the reviewers must decide",
        "Warnings",
        "The guarantee",
        "On this page",
        "Made by",
    )
    spots = [page.text.index(words) for words in order]
    assert spots == sorted(spots)


def test_a_release_that_a_gate_stopped_says_so_first_and_shows_why() -> None:
    """The verdict, the gates that did not pass, and at each section that it was not measured."""
    view = stopped_view()
    text = read(view)
    assert text.index("Stopped before any budget was spent. 3 of 4 gates did not pass.") < text.index("The guarantee")
    not_measured = "Not measured: a gate stopped the release before any budget was spent."
    assert text.count(not_measured) == len(SECTIONS) - 2  # the budget is known
    assert "No column is generalised." in text  # and this is so however far a release came
    coarser = read(dataclasses.replace(view, generalises=True))
    assert coarser.count(not_measured) == len(SECTIONS) - 1
    assert "No column is generalised." not in coarser
    for words in ("did not pass 0.923 at most 0.4", "did not pass not available at most 0.6", "did not pass 612 at least 1,000"):
        assert words in " ".join(text.split()), words


def test_a_gate_that_just_fails_does_not_look_as_if_it_held() -> None:
    """As many digits as it takes; a count is told exactly."""
    gate = GateView("expected error of a", 0.30004, 0.3, False, False, "scales")
    assert "0.30004" in read(sample_view(gates=(gate,)))
    assert format_apart(999.9996, 1000) == ("999.9996", "1,000")
    assert "The gate did not pass." in read(sample_view(gates=(gate,)))
    assert "No gate is set." in read(sample_view(gates=()))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 0.0, 1.7e308])
def test_no_number_breaks_the_page(number: float) -> None:
    """Wherever such a number comes up, pictures have whole coordinates and nothing is left open."""

    def fill(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            bounded = {"at", "original_curve", "released_curve"}
            names = [field.name for field in dataclasses.fields(value) if field.name not in bounded]
            return dataclasses.replace(value, **{name: fill(getattr(value, name)) for name in names})
        if isinstance(value, tuple):
            return tuple(fill(part) for part in value)
        return number if isinstance(value, float) else value

    rendered = render_internal(fill(shorten(sample_view())))
    assert Page(rendered).open == []
    drawn = re.findall(r' (?:x|y|x1|x2|y1|y2|cx|cy|width|height)="([^"]*)"', rendered)
    assert drawn
    assert all(re.fullmatch(r"\d+", number) for number in drawn)


@functools.cache
def write_everywhere(text: str) -> tuple[str, Page]:
    """A page with this text wherever one is, and what a program reads there."""

    def fill(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            kept = {"state", "stopped_at", "in_releases", "at", "error_of"}
            names = {field.name for field in dataclasses.fields(value)} - kept
            return dataclasses.replace(value, **{name: fill(getattr(value, name)) for name in names})
        if isinstance(value, tuple):
            return tuple(fill(part) for part in value)
        return text if isinstance(value, str) else value

    rendered = render_internal(fill(shorten(sample_view(gates=stopped_view().gates))))
    return rendered, Page(rendered)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(TEXTS | HOSTILE)
@example("שלום <b>&\"'\u202e")
def test_no_text_becomes_anything_but_text(text: str) -> None:
    """With the same text everywhere the page has the same tags as with a plain one, and none of the unseen characters."""

    (rendered, page), (_, plain) = write_everywhere(f"x{text}"), write_everywhere("xx")

    def outline(page: Page) -> list[tuple[str, list[str]]]:
        return [(tag, list(attributes)) for tag, attributes in page.tags if tag not in VOID | {"text"}]

    assert page.open == []
    assert outline(page) == outline(plain)
    assert not UNSEEN.search(rendered)


def test_it_shows_what_the_public_will_be_told() -> None:
    """Every word of data and columns, so that who signs has read it; how to cite as the policy says it, or that it is made later.
    A page of a policy that says nothing of its data is as it was, with labels beside the claim."""
    view = sample_view(labels=("female: Sex",))
    page = Page(render_internal(view))
    for words in (
        *(words for _, words in list_facts(ABOUT)),
        "Health care use of families",
        "Yearly records of people who took part",
        "made from creators, year, title and release when it is published",
        "Income of the family",
        "dollars a year",
        "Before taxes.",
        "Question asked: What did your family earn?",
        "0 = male",
        "1 = female",
    ):
        assert words in page.text, words
    assert page.text.count("not said") == 1 + 2 + 3  # of income entries; of female unit and words; of mdvis these three
    cited = dataclasses.replace(ABOUT, citation="Ana: Families.")
    assert "Ana: Families." in Page(render_internal(dataclasses.replace(view, about=cited))).text
    assert "What readers are told that columns and values mean" not in page.text
    silent = Page(render_internal(dataclasses.replace(view, about=None))).text
    assert "What readers are told that columns and values mean" in silent
    assert "What the public will read" not in silent


NOT_TOLD = (  # by themselves: they choose what is told, or are in pictures
    *("original_curve", "released_curve", "state", "at", "error_of", "generalises", "has_weights"),
)


def list_changes(value: Any, rebuild: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The view once for each of its numbers and texts, with that one changed."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.name in NOT_TOLD:
                continue
            yield from list_changes(
                getattr(value, field.name),
                lambda part, name=field.name: rebuild(dataclasses.replace(value, **{name: part})),
                f"{path}.{field.name}",
            )
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from list_changes(part, lambda new, i=i: rebuild((*value[:i], new, *value[i + 1 :])), f"{path}[{i}]")
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from list_changes(part, lambda new, name=name: rebuild(value | {name: new}), f"{path}[{name}]")
    elif isinstance(value, bool):
        yield path, rebuild(not value)
    elif isinstance(value, float):
        yield path, rebuild(value * 1.37 + 0.013)
    elif isinstance(value, int):
        yield path, rebuild(value + 7)
    elif isinstance(value, str):
        yield path, rebuild(f"{value} changed")


@pytest.mark.slow
def test_every_figure_of_the_view_is_in_the_words_of_the_page() -> None:
    """Not in a picture alone: each number and text that changes makes the page read otherwise. A correlation stands twice in the
    view, and the lower triangle is shown. Whether anything is generalised matters where there are no levels to show."""
    whole = sample_view()
    view = shorten(dataclasses.replace(whole, columns=whole.columns[1:3], gates=whole.gates[:2]))
    before = glance(view)
    assert " ".join(html.unescape(before).split()) == read(view)
    upper = re.compile(r"correlations\.(original|released)\[(\d)\]\[(\d)\]")
    # `linkage` is the top of the ladder once more; which rung one is follows from its columns, and all rows are its lowest
    by_ladder = re.compile(r"\.linkage(\.|_chance)|\.linkage_ladder\[\d\]\.(masked|tried|sets)|\.linkage_ladder\[0\]\.linked")
    tried = 0
    for path, changed in list_changes(view, lambda view: view):
        if path.endswith(".about.licence.name"):
            continue  # the short name of it; the title and the address are told
        if by_ladder.match(path) or re.fullmatch(r"\.criteria\[[13]\]\.words", path):
            continue  # what an attacker knows is told once for a criterion
        found = upper.search(path)
        if found and found[2] <= found[3]:
            continue
        tried += 1
        assert glance(changed) != before, path
    assert tried > 200


@pytest.mark.slow
def test_words_follow_the_figures() -> None:
    """What is said of errors, of attacks, of groups and of what was left out turns when they turn."""
    assert "Inside the range expected: 3 of 4 columns." in read(sample_view())
    assert "mdvis is above: expected 0.301 (0.262 to 0.344), actual 0.391." in read(sample_view())
    low = column("a", actual_error=0.01, partitioned=True)
    assert "Inside the range expected: 0 of 1 column." in read(sample_view(columns=(low,)))
    assert "a is below" in read(sample_view(columns=(low,)))
    assert "No better than the mean for everybody: a." in read(sample_view(columns=(column("a", actual_error=1.0),)))
    said = "linking gains most; it succeeds in 14.2% (12.7% to 15.7%) of the cases"
    assert said in read(sample_view())
    assert "Risk beyond the control: 12.4% (10.7% to 14%); more than chance" in read(sample_view())
    linking = sample_view().criteria[2]
    chance = dataclasses.replace(linking, beyond=share(0.01, 0.02))
    assert "Risk beyond the control: 1% (-1% to 3%); the interval holds 0" in read(sample_view(criteria=(chance,)))
    never = dataclasses.replace(linking, beyond=share(-0.05, 0.02))
    assert "less than the control" in read(sample_view(criteria=(never,)))
    assert "By site, 4 is served worst: in mdvis the error of its 412 records is 0.412, and 0.124 for all records." in read(
        sample_view()
    )
    assert "2,000 of 5,638 records tried, so plus or minus 1.93 percentage points" in read(sample_view())
    assert "all 5,638 records tried" in read(sample_view(linkage=share(0.2)))
    classes = sample_view().classes
    assert classes is not None
    small = dataclasses.replace(classes, smallest=3, diversity={"mdvis": 1})
    assert "the limit is 5, so it is too small" in read(sample_view(classes=small))
    assert "some groups have only 1 value of mdvis. Anyone who knows that a person is in such a group knows the value." in read(
        sample_view(classes=small)
    )
    assert "The limit is 5%: kept." in read(sample_view())
    content = sample_view().suppression
    assert content is not None
    assert "The limit is 5%: broken." in read(sample_view(suppression=dataclasses.replace(content, share=0.06)))
    assert "The largest difference is -0.175, between mdvis and outpdol" in read(sample_view())
    assert "Of what the original gains over the guess, the release keeps 36.3%." in read(sample_view())
    assert "worse than the guess" not in read(sample_view())
    [prediction] = sample_view().predictions
    below = dataclasses.replace(prediction, models=(dataclasses.replace(prediction.models[0], released=0.4),))
    assert "Trained on released records, the model is worse than the guess." in read(sample_view(predictions=(below,)))


def test_whether_an_error_is_outside_is_what_the_view_says() -> None:
    """And not compared again: of a method without noise the range has no width, and rounding alone leaves it."""
    still = column("a", expected_error=0.1, expected_low=0.1, expected_high=0.1, actual_error=0.1 + 1e-9)
    text = read(sample_view(columns=(still,)))
    assert "Inside the range expected: 1 of 1 column." in text
    assert "a is above" not in text
    above = dataclasses.replace(still, partitioned=True)
    assert "Inside the range expected: 0 of 1 column. a is above: expected 0.1" in read(sample_view(columns=(above,)))


def test_a_column_without_a_range_says_why() -> None:
    """Without noise it came as expected, within a hundredth; else no range could be computed. Neither is a warning."""
    still = column("a", expected_error=0.1, expected_low=None, expected_high=None, actual_error=0.1009)
    moved = dataclasses.replace(still, name="b", actual_error=0.102)
    text = read(sample_view(columns=(still, moved)))
    assert "No range: there is no noise in a. No range could be computed for b." in text
    assert "no range: there is no noise" in text
    assert "no range could be computed" in text
    assert "inside the range expected" not in text
    exact = dataclasses.replace(still, expected_error=0.0, actual_error=0.0)
    assert "No range: there is no noise in a." in read(sample_view(columns=(exact,)))
    unknown = dataclasses.replace(still, expected_error=None)
    assert "No range could be computed for a." in read(sample_view(columns=(unknown,)))


@pytest.mark.parametrize(
    ("original", "released", "words"),
    [
        (
            -0.5,
            -0.2,
            "The largest difference is 0.3, between a and b: -0.5 in the original, -0.2 as released: it came nearer to 0.",
        ),
        (0.5, 0.2, "0.5 in the original, 0.2 as released: it came nearer to 0."),
        (-0.2, -0.5, "it moved away from 0."),
        (0.0, 0.4, "it moved away from 0."),
        (-0.3, 0.1, "it changed its sign."),
    ],
)
def test_a_link_that_was_thinned_is_told_from_one_that_was_made(original: float, released: float, words: str) -> None:
    """Whichever sign it has: below nothing, a difference above nothing is thinner."""
    views = CorrelationView(("a", "b"), ((1.0, original), (original, 1.0)), ((1.0, released), (released, 1.0)))
    assert f"{words} Different by more than 0.1: 1 of 1 pair." in read(sample_view(correlations=views))


@given(FLOATS.filter(lambda value: not 1.7e308 < abs(value) < math.inf))
def test_a_number_is_near_what_is_written(value: float) -> None:
    """To three digits, and a sign that is right; what is no number is a word."""
    words = format_number(value)
    if math.isnan(value):
        assert words == "not available"
    elif math.isinf(value):
        assert words in ("infinite", "minus infinite")
    else:
        read_back = float(words.replace(",", "").replace(" × 10^", "e"))
        assert read_back == pytest.approx(value, rel=0.00501, abs=0)
        assert len(words) <= 16


def test_shares_are_never_rounded_to_nothing() -> None:
    """0% is nothing at all."""
    assert (format_share(0.0), format_share(1e-9), format_share(1 / 5638)) == ("0%", "1 × 10^-7%", "0.0177%")


@given(st.lists(FLOATS.filter(math.isfinite), max_size=6))
def test_an_axis_keeps_the_order_of_values(values: list[float]) -> None:
    """Larger values are further along, all within the ends; ticks stand where their texts say, and apart."""
    axis = make_axis(values, 40, 340)
    places = [axis.locate(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(40 <= place <= 340 for place in places)
    ticks = axis.tick()
    assert all(b[0] - a[0] >= (width_of(a[1]) + width_of(b[1])) / 2 for a, b in itertools.pairwise(ticks))
    for place, text in ticks:
        assert abs(axis.locate(float(text.replace(",", ""))) - place) <= 1
    assert len(ticks) <= 12
