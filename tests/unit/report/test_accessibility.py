"""Every page can be read by who does not see it, uses no mouse, or sees little contrast."""

from __future__ import annotations

import pytest

from tests.unit.report.accessibility import contrast, find_faults, read_palettes
from tests.unit.report.rendered import PAGES, render

LARGE = ("report of 40 columns",)  # seconds each
FULL = "card with everything"


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in PAGES])
def test_nothing_is_missing(name: str) -> None:
    """Language, title, headings in order, names of pictures, heads of tables, labels, words of links, ids that are there once."""
    assert find_faults(render(name)) == []


@pytest.mark.parametrize("page", [FULL, "report"])
def test_colours_have_contrast(page: str) -> None:
    """WCAG AAA for every text on both grounds, in light, dark and print: at least 7 to 1. Colours of marks alone: 3 to 1."""
    style = render(page)
    for name, palette in read_palettes(style[: style.index("* { box-sizing")]).items():
        for ground in ("page", "panel"):
            for ink in ("text", "soft", "mark", "warn", "good", "due"):
                assert contrast(palette[ink], palette[ground]) >= 7, (name, ink, ground)
            for ink in ("more", "less"):
                assert contrast(palette[ink], palette[ground]) >= 3, (name, ink, ground)
