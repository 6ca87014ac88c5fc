"""The differences of correlations as a triangle of cells, with the number written in each."""

from __future__ import annotations

from release_pipeline.report.charts.drawing import WIDTH, Box, Picture, Shape, Text, cut_apart, width_of
from release_pipeline.report.escaping import format_name
from release_pipeline.report.internal_view import CorrelationView
from release_pipeline.report.prose import is_number
from release_pipeline.sentences import REVIEWERS

LEFT, TOP, CELL, HIGH = 92, 4, 46, 26  # LEFT: at the least, and more where names need it and there is room
STRENGTHS = (0.02, 0.05, 0.1, 0.2)  # from how large a difference on a cell has the next stronger colour


def find_differences(view: CorrelationView) -> list[tuple[int, int, float | None]]:
    """Released minus original for each pair of columns, the later one first; None where one of them is not known."""
    return [
        (row, across, _subtract(view.released[row][across], view.original[row][across]))
        for row in range(len(view.names))
        for across in range(row)
    ]


def draw_correlations(view: CorrelationView, *, is_roomy: bool = False) -> Picture:
    """A row for each column but the first, a column for each but the last, whose name stands on top of its cells. `is_roomy`:
    names have the room that cells leave; else pictures stay as they were approved."""
    count = len(view.names)
    shapes: list[Shape] = []
    needed = max((width_of(format_name(name)) for name in view.names), default=0) + 8
    left = max(LEFT, min(needed, WIDTH - count * CELL - 4)) if is_roomy else LEFT
    width, height = max(left + count * CELL + 4, WIDTH), TOP + count * HIGH
    over = width - left - (count - 2) * CELL - 8 if is_roomy else 2 * CELL - 4
    beside, above = cut_apart(view.names, left - 8), cut_apart(view.names, over)
    for number in range(count):
        y = TOP + number * HIGH
        if number:
            shapes.append(Text(left - 6, y + 17, beside[number], "", "end"))
        if number < count - 1:
            shapes.append(Text(left + number * CELL + 3, y + 20, above[number], "soft"))
    for row, across, difference in find_differences(view):
        x, y = left + across * CELL, TOP + row * HIGH
        shapes.append(Box(_choose_kind(difference), x, y, CELL - 2, HIGH - 2))
        words = (
            REVIEWERS("chart.no_difference")
            if difference is None
            else f"{difference:+.2f}".replace("-0.00", "0.00").replace("+0.00", "0.00")
        )
        shapes.append(Text(x + CELL // 2 - 1, y + 16, words, "cell", "middle"))
    words = REVIEWERS("chart.correlation_words")
    return Picture(REVIEWERS("chart.correlations"), words, width, height, tuple(shapes))


def _subtract(released: float | None, original: float | None) -> float | None:
    if released is None or original is None or not is_number(released) or not is_number(original):
        return None
    return released - original if is_number(released - original) else None


def _choose_kind(difference: float | None) -> str:
    if difference is None:
        return "unknown"
    strength = sum(abs(difference) >= least for least in STRENGTHS)
    return f"{'up' if difference > 0 else 'down'}-{strength}" if strength else "even"
