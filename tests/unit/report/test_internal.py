"""The internal report: every figure is told in words too, no text becomes anything but text, and no picture breaks on any
number."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from release_pipeline.privacy.figures import format_apart, format_number, format_share
from release_pipeline.report.about import ColumnWords
from release_pipeline.report.charts import curves
from release_pipeline.report.charts.bars import Bar, Group, draw_bars
from release_pipeline.report.charts.classes import draw_classes
from release_pipeline.report.charts.correlations import STRENGTHS, draw_correlations
from release_pipeline.report.charts.curves import draw_curves
from release_pipeline.report.charts.drawing import Box, Curve, Line, Mark, Picture, Text, cut, cut_apart, make_axis, width_of
from release_pipeline.report.charts.errors import MOST_ROWS, draw_errors
from release_pipeline.report.charts.releases import draw_map
from release_pipeline.report.escaping import TEMPLATES, format_name
from release_pipeline.report.internal import draw_gates, list_sections, render_internal
from release_pipeline.report.internal_view import ClassesView, CorrelationView, GateView, InternalView, MapPoint, ShareView
from tests.unit.report.internal_views import (
    ABOUT,
    FLOATS,
    NANO,
    budget,
    column,
    empty_view,
    internal_views,
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
    "map",
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
# where a policy has groups, weights and ties, and where what attacks found was noted by criterion
ASKED = (*SECTIONS[:3], "subgroups", *SECTIONS[3:5], "sample", "ties", "criteria", *SECTIONS[5:])


def read(view: InternalView) -> str:
    """The words of the page, without the pictures."""
    return Page(render_internal(view)).text


def list_pictures(view: InternalView) -> list[Picture]:
    """All pictures that are drawn by the charts."""
    figures = [*draw_gates(view), *(figure for section in list_sections(view) for figure in section.figures)]
    return [figure.picture for figure in figures]


def check_picture(picture: Picture) -> None:
    """Everything has whole coordinates and lies in the picture, and no two texts touch."""
    texts: list[Text] = []
    assert picture.title
    assert picture.words
    for shape in picture.shapes:
        match shape:
            case Box():
                xs, ys = [shape.x, shape.x + shape.width], [shape.y, shape.y + shape.height]
                assert shape.width >= 1
                assert shape.height >= 1
            case Line():
                xs, ys = [shape.x1, shape.x2], [shape.y1, shape.y2]
            case Curve():
                xs, ys = [x for x, _ in shape.points], [y for _, y in shape.points]
            case Mark():
                xs, ys = [shape.x - 6, shape.x + 6], [shape.y - 6, shape.y + 6]
            case Text():
                xs, ys = [*shape.extent], [shape.y - 8, shape.y + 2]
                texts.append(shape)
        assert all(type(number) is int for number in (*xs, *ys)), shape
        assert min(xs) >= 0, shape
        assert max(xs) <= picture.width, shape
        assert min(ys) >= 0, shape
        assert max(ys) <= picture.height, shape
    for one, other in itertools.combinations(texts, 2):
        if abs(one.y - other.y) < 10:
            (begin, end), (start, stop) = one.extent, other.extent
            assert end <= start or stop <= begin, (one, other)


# the page


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


@pytest.mark.parametrize("view", [sample_view(), empty_view(), stopped_view(), many_columns(40)])
def test_it_can_be_read_without_seeing_it_and_without_a_mouse(view: InternalView) -> None:
    """Headings step by step; focus on links, summaries and named frames that scroll alone; each picture named, described and told
    as a table."""
    rendered = render_internal(view)
    page = Page(rendered)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    reached = [attributes for _, attributes in page.tags if "tabindex" in attributes]
    assert all(one["class"] == "scroll" and one["tabindex"] == "0" for one in reached)
    assert not {"button", "input", "select", "textarea"} & {tag for tag, _ in page.tags}
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert all(one["aria-labelledby"] in ids for one in reached)
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    for picture in pictures:
        assert picture["role"] == "img"
        assert set(str(picture["aria-labelledby"]).split()) <= ids
    assert sum(tag == "details" for tag, _ in page.tags) == len(pictures)
    assert rendered.count("<figcaption>") == len(pictures)
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    assert page.tags[[tag for tag, _ in page.tags].index("body") + 1][1]["class"] == "skip"


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
        "The claim",
        "On this page",
        "Made by",
    )
    spots = [page.text.index(words) for words in order]
    assert spots == sorted(spots)


def test_a_release_that_a_gate_stopped_says_so_first_and_shows_why() -> None:
    """The verdict, a picture of the gates that did not pass, and at each section that it was not measured."""
    view = stopped_view()
    text = read(view)
    assert text.index("Stopped before the charge. 3 of 4 gates did not pass.") < text.index("The claim")
    assert text.count("Not measured: a gate stopped the release before the charge.") == len(SECTIONS) - 2  # the budget is known
    assert "No column is generalised." in text  # and this is so however far a release came
    coarser = read(dataclasses.replace(view, generalises=True))
    assert coarser.count("Not measured: a gate stopped the release before the charge.") == len(SECTIONS) - 1
    assert "No column is generalised." not in coarser
    (figure,) = draw_gates(view)
    words = [shape.text for shape in figure.picture.shapes if isinstance(shape, Text)]
    assert words == [
        "expected error of mdvis", "0.923", "at most 0.4", "expected error of outpdol", "not available", "at most 0.6",
        "records", "612", "at least 1,000",
    ]  # fmt: skip
    limits = [shape.x1 for shape in figure.picture.shapes if isinstance(shape, Line) and shape.kind == "limit"]
    bars = [shape.x + shape.width for shape in figure.picture.shapes if isinstance(shape, Box)]
    assert len(bars) == 2  # what is not known has no bar
    assert bars[0] > limits[0]  # too large
    assert bars[1] < limits[2]  # too small


def test_a_gate_that_just_fails_does_not_look_as_if_it_held() -> None:
    """As many digits as it takes; a count is told exactly."""
    gate = GateView("expected error of a", 0.30004, 0.3, False, False, "scales")
    assert "0.30004" in read(sample_view(gates=(gate,)))
    assert format_apart(999.9996, 1000) == ("999.9996", "1,000")
    assert "The gate did not pass." in read(sample_view(gates=(gate,)))
    assert "No gate is set." in read(sample_view(gates=()))


def test_a_view_without_any_figure_is_a_page() -> None:
    """Every section says why it is empty, and nothing is drawn."""
    rendered = render_internal(empty_view())
    assert "<svg" not in rendered
    assert rendered.count("(not available)") == len(SECTIONS)
    assert "No quasi-identifier is released" in rendered
    assert "No column is generalised." in rendered


def test_the_same_view_gives_the_same_bytes() -> None:
    """Nothing but the view gets in."""
    view = sample_view()
    assert render_internal(view) == render_internal(copy.deepcopy(view))


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(internal_views())
def test_any_view_is_a_page_without_broken_figures(view: InternalView) -> None:
    """Whatever the numbers are: no number that only a program can read, none of the unseen characters, and nothing left open."""
    rendered = render_internal(view)
    page = Page(rendered)
    assert page.open == []
    assert not UNSEEN.search(rendered)
    drawn = re.findall(r' (?:x|y|x1|x2|y1|y2|cx|cy|width|height)="([^"]*)"', rendered)
    assert all(re.fullmatch(r"\d+", number) for number in drawn)
    for picture in re.findall(r"<svg.*?</svg>", rendered, re.DOTALL):
        ET.fromstring(picture)  # noqa: S314


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(TEXTS | HOSTILE)
@example("שלום <b>&\"'\u202e")
def test_no_text_becomes_anything_but_text(text: str) -> None:
    """With the same text everywhere the page has the same tags as with a plain one, and none of the unseen characters."""

    def fill(value: Any, text: str) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            kept = {"state", "stopped_at", "in_releases", "at", "error_of"}
            changed = {
                field.name: fill(getattr(value, field.name), text)
                for field in dataclasses.fields(value)
                if field.name not in kept
            }
            return dataclasses.replace(value, **changed)
        if isinstance(value, tuple):
            return tuple(fill(part, text) for part in value)
        return f"x{text}" if isinstance(value, str) else value

    view = shorten(sample_view(gates=stopped_view().gates))
    rendered = render_internal(fill(view, text))
    page, plain = Page(rendered), Page(render_internal(fill(view, "x")))

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
        *(words for _, words in ABOUT.list_facts()),
        "Health care use of families",
        "Yearly records of people who took part",
        "made of creators, year, title and release when it is published",
        "Income of the family",
        "dollars a year",
        "Before taxes.",
        "Asked was: What did your family earn?",
        "0 = male",
        "1 = female",
    ):
        assert words in page.text, words
    assert page.text.count("not said") == 1 + 2 + 3  # of income entries; of female unit and words; of mdvis these three
    cited = dataclasses.replace(ABOUT, citation="Ana: Families.")
    assert "Ana: Families." in Page(render_internal(dataclasses.replace(view, about=cited))).text
    many = (ColumnWords("town", "Town", labels=tuple((str(i), f"town {i}") for i in range(130))),)
    text = Page(render_internal(dataclasses.replace(view, column_words=many))).text
    assert ("99 = town 99" in text, "100 = town 100" in text, "and 30 more, which the policy has" in text) == (True, False, True)
    assert "What readers are told that columns and values mean" not in page.text
    silent = Page(render_internal(dataclasses.replace(view, about=None))).text
    assert "What readers are told that columns and values mean" in silent
    assert "What the public will be told" not in silent


def test_a_name_is_shown_as_it_is_and_apart_from_the_text_around_it() -> None:
    """Escaped, not dropped; isolated, so that a name from right to left turns no figure."""
    name = '<i>שכר</i> & "more"\u202e'
    rendered = render_internal(sample_view(columns=(column(name),)))
    assert "<i>" not in rendered
    assert '<i>שכר</i> & "more"[U+202E]' in Page(rendered).text
    assert "<bdi>&lt;i&gt;שכר&lt;/i&gt; &amp;" in rendered
    assert '<th role="rowheader" scope="row"><bdi>&lt;i&gt;' in rendered  # in tables too


# the figures


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
    view = shorten(dataclasses.replace(whole, columns=whole.columns[1:3], gates=whole.gates[:2], map=whole.map[3:]))
    before = read(view)
    upper = re.compile(r"correlations\.(original|released)\[(\d)\]\[(\d)\]")
    # `linkage` is the top of the ladder once more; which rung one is follows from its columns, and all rows are its lowest
    by_ladder = re.compile(r"\.linkage(\.|_chance)|\.linkage_ladder\[\d\]\.(masked|tried|sets)|\.linkage_ladder\[0\]\.linked")
    tried = 0
    for path, changed in list_changes(view, lambda view: view):
        if path.endswith(".about.licence[0]"):
            continue  # the short name of it; the title and the address are told
        if by_ladder.match(path):
            continue
        found = upper.search(path)
        if found and found[2] <= found[3]:
            continue
        tried += 1
        assert read(changed) != before, path
    assert tried > 200


def test_the_curves_are_drawn() -> None:
    """Each in its own line: another curve is another picture."""
    one = column("a")
    for name in ("original_curve", "released_curve"):
        other = dataclasses.replace(one, **{name: ((0.0, 0.5), (100.0, 1.0))})
        assert render_internal(sample_view(columns=(one,))) != render_internal(sample_view(columns=(other,)))


@pytest.mark.slow
def test_words_follow_the_figures() -> None:
    """What is said of errors, of attacks, of groups, of what was left out and of predecessors turns when they turn."""
    assert "3 of 4 columns lie inside the range expected." in read(sample_view())
    assert "mdvis lies above: expected 0.301 (0.262 to 0.344), actual 0.391." in read(sample_view())
    low = column("a", actual_error=0.01, partitioned=True)
    assert "0 of 1 column lies inside the range expected." in read(sample_view(columns=(low,)))
    assert "a lies below" in read(sample_view(columns=(low,)))
    assert "No better than the mean for everybody: a." in read(sample_view(columns=(column("a", actual_error=1.0),)))
    attacks = sample_view().attacks
    assert "linking: risk beyond the control 12.4% (10.7% to 14%); more than chance" in read(sample_view())
    chance = dataclasses.replace(attacks[1], risk=share(0.01, 0.02))
    assert "linking: risk beyond the control 1% (-1% to 3%); the interval holds 0" in read(sample_view(attacks=(chance,)))
    never = dataclasses.replace(attacks[1], risk=share(-0.05, 0.02))
    assert "less than the control" in read(sample_view(attacks=(never,)))
    assert "2,000 of 5,638 records tried, so plus or minus 1.93 percentage points" in read(sample_view())
    assert "all 5,638 records tried" in read(sample_view(linkage=share(0.2)))
    classes = sample_view().classes
    assert classes is not None
    small = dataclasses.replace(classes, smallest=3, diversity=(("mdvis", 1),))
    assert "the limit is 5, so it is too small" in read(sample_view(classes=small))
    assert "there are groups with 1 value only of mdvis. Who knows that a person is in such a group knows the value." in read(
        sample_view(classes=small)
    )
    assert "The limit is 5%: kept." in read(sample_view())
    content = sample_view().suppression
    assert content is not None
    assert "The limit is 5%: broken." in read(sample_view(suppression=dataclasses.replace(content, share=0.06)))
    assert "Of 4 earlier releases, 4 had a smaller error, and 4 had a smaller share" in read(sample_view())
    assert "It is alone on the map" in read(sample_view(map=(MapPoint("r", 0.1, 0.2, True),)))
    assert "The largest difference is -0.175, between mdvis and outpdol" in read(sample_view())
    assert "Of what the original gains over the guess, the release keeps 36.3%." in read(sample_view())
    assert "worse than the guess" not in read(sample_view())
    below = dataclasses.replace(sample_view().predictions[0], released=0.4)
    assert "Trained on released records, the model is worse than the guess." in read(sample_view(predictions=(below,)))


def test_groups_are_judged_beside_random_ones() -> None:
    """Only far above them one is said to be served worse than chance does."""
    [groups] = sample_view().subgroups
    said = read(sample_view())
    assert "by site 4 is served worst: in mdvis its error is 0.412, and that of random groups 0.124 with a standard" in said
    # 12.5 standard deviations: at most one in 1 + 12.5^2 = 157.25
    assert "It lies 12.5 of these above, as at most one random group in 157 does; it is the worst of 4 comparisons." in said
    near = dataclasses.replace(groups, groups=tuple(dataclasses.replace(one, above=(2.9, -1.0)) for one in groups.groups[:2]))
    assert "By site, no group's error lies 3 standard deviations or more above" in read(sample_view(subgroups=(near,)))
    assert "6 7 0 151 0 not available" in " ".join(said.split())
    bare = tuple(
        dataclasses.replace(one, chances=(), above=(), absolutes=(), weighted_errors=(), weights=()) for one in groups.groups
    )
    earlier = sample_view(subgroups=(dataclasses.replace(groups, groups=bare),))
    assert "random groups" not in read(earlier)
    assert len(next(one for one in list_sections(earlier) if one.anchor == "subgroups").figures) == 2
    unknown = dataclasses.replace(groups.groups[0], errors=(math.nan, 0.55), above=(math.nan, 9.65))
    assert "4 is served worst: in outpdol the error" in read(
        sample_view(subgroups=(dataclasses.replace(groups, groups=(unknown,)),))
    )


def test_a_table_with_many_columns_gets_a_row_of_its_own() -> None:
    """Where pictures stand side by side it would lie over its neighbours; one with few columns stays where it is."""
    rendered = render_internal(sample_view())
    heads = [len(figure.table.head) for section in list_sections(sample_view()) if section.many for figure in section.figures]
    assert min(heads) <= 5 < max(heads)
    assert rendered.count('<div class="broad">') == sum(head > 5 for head in heads)


def test_an_open_table_lies_beside_its_picture() -> None:
    """In a row of its own, where its heads have room."""
    assert ".multiples > div:has(> details[open]) { display: grid;" in render_internal(sample_view())


def test_shares_beside_an_axis_are_within_the_picture() -> None:
    """They have room left of the axis."""
    shapes = draw_curves(column("a", original_curve=((0.0, 0.5), (10.0, 1.0)), released_curve=((0.0, 0.25),))).shapes
    shares = [shape for shape in shapes if isinstance(shape, Text) and shape.anchor == "end" and "%" in shape.text]
    assert len(shares) == 5
    assert min(shape.extent[0] for shape in shares) >= 0
    assert {shape.x1 for shape in shapes if isinstance(shape, Line) and shape.y1 == shape.y2} == {shares[0].x + 5}


def test_whether_an_error_is_outside_is_what_the_view_says() -> None:
    """And not compared again: of a method without noise the range has no width, and rounding alone leaves it."""
    still = column("a", expected_error=0.1, expected_low=0.1, expected_high=0.1, actual_error=0.1 + 1e-9)
    text = read(sample_view(columns=(still,)))
    assert "1 of 1 column lies inside the range expected." in text
    assert "a lies above" not in text
    above = dataclasses.replace(still, partitioned=True)
    assert "0 of 1 column lies inside the range expected. a lies above: expected 0.1" in read(sample_view(columns=(above,)))


def test_a_column_without_a_range_says_why() -> None:
    """Without noise it came as expected, within a hundredth; else no range could be told. Neither is a warning."""
    still = column("a", expected_error=0.1, expected_low=None, expected_high=None, actual_error=0.1009)
    moved = dataclasses.replace(still, name="b", actual_error=0.102)
    text = read(sample_view(columns=(still, moved)))
    assert "No range: there is no noise in a. No range could be told for b." in text
    assert "no range: there is no noise" in text
    assert "no range could be told" in text
    assert "inside the range expected" not in text
    exact = dataclasses.replace(still, expected_error=0.0, actual_error=0.0)
    assert "No range: there is no noise in a." in read(sample_view(columns=(exact,)))
    unknown = dataclasses.replace(still, expected_error=None)
    assert "No range could be told for a." in read(sample_view(columns=(unknown,)))


@pytest.mark.slow
def test_what_check_says_is_of_the_noise_alone() -> None:
    """With the command that says it again; the sum of squares stands with the figures, after the first sentences."""
    text = read(sample_view())
    assert "Mean absolute error of mhi: 3.51, grouping included. check --rows 5670 says of the noise alone: about 4.2" in text
    assert "3.51, grouping included. check says of the noise alone: about 4.2" in read(sample_view(rows_in=0))
    squares = "Sum of squared errors as IDP24 (Soria-Comas and others, 2025) defines it: 1,234"
    assert text.index("Figures: errors of the columns") < text.index(squares) < text.index("Correlations, released", 5000)
    assert "Sum of squared errors" not in read(sample_view(sse_paper=None))
    assert read(many_columns(40)).count("Sum of squared errors") == 1


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
        (-0.3, 0.1, "it turned its sign."),
    ],
)
def test_a_link_that_was_thinned_is_told_from_one_that_was_made(original: float, released: float, words: str) -> None:
    """Whichever sign it has: below nothing, a difference above nothing is thinner."""
    views = CorrelationView(("a", "b"), ((1.0, original), (original, 1.0)), ((1.0, released), (released, 1.0)))
    assert f"{words} 1 of 1 pair differs by more than 0.1." in read(sample_view(correlations=views))


def test_a_kind_of_attack_is_described_once_however_many_columns_it_is_tried_on() -> None:
    """Each column has a sentence of its own and bars; those for which nothing could be tried share one sentence."""
    one = dataclasses.replace(sample_view().attacks[2], worst="")
    tried = tuple(dataclasses.replace(one, name=f"inferring c{i}") for i in range(38))
    never = tuple(dataclasses.replace(one, name=f"inferring d{i}", attack=share(0, 0, 0, 0)) for i in range(9))
    view = sample_view(attacks=(*sample_view().attacks[:2], *tried, *never))
    text = read(view)
    assert text.count("The attacker knows all columns but one".lower()) == 1
    for attack in tried:
        assert f"{attack.name}: risk beyond the control 0.87% (-5.1% to 6.8%); the interval holds 0" in text
    assert "attack 31.7%, control 31.1%, guess 28.4%." in text
    names = ", ".join(f"inferring d{i}" for i in range(8))
    assert f"Nothing could be tried for: {names} and inferring d8. That says nothing about the risk." in text
    assert text.count("Nothing could be tried") == 1
    section = next(section for section in list_sections(view) if section.anchor == "attacks")
    drawn = [shape.text for figure in section.figures for shape in figure.picture.shapes if isinstance(shape, Text)]
    assert [text for text in drawn if text.startswith("inferring")] == [attack.name for attack in tried]
    for figure in section.figures:
        check_picture(figure.picture)


def test_one_is_told_as_one() -> None:
    """A time, a record, a pair."""
    once = dataclasses.replace(sample_view().attacks[0], attack=share(1, 0, 1, 1), control=ShareView(0, 0, 0, 1, None))
    text = read(sample_view(attacks=(once,)))
    assert "(all 1 record tried)" in text
    assert "(tried 1 time)" in text


def test_a_budget_without_plans_has_no_words_for_them() -> None:
    """No dashed line, no cross, and nothing reserved where nothing is; releases are counted, an epsilon is one amount."""
    (spent, *_) = budget().steps
    alone = dataclasses.replace(budget(), steps=(spent,), spent=2 * NANO, reserved=0, remaining=8 * NANO)
    text = read(sample_view(budget=alone))
    assert "2 is spent; 8 is left." in text
    assert not any(words in text for words in ("dashed part", "on the dashed line", "a cross", "; cross", ", of it", "; hollow"))
    text = read(sample_view())
    assert "8 is spent, of it 2 reserved; 2 is left." in text
    assert "on the dashed line: planned" in text
    assert "cross: will be refused" in read(sample_view(budget=budget(4)))
    counted = dataclasses.replace(alone, in_releases=True, cap=3, spent=2, remaining=1)
    assert "2 are spent; 1 is left." in read(sample_view(budget=counted))


def test_a_tree_that_tells_clusters_apart_is_put_into_words() -> None:
    """Where records share a cluster's value and a tree is near its most, and nowhere else."""
    words = "Records that share a cluster's value are easy to tell from original ones"
    assert words in read(sample_view())
    assert words not in read(sample_view(clusters=False))
    assert words not in read(sample_view(discrimination=sample_view().discrimination[:2]))


