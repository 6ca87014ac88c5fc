"""The page of `explore`: all of it can be read without a script, texts stay texts, and nothing comes from elsewhere."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any, cast

import pytest

from release_pipeline.policy.documents import to_json
from release_pipeline.policy.strength import Strength
from release_pipeline.privacy.figures import format_number, format_share
from release_pipeline.report.charts.drawing import width_of
from release_pipeline.report.charts.frontier import LAYOUTS, Measured, Point, draw_measure, lay_out, shorten_names
from release_pipeline.report.exploring.page import render_exploration
from tests.unit.report.explorations import DOCUMENTS, make_document, make_own_refused, make_setting, read

ODD = "</script><script>alert('1')</script><!-- \" onload=\"x & {{ 7 }}"
LEFT_OUT = {"th": ("th", "td"), "td": ("th", "td"), "tr": ("th", "td", "tr")}  # what a tag ends that HTML lets one leave out
ENDS = {"tbody": ("th", "td", "tr"), "table": ("th", "td", "tr", "tbody"), "thead": (), "tr": ("th", "td")}
VOID = {"meta", "input", "line", "rect", "polyline", "polygon", "circle", "path"}
RENDERED: dict[str, str] = {}

DP = Strength("dp", "column")


def render(name: str) -> str:
    """The page of a document; made once."""
    if name not in RENDERED:
        RENDERED[name] = render_exploration(read(name))
    return RENDERED[name]


class Read(HTMLParser):
    """The tags with their attributes and the texts that are shown without the script, with their parts by id."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.by_id: dict[str, list[str]] = {}
        self.data = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self.open and self.open[-1][0] in LEFT_OUT.get(tag, ()) and not (tag == "tr" and self.open[-1][0] == "tbody"):
            self.open.pop()
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        while self.open[-1][0] in ENDS.get(tag, ()):
            self.open.pop()
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = [tag for tag, _ in self.open]
        if inside and inside[-1] == "script":
            self.data = data if "data" in self.open[-1][1] else self.data
            return
        if "style" in inside or "svg" in inside:
            return
        self.texts.append(data)
        for _, name in self.open:
            if name:
                self.by_id.setdefault(name, []).append(data)

    @property
    def text(self) -> str:
        """All text on one line."""
        return squeeze(self.texts)

    def part(self, name: str) -> str:
        """The text of an element."""
        return squeeze(self.by_id.get(name, []))


def squeeze(texts: list[str]) -> str:
    """Texts on one line."""
    return " ".join(" ".join(texts).split())


def hostile(value: Any, text: str) -> Any:
    """A document in which every text that is free is another one."""
    fixed = {"method", "definition", "scope", "on", "hash", "format", "epsilon", "delta"}
    if isinstance(value, dict):
        found = cast(dict[str, Any], value)
        return {key: part if key in fixed else hostile(part, text) for key, part in found.items()}
    if isinstance(value, list):
        return [hostile(part, text) for part in cast(list[Any], value)]
    return text if isinstance(value, str) else value


# safety


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_one_page_that_needs_nothing_from_elsewhere(name: str) -> None:
    """Well-formed, without network; of scripts there is one that runs, with the word that the page's policy names."""
    rendered = render(name)
    page = Read(rendered)
    assert page.open == []
    assert not {"link", "img", "iframe", "object", "use", "image", "foreignobject", "base", "form"} & {
        tag for tag, _ in page.tags
    }
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")|url\(|@import|\bfetch\(|XMLHttp|import\(", rendered)
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    [policy] = [str(one["content"]) for tag, one in page.tags if tag == "meta" and "http-equiv" in one]
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    if name == "refused":
        assert scripts == []
    else:
        assert [one.get("type") for one in scripts] == ["application/json", None]
        assert f"script-src 'nonce-{scripts[1]['nonce']}'" in policy
        assert rendered.count("nonce=") == 1
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-")
    assert "unsafe-eval" not in policy


def test_another_page_has_another_word() -> None:
    """So that who writes a label cannot know it; and the same document gives the same text."""
    words = [re.findall(r'nonce="(.+?)"', render(name))[0] for name in ("usual", "one column", "own refused")]
    assert len(set(words)) == 3
    assert render_exploration(read("usual")) == render("usual")


