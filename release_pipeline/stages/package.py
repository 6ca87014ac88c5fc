"""What is about to be published, looked at once more, with nothing but the policy beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.model import KeepColumn, MissingCategory
from release_pipeline.stages.suppress import encode, group_sizes


def check_released(table: pa.Table, policy: Policy, *, rows: int) -> Iterator[str]:
    """What a released table has that its policy does not let out, in words; `rows` is how many records it was said to have."""
    names = [name for name in policy.columns if name in policy.noise_columns or name in policy.kept_columns]
    if table.column_names != names:
        yield "The data have other columns than the policy releases."
        return
    if table.num_rows != rows:
        yield f"The data have {table.num_rows:,} records, and {rows:,} were recorded."
    for name, column in policy.noise_columns.items():
        values = table.column(name).to_numpy()  # a missing one becomes NaN, which is in no domain
        low, high = (float(edge) for edge in column.domain)
        if not ((values >= low) & (values <= high)).all():
            yield f"Column {name} has values outside its domain."
    for name, column in policy.kept_columns.items():
        known = {str(value) for value in _entries(column)} | {None}
        if not {None if value is None else str(value) for value in table.column(name).unique().to_pylist()} <= known:
            yield f"Column {name} has values that are not declared."
    quasi = [name for name, column in policy.kept_columns.items() if column.role == "quasi"]
    below = policy.suppress.quasi_groups_below if policy.suppress else 0
    if below and quasi and (group_sizes(encode([table.column(name) for name in quasi])) < below).any():
        yield f"There are groups of released quasi-identifiers below {below}."


def _entries(column: KeepColumn) -> list[object]:
    missing = column.missing
    return [*column.values, *([missing.category] if isinstance(missing, MissingCategory) else [])]
