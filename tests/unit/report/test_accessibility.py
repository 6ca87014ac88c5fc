"""Every page can be read by who does not see it, uses no mouse, or sees little contrast."""

from __future__ import annotations

import re

import pytest

from release_pipeline.report.escaping import TEMPLATES
from tests.unit.report.accessibility import blend, contrast, find_faults, read_palettes
from tests.unit.report.rendered import PAGES, render

LARGE = ("report of 40 columns",)  # seconds each
FULL = "card with everything"
SPOILED = {  # how a page is spoiled, and what is said of it
    '<html lang="en">': ('<html lang="">', "no language"),
    "<h1>": ("<h1>x</h1><h1>", "only first one"),
    "<h2 ": ("<h4>x</h4><h2 ", "leaves out a level"),
    '<h2 id="what">': ('<h2 id="what"></h2><h2>', "is empty"),
    '<h2 id="columns">': ('<h2 id="what">', "2 times"),
    'aria-labelledby="columns"': ('aria-labelledby="nothing"', "not there"),
    ' scope="col"': ("", "says not what it is of"),
    '<th role="columnheader" scope="col">': ('<th role="columnheader" scope="col"></th><th scope="col">', "of a table is empty"),
    "</header>": ('<img src="x"></header>', "no words"),
    "</footer>": ('<svg viewBox="0 0 1 1"></svg></footer>', "neither hidden nor a picture"),
    "</main>": ('<svg role="img"></svg></main>', "has no name"),
    "<dl>": ('<input type="text"><dl>', "no label"),
    "</dl>": ("<p></p></dl>", "in it"),
    "<footer>": ('<footer><a href="#what"></a>', "no words"),
    "<header>": ('<header><a href="#gone">x</a>', "leads nowhere"),
    "<main>": ('<main><p tabindex="3">x</p>', "its own place"),
    "<ul>": ('<div class="scroll" tabindex="0">x</div><ul>', "says not what it is"),
    "</ul>": ('</ul><p aria-hidden="true"><a href="#what">x</a></p>', "hidden, and reached"),
    "<body>": ("<body><p>x</p>", "outside of every part"),
    "<li>": ("<p></p><li>", "in it"),
    "</title>": ("</title><title>x</title>", "no title, or several"),
    "width=device-width, initial-scale=1": ("width=device-width, maximum-scale=1", "larger"),
    "</table>": ("</div></table>", "ends"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in PAGES])
def test_nothing_is_missing(name: str) -> None:
    """Language, title, headings in order, names of pictures, heads of tables, labels, words of links, ids that are there once."""
    assert find_faults(render(name)) == []


@pytest.mark.parametrize("part", SPOILED)
def test_what_is_missing_is_found(part: str) -> None:
    """Each fault by itself, in a page that has none."""
    spoiled, told = SPOILED[part]
    page = render(FULL)
    assert part in page
    faults = find_faults(page.replace(part, spoiled, 1))
    assert any(told in fault for fault in faults), faults


def test_the_pages_are_of_every_kind() -> None:
    """Whatever is a page of its own is among them."""
    own = {file.name for file in TEMPLATES.glob("*.html") if file.read_text(encoding="utf-8").startswith("{% extends")}
    assert own == {"privacy-card.html", "internal-report.html", "explore.html"}
    assert {name.split(" ")[0].strip(",") for name in PAGES} == {"card", "report", "paper", "explore"}


@pytest.mark.parametrize("page", [FULL, "report", "explore, refused"])
def test_colours_have_contrast(page: str) -> None:
    """WCAG AAA for every text on both grounds, in light, dark and print: at least 7 to 1. Colours of marks alone: 3 to 1."""
    style = render(page)
    for name, palette in read_palettes(style[: style.index("* { box-sizing")]).items():
        for ground in ("page", "panel"):
            for ink in ("text", "soft", "mark", "warn", "good", "due"):
                assert contrast(palette[ink], palette[ground]) >= 7, (name, ink, ground)
            for ink in ("more", "less"):
                assert contrast(palette[ink], palette[ground]) >= 3, (name, ink, ground)


def test_figures_can_be_read_on_the_cells_of_correlations() -> None:
    """The number in a cell, on its colour at every strength: 4.5 to 1."""
    template = (TEMPLATES / "internal-report.html").read_text(encoding="utf-8")
    strengths = [float(found) for found in re.findall(r"svg \.up-\d, svg \.down-\d \{ fill-opacity: ([\d.]+); \}", template)]
    assert len(strengths) == 4
    for palette in read_palettes((TEMPLATES / "tokens.css").read_text(encoding="utf-8")).values():
        for ink in ("more", "less"):
            for strength in strengths:
                assert contrast(palette["text"], blend(palette[ink], palette["page"], strength)) >= 4.5


def test_contrast_is_that_of_wcag() -> None:
    """Known answers: black on white, the lightest grey that passes on white and the next one, and no contrast at all."""
    assert contrast("#000000", "#ffffff") == 21
    assert contrast("#767676", "#ffffff") == 4.54
    assert contrast("#777777", "#ffffff") == 4.48
    assert contrast("#0000ff", "#ffffff") == 8.59
    assert contrast("#123456", "#123456") == 1
    assert blend("#ff0000", "#ffffff", 0.5) == "#ff8080"
