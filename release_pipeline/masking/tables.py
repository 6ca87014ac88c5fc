"""Tables next to the rows: from records to noisy cells, and to values that add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.errors import Blocked
from release_pipeline.masking.strategy import Contexts, Progress
from release_pipeline.mechanisms.basis.grid import Grid, IntArray
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.mechanisms.tables import measure_levels, reconcile, sum_units
from release_pipeline.policy import Policy
from release_pipeline.policy.file.tables import Tabulation, Weights
from release_pipeline.rows.columns import Read

_compute: Any = pyarrow.compute  # its functions are made at run time

TABLES = "cells"  # in the vault: a row for each cell of each table


@dataclass(frozen=True, slots=True)
class Located:
    """A declared table and the records that it counts: `cell`, that of each on the finest level, and `amounts`, what each adds;
    None where it counts as one."""

    tabulation: Tabulation
    cell: IntArray
    amounts: IntArray | None


def measure_tables(policy: Policy, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> pa.Table:
    """The cells of all tables: their noisy numbers, and values that add up, made of these only."""
    return draw_tables(locate_tables(policy, read, progress=progress), secret=secret, context=context)


def locate_tables(policy: Policy, read: Read, *, progress: Progress) -> Iterator[Located]:
    """All tables with their records, one after the other: nothing is drawn."""
    for name, tabulation in policy.tabulations.items():
        progress(f"tabulating {name}")
        yield Located(tabulation, locate_records(tabulation, read), _amounts(policy, tabulation, read))


def draw_tables(tables: Iterable[Located], *, secret: bytes, context: Contexts) -> pa.Table:
    """The cells of these tables with the noise of one secret."""
    made: list[pa.Table] = []
    for located in tables:
        tabulation, name = located.tabulation, located.tabulation.name
        stream = noise_stream(secret, *context, "tables", name, "cells")  # longer than the context of any column
        noisy = measure_levels(located.cell, located.amounts, tabulation.shape, tabulation.noise, stream)
        values = reconcile_table(tabulation, noisy, records=len(located.cell))
        made.extend(_cells_table(name, level, *both) for level, both in enumerate(zip(noisy, values, strict=True)))
    return pa.concat_tables(made)


def reconcile_table(tabulation: Tabulation, noisy: list[IntArray], *, records: int) -> list[IntArray]:
    """Values that add up: counts to the number of records, which is public; none below 0 where none can be."""
    spread = [noise.spread for noise in tabulation.noise]
    ends = tabulation.ends
    total = records if ends is None else None
    return reconcile(noisy, tabulation.shape, spread, total=total, negative=ends is not None and ends[0] < 0)


def locate_records(tabulation: Tabulation, read: Read) -> IntArray:
    """The cell of each record on the finest level."""
    sizes = [len(axis.labels[-1]) for axis in tabulation.axes]
    places = [
        _find(axis.column, read("records", [axis.column]).column(0), axis.values, axis.places[-1]) for axis in tabulation.axes
    ]
    return np.ravel_multi_index(places, sizes).astype(np.int64)


def _find(name: str, column: Any, entries: Sequence[str], numbers: Sequence[int]) -> IntArray:
    """The number that goes with the entry of each record. Records were checked: what has none would have stopped the release."""
    texts = column if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) else column.cast(pa.string())
    found = _compute.index_in(texts, value_set=pa.array(entries, texts.type))
    if found.null_count:
        raise Blocked("records have entries that are not declared.", where=name, remedy="Validate the release again.")
    return np.array(numbers, dtype=np.int64)[found.to_numpy()]


def _amounts(policy: Policy, tabulation: Tabulation, read: Read) -> IntArray | None:
    """What each record adds, in units of the table from 0; None where records are counted."""
    table = tabulation.table
    weights = None if tabulation.weights is None else _weights_of(tabulation.weights, read)
    lacking = table.sum or table.having
    lacks = _lack_value(policy, lacking, read) if tabulation.lacking and lacking is not None else None
    if table.sum is None or tabulation.grid is None:
        amounts = weights if lacks is None or weights is not None else np.ones(len(lacks), dtype=np.int64)
    else:
        numbers = _quantise(table.sum, tabulation.grid, read)
        amounts = numbers if weights is None else numbers * weights
    return amounts if lacks is None or amounts is None else np.where(lacks, 0, amounts)


def _lack_value(policy: Policy, name: str, read: Read) -> npt.NDArray[np.bool_]:
    """Which records have no value in a masked column."""
    return policy.noise_columns[name].find_reasons(read("records", [name]).column(0).to_numpy()) >= 0


def _weights_of(weights: Weights, read: Read) -> IntArray:
    """The weight of each record, in its units from 0."""
    if weights.grid is not None:
        return _quantise(weights.column, weights.grid, read)
    entries = read("records", [weights.column]).column(0)
    return _find(weights.column, entries, list(weights.listed), list(weights.listed.values()))


def _quantise(name: str, grid: Grid, read: Read) -> IntArray:
    """The numbers of a column, in units of its grid from 0."""
    numbers = read("records", [name]).column(0).to_numpy()
    if np.isnan(numbers).any():
        raise Blocked("records without a number cannot be added up.", where=name)
    return grid.quantise(numbers) + sum_units(grid)


def _cells_table(name: str, level: int, noisy: IntArray, values: IntArray) -> pa.Table:
    count = len(noisy)
    return pa.table(
        {
            "table_name": pa.repeat(name, count),
            "level": pa.array(np.full(count, level, dtype=np.int64)),
            "cell": pa.array(np.arange(count, dtype=np.int64)),
            "value": pa.array(values),
            "noisy": pa.array(noisy),
        }
    )
