"""Where a release came from, as a picture: the stages of its data in one lane, what was noted of it in the other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from release_pipeline.report.escaping import format_text

WIDTH, LANE, BOX, GAP, LINE = 980, 470, 450, 18, 17
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1a1a1a}.head{font-weight:600}.small{font-size:12px;fill:#444}"
    ".title{font-size:19px;font-weight:600}"
    ".box{fill:#fff;stroke:#456;stroke-width:1.2}.people{fill:#f4f1e6;stroke:#865}.lane{font-weight:600;font-size:14px}"
)
LONGEST, MOST_LINES = 54.0, 3  # of a text in a box: the width of a line, in digits, and the number of lines
LONGEST_HEAD, LONGEST_TITLE = 44.0, 66.0  # wider letters
_NO_XML = {0xFFFE: "[U+FFFE]", 0xFFFF: "[U+FFFF]"}


@dataclass(frozen=True, slots=True)
class Step:
    """One box: what it is, and lines that say more."""

    title: str
    lines: tuple[str, ...] = ()


def draw_lineage(title: str, stages: Sequence[Step], noted: Sequence[Step]) -> str:
    """The picture as SVG: the stages of the data from the source to the package, beside them the events of the registry.

    What is too wide for its box goes on in the next line, and what is too long for three lines is cut.
    """
    titles = _wrap(title, LONGEST_TITLE)
    top = 78 + 24 * (len(titles) - 1)
    lanes = ((20, "the data", stages, "box"), (20 + LANE + 20, "the registry", noted, "box people"))
    parts = [f'<text x="20" y="{34 + 24 * number}" class="title">{line}</text>' for number, line in enumerate(titles)]
    bottom = top
    for left, name, steps, kind in lanes:
        parts.append(f'<text x="{left}" y="{top - 12}" class="lane">{name}</text>')
        y = top
        for place, step in enumerate(steps):
            lines = [("head", line) for line in _wrap(step.title, LONGEST_HEAD)]
            lines += [("small", line) for text in step.lines for line in _wrap(text, LONGEST)]
            height = 9 + LINE * len(lines)
            if place:
                parts.append(f'<path d="M{left + BOX // 2} {y - GAP} v{GAP - 3}" stroke="#456" marker-end="url(#tip)"/>')
            parts.append(f'<rect x="{left}" y="{y}" width="{BOX}" height="{height}" rx="5" class="{kind}"/>')
            parts += [
                f'<text x="{left + 12}" y="{y + 18 + LINE * number}" class="{size}">{line}</text>'
                for number, (size, line) in enumerate(lines)
            ]
            y += height + GAP
        bottom = max(bottom, y)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" height="{bottom}" role="img">'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        (
            head,
            f"<title>{escape(_plain(title))}</title>",
            f"<style>{_STYLE}</style>",
            f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z" fill="#456"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{bottom}" fill="#fafaf8"/>',
            *parts,
            "</svg>\n",
        )
    )


def _wrap(text: str, longest: float) -> list[str]:
    """The text in at most three lines of that width, escaped; broken at spaces unless a word is too wide for any line."""
    lines, rest = list[str](), _plain(text)
    while rest and len(lines) < MOST_LINES:
        fits = _count_fitting(rest, longest)
        if fits < len(rest):
            if len(lines) == MOST_LINES - 1:
                rest = f"{rest[: _count_fitting(rest, longest - 2)].rstrip()}…"  # 2: the dots are as wide as a wide letter
                fits = len(rest)
            else:
                space = rest.rfind(" ", 0, fits + 1)
                fits = space if space > fits // 2 else fits
        lines.append(escape(rest[:fits].rstrip()))
        rest = rest[fits:].lstrip()
    return lines or [""]


def _count_fitting(text: str, longest: float) -> int:
    """How many of the first characters fit into a line."""
    width = 0.0
    for place, char in enumerate(text):
        width += _width(char)
        if width > longest:
            return place
    return len(text)


def _width(char: str) -> float:
    """How wide a character is at most, in digits, in the sans-serif fonts that are common."""
    if unicodedata.east_asian_width(char) in "WF" or char in "MWmw@%…" or ord(char) > 0x2FF:
        return 2.0
    return 1.3 if char.isupper() or ord(char) > 0x7F else 1.0


def _plain(text: str) -> str:
    return format_text(text).translate(_NO_XML)
