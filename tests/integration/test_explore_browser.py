"""A real browser: the page of `explore` is gone through with the keyboard alone, and with and without its script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.report.exploring.page import render_exploration
from tests.integration.browser import Page, open_browser
from tests.unit.report.explorations import read

pytestmark = pytest.mark.slow  # a browser starts

KEYS = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
SHOWN = "[...document.querySelectorAll('svg.frontier')].find((svg) => getComputedStyle(svg).display !== 'none')"
FOCUSED = "document.activeElement.dataset.n || ''"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One for all tests."""
    with open_browser(tmp_path_factory.mktemp("browser") / "profile") as page:
        yield page


@pytest.fixture
def page(browser: Page, tmp_path: Path) -> Page:
    """The page of the demo's settings, on a screen, with nothing allowed that a browser asks for."""
    return show(browser, tmp_path, "usual")


def show(browser: Page, folder: Path, name: str, *, width: int = 1280, script: bool = True) -> Page:
    """The page of a document."""
    file = folder / f"{name}.html"
    file.write_text(render_exploration(read(name)), encoding="utf-8")
    browser.tell("Emulation.setScriptExecutionDisabled", value=not script)
    browser.tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.go("about:blank")
    browser.go(file.as_uri())
    browser.wait("document.readyState === 'complete' && location.protocol === 'file:'")
    return browser


def press(page: Page, key: str) -> None:
    """One key, down and up."""
    for kind in ("keyDown", "keyUp"):
        text: dict[str, Any] = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
        page.tell("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key], **text)


def picked(page: Page) -> str:
    """The heading of what is picked."""
    return str(page.evaluate("document.getElementById('picked-title').textContent"))


def test_a_mark_is_picked_with_the_keyboard_and_its_line_copied(page: Page) -> None:
    """Tab reaches the chart once, the arrows all of its marks; the line that is copied is that of the picked setting."""
    settings = {one["number"]: one for one in read("usual")["settings"]}
    assert picked(page) == f"Picked: 1. {settings[1]['words']}"
    page.evaluate("document.getElementById('measure').focus()")
    press(page, "Tab")
    assert page.evaluate(FOCUSED) == "1"
    assert (
        float(page.evaluate("getComputedStyle(document.activeElement.querySelector('.hit')).strokeWidth.replace('px', '')")) >= 3
    )
    press(page, "Home")
    seen = [page.evaluate(FOCUSED)]
    while len(seen) < 100:
        press(page, "ArrowRight")
        if page.evaluate(FOCUSED) == seen[-1]:
            break
        seen.append(page.evaluate(FOCUSED))
    assert sorted(map(int, seen)) == sorted(settings)
    press(page, "ArrowUp")
    number = int(page.evaluate(FOCUSED))
    assert picked(page) == f"Picked: {number}. {settings[number]['words']}"
    page.evaluate("window.told = []; navigator.clipboard.writeText = async (text) => { told.push(text); }")
    page.evaluate("document.querySelector('#picked button.copy').focus()")
    press(page, "Enter")
    page.wait("document.querySelector('#picked .copied').textContent === 'Copied.'")
    assert page.evaluate("told") == [settings[number]["block"]]


def test_all_columns_of_the_picked_setting_are_drawn(page: Page) -> None:
    """Also of one that is not drawn without the script: original and released, as high as the figures say."""
    document = read("usual")
    page.evaluate("document.querySelector('.all tr[data-n=\"13\"] a').click()")
    assert picked(page).startswith("Picked: 13. ")
    drawn = page.evaluate("[...document.querySelectorAll('#picked polyline.released')].map((one) => one.getAttribute('points'))")
    assert len(drawn) == len(document["columns"])
    shares = document["settings"][12]["columns"]["income"]["curve"]
    heights = [int(point.split(",")[1]) for point in drawn[0].split(" ")]
    assert heights == [150 - round(share * 140) for share in shares]
    assert page.evaluate("document.querySelectorAll('#picked [id]:not(#picked-title):not(#picked-body)').length") == 0


def test_another_measure_moves_the_marks_and_filters_hide_them(page: Page) -> None:
    """The lines go with them, the figures are in their titles, and what has none is not there."""
    data = json.loads(page.evaluate("document.getElementById('data').textContent"))
    last = len(data["measures"]) - 1
    change = "const m = document.getElementById('measure'); m.value = '{}'; m.dispatchEvent(new Event('change'))"
    page.evaluate(f"(() => {{ {change.format(last)} }})()")
    places = page.evaluate(
        f"[...({SHOWN}).querySelectorAll('a.spot')].map((one) => [Number(one.dataset.i), one.classList.contains('off') ? null : "
        "Number(/ ([-\\d.]+)\\)/.exec(one.getAttribute('transform'))[1]), one.querySelector('title').textContent])"
    )
    spots = data["measures"][last]["scenes"]["wide"]["spots"]
    for i, y, title in places:
        assert y == (None if spots[i] is None else spots[i][0])
        assert spots[i] is None or data["measures"][last]["words"][i] in title
    assert page.evaluate("document.getElementById('missing').textContent") == data["measures"][last]["missing"] != ""
    page.evaluate("document.querySelector('input[data-style=\"2\"]').click()")
    shown = f"[...({SHOWN}).querySelectorAll('a.spot:not(.off)')].filter((one) => one.dataset.style === '2').length"
    assert page.evaluate(shown) == 0
    assert page.evaluate("[...document.querySelectorAll('.all tr[data-style=\"2\"]')].every((one) => one.offsetHeight === 0)")


@pytest.mark.parametrize("place", [4, 7])
def test_the_table_is_sorted_by_a_column(page: Page, place: int) -> None:
    """By number, not by letter; what has no figure is last either way."""
    numbers = f"[...document.querySelectorAll('.all tbody tr')].map((row) => row.children[{place}].dataset.v)"
    head = f"document.querySelectorAll('.all thead th')[{place}]"
    for order, turn in (("ascending", False), ("descending", True)):
        page.evaluate(f"{head}.querySelector('button').click()")
        assert page.evaluate(f"{head}.getAttribute('aria-sort')") == order
        values = page.evaluate(numbers)
        known = [float(value) for value in values if value]
        assert known == sorted(known, reverse=turn)
        assert all(value == "" for value in values[len(known) :])


@pytest.mark.parametrize("name", ["usual", "large", "solved", "refused"])
def test_it_fits_a_phone(browser: Page, tmp_path: Path, name: str) -> None:
    """Nothing but boxes that scroll is wider than 360 pixels; the chart is the narrow one."""
    page = show(browser, tmp_path, name, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    if name != "refused":
        assert page.evaluate(f"({SHOWN}).dataset.layout") == "narrow"


def test_without_the_script_a_mark_leads_to_its_setting(browser: Page, tmp_path: Path) -> None:
    """The details open, and nothing that needs the script is shown."""
    page = show(browser, tmp_path, "usual", script=False)
    place = page.evaluate(
        f"(() => {{ const r = ({SHOWN}).querySelector('a[data-n=\"50\"] .sign').getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        page.tell("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
    page.wait("location.hash === '#setting-50'")
    page.wait("document.getElementById('setting-50').closest('details').open")
    assert page.evaluate("[...document.querySelectorAll('.scripted, button, select')].every((one) => one.offsetHeight === 0)")
