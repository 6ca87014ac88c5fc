"""The picture of a release's lineage: well-formed whatever the texts are, and nothing runs out of its box or over another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.publish.dossier import WIDTH, Step, draw_lineage
from tests.unit.report.views import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"small": 12, "head": 13, "title": 19, "lane": 14}
TEXTS = st.one_of(
    st.text(max_size=300), HOSTILE, st.text("W@m%", min_size=50, max_size=300), st.text("0123456789abcdef", min_size=64)
)
STEPS = st.lists(st.builds(Step, TEXTS, st.lists(TEXTS, max_size=3).map(tuple)), max_size=5)


@dataclass(frozen=True)
class Text:
    """A line of text of the picture."""

    x: float
    y: float
    size: int
    words: str


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, text: Text) -> bool:
        """Whether the text begins in it, and its line is in it from top to bottom."""
        return self.x < text.x < self.x + self.width and self.y <= text.y - text.size and text.y + 4 <= self.y + self.height


def read_picture(svg: str) -> tuple[ET.Element, list[Box], list[Text]]:
    """The picture, which must be XML: all of it, its boxes without the background, and its texts."""
    root = ET.fromstring(svg)  # noqa: S314  we wrote it
    boxes = [Box(*(float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))) for rect in root.findall(f"{SVG}rect")]
    texts = [
        Text(float(text.get("x", "0")), float(text.get("y", "0")), SIZES[text.get("class", "")], text.text or "")
        for text in root.findall(f"{SVG}text")
    ]
    return root, boxes[1:], texts


def check_picture(svg: str, stages: Sequence[Step], noted: Sequence[Step]) -> None:
    """One box for each step, none over another; every text of a step in one box, and no two lines at the same place."""
    root, boxes, texts = read_picture(svg)
    assert len(boxes) == len(stages) + len(noted)
    for box in boxes:
        assert box.x + box.width <= WIDTH
        assert box.y + box.height <= float(root.get("height", "0"))
    for one in boxes:
        for other in boxes:
            apart = one.x + one.width <= other.x or one.y + one.height <= other.y
            assert one == other or apart or other.x + other.width <= one.x or other.y + other.height <= one.y
    assert len(set(boxes)) == len(boxes)
    inside = [text for text in texts if text.size in (SIZES["head"], SIZES["small"])]
    assert all(sum(box.holds(text) for box in boxes) == 1 for text in inside)
    lines = sorted((text.x, text.y) for text in texts)
    assert all(other[0] != one[0] or other[1] - one[1] >= 16 for one, other in pairwise(lines))


@pytest.mark.slow
@given(TEXTS, STEPS, STEPS)
def test_any_texts_make_a_picture(title: str, stages: list[Step], noted: list[Step]) -> None:
    """XML that can be read, with nothing in it but boxes, texts and arrows."""
    svg = draw_lineage(title, stages, noted)
    check_picture(svg, stages, noted)
    kinds = {element.tag.removeprefix(SVG) for element in read_picture(svg)[0].iter()}
    assert kinds <= {"svg", "title", "style", "defs", "marker", "path", "rect", "text"}
    svg.encode()