def test_no_text_becomes_anything_but_text() -> None:
    """With a hostile text everywhere the page has the tags that it has with a plain one, and the text is shown."""

    def fill(text: str) -> Any:
        document = to_json(dataclasses.replace(DOCUMENTS["solved"](), is_look=True))
        filled = hostile(document, text)
        for setting in filled["settings"]:
            setting["columns"] = {f"{text}{i}": column for i, column in enumerate(setting["columns"].values())}
            setting["attacks"] = {f"{text}{i}": value for i, value in enumerate(setting["attacks"].values())}
        for i, column in enumerate(filled["columns"]):
            column["name"] = f"{text}{i}"
        return filled

    odd, plain = Read(render_exploration(fill(ODD))), Read(render_exploration(fill("x")))
    assert [tag for tag, _ in odd.tags] == [tag for tag, _ in plain.tags]
    assert [list(attributes) for _, attributes in odd.tags] == [list(attributes) for _, attributes in plain.tags]
    assert ODD in odd.text
    data = json.loads(odd.data)
    assert any(ODD in one["title"] for one in data["measures"])
    assert "<" not in odd.data


def test_what_cannot_be_seen_is_named() -> None:
    """A name that turns what follows it around."""
    document = read("one column")
    document["policy"] = "back\u202ewards"
    assert "back[U+202E]wards" in render_exploration(document)


# what can be read without the script


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "refused"])
def test_every_setting_can_be_read_without_the_script(name: str) -> None:
    """Claim, what it does not cover, the line to copy, changes, the error of each column with its range, quantiles, shares."""
    document, page = read(name), Read(render(name))
    for setting in document["settings"]:
        told = page.part(f"setting-{setting['number']}")
        for words in (setting["claim"], setting["block"], *setting["not_covered"], *setting["changes"]):
            assert words in told
        for column, figures in setting["columns"].items():
            error = figures["error"]
            ends = [format_number(error[end]) for end in ("middle", "low", "high")]
            assert f"{column} {ends[0]} ({ends[1]} to {ends[2]})" in told
            for one in figures["quantiles"]:
                assert f"{one['at']} below {format_number(one['original'])} {format_number(one['released']['middle'])}" in told
            for one in figures["shares"]:
                assert f"share at {one['at']} {format_share(one['original'])} {format_share(one['released']['middle'])}" in told
        assert (setting["linkage"] is None) == ("Rows are nobody's" in told)
        assert f"AUC of {format_number(setting['models'][0]['released'])}" in told


def test_groups_come_with_the_largest_difference_first() -> None:
    """Of many the first few, and how many others there are is said."""
    document, page = read("large"), Read(render("large"))
    name, figures = next(iter(document["settings"][4]["columns"].items()))
    gaps = {one["label"]: abs(one["released"]["middle"] - one["original"]) for one in figures["groups"]}
    told = page.part("setting-5").partition(f" {name} What")[2]
    shown = re.findall(r"mean, site (\d+)", told)[:2]
    assert [gaps[label] for label in shown] == sorted(gaps.values(), reverse=True)[:2]
    assert "58 further groups" in told


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "refused"])
def test_every_setting_has_a_mark_that_leads_to_it(name: str) -> None:
    """In each of the two charts, and in the table; every link arrives, no id is there twice."""
    document, page = read(name), Read(render(name))
    numbers = {setting["number"] for setting in document["settings"]}
    spots = [one for tag, one in page.tags if tag == "a" and "data-i" in one]
    assert len(spots) == 2 * len(numbers)
    assert {int(str(one["data-n"])) for one in spots} == numbers
    assert all(one["href"] == f"#setting-{one['data-n']}" for one in spots)
    ids = [str(one["id"]) for _, one in page.tags if one.get("id")]
    assert len(set(ids)) == len(ids)
    links = [str(one["href"]) for tag, one in page.tags if tag == "a"]
    assert set(links) <= {f"#{name}" for name in ids}
    assert sum(link.startswith("#setting-") for link in links) >= 3 * len(numbers)


def test_the_own_setting_is_ringed_and_those_that_the_ledger_refuses_are_struck() -> None:
    """And both are in the legend, which has a sign for each method."""
    rendered = render("usual")
    marks = re.findall(r'<a class="spot[^>]*>.*?</a>', rendered)
    assert sum('class="ring"' in mark for mark in marks) == 2
    assert all('data-n="1"' in mark for mark in marks if 'class="ring"' in mark)
    over = {re.findall(r'data-n="(\d+)"', mark)[0] for mark in marks if " over" in mark.partition(">")[0]}
    refused = {str(one["number"]) for one in read("usual")["settings"] if not one["ledger"]["next"]["fits"]}
    assert over == refused != set()
    assert all(("strike" in mark) == (" over" in mark.partition(">")[0]) for mark in marks)
    styles = {re.findall(r'data-style="(\d+)"', mark)[0]: re.findall(r'class="sign" d="(.+?)"', mark)[0] for mark in marks}
    assert len(set(styles.values())) == len({one["method"] for one in read("usual")["settings"]}) == 7


