"""data.counts.csv: the noisy counts that masked values were made of, under the same claim. Of synthetic rows there are those of
pairs of columns too, in data.pairs.csv, and in data.blocks.csv of several together, where pairs are sums of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.policy.kinds.missing import cell_of_reason
from release_pipeline.privacy.catalogue import Family
from release_pipeline.report.lists import render_csv
from release_pipeline.report.view import BLOCKS_FILE

COUNTS_FILE = "data.counts.csv"
PAIRS_FILE = "data.pairs.csv"
_FILES: dict[Family, tuple[str, ...]] = {"by-value": (COUNTS_FILE,), "whole-table": (COUNTS_FILE, PAIRS_FILE, BLOCKS_FILE)}
CELLS_HEADER = ("column", "first", "last", "group", "count", "noise")
HEADER = ("column", "stage", "first", "last", "count", "noise")


def render_counts(cells: Sequence[Mapping[str, Any]], columns: Mapping[str, NoiseColumn]) -> str:
    """A row for each cell that was counted: its first and its last value in the column's own units, or the reason to have none,
    the noisy count, and the law of its noise. Of random parts the part's number comes first."""
    parts = [name for name in (cells[0] if cells else ()) if name not in ("column_name", *HEADER)]

    def spell(row: Mapping[str, Any]) -> list[object]:
        ends = [_name_end(columns[row["column_name"]], row[end]) for end in ("first", "last")]
        return [*(row[name] + 1 for name in parts), row["column_name"], row["stage"], *ends, row["count"], row["noise"]]

    return render_csv([*("part" for _ in parts), *HEADER], map(spell, cells))


def files_of(family: Family, *, together: bool) -> tuple[str, ...]:
    """The files with noisy counts that releases of a family of methods have; `together`: of columns counted together too."""
    return tuple(file for file in _FILES.get(family, ()) if together or file != BLOCKS_FILE)


def render_cells(cells: Sequence[Mapping[str, Any]], columns: Mapping[str, NoiseColumn | ListedColumn]) -> str:
    """A row for each cell of every column: its first and its last value, or the reason to have none, the number of its group in
    the tables of pairs, the noisy count, and the law of its noise."""

    def spell(row: Mapping[str, Any]) -> list[object]:
        ends = [_name_entry(columns[row["column_name"]], row[end]) for end in ("first", "last")]
        return [row["column_name"], *ends, row["group"], row["count"], row["noise"]]

    return render_csv(CELLS_HEADER, map(spell, cells))


def render_tables(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A row for each combination of groups of cells of columns together: every pair of columns, or blocks of them. `names`: what
    rows have."""
    columns = [column for name in names if f"group_{name}" in names for column in (name, f"group_{name}")]
    header = [f"group_of_{column.removeprefix('group_')}" if column.startswith("group_") else column for column in columns]
    return render_csv([*header, "count", "noise"], ([row[column] for column in (*columns, "count", "noise")] for row in rows))


def _name_entry(column: NoiseColumn | ListedColumn, entry: int) -> str:
    if isinstance(column, NoiseColumn):
        return _name_end(column, entry)
    values = column.values
    return str(values[entry]) if entry < len(values) else cell_of_reason(column.reasons[entry - len(values)])


def _name_end(column: NoiseColumn, units: int) -> str:
    grid = column.exact_grid
    if units <= grid.width:
        return column.say_units(units)
    return cell_of_reason(column.reasons[units - grid.width - 1])
