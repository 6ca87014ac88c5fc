"""A column as the numbers of its entries, and back: 0 and up for values, and behind them one for each reason to have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import declare_columns, pick_synthetic
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.privacy.counting import Encoder
from release_pipeline.privacy.grid import IntArray
from release_pipeline.stages.batches import ListEncoder
from release_pipeline.stages.column_table import cut_column


def find_encoder(column: NoiseColumn | ListedColumn) -> Encoder:
    """How cells of the column, as the records have them, become entries."""
    if isinstance(column, NoiseColumn):
        return column.coded_grid.encoder
    places = {entry: place for place, entry in enumerate(column.entries)}
    known = dict.fromkeys(column.entries) | dict.fromkeys(column.reason_of)  # codes that share a reason share its entry
    entries = tuple(places.get(name, len(column.values) + _place_of(column, name)) for name in known)
    return ListEncoder(tuple(known), entries)


def find_encoders(policy: Policy) -> dict[str, Encoder]:
    """Those of all columns that are counted together."""
    columns = pick_synthetic(policy.columns)
    return {name: find_encoder(columns[name]) for name in declare_columns(policy.columns)}


def _place_of(column: ListedColumn, entry: str) -> int:
    return column.reasons.index(column.reason_of[entry]) if entry in column.reason_of else 0


def find_entries(column: NoiseColumn | ListedColumn, cells: pa.ChunkedArray) -> IntArray:
    """The entry of each record."""
    encoder, entries = find_encoder(column), np.empty(len(cells), dtype=np.int64)
    for rows, part in cut_column(cells):
        entries[rows] = encoder.find(part)
    return entries


def spell_entries(column: NoiseColumn | ListedColumn, entries: IntArray) -> Any:
    """The column of such entries, as the pipeline has it."""
    if isinstance(column, NoiseColumn):
        return pa.array(column.coded_grid.restore(entries.astype(np.float64)))
    texts = pa.array(column.entries, pa.string()).take(pa.array(entries))
    return texts.cast(pa.int64()) if column.integers else texts
