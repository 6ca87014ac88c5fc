"""The last check of what is about to be published, with only the policy."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.audit.columns import lie_on_grid
from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.basis.dates import DATE, Clock
from release_pipeline.policy import Policy
from release_pipeline.policy.file.published import labels_of, may_be_blanked
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn, ReleasedColumn, pick
from release_pipeline.policy.kinds.base import SUPPRESSED, LabelledColumn, reason_column
from release_pipeline.rows.columns import AnyTable, ColumnTable, cut_table

_compute: Any = pyarrow.compute  # its functions are made at run time


def spell_out(table: pa.Table, policy: Policy) -> pa.Table:
    """Return a released table as it is published: no value if an entry is a reason for none, and the reason in a separate column
    after it."""
    columns: dict[str, Any] = {}
    for name, column in policy.released_columns.items():
        columns[name] = table.column(name).combine_chunks()
        if column.separate_reasons:
            reasons = _name_reasons(column, columns[name])
            columns[name] = _compute.if_else(reasons.is_valid(), pa.scalar(None, columns[name].type), columns[name])
            columns[reason_column(name)] = reasons
        if column.clock is not None:
            columns[name] = show_moments(columns[name], column.clock)
    return pa.table({name: columns[name] for name in policy.published_columns if name in columns})


def show_moments(numbers: Any, clock: Clock) -> Any:
    """Return numbers of units as dates or times, each at the nearest whole unit."""
    moments = clock.restore(np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64))
    return pa.array(moments).cast(type_of_moments(clock))


def type_of_moments(clock: Clock) -> Any:
    """Return the type of a published column of dates or times."""
    return pa.date32() if clock.type == DATE else pa.timestamp("ms")


def _read_numbers(clock: Clock | None, published: Any) -> npt.NDArray[np.float64]:
    """Return the numbers of a published column; NaN for a missing one."""
    if clock is None:
        return published.to_numpy()
    return clock.count(published.cast(pa.timestamp("s")).to_numpy(zero_copy_only=False))


def label_table(table: pa.Table, policy: Policy) -> pa.Table:
    """Return a published table with the labels of its policy, for Parquet: `label` and `labels` (JSON) are metadata of each
    column that has some, and all of them are metadata of the table where pandas looks for `attrs`. Without labels the table is
    unchanged."""
    known: dict[str, dict[str, Any]] = {}
    for name, column in pick(policy.columns, LabelledColumn).items():
        label, labels = column.label, dict(labels_of(column))
        if (label is not None or labels) and name in table.column_names:
            known[name] = {**({} if label is None else {"label": label}), **({"labels": labels} if labels else {})}
    if not known:
        return table
    fields = [
        field.with_metadata({key: said if isinstance(said, str) else _to_json(said) for key, said in known[field.name].items()})
        if field.name in known
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields, metadata={"PANDAS_ATTRS": _to_json({"columns": known})}))


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_back(table: AnyTable, policy: Policy) -> ColumnTable:
    """Return a published table as it was before `spell_out`, column by column; kept columns may be texts."""
    names = tuple(policy.released_columns)
    return ColumnTable(names, table.num_rows, lambda name: _read_column_back(table, name, policy.released_columns[name]))


def _read_column_back(table: AnyTable, name: str, column: ReleasedColumn) -> Any:
    cells = table.column(name).combine_chunks()
    if column.clock is not None:
        cells = pa.array(_read_numbers(column.clock, cells), from_pandas=bool(column.separate_reasons))
    if not column.separate_reasons:
        return cells
    entries = column.reason_entries
    indices = _compute.index_in(
        table.column(reason_column(name)).combine_chunks(), value_set=pa.array(list(entries), pa.string())
    )
    reasons = pa.array(list(entries.values())).take(indices)
    return _compute.coalesce(cells.cast(reasons.type), reasons)


def _name_reasons(column: ReleasedColumn, entries: Any) -> Any:
    """Return why each entry is no value; null for a value."""
    if isinstance(column, NoiseColumn):
        places = column.find_reasons(entries.to_numpy(False))
        return pa.array(column.reasons, pa.string()).take(pa.array(places, mask=places < 0))
    texts, reason_of = entries.cast(pa.string()), cast(ListedColumn, column).reason_of
    reasons = pa.array(list(reason_of.values()), pa.string())
    named = reasons.take(_compute.index_in(texts, value_set=pa.array(list(reason_of), pa.string())))
    return _compute.if_else(texts.is_null(), SUPPRESSED, named)


def check_released(table: AnyTable, policy: Policy, *, rows: int) -> Iterator[str]:
    """Yield a sentence for everything in a released table that its policy does not allow; `rows` is its recorded number of
    records. Reads column by column."""
    names = list(policy.published_columns)
    if list(table.column_names) != names:
        yield "The data have other columns than the policy releases."
        return
    if table.num_rows != rows:
        yield f"The data have {table.num_rows:,} records, and {rows:,} were recorded."
    for name, column in (policy.noise_columns | policy.released_columns).items():  # numbers first
        parts = cut_table(table, [name, reason_column(name)] if column.separate_reasons else [name])
        yield from _once(_check_column(part, name, column, policy) for part in parts)
    quasi, below = policy.released_quasi, policy.groups_below
    quasi = [name for name in table.column_names if name in {*quasi, *map(reason_column, quasi)}]
    if below and quasi and _find_smallest(table, quasi) < below:
        yield f"There are groups of released quasi-identifiers below {below}."
    k = policy.protect.k
    if k is not None and not policy.method.is_noisy and _find_smallest(table, list(policy.noise_columns)) < k:
        yield f"There are groups of equal masked values below k {k}."


def _once(found: Iterator[Iterator[str]]) -> Iterator[str]:
    """Yield each message of all parts once."""
    yield from dict.fromkeys(words for of_part in found for words in of_part)


def _find_smallest(table: AnyTable, quasi: Sequence[str]) -> int:
    """Return how many records the smallest group has; for no records, as many as any limit asks for."""
    groups: pa.Table | None = None
    for part in cut_table(table, quasi):
        counted = part.group_by(quasi, use_threads=False).aggregate([([], "count_all")])
        both = counted if groups is None else pa.concat_tables([groups, counted])
        added = both.group_by(quasi, use_threads=False).aggregate([("count_all", "sum")])
        groups = added.rename_columns([*quasi, "count_all"])
    return sys.maxsize if groups is None or not groups.num_rows else int(groups.column("count_all").to_numpy().min())


def _check_column(table: pa.Table, name: str, column: ReleasedColumn, policy: Policy) -> Iterator[str]:
    """Of one column, or of a part of it."""
    is_blanked = may_be_blanked(column, policy.suppress)
    may_be_blank = is_blanked or bool(column.separate_reasons)
    if column.separate_reasons:
        yield from _check_reasons(table, name, (*column.separate_reasons, *[SUPPRESSED] * is_blanked))
    if (grid := column.exact_grid) is not None and column.released_as != "text":
        yield from _check_numbers(table, name, column, grid, policy, may_be_blank=may_be_blank)
        return
    declared = frozenset(column.value_texts)
    entries = [None if entry is None else str(entry) for entry in table.column(name).unique().to_pylist()]
    if not all(may_be_blank if entry is None else entry in declared or column.may_release(entry) for entry in entries):
        is_label = name in policy.generalised_columns
        yield f"Column {name} has {'labels that its hierarchy does not have' if is_label else 'values that are not declared'}."


def _check_numbers(
    table: pa.Table, name: str, column: ReleasedColumn, grid: Grid, policy: Policy, *, may_be_blank: bool
) -> Iterator[str]:
    """Of a column of numbers on a declared grid, which noise alone may carry off it."""
    published = table.column(name)
    if column.clock is not None and published.type != type_of_moments(column.clock):
        yield f"Column {name} is of another type than {column.clock.type}."
        return
    values = _read_numbers(column.clock, published)  # a missing one becomes NaN, which is in no domain
    del published
    if may_be_blank:
        values = values[~np.isnan(values)]
    low, high, is_masked = float(grid.lo), float(grid.hi), name in policy.noise_columns
    if is_masked and not policy.clamps:
        if not np.isfinite(values).all():
            yield f"Column {name} has values that are missing or infinite."
    elif not ((values >= low) & (values <= high)).all():
        yield f"Column {name} has values outside its domain."
    elif (policy.lies_on_grid or not is_masked) and not lie_on_grid(grid, values):
        yield f"Column {name} has values off its grid."


def _check_reasons(table: pa.Table, name: str, known: Sequence[str]) -> Iterator[str]:
    """Yield a sentence if a cell has neither a value nor a declared reason for none."""
    reasons = table.column(reason_column(name))
    if not set(reasons.unique().to_pylist()) <= {*known, None}:
        yield f"Column {name} has reasons for no value that are not declared."
    if not _compute.all(_compute.xor(table.column(name).is_valid(), reasons.is_valid())).as_py():
        yield f"Column {name} has cells with neither a value nor a reason, or with both."