def test_what_of_the_original_lies_beyond_the_picture_is_said() -> None:
    """A line that does not reach all records looks like a mistake without words; one that does needs none."""
    short = column("a", original_curve=((0.0, 0.2), (1.0, 0.975)), released_curve=((0.0, 0.4), (1.0, 1.0)))
    assert "2.5% of the original records lie above the end of its line." in read(sample_view(columns=(short,)))
    text = read(sample_view())
    assert "lie above the largest" not in text
    assert text.count("Drawn at released values and at even steps between them, so that no point is somebody's") == 1


def test_what_does_not_exist_is_said() -> None:
    """Constant columns have no correlation, one column no pair, a figure that is not there no number."""
    constant = CorrelationView(("a", "b"), ((1.0, None), (None, None)), ((1.0, None), (None, None)))
    assert "No pair of columns has both correlations" in read(sample_view(correlations=constant))
    assert "one masked column alone" in read(sample_view(correlations=CorrelationView(("a",), ((1.0,),), ((1.0,),))))
    still = column("a", actual_error=math.nan, original_curve=((5.0, 1.0),), released_curve=((5.0, 1.0),), ks=0.0)
    text = read(sample_view(columns=(still,)))
    assert "No column has any gap between its two lines." in text
    assert "not available" in text
    assert "infinite" in read(sample_view(columns=(column("a", actual_error=math.inf),)))


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


