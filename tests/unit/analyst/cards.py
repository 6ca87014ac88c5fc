"""Facts of releases, as a card would declare them."""

from __future__ import annotations

from typing import Any

from release_pipeline.analyst.facts import ColumnFacts, Facts
from release_pipeline.mechanisms import Epsilon, Grid
from release_pipeline.mechanisms.catalogue import METHODS


def noise(name: str, upper: int | str = 1000, *, grid: int | str = 1, epsilon: str = "1", lower: int | str = 0) -> ColumnFacts:
    """A masked column."""
    return ColumnFacts(name, "noise", "number", Grid.declare((lower, upper), grid), Epsilon.of(epsilon))


def make_facts(method: str = "laplace", *columns: ColumnFacts, rows: int = 100, **changes: Any) -> Facts:
    """A release of one noise column, unclamped and without consistency; `changes` replaces fields."""
    fields: dict[str, Any] = {
        "method": method,
        "scope": METHODS[method].scopes[-1] if method in METHODS else "column",
        "k": None if method == "laplace" else 5,
        "consistency": "none",
        "clamped": False,
        "rows_in": rows,
        "rows_out": rows,
        "in_parts": False,
        "columns": {column.name: column for column in columns or (noise("income"),)},
    }
    return Facts(**fields | changes)


def column_card(column: ColumnFacts) -> dict[str, Any]:
    """A column as a card has it."""
    domain = None if column.grid is None else [f"{float(edge):g}" for edge in (column.grid.lo, column.grid.hi)]
    step = None if column.grid is None else f"{float(column.grid.step):g}"
    epsilon = None if column.epsilon is None else str(column.epsilon)
    content = {"name": column.name, "done": column.done, "type": column.type, "domain": domain, "grid": step, "epsilon": epsilon}
    return content | {"atoms": list(column.atoms)}


def make_card(facts: Facts, *, persons: int = 1) -> dict[str, Any]:
    """The part of a card that the kit reads."""
    return {
        "format": "privacy-card/1",
        "claim": {"records_per_person": persons, "scope": {"name": facts.scope}},
        "method": {
            "name": facts.method,
            "consistency": facts.consistency,
            "values": "inside" if facts.clamped else "anywhere",
            "grid": "on" if facts.on_grid else "off",
        },
        "k": {"value": facts.k},
        "parts": ["five parts"] if facts.in_parts else [],
        "rows": {"in": facts.rows_in, "out": facts.rows_out},
        "columns": [column_card(column) for column in facts.columns.values()],
    }
