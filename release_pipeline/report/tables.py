"""data.table-NAME.csv: the cells of a table that is released beside the rows, under a claim of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute

from release_pipeline.policy.formats import exact_text
from release_pipeline.policy.table_words import describe_levels, step_text
from release_pipeline.policy.tables import Tabulation
from release_pipeline.policy.weights import Weights
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.tables import OF_SOME
from release_pipeline.report.card import LevelView, TableView, WeightView
from release_pipeline.report.lists import render_csv
from release_pipeline.sentences import PUBLIC

_compute: Any = pyarrow.compute  # its functions are made at run time


def file_of(name: str) -> str:
    """The file of a table in candidate and package."""
    return f"data.table-{name}.csv"


def render_table(tabulation: Tabulation, cells: pa.Table) -> str:
    """A row for each cell: its labels, the value that adds up, and the noisy number that was measured. Of a table in levels each
    row has the number of its level, too, and the label of the level above that it lies in. `cells`: those of all tables."""
    mine = cells.filter(_compute.equal(cells.column("table_name"), tabulation.name)).to_pylist()
    by_cell = {(row["level"], row["cell"]): row for row in mine}
    deep, column = next(((axis, place) for place, axis in enumerate(tabulation.axes) if axis.is_deep), (None, 0))
    rows: list[list[object]] = []
    for level, number in enumerate(tabulation.levels):
        above = deep.list_above(level) if deep else {}
        for cell, labels in enumerate(tabulation.list_cells(level)):
            row = by_cell[level, cell]
            place = [number, above.get(labels[column], "")] if deep else []
            rows.append([*labels, *place, *(_amount(tabulation, row[name]) for name in ("value", "noisy"))])
    return render_csv([*tabulation.table.columns, *(("level", "within") if deep else ()), "value", "noisy"], rows)


def view_table(tabulation: Tabulation, *, records: int, by_rho: bool) -> TableView:
    """What the card says of a table; what it may lose is said for a person with so many records."""
    table = tabulation.table
    epsilon, rho = table.in_epsilon(records), table.in_rho(records)
    behind = OF_SOME if table.sum is None and tabulation.lacking else ""
    view = TableView(
        name=tabulation.name,
        file=file_of(tabulation.name),
        by=table.columns,
        sum=table.sum,
        weight=None if tabulation.weights is None else _view_weight(tabulation.weights),
        having=table.having,
        lacking="nothing" if table.having is None and tabulation.lacking else None,
        epsilon=None if epsilon is None else format_nano(epsilon),
        rho=format_nano(rho) if by_rho else None,
        step=step_text(tabulation),
        deep=next((axis.column for axis in tabulation.axes if axis.is_deep), None),
        levels=tuple(
            LevelView(number, cells, noise.words + behind, words)
            for number, cells, noise, words in zip(
                tabulation.levels, tabulation.shape.cells, tabulation.noise, describe_levels(tabulation), strict=True
            )
        ),
        words="",
    )
    return replace(view, words=describe_table(view))


def describe_table(table: TableView) -> str:
    """What the cells of a table have, and by which columns."""
    return PUBLIC("package.table", words=_describe_cells(table), columns=", ".join(table.by))


def _describe_cells(table: TableView) -> str:
    if table.having is not None:
        return _describe_having(table, table.having)
    if table.lacking and table.sum is not None:
        weight = None if table.weight is None else table.weight.column
        words = (
            PUBLIC("tables.sums", column=table.sum)
            if weight is None
            else PUBLIC("tables.weighted_sums", column=table.sum, weight=weight)
        )
        return PUBLIC("tables.lacking", words=words)
    if table.weight is None:
        return PUBLIC("tables.counts") if table.sum is None else PUBLIC("tables.sums", column=table.sum)
    weight = table.weight.column
    if table.sum is None:
        return PUBLIC("tables.weighted_counts", weight=weight)
    return PUBLIC("tables.weighted_sums", column=table.sum, weight=weight)


def _describe_having(table: TableView, column: str) -> str:
    if table.weight is None:
        return PUBLIC("tables.having", column=column)
    return PUBLIC("tables.weighted_having", column=column, weight=table.weight.column)


def _amount(tabulation: Tabulation, units: int) -> str:
    """A number of records, or a sum in the column's own unit, as an exact decimal."""
    return exact_text(units * tabulation.step)


def _view_weight(weights: Weights) -> WeightView:
    return WeightView(weights.column, *map(exact_text, weights.bounds))
