"""What noise a typical value would have, from public facts alone: how many records there are, and what is declared of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.model import Policy
from release_pipeline.privacy.figures import count_of, show_figure
from release_pipeline.privacy.methods import mask_column

MOST_ROWS = 100_000  # that are simulated
DRAWS, SIMULATED = 3, 12  # of a column; of all columns, about
FINE = 4096  # points of a domain, from which on how many there are counts by doublings
SECRET = bytes(32)  # of noise that is never released: the same words every time


@dataclass(frozen=True, slots=True)
class TypicalView:
    """A masked column, if its values lay evenly over its domain."""

    column: Annotated[str, "its name"]
    records_times_epsilon: Annotated[float, "what decides which method fits: records times the column's epsilon"]
    noise: Annotated[
        float, "how far half of the released values are from the records' own, at the most, before any order is restored"
    ]
    share: Annotated[float, "that as a share of the domain"]
    rows: Annotated[int, "of how many records this was simulated"]


def find_typical(plan: Plan) -> tuple[TypicalView, ...]:
    """The typical noise of every column; nothing where nobody says how many records there are, or columns do not stand alone."""
    policy = plan.policy
    if plan.rows is None or policy.method.family not in ("columns", "by-value") or policy.parts > 1 or policy.delta is not None:
        return ()
    rows, shares = min(plan.rows, MOST_ROWS), policy.column_epsilon
    alike: dict[tuple[object, ...], list[str]] = {}
    for name, column in policy.noise_columns.items():
        alike.setdefault(_tell_apart(policy, name, column), []).append(name)
    draws = min(max(SIMULATED // max(len(alike), 1), 1), DRAWS)
    of_domain: dict[str, float] = {}
    for names in alike.values():
        column = policy.noise_columns[names[0]]
        share = find_noise(policy, names[0], column, rows, draws=draws) / float(column.domain[1] - column.domain[0])
        of_domain |= dict.fromkeys(names, share)
    noise = {name: of_domain[name] * float(one.domain[1] - one.domain[0]) for name, one in policy.noise_columns.items()}
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


def _tell_apart(policy: Policy, name: str, column: NoiseColumn) -> tuple[object, ...]:
    """What the noise of a column depends on, as a share of its domain: columns that have this in common are simulated once. All
    scales are in proportion to the width, and cells are halves of halves of it, so that widths count by their doublings, except
    for those of few points, where noise is rounded to one of these."""
    width = column.exact_grid.width
    within = tuple(round(place / width, 3) for place in column.exact_atoms)
    size = width.bit_length() if width >= FINE else -width
    return (size, policy.column_epsilon[name].nano, within, len(column.reasons))


def find_noise(policy: Policy, name: str, column: NoiseColumn, rows: int, *, draws: int = DRAWS) -> float:
    """How far a released value is from the record's own, half of them less, half more, if the values of so many records lay
    evenly over the domain: no record is looked at. Before an order is restored, which needs what takes long to import."""
    low, high = map(float, column.domain)
    values = column.exact_grid.snap(low + (np.arange(rows) + 0.5) / rows * (high - low))
    by_value = policy.method.family == "by-value"
    away: list[float] = []
    for draw in range(draws):
        masked = mask_column(
            values,
            domain=column.domain,
            grid=column.grid,
            method=policy.protect.method,
            epsilon=policy.column_epsilon[name],
            k=policy.protect.k,
            scope=policy.protect.scope,
            consistency=None if by_value else "none",
            atoms=column.atoms,
            clamp=policy.clamps,
            secret=SECRET,
            context=(name, draw),
        )
        away.append(float(np.median(np.abs(masked.values - values))))
    return float(np.mean(away))


def restores_order(policy: Policy) -> bool:
    """Whether released values are made nearer by restoring their order."""
    return policy.method.family == "columns" and policy.consistency == "isotonic"


def describe_typical(plan: Plan) -> Iterator[str]:
    """It in lines for a person."""
    for found in find_typical(plan):
        column = plan.policy.noise_columns[found.column]
        of = f" (simulated with {count_of(found.rows, 'record')})" if plan.rows is not None and found.rows < plan.rows else ""
        unit = f" {column.noise_unit}" if column.noise_unit else ""
        restored = " before their order is restored" if restores_order(plan.policy) else ""
        near = f"{show_figure(found.noise)}{unit} of the record's own ({found.share:.2%} of the domain)"
        yield (
            f"{found.column}: records times epsilon {found.records_times_epsilon:,.0f}; half of the released values would be "
            f"within {near} if values lay evenly over it{of}{restored}"
        )
