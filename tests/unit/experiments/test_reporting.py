"""Claims and their verdicts, pictures, and the page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from release_pipeline.experiments.reporting.claims import Cases, Chapter, Finding, Loss, list_names, show
from release_pipeline.experiments.reporting.page import make_page
from release_pipeline.experiments.reporting.pictures import MARKS, Panel, Picture, Series

SVG = "{http://www.w3.org/2000/svg}"


def make_cases(*settings: list[float], **limits: float) -> Cases:
    cases = Cases(**limits)
    for number, runs in enumerate(settings):
        cases.add(f"setting {number}", np.array(runs))
    return cases


def test_a_claim_holds_in_every_run_of_every_setting_or_not() -> None:
    assert make_cases([1.1, 1.2], [2.0, 3.0]).verdict == "holds"
    assert make_cases([1.1, 1.2, 0.9], [2.0, 3.0, 3.0]).verdict == "holds by the median"
    assert make_cases([1.1, 0.8, 0.9], [2.0, 3.0, 0.4]).verdict == "holds in part"
    assert make_cases([1.1, 0.8, 0.9], [0.5, 0.6, 0.7]).verdict == "does not hold"
    assert make_cases().verdict == "not measured"
    assert make_cases([1.5], [2.5], most=2).failed == ["setting 1"]
    assert make_cases([1.0]).verdict == "does not hold"
    assert make_cases([float("nan")]).verdict == "does not hold"


def test_a_finding_says_why_only_where_the_claim_fails() -> None:
    good, bad = make_cases([1.1, 1.2]), make_cases([1.1, 1.3, 0.9], [2.0, 2.0, 2.0])
    assert good.find("a", "b", why="because").why == ""
    found = bad.find("a", "b", more="Of this", why="because")
    assert found.why == "because"
    assert "0.900 to 2.00 times" in found.measured
    assert "in every one of 3 runs in 1 of 2 settings (by the median of runs in 2)" in found.measured
    assert found.measured.endswith(". Of this")


def test_names_and_numbers_are_short() -> None:
    assert list_names(["a", "b", "c"], 2) == "a; b; and 1 more"
    assert list_names(["a"], 2) == "a"
    assert show(123456.7) == "123,000"
    assert show(float("inf")) == "inf"


def make_picture(names: list[str]) -> Picture:
    runs = [np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0])]
    panels = [
        Panel(f"panel {place}", "k", "error", [Series(name, [1, 10], runs) for name in names], log_x=True) for place in range(2)
    ]
    level = Panel("a level", "k", "error", [Series("laplace", [1], runs[:1])], level=(1, "the mean <alone>"))
    return Picture("made-up", "Made up & drawn", [*panels, level])


def test_a_picture_is_drawn_twice_alike(tmp_path: Path) -> None:
    """SVG and PNG, the same bytes; axes and lines named; no line looks like another in colour, dash and mark."""
    names = ["idp-cbls", "dp-um", "something", "else", "laplace"]
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        make_picture(names).save(folder)
    for kind in ("svg", "png"):
        one, two = ((tmp_path / folder / f"made-up.{kind}").read_bytes() for folder in ("one", "two"))
        assert one == two
    page = ET.parse(tmp_path / "one" / "made-up.svg").getroot()  # noqa: S314  written by us
    words = {text.text for text in page.iter(f"{SVG}text")}
    assert {*names, "k", "error", "panel 0", "panel 1", "the mean <alone>"} <= words
    styles = re.findall(r"stroke-dasharray: ([^;]+);[^\"]*stroke: (#[0-9a-f]{6})", (tmp_path / "one" / "made-up.svg").read_text())
    assert len({colour for _, colour in styles}) >= 4
    assert (tmp_path / "one" / "made-up.png").read_bytes().startswith(b"\x89PNG")


def test_a_method_looks_the_same_in_every_picture() -> None:
    from release_pipeline.experiments.reporting.pictures import _choose_looks

    one, two = (_choose_looks(make_picture(names).panels) for names in (["dp-um", "x", "y"], ["y", "idp-ls", "dp-um"]))
    assert one["dp-um"] == two["dp-um"]
    assert one["laplace"] == two["laplace"]
    for looks in (one, two):
        assert len(set(looks.values())) == len(looks)
        assert max(looks.values()) < len(MARKS)


@pytest.fixture
def chapter() -> Chapter:
    finding = make_cases([1.1, 0.9], [2.0, 3.0]).find("One is better.", "figure 1", why="Noise.")
    losses = [
        Loss("census", "idp-cbls", "idp", "centroid", 5, epsilon, exact) for epsilon, exact in (("1", 165.0), ("0.1", 16.6))
    ]
    return Chapter("A paper: what it says", "Words.", (make_picture(["dp-um"]),), (finding,), (("More", "| a |"),), tuple(losses))


def test_the_page_says_everything_once(chapter: Chapter) -> None:
    page = make_page({"kea18": chapter}, made="hand", pictures="reproduction/")
    assert "| [kea18](#a-paper-what-it-says) | One is better. | holds in part | 1 of 2 |" in page
    assert "(reproduction/kea18/made-up.svg)" in page
    assert "- **One is better.** (figure 1) *holds in part*. 0.900 to 3.00 times" in page
    assert page.count("Why: Noise.") == 1
    assert "| census | idp-cbls | iDP | centroid | 5 | 16.6 | 165 |" in page
    assert "**A quick run**" not in page
    assert "Compared with" not in page


def test_the_page_names_what_is_left_out(chapter: Chapter) -> None:
    page = make_page({"kea18": replace(chapter, omitted=("Figure 9: no data.",))}, made="hand")
    assert "### Left out of kea18\n\n- Figure 9: no data." in page
    assert "Left out" not in make_page({"kea18": chapter}, made="hand")


def test_equal_losses_of_many_k_are_one_line(chapter: Chapter) -> None:
    """Whatever comes between them."""
    losses = [
        Loss("wine", "dp-mdav", definition, "table", k, "1", 1.0 if definition == "idp" else k / 10)
        for k in (5, 10, 20)
        for definition in ("dp", "idp")
    ]
    page = make_page({"ours": replace(chapter, losses=tuple(losses))}, made="hand")
    assert "| wine | dp-mdav | iDP | table | 5 to 20 | 1.00 |" in page
    assert page.count("| wine | dp-mdav | DP |") == 3


def test_the_page_of_a_quick_run_says_so(chapter: Chapter) -> None:
    page = make_page({"kea18": chapter}, made="hand", quick=True, compared=7, departures=["one is off"])
    assert "**A quick run**" in page
    assert "6 of 7 agree" in page
    assert "- one is off" in page


def test_a_finding_has_no_why_of_its_own_accord() -> None:
    assert Finding("a", "b", "holds", "c").why == ""
