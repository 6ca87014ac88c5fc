"""What is about to be published, looked at once more, with nothing but the policy beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import KeepColumn, MissingCategory
from release_pipeline.stages.shape import lie_on_grid
from release_pipeline.stages.suppress import encode, group_sizes

ON_GRID = "on the grid"


def grid_facts(table: pa.Table, policy: Policy) -> dict[str, str]:
    """That every masked value is a point of its declared grid, of the methods that move it there: a table that an earlier version
    masked may have others, and then nothing is said."""
    if not policy.clamps or policy.method.on_grid != "moved":
        return {}
    columns = policy.noise_columns.items()
    return {"values": ON_GRID} if all(lie_on_grid(c.exact_grid, table.column(n).to_numpy()) for n, c in columns) else {}


def check_released(table: pa.Table, policy: Policy, *, rows: int, on_grid: bool = False) -> Iterator[str]:
    """What a released table has that its policy does not let out, in words; `rows` is how many records it was said to have, and
    `on_grid` whether its masked values were said to lie on their grid."""
    names = list(policy.released_columns)
    if table.column_names != names:
        yield "The data have other columns than the policy releases."
        return
    if table.num_rows != rows:
        yield f"The data have {table.num_rows:,} records, and {rows:,} were recorded."
    for name, column in policy.noise_columns.items():
        values = table.column(name).to_numpy()  # a missing one becomes NaN, which is in no domain
        low, high = (float(edge) for edge in column.domain)
        if not policy.clamps:
            if not np.isfinite(values).all():
                yield f"Column {name} has values that are missing or infinite."
        elif not ((values >= low) & (values <= high)).all():
            yield f"Column {name} has values outside its domain."
        elif on_grid and not lie_on_grid(column.exact_grid, values):
            yield f"Column {name} has values off its grid."
    for name, column in policy.kept_columns.items():
        known = {str(value) for value in _entries(column)} | {None}
        if not {None if value is None else str(value) for value in table.column(name).unique().to_pylist()} <= known:
            yield f"Column {name} has values that are not declared."
    for name, column in policy.generalised_columns.items():
        labels, missing = table.column(name).unique().to_pylist(), column.missing_entry
        if not all(label is not None and column.hierarchy.may_release(label, missing) for label in labels):
            yield f"Column {name} has labels that its hierarchy does not have."
    quasi, below = policy.released_quasi, policy.groups_below
    if below and quasi and (group_sizes(encode([table.column(name) for name in quasi])) < below).any():
        yield f"There are groups of released quasi-identifiers below {below}."
    if policy.protect.different_values is not None:
        yield from _find_uniform(table, policy, policy.protect.different_values)


def _find_uniform(table: pa.Table, policy: Policy, least: int) -> Iterator[str]:
    groups = np.unique(encode([table.column(name) for name in policy.released_quasi]), axis=0, return_inverse=True)[1].reshape(-1)
    for name in policy.kept_columns:
        pairs = np.unique(np.column_stack([groups, encode([table.column(name)])[:, 0]]), axis=0)
        if (np.bincount(pairs[:, 0]) < least).any():
            yield f"There are groups of released quasi-identifiers with fewer than {least} different values of {name}."


def _entries(column: KeepColumn) -> list[object]:
    missing = column.missing
    return [*column.values, *([missing.category] if isinstance(missing, MissingCategory) else [])]
