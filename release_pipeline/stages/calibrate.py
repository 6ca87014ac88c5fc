"""Calibrated weights: a column of the published rows, made of these and of the published tables, as they stand in the files of
the package. Nothing else comes in here, so that nothing else can be told: it is post-processing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import CalibrateColumn
from release_pipeline.policy.tables import Tabulation
from release_pipeline.privacy.calibration import measure_gap, rake
from release_pipeline.privacy.grid import FloatArray, IntArray


def calibrate_rows(table: pa.Table, policy: Policy, files: Mapping[str, str]) -> tuple[pa.Table, dict[str, str]]:
    """The published table with its calibrated weights, each column in its place; and how far the rows are from each table's total
    of a cell, at the most. `files`: the text of each published table, by its name."""
    columns: dict[str, Any] = {name: table.column(name) for name in table.column_names}
    gaps: dict[str, str] = {}
    for name, column in policy.calibrated_columns.items():
        weights, found = make_weights(table, column, policy.tabulations, files)
        columns[name] = pa.array(weights)
        gaps |= {wanted: _percent(gap) for wanted, gap in zip(column.to, found, strict=True)}
    return pa.table({name: columns[name] for name in policy.published_columns}), gaps


def check_calibrated(table: pa.Table, policy: Policy, files: Mapping[str, str]) -> Iterator[str]:
    """Weights of a published table that are not those which rows and tables make."""
    for name, column in policy.calibrated_columns.items():
        made = make_weights(table, column, policy.tabulations, files)[0]
        if not np.array_equal(made, table.column(name).to_numpy()):
            yield f"Column {name} is not what rows and published tables make."


def make_weights(
    table: pa.Table, column: CalibrateColumn, tabulations: Mapping[str, Tabulation], files: Mapping[str, str]
) -> tuple[FloatArray, tuple[float, ...]]:
    """The weight of each row, and the gap of each table."""
    cells: list[IntArray] = []
    totals: list[FloatArray] = []
    for name in column.to:
        known = _read_totals(tabulations[name], files[name])
        places = {labels: place for place, labels in enumerate(known)}
        texts = [_texts(table.column(by)) for by in tabulations[name].table.columns]
        cells.append(np.array([places[labels] for labels in zip(*texts, strict=True)], dtype=np.int64))
        totals.append(np.array([float(total) for total in known.values()]))
    step = Fraction(column.grid)
    least = step if column.at_least is None else Fraction(column.at_least)
    most = None if column.at_most is None else Fraction(column.at_most)
    weights = rake(cells, totals, least=least, most=most, step=step, every=column.at_least is not None)
    return weights, measure_gap(cells, totals, weights)


def _read_totals(tabulation: Tabulation, text: str) -> dict[tuple[str, ...], Fraction]:
    """What the rows of each cell of the finest level are to add up to: the value of the table that adds up."""
    rows = csv.DictReader(io.StringIO(text))
    finest = str(tabulation.levels[-1])
    mine = [row for row in rows if not tabulation.is_deep or row["level"] == finest]
    return {tuple(row[by] for by in tabulation.table.columns): Fraction(row["value"]) for row in mine}


def _texts(column: Any) -> list[str]:
    encoded = column.combine_chunks().cast(pa.string()).dictionary_encode()
    known = encoded.dictionary.to_pylist()
    return [known[place] for place in encoded.indices.to_pylist()]


def _percent(gap: float) -> str:
    return "less than 0.1%" if gap < 0.001 else f"{gap:.1%}"
