"""Where a release came from, as a picture: the stages of its data in one lane, what was noted of it in the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LANE, BOX, GAP, LINE = 980, 470, 450, 18, 17
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1a1a1a}.head{font-weight:600}.small{font-size:12px;fill:#444}"
    ".box{fill:#fff;stroke:#456;stroke-width:1.2}.people{fill:#f4f1e6;stroke:#865}.lane{font-weight:600;font-size:14px}"
)
LONGEST = 66  # characters of a line in a box


@dataclass(frozen=True, slots=True)
class Step:
    """One box: what it is, and lines that say more."""

    title: str
    lines: tuple[str, ...] = ()


def draw_lineage(title: str, stages: Sequence[Step], noted: Sequence[Step]) -> str:
    """The picture as SVG: the stages of the data from the source to the package, beside them the events of the registry."""
    top = 78
    lanes = ((20, "the data", stages, "box"), (20 + LANE + 20, "the registry", noted, "box people"))
    parts: list[str] = []
    bottom = top
    for left, name, steps, kind in lanes:
        parts.append(f'<text x="{left}" y="{top - 12}" class="lane">{name}</text>')
        y = top
        for place, step in enumerate(steps):
            height = 26 + LINE * len(step.lines)
            if place:
                parts.append(f'<path d="M{left + BOX // 2} {y - GAP} v{GAP - 3}" stroke="#456" marker-end="url(#tip)"/>')
            parts.append(f'<rect x="{left}" y="{y}" width="{BOX}" height="{height}" rx="5" class="{kind}"/>')
            parts.append(f'<text x="{left + 12}" y="{y + 18}" class="head">{_cut(step.title)}</text>')
            parts += [
                f'<text x="{left + 12}" y="{y + 18 + LINE * number}" class="small">{_cut(line)}</text>'
                for number, line in enumerate(step.lines, start=1)
            ]
            y += height + GAP
        bottom = max(bottom, y)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" height="{bottom}" role="img">'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        (
            head,
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z" fill="#456"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{bottom}" fill="#fafaf8"/>',
            f'<text x="20" y="34" style="font-size:19px;font-weight:600">{escape(title)}</text>',
            *parts,
            "</svg>\n",
        )
    )


def _cut(text: str) -> str:
    return escape(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
