"""The figures as lines of one aligned table, each printable as soon as it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.figures import Figure

_COLUMNS = (  # title, width; a negative width is aligned to the right
    ("benchmark", 10),
    ("case", 37),
    ("n", -10),
    ("measure", 11),
    ("amount", -10),
    ("growth", -6),
    ("ratio", -7),
    ("in", 22),
    ("target", 11),
    ("", 7),
)


def heading() -> str:
    """The titles, underlined."""
    return _line([title for title, _ in _COLUMNS]) + "\n" + _line(["-" * abs(width) for _, width in _COLUMNS])


def row(figure: Figure) -> str:
    """One line; growth n^1.00 means in proportion to n since the next smaller size."""
    amount = f"{figure.amount / 2**20:,.1f} MiB" if figure.measure == "peak memory" else f"{figure.amount:.3f} s"
    return _line(
        [
            figure.benchmark,
            figure.case,
            f"{figure.n:,}",
            figure.measure,
            amount,
            "" if figure.growth is None else f"n^{figure.growth:.2f}",
            f"{figure.ratio:.2f}",
            figure.unit,
            f"{figure.target.bound} {figure.target.limit:g}" if figure.target else "",
            figure.verdict,
        ]
    )


def machine_lines(facts: dict[str, Any]) -> str:
    """The machine facts, one per line."""
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {' '.join(v) if isinstance(v, list) else v}" for name, v in facts.items())


def _line(cells: Sequence[str]) -> str:
    pairs = zip(cells, _COLUMNS, strict=True)
    return "  ".join(cell.rjust(-width) if width < 0 else cell.ljust(width) for cell, (_, width) in pairs).rstrip()