def test_the_ledger_in_words() -> None:
    """Spent, after it, how many fit; refused; not asked."""
    page = Read(render("usual"))
    assert "Population folk has spent 2 of 10 (epsilon, iDP, column). This release takes 2: 4 after it." in page.part("setting-1")
    assert "Of the 5 releases ahead 4 fit, one after the other." in page.part("setting-1")
    assert "All of the 5 releases ahead fit." in page.part("setting-2")
    refused = page.part("setting-56")
    assert "This release would take infinity, of which 8 is left: the ledger would refuse it." in refused
    assert "it needs a cap in releases" in refused
    assert "4 of 10; 4 of 5 fit" in page.text
    assert "No ledger was asked" in Read(render("no ledger")).part("setting-1")


def test_a_ledger_that_has_nothing_to_say() -> None:
    """Rows that were not named, and a series that is charged already."""
    [one] = [make_setting(1, "dp-cdf", "1", None, (("income", "", "0", "9"),))]
    assert one.ledger is not None
    unknown = dataclasses.replace(one, ledger=dataclasses.replace(one.ledger, rows_needed=True, next=None, fitting=None))
    done = dataclasses.replace(one, number=2, ledger=dataclasses.replace(one.ledger, next=None, ahead=(), fitting=0))
    page = Read(render_exploration(to_json(make_document((("income", "", "0", "9"),), settings=(unknown, done)))))
    assert "see --rows" in page.part("setting-1")
    assert "a rerun costs nothing" in page.part("setting-2")


# what the page is of


def test_a_look_says_that_it_is_confidential_and_nothing_else_does() -> None:
    """First of all on the page."""
    banner = "Confidential: this page was made from the confidential records, in a look that is noted in the registry."
    assert Read(render("look")).text.partition("Tried on")[0].count(banner) == 1
    assert not any(banner in render(name) for name in DOCUMENTS if name != "look")


def test_a_made_up_table_is_called_so() -> None:
    """In a sentence, in the heads of tables and in pictures."""
    rendered = render("shape")
    assert "Everything here is of a made-up table, drawn as the steward believes the data to be." in rendered
    assert "Mean, made-up" in rendered
    assert ">original<" not in rendered
    assert "made-up table" not in render("usual")


def test_what_was_refused_and_that_the_own_setting_was() -> None:
    """With the reason; a page without any setting is a page."""
    page = Read(render("refused"))
    assert "k has to be at most half of the rows" in page.part("refused") or "k has to be at most half of the rows" in page.text
    assert "No setting could be tried." in page.text
    assert "The policy as it is could not be tried" in Read(render("own refused")).text
    assert "could not be tried" not in render("usual")


def test_targets_domains_and_what_was_chosen() -> None:
    """Solved ones on top, with why not; the domain in a sentence; the chosen setting linked."""
    page = Read(render("solved"))
    above = page.text.partition("What each setting costs, and what is left Show")[0]
    assert "Asked for: error of income at most 0.05." in above
    assert "protect: {method: dp-cdf, epsilon: 1.3}" in above
    assert "no: no epsilon up to 100 does." in above
    assert "Setting 47 was written to the policy." in above
    assert "income: 0 to 30000 in place of 0 to 50000." in page.text


# form


def test_it_is_small_enough_to_be_sent() -> None:
    """Sixty settings of twelve columns with sixty groups each."""
    assert len(render("large").encode()) < 1_450_000


@pytest.mark.parametrize("name", ["usual", "large", "refused", "solved"])
def test_it_can_be_read_without_seeing_it(name: str) -> None:
    """Headings step by step, scopes of heads, names of pictures and of boxes that scroll."""
    page = Read(render(name))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all("scope" in one for tag, one in page.tags if tag == "th")
    ids = {one.get("id") for _, one in page.tags}
    for tag, one in page.tags:
        if tag == "svg":
            named = "aria-label" in one or set(str(one.get("aria-labelledby", "?")).split()) <= ids
            assert named or one.get("aria-hidden") == "true"
        if one.get("tabindex") == "0":
            assert one.get("aria-label")
    assert page.tags[[tag for tag, _ in page.tags].index("body") + 1][1]["class"] == "skip"


