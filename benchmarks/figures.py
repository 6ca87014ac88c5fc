"""One measured figure, the target it is held to, and how it grew since the next smaller size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

Measure: TypeAlias = Literal["wall time", "CPU time", "peak memory"]
_UNITS: dict[Measure, str] = {"wall time": "seconds", "CPU time": "CPU seconds", "peak memory": "bytes"}


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio at most (or at least) `limit`."""

    bound: Literal["at most", "at least"]
    limit: float

    def verdict(self, ratio: float) -> str:
        """`ok` or `MISSED`."""
        met = ratio <= self.limit if self.bound == "at most" else ratio >= self.limit
        return "ok" if met else "MISSED"


@dataclass(frozen=True, slots=True)
class Figure:
    """What one case cost at size `n`: `amount` in seconds or bytes, `ratio` in `unit`. No target: printed for context."""

    benchmark: str
    case: str
    n: int
    measure: Measure
    amount: float
    ratio: float
    unit: str
    target: Target | None = None
    growth: float | None = None

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, or `context` where there is no target."""
        return self.target.verdict(self.ratio) if self.target else "context"

    def as_json(self) -> dict[str, Any]:
        """The figure as JSON takes it; target and growth are null where there is none."""
        return {
            "benchmark": self.benchmark,
            "case": self.case,
            "n": self.n,
            "measure": self.measure,
            "amount": self.amount,
            "amount_unit": _UNITS[self.measure],
            "ratio": self.ratio,
            "unit": self.unit,
            "target": f"{self.target.bound} {self.target.limit:g}" if self.target else None,
            "verdict": self.verdict,
            "growth": self.growth,
        }


def with_growth(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Each figure with its growth exponent: g such that its amount grew like n^g since the previous size of its case."""
    previous: dict[tuple[str, str, str], Figure] = {}
    for figure in figures:
        key = (figure.benchmark, figure.case, figure.measure)
        yield replace(figure, growth=_exponent(previous[key], figure) if key in previous else None)
        previous[key] = figure


def _exponent(small: Figure, large: Figure) -> float | None:
    if small.n == large.n or min(small.amount, large.amount) <= 0:
        return None
    return math.log(large.amount / small.amount) / math.log(large.n / small.n)