# the pictures


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(internal_views())
def test_every_picture_keeps_to_its_frame_and_no_two_texts_touch(view: InternalView) -> None:
    """Whatever the numbers and names are."""
    for picture in list_pictures(view):
        check_picture(picture)


@pytest.mark.parametrize("view", [sample_view(), stopped_view(), many_columns(1), many_columns(2), many_columns(40)])
def test_the_pictures_of_usual_releases_keep_to_their_frames(view: InternalView) -> None:
    """And those of many columns are several, none higher than a page of paper."""
    for picture in list_pictures(view):
        check_picture(picture)
        assert picture.height <= 1.5 * max(picture.width, 400)
    sections = {section.anchor: section for section in list_sections(view)}
    assert len(sections["errors"].figures) == -(-len(view.columns) // MOST_ROWS) or not view.columns


@given(st.lists(FLOATS | st.none(), max_size=6), st.booleans(), st.booleans())
def test_an_axis_keeps_the_order_of_values(values: list[float | None], zero: bool, logarithmic: bool) -> None:
    """Larger values are further along, all within the ends; ticks stand where their texts say, and apart."""
    axis = make_axis(values, 40, 340, zero=zero, logarithmic=logarithmic)
    known = sorted(value for value in values if value is not None and math.isfinite(value))
    places = [axis.place(value) for value in known]
    assert places == sorted(places)
    assert all(40 <= place <= 340 for place in places)
    ticks = axis.tick()
    assert all(b[0] - a[0] >= (width_of(a[1]) + width_of(b[1])) / 2 for a, b in itertools.pairwise(ticks))
    for place, text in ticks:
        assert abs(axis.place(float(text.replace(",", ""))) - place) <= 1
    assert len(ticks) <= 12


def test_an_axis_has_ticks_for_usual_values() -> None:
    """Round ones; on a logarithmic axis powers of ten."""
    assert [text for _, text in make_axis([0.0, 1.0], 40, 340).tick()] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [text for _, text in make_axis([0.01, 10.0], 40, 340, logarithmic=True).tick()] == ["0.01", "0.1", "1", "10"]
    assert len(make_axis([1e9, 1e9 + 1], 40, 340).tick()) > 1


def test_marks_stand_where_the_figures_are() -> None:
    """The diamond outside of its bar if and only if the error is outside of the range; the limit right of what it allows."""
    limit = GateView("expected error of a", 0.112, 0.2, False, True, "scales", "a")
    for error, outside in ((0.118, False), (0.2, True), (0.05, True)):
        picture = draw_errors([column("a", actual_error=error)], {"a": limit})
        (bar,) = [shape for shape in picture.shapes if isinstance(shape, Box)]
        (diamond,) = [shape for shape in picture.shapes if isinstance(shape, Mark) and shape.shape == "diamond"]
        (line,) = [shape for shape in picture.shapes if isinstance(shape, Line) and shape.kind == "limit"]
        assert (not bar.x <= diamond.x <= bar.x + bar.width) == outside
        assert line.x1 > bar.x + bar.width


def test_curves_are_straight_lines_between_their_points() -> None:
    """A step of the original would stand where no record of it has its value; no released value is below the first point."""
    one = column("a", original_curve=((0.0, 0.5), (10.0, 1.0)), released_curve=((0.0, 0.25), (10.0, 1.0)))
    original, released = [shape for shape in draw_curves(one).shapes if isinstance(shape, Curve)]
    assert (original.kind, released.kind) == ("original", "released")
    (left, half), (right, top) = original.points
    assert released.points == ((left, curves.BOTTOM), (left, (curves.BOTTOM + half) // 2), (right, top))
    assert (half, top) == ((curves.BOTTOM + curves.TOP) // 2, curves.TOP)


def test_names_that_share_their_beginning_stay_different() -> None:
    """In the heat map they lose their middle, and those that share their end too have their number."""
    names = (
        "a_rather_long_name_2019",
        "a_rather_long_name_2020",
        "income",
        "a_rather_long_b_name_2019",
        "a_rather_long_name_2019",
    )
    square = tuple(tuple(1.0 if i == j else 0.1 for j in range(5)) for i in range(5))
    picture = draw_correlations(CorrelationView(names, square, square))
    check_picture(picture)
    beside = [shape.text for shape in picture.shapes if isinstance(shape, Text) and shape.anchor == "end"]
    above = [shape.text for shape in picture.shapes if isinstance(shape, Text) and shape.kind == "soft"]
    assert len(set(beside)) == len(set(above)) == 4
    assert beside[0].endswith("2020")
    assert beside[1] == "income"


@given(st.lists(st.text(max_size=30) | HOSTILE, max_size=6), st.integers(40, 200))
def test_names_that_are_cut_apart_fit(names: list[str], room: int) -> None:
    """And one that has room and is alone is whole."""
    shown = cut_apart(names, room)
    assert len(shown) == len(names)
    for name, words in zip(names, shown, strict=True):
        assert width_of(words) <= room
        if width_of(format_name(name)) <= room and names.count(name) == 1 and format_name(name) == name:
            assert words == name or cut(name, room) in [cut(other, room) for other in names if other != name]


def test_only_what_is_wide_can_be_scrolled_and_says_so() -> None:
    """With its width, beside which the page compares the room that there is."""
    assert 'class="sideways"' not in render_internal(sample_view())
    wide = render_internal(many_columns(12))
    (figure,) = next(section for section in list_sections(many_columns(12)) if section.anchor == "correlations").figures
    assert f'class="sideways" style="--wide: {figure.picture.width}px"' in wide


def test_the_map_cuts_no_name_that_has_room_and_ends_at_all_records() -> None:
    """A name alone on the map is whole; two beside each other are not at the cost of one of them."""
    name = "people-of-the-northern-region/2026-q1/r1"
    shown = [shape.text for shape in draw_map([MapPoint(name, 0.2, 0.99, True)]).shapes if isinstance(shape, Text)]
    assert name in shown
    assert "100" in shown
    assert not any(text.replace(".", "").isdigit() and float(text) > 100 for text in shown)


def test_a_limit_that_is_no_number_has_no_line() -> None:
    """And breaks nothing."""
    gate = GateView("expected error of a", 0.1, math.nan, False, False, "scales", "a")
    assert not [shape for shape in draw_errors([column("a")], {"a": gate}).shapes if getattr(shape, "kind", "") == "limit"]


def test_the_pictures_of_many_columns_have_one_scale() -> None:
    """What is no better than the mean stands at the same place in each."""
    sections = {section.anchor: section for section in list_sections(many_columns(40))}
    lines = [shape for figure in sections["errors"].figures for shape in figure.picture.shapes if isinstance(shape, Line)]
    assert len({line.x1 for line in lines if line.kind == "worthless"}) == 1


def test_bars_and_whiskers_are_as_long_as_their_figures() -> None:
    """Half the value, half the bar; the whisker around its end; the limit where it is; no bar for what is not finite."""
    bars = (Bar("a", 10.0, "full", "10", 8.0, 12.0), Bar("b", 5.0, "hollow", "5"), Bar("c", math.nan, "dashed", "none"))
    picture = draw_bars("t", "w", [Group("g", bars, 10.0, "limit")])
    check_picture(picture)
    a, b = [shape for shape in picture.shapes if isinstance(shape, Box)]
    assert abs(a.width - 2 * b.width) <= 2
    whisker = next(shape for shape in picture.shapes if isinstance(shape, Line) and shape.kind == "whisker")
    assert abs((whisker.x1 + whisker.x2) / 2 - (a.x + a.width)) <= 1
    assert abs(whisker.x2 - whisker.x1 - a.width * 0.4) <= 2
    (limit,) = [shape for shape in picture.shapes if isinstance(shape, Line) and shape.kind == "limit"]
    assert abs(limit.x1 - a.x - a.width) <= 1


def test_the_limit_stands_between_the_groups_that_are_too_small_and_the_others() -> None:
    """Above it outlines alone; without a limit no line."""
    view = ClassesView(("a",), 9, 2, 5.0, 20, 5, ((1, 2, 3), (3, 7, 2), (8, 20, 4)), (), 0.5, 0.5)
    picture = draw_classes(view)
    (line,) = [shape for shape in picture.shapes if isinstance(shape, Line)]
    boxes = [shape for shape in picture.shapes if isinstance(shape, Box)]
    assert [box.kind for box in boxes] == ["too-small", "partly", "groups"]
    assert [box.y < line.y1 for box in boxes] == [True, True, False]
    assert not any(isinstance(shape, Line) for shape in draw_classes(dataclasses.replace(view, least=0)).shapes)
    (last,) = [shape for shape in draw_classes(dataclasses.replace(view, least=99)).shapes if isinstance(shape, Line)]
    assert last.y1 > boxes[-1].y


def test_on_the_map_this_release_is_always_named_and_better_is_lower_and_left() -> None:
    """Even where a hundred others are in its way."""
    crowd = [MapPoint(f"people/{i}/r1", 0.2 + i % 10 / 1000, 0.25 + i // 10 / 1000, False) for i in range(100)]
    picture = draw_map([*crowd, MapPoint("people/new/r1", 0.205, 0.255, True)])
    check_picture(picture)
    assert "people/new/r1" in [shape.text for shape in picture.shapes if isinstance(shape, Text)]
    nothing = [shape.text for shape in draw_map([MapPoint("r", 0.0, 0.0, True)]).shapes if isinstance(shape, Text)]
    assert not any(text.startswith("-") for text in nothing)  # no axis of less than nothing
    good, bad = (mark for mark in draw_map([crowd[0], crowd[99]]).shapes if isinstance(mark, Mark))
    assert good.x < bad.x
    assert good.y > bad.y


@given(st.text(max_size=60) | HOSTILE, st.integers(20, 400))
def test_a_name_that_is_cut_fits(name: str, room: int) -> None:
    """And one that has room is whole."""
    words = cut(name, room)
    assert width_of(words) <= max(room, width_of("…"))
    if words[-1:] != "…":
        assert words == format_name(name)


# the colours


def luminance(colour: tuple[float, ...]) -> float:
    """As WCAG 2 defines it."""
    parts = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """From 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def schemes() -> list[dict[str, tuple[float, ...]]]:
    """The colours of light, dark and print, by name."""
    found: list[dict[str, tuple[float, ...]]] = []
    for block in re.findall(r":root \{(.*?)\}", (TEMPLATES / "tokens.css").read_text(), re.DOTALL):
        pairs = re.findall(r"--(\w+): #(\w{6})", block)
        found.append({name: tuple(int(code[i : i + 2], 16) for i in (0, 2, 4)) for name, code in pairs})
    assert len(found) == 3
    return found


@pytest.mark.parametrize("colours", schemes(), ids=["light", "dark", "print"])
def test_colours_stand_out(colours: dict[str, tuple[float, ...]]) -> None:
    """Texts by 4.5 to 1 and marks by 3 to 1, on the page, on a panel and in the cells of the heat map."""
    for ground in (colours["page"], colours["panel"]):
        for name in ("text", "soft", "mark", "warn", "good", "due"):
            assert contrast(colours[name], ground) >= 4.5, name
        for name in ("more", "less"):
            assert contrast(colours[name], ground) >= 3, name
    strengths = re.findall(r"svg \.up-(\d), .*fill-opacity: (\.\d+)", (TEMPLATES / "internal-report.html").read_text())
    assert [int(number) for number, _ in strengths] == list(range(1, len(STRENGTHS) + 1))
    for name in ("more", "less"):
        for _, part in strengths:
            share = float(part)
            cell = tuple(share * a + (1 - share) * b for a, b in zip(colours[name], colours["page"], strict=True))
            assert contrast(colours["text"], cell) >= 4.5, (name, part)


def test_no_colour_speaks_alone() -> None:
    """Lines differ in dash, bars in filling, marks in shape, cells in the sign of their number; every one has its word."""
    style = (TEMPLATES / "internal-report.html").read_text()
    for kind in ("released", "limit", "worthless", "dashed", "partly"):
        assert re.search(rf"svg [^{{}}]*\.{kind}\b[^{{}}]*\{{[^}}]*stroke-dasharray", style), kind
    assert re.search(r"svg \.hollow.*fill: var\(--page\)", style)
    (figure,) = next(section for section in list_sections(sample_view()) if section.anchor == "correlations").figures
    cells = [shape.text for shape in figure.picture.shapes if isinstance(shape, Text) and shape.kind == "cell"]
    assert cells == ["-0.01", "-0.01", "+0.04", "-0.02", "+0.02", "-0.17"]