def test_only_so_many_pictures_are_drawn_without_the_script() -> None:
    """The own setting's and those of some of the best; all columns are drawn once more by themselves."""
    drawn = {int(number) for number in re.findall(r'id="curve-(\d+)-\d+"', render("usual"))}
    assert len(drawn) == 8
    assert 1 in drawn
    assert len(set(re.findall(r'id="curve-(\d+)-\d+"', render("large")))) == 4
    assert len(re.findall(r'id="column-\d+"', render("large"))) == 12


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@pytest.mark.parametrize("lines", [1, 9, 60])
@pytest.mark.parametrize("alike", [False, True])
def test_marks_and_names_lie_in_the_chart_and_no_two_names_touch(layout: Any, lines: int, alike: bool) -> None:
    """With few lines and with more than there is room for; settings without epsilon to the right of all others."""
    points = [
        Point(n, n % 7, f"method-{n % lines}, k 100", f"k {n}", "dp", None if n % 11 == 10 else 2.0 ** (n // lines % 6), DP)
        for n in range(max(lines, 60))
    ]
    figures = [Measured(0.1 / (n + 1), 0.2 / (n + 1), 5.0 / (n + 1)) for n in range(len(points))]
    if alike:  # all ends at the top, but for one mark
        figures = [Measured(None, 0.001 if n == 10 else 9.0, None) for n in range(len(points))]
    frame = lay_out(points, layout)
    scene = draw_measure(points, figures, frame, errors=True)
    for x, spot in zip(frame.across, scene.spots, strict=True):
        assert spot is not None
        assert layout.left <= x <= layout.width
        assert frame.top <= spot.top <= spot.y <= spot.bottom <= frame.bottom
    assert frame.apart is not None
    assert all((x > frame.apart) == (point.epsilon is None) for x, point in zip(frame.across, points, strict=True))
    names = [one for one in scene.names if one is not None]
    heights = sorted(name.y for name in names)
    assert all(b - a >= 12 for a, b in itertools.pairwise(heights))
    assert frame.top <= heights[0]
    assert heights[-1] <= frame.bottom + 4
    longest = max(width_of(words) for words in shorten_names(frame))
    assert all(name.x + longest <= frame.apart for name in names)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_names_that_begin_alike_are_told_apart(layout: Any) -> None:
    """By rho, with clusters of three sizes and a scope: what all have is left out, and no two names are the same."""
    lines = [f"dp-um, by rho, k {k}, scope centroid, partitions 10" for k in (3, 10, 100)]
    points = [Point(n, 0, line, line.partition(", ")[2], "dp", 1.0 + n, DP) for n, line in enumerate([*lines, "dp-cdf, by rho"])]
    names = shorten_names(lay_out(points, layout))
    assert len(set(names)) == 4
    assert not any("by rho" in name for name in names[:3])


def test_no_words_lie_across_marks() -> None:
    """What the dotted line is stands beside the chart."""
    chart = render("usual").partition('<svg class="frontier wide"')[2].partition("</svg>")[0]
    assert "no better than the mean" not in chart
    assert "dotted line: an error of 1, no better than the mean" in render("usual")


def test_on_paper_are_the_best_and_the_own() -> None:
    """All others are hidden there; columns in full are those of the policy's own and of the chosen setting."""
    page = render("usual")
    printed = page.partition("@media print")[2].partition("</style>")[0]
    assert ".beaten, .setting:not(.shown, [open]) { display: none; }" in printed
    rows = re.findall(r"<tr( class=\"beaten\")? data-n=\"(\d+)\"", page)
    details = re.findall(r'<details class="setting( shown)?( whole)?" data-n="(\d+)"', page)
    assert [(bool(beaten), number) for beaten, number in rows] == [(not shown, number) for shown, _, number in details]
    assert 1 < len([shown for shown, _, _ in details if shown]) < len(details)
    assert [number for _, whole, number in details if whole] == ["1"]


def test_amounts_are_told_with_as_many_digits_as_they_are_good_for() -> None:
    """Of a policy with epsilon 3 by rho: 3, and no 2.999999995; rho with four digits. What is left is never told as more."""
    document = json.loads(json.dumps(read("usual")))
    one = document["settings"][0]
    one |= {
        "epsilon": "2.999999995",
        "delta": "0.000001",
        "claim": "rho 0.151612345, which is epsilon 2.999999995 at delta 0.000001",
    }
    one["ledger"] |= {"remaining": "0.123456789", "next": {**one["ledger"]["next"], "amount": "0.151612345", "fits": False}}
    page = Read(render_exploration(document)).text
    assert "rho 0.1517, which is epsilon 3 at delta 0.000001" in page
    assert "takes 0.1517, 0.1234 left" in page
    assert "2.99999" not in page
    assert "0.15161" not in page


def test_a_smaller_error_is_lower_and_a_smaller_epsilon_further_left() -> None:
    """Each step multiplies: equal factors are equal distances."""
    points = [Point(n, 0, "a", "a", "dp", epsilon, DP) for n, epsilon in enumerate((0.5, 1.0, 2.0, 4.0))]
    frame = lay_out(points, LAYOUTS[0])
    steps = [b - a for a, b in itertools.pairwise(frame.across)]
    assert max(steps) - min(steps) <= 1
    scene = draw_measure(points, [Measured(None, value, None) for value in (8.0, 0.8, 0.08, 0.0)], frame, errors=True)
    heights = [spot.y for spot in scene.spots if spot is not None]
    assert heights == sorted(heights)
    assert abs((heights[1] - heights[0]) - (heights[2] - heights[1])) <= 1


def test_what_has_no_figure_is_named_and_not_drawn() -> None:
    """Rows that are nobody's have no linkage."""
    data = json.loads(Read(render("usual")).data)
    linkage = data["measures"][-1]
    lacking = [i for i, spot in enumerate(linkage["scenes"]["wide"]["spots"]) if spot is None]
    expected = [i for i, one in enumerate(read("usual")["settings"]) if one["linkage"] is None]
    assert lacking == expected != []
    assert linkage["missing"].endswith(": " + ", ".join(str(i + 1) for i in expected) + ".")


def test_figures_that_are_not_there_are_not_made_up() -> None:
    """No range, no value, a column without any place."""
    document = to_json(make_own_refused())
    for setting in document["settings"]:
        for figures in setting["columns"].values():
            figures["error"] = figures["mean"]["released"] = {"low": None, "middle": None, "high": None}
            figures["curve"] = [float("nan")] * 60
        setting["error"] = {"low": None, "middle": None, "high": None}
        setting["mean_error"] = None
    for column in document["columns"]:
        column["places"] = column["curve"] = []
    page = Read(render_exploration(document))
    assert "income not available" in page.part("setting-2")
    assert not re.search(r"\bnan\b|NaN|\bNone\b", page.text + page.data)
    assert not any(tag == "polyline" for tag, _ in page.tags)


def test_dates_are_shown_as_dates() -> None:
    """Figures of the document count from the first moment; a reader sees days of a calendar, on the axis too."""
    document = make_document([("admitted", "", "0", "1461")])
    ends = "2010-01-01", "2014-01-01"
    column = dataclasses.replace(document.columns[0], domain=ends, first=ends[0], unit="day")
    shown = render_exploration(to_json(dataclasses.replace(document, columns=(column,))))
    assert re.search(r"201[0-4]-\d\d-\d\d", re.sub(r"2010-01-01|2014-01-01", "", shown))


def test_a_setting_over_the_gate_is_marked_and_swapping_has_its_bound() -> None:
    """As the ledger's refusals are marked; under swapping nothing says that only a claim for the table bounds linkage."""
    columns = [("income", "", "0", "100")]
    plain = dataclasses.replace(make_setting(1, "dp-cdf", "2", None, columns), linkage_limit=0.1)
    swapped = dataclasses.replace(make_setting(2, "dp-cdf", "2", None, columns), linked_at_most=0.1)
    document = dataclasses.replace(make_document(), settings=(plain, swapped))
    page = render_exploration(json.loads(json.dumps(to_json(document))))
    first, second = page[page.index("<h3>1. ") :].split("<h3>2. ")
    assert "refused by the gate linkage" in first
    assert "The gate linkage of the policy allows at most 10%: it would refuse this." in first
    assert "refused by the gate linkage" not in second
    assert "Only a claim for the whole table bounds that" in first
    assert "Only a claim for the whole table bounds that" not in second
    assert "is right in at most 10% of the rows on average" in second
    assert page.count("the gate linkage would refuse it") >= 1
