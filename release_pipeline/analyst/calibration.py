"""Weights of the released rows, made of what is published: raked to the weighted tables of counts of the package.

They are nobody's weights. Rows with the same labels have the same one, whatever the survey gave them: what a weight told beyond
these labels is lost, and the noise of the tables is in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.facts import Facts, NoHonestAnswer, WeightFacts
from release_pipeline.analyst.means import Interval, state_mean
from release_pipeline.analyst.tables import Table
from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.calibration import rake
from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.sentences import ANALYST


def calibrate(tables: Sequence[Table], data: Mapping[str, npt.NDArray[Any]]) -> FloatArray:
    """The weight of each released row: positive, in steps of the declared weights."""
    weights = [_weight_of(table) for table in tables]
    if len({weight.column for weight in weights}) != 1:
        raise InvalidArgument(
            "tables are by one weight, and at least one is named.",
            where="tables",
            remedy="Name weighted tables of counts.",
        )
    cells = [_find_cells(table, data) for table in tables]
    totals = [table.levels[-1].value.astype(np.float64) * float(table.facts.step) for table in tables]
    return rake(cells, totals, least=weights[0].least, step=Fraction(tables[0].facts.step))


def state_calibrated_mean(facts: Facts, name: str, values: FloatArray, weights: FloatArray, level: float) -> Interval:
    """The mean by calibrated weights of a column without noise: no interval is known for it but that of any weights at all."""
    plain = state_mean(facts, name, values, level)
    centre = float(np.bincount(np.zeros(len(values), dtype=np.int64), weights * values)[0] / weights.sum())
    low, high = float(values.min()), float(values.max())
    return Interval(min(max(centre, low), high), low, high, plain.level, "bound", ANALYST("tables.calibrated"))


def _weight_of(table: Table) -> WeightFacts:
    if table.facts.weight is None or table.facts.sum is not None:
        raise NoHonestAnswer(
            "only weighted counts say how many of the population rows stand for.",
            where=table.facts.name,
            remedy="Name weighted tables of counts.",
        )
    return table.facts.weight


def _find_cells(table: Table, data: Mapping[str, npt.NDArray[Any]]) -> IntArray:
    """The cell of the finest level that each row is in."""
    finest, columns = table.levels[-1], table.facts.by
    places: dict[tuple[str, ...], int] = {
        labels: cell for cell, labels in enumerate(zip(*(finest.labels[column].tolist() for column in columns), strict=True))
    }
    rows = zip(*(_labels_of(data, column) for column in columns), strict=True)
    found = np.array([places.get(labels, -1) for labels in rows], dtype=np.int64)
    if (found < 0).any():
        why = ANALYST("decline.rows_without_label", table=table.facts.name)
        raise NoHonestAnswer(f"no weights: {why}", where=table.facts.name, remedy=ANALYST("advice.other_table"))
    return found


def _labels_of(data: Mapping[str, npt.NDArray[Any]], column: str) -> list[str]:
    if column not in data:
        raise NoHonestAnswer(ANALYST("decline.no_column", column=column), where=column, remedy=ANALYST("advice.other_table"))
    cells = data[column]
    if cells.dtype.kind == "f":  # whole numbers, and nothing where a cell is blank
        return [str(int(cell)) if np.isfinite(cell) else "" for cell in cells.tolist()]
    return [str(cell) for cell in cells.tolist()]
