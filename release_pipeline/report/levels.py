"""How far each quasi-identifier was made coarser, as a picture, with figures below it. For reviewers: they are internal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from release_pipeline.report.public import show

WIDTH, LEFT, STEP, ROW, LINE = 980, 190, 118, 62, 22
_LONGEST, _LONGEST_NAME = 15, 22  # letters in a box, and of a column's name
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1a1a1a}.title{font-size:19px;font-weight:600}.name{font-weight:600}"
    ".small{font-size:12px;fill:#444}.level{fill:#fff;stroke:#456;stroke-width:1.2}.chosen{fill:#0b5566;stroke:#0b5566}"
    ".on{fill:#fff;font-weight:600}.mark{fill:#0b5566}"
)


@dataclass(frozen=True, slots=True)
class Ladder:
    """The levels of one column in words, from the value itself to the coarsest. `at`: the level of all records, or the mean of
    their levels; None where labels follow no levels."""

    column: str
    levels: tuple[str, ...]
    at: float | None


def draw_levels(title: str, ladders: Sequence[Ladder], figures: Mapping[str, str]) -> str:
    """The picture as SVG: a row of levels for each column, the chosen one filled, a mean one marked by a triangle."""
    parts = [f'<text x="20" y="34" class="title">{_cut(title, 80)}</text>']
    parts.append(f'<text x="{LEFT}" y="62" class="small">finer</text>')
    widest = max((len(ladder.levels) for ladder in ladders), default=1)
    step = min(STEP, (WIDTH - LEFT - 20) // max(widest, 1))
    parts.append(f'<text x="{LEFT + widest * step - 10}" y="62" class="small" text-anchor="end">coarser</text>')
    y = 76
    for ladder in ladders:
        parts.append(f'<text x="20" y="{y + 24}" class="name">{_cut(ladder.column, _LONGEST_NAME)}</text>')
        whole = ladder.at is not None and float(ladder.at).is_integer()
        for level, words in enumerate(ladder.levels):
            chosen = whole and level == ladder.at
            x = LEFT + level * step
            kind, text = ("level chosen", "on") if chosen else ("level", "small")
            parts.append(f'<rect x="{x}" y="{y}" width="{step - 10}" height="36" rx="4" class="{kind}"/>')
            letters = max(step * _LONGEST // STEP, 3)
            parts.append(f'<text x="{x + 8}" y="{y + 23}" class="{text}">{_cut(words, letters)}</text>')
        if ladder.at is not None and not whole:
            x = LEFT + ladder.at * step + (step - 10) / 2
            parts.append(f'<path d="M{x - 6:.0f} {y + 47} h12 l-6 -10 z" class="mark"/>')
            parts.append(f'<text x="{x + 10:.0f}" y="{y + 50}" class="small">mean level {ladder.at:.2f}</text>')
        y += ROW
    y += LINE
    for name, value in figures.items():
        parts.append(f'<text x="20" y="{y}" class="small">{_cut(name, 60)}</text>')
        parts.append(f'<text x="420" y="{y}">{_cut(value, 70)}</text>')
        y += LINE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img">'
    background = f'<rect width="{WIDTH}" height="{y}" fill="#fafaf8"/>'
    return "\n".join((head, f"<title>{escape(show(title))}</title>", f"<style>{_STYLE}</style>", background, *parts, "</svg>\n"))


def _cut(text: str, longest: int) -> str:
    """A text in one line, not longer than that, escaped."""
    shown = show(text)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")
