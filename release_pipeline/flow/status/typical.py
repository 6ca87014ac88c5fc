"""What noise a typical value would have, from public facts alone: how many records there are, and what is declared of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from release_pipeline.policy.families.base import Plan
from release_pipeline.privacy.figures import count_of, show_figure
from release_pipeline.stages.simulation import find_typical_noise

MOST_ROWS = 100_000  # that are simulated
DRAWS = 3
SECRET = bytes(32)  # of noise that is never released: the same words every time


@dataclass(frozen=True, slots=True)
class TypicalView:
    """A masked column, if its values lay evenly over its domain."""

    column: Annotated[str, "its name"]
    records_times_epsilon: Annotated[float, "what decides which method fits: records times the column's epsilon"]
    noise: Annotated[float, "how far half of the released values are from the records' own, at the most"]
    share: Annotated[float, "that as a share of the domain"]
    rows: Annotated[int, "of how many records this was simulated"]


def find_typical(plan: Plan) -> tuple[TypicalView, ...]:
    """The typical noise of every column; nothing where nobody says how many records there are, or columns do not stand alone."""
    policy = plan.policy
    if plan.rows is None or policy.method.family not in ("columns", "by-value") or policy.parts > 1 or policy.delta is not None:
        return ()
    rows = min(plan.rows, MOST_ROWS)
    noise = find_typical_noise(policy, rows, secret=SECRET, draws=DRAWS)
    shares = policy.column_epsilon
    return tuple(
        TypicalView(
            name,
            float(plan.rows * shares[name].fraction),
            float(f"{noise[name]:.3g}"),
            float(f"{noise[name] / float(column.domain[1] - column.domain[0]):.3g}"),
            rows,
        )
        for name, column in policy.noise_columns.items()
    )


def describe_typical(plan: Plan) -> Iterator[str]:
    """It in lines for a person."""
    for found in find_typical(plan):
        column = plan.policy.noise_columns[found.column]
        of = f" (simulated with {count_of(found.rows, 'record')})" if plan.rows is not None and found.rows < plan.rows else ""
        unit = f" {column.noise_unit}" if column.noise_unit else ""
        near = f"{show_figure(found.noise)}{unit} of the record's own ({found.share:.2%} of the domain)"
        yield (
            f"{found.column}: records times epsilon {found.records_times_epsilon:,.0f}; half of the released values would be "
            f"within {near} if values lay evenly over it{of}"
        )
