"""The type of everything that a package says about a release: only its fields can get into the package.

Texts come from the policy or from this project; numbers are declared, or counts of released rows. There is no float: figures that
are computed from the data (errors, scales, exact losses) are refused.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute

from release_pipeline.formats.card import Card, LevelView, TableView, WeightView
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.catalogue import Family
from release_pipeline.mechanisms.tables import OF_SOME
from release_pipeline.policy.documents import Plain
from release_pipeline.policy.file.describe import describe_levels
from release_pipeline.policy.file.published import name_data
from release_pipeline.policy.file.tables import Tabulation
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.policy.values.formats import exact_text
from release_pipeline.sentences import PUBLIC

BLOCKS_FILE = "data.blocks.csv"  # noisy counts of several columns together
SHORT = 10_000  # characters of any one text: no table of people fits


@dataclass(frozen=True, slots=True)
class PackageView:
    """The card of a release, and its files that the card does not name. `hierarchies`: files with their rows. `counts`: files
    with the noisy counts that values were made from. `data_files`: for each format whose rows are in several files, how many."""

    card: Card
    hierarchies: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    counts: tuple[str, ...] = ()
    data_files: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        check_public(dataclasses.asdict(self))

    @property
    def together(self) -> bool:
        """Return whether several columns were counted together."""
        return BLOCKS_FILE in self.counts

    def name_data(self, form: str) -> list[str]:
        """Return the names of the files that hold the rows in a format."""
        return name_data(form, dict(self.data_files).get(form, 1))


def check_public(value: Plain) -> None:
    """Refuse any value that is neither a short text, a whole number nor None."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name != "is_k_anonymity":  # follows from the method, and is the only one that is true or false
                check_public(part)
    elif isinstance(value, list | tuple):
        for part in value:
            check_public(part)
    elif isinstance(value, str):
        if len(value) > SHORT:
            raise TypeError("a text of this length is not for the public view")
    elif value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"a {type(value).__name__} is not for the public view")


# Lists that are published as CSV, and read again by programs: one form for all of them.


def render_csv(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a list as the text of a CSV file.

    >>> render_csv(("town", "value"), [("a, b", 3)])
    'town,value\\n"a, b",3\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


# data.counts.csv: the noisy counts that masked values were made from, under the same guarantee. Synthetic rows also have counts
# of pairs of columns, in data.pairs.csv, and of several columns together, in data.blocks.csv, if pairs are sums of these.


COUNTS_FILE = "data.counts.csv"
PAIRS_FILE = "data.pairs.csv"
_FILES: dict[Family, tuple[str, ...]] = {"by-value": (COUNTS_FILE,), "whole-table": (COUNTS_FILE, PAIRS_FILE, BLOCKS_FILE)}
CELLS_HEADER = ("column", "first", "last", "group", "count", "noise")
HEADER = ("column", "stage", "first", "last", "count", "noise")


def render_counts(cells: Sequence[Mapping[str, Any]], columns: Mapping[str, NoiseColumn]) -> str:
    """Return CSV with a row for each counted cell: its first and last value in the column's own units, or the reason for no
    value; the noisy count; and the noise distribution. With random parts the part's number comes first."""
    parts = [name for name in (cells[0] if cells else ()) if name not in ("column_name", *HEADER)]

    def spell(row: Mapping[str, Any]) -> list[object]:
        ends = [columns[row["column_name"]].name_entry(row[end]) for end in ("first", "last")]
        return [*(row[name] + 1 for name in parts), row["column_name"], row["stage"], *ends, row["count"], row["noise"]]

    return render_csv([*("part" for _ in parts), *HEADER], map(spell, cells))


def files_of(family: Family, *, together: bool) -> tuple[str, ...]:
    """Return the names of the files with noisy counts in releases of a family of methods. `together`: including columns counted
    together."""
    return tuple(file for file in _FILES.get(family, ()) if together or file != BLOCKS_FILE)


def render_cells(cells: Sequence[Mapping[str, Any]], columns: Mapping[str, NoiseColumn | ListedColumn]) -> str:
    """Return CSV with a row for each cell of every column: its first and last value, or the reason for no value; the number of
    its group in the tables of pairs; the noisy count; and the noise distribution."""

    def spell(row: Mapping[str, Any]) -> list[object]:
        ends = [columns[row["column_name"]].name_entry(row[end]) for end in ("first", "last")]
        return [row["column_name"], *ends, row["group"], row["count"], row["noise"]]

    return render_csv(CELLS_HEADER, map(spell, cells))


def render_tables(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return CSV with a row for each combination of groups of cells: of every pair of columns, or of blocks of them. `names`: the
    header."""
    columns = [column for name in names if f"group_{name}" in names for column in (name, f"group_{name}")]
    header = [f"group_of_{column.removeprefix('group_')}" if column.startswith("group_") else column for column in columns]
    return render_csv([*header, "count", "noise"], ([row[column] for column in (*columns, "count", "noise")] for row in rows))


# data.table-NAME.csv: the cells of a table that is released next to the rows, under its own guarantee.


_compute: Any = pyarrow.compute  # its functions are made at run time


def file_of(name: str) -> str:
    """Return the name of a table's file in candidate and package."""
    return f"data.table-{name}.csv"


def render_table(tabulation: Tabulation, cells: pa.Table) -> str:
    """Return CSV with a row for each cell of a table: its labels, the adjusted value that adds up, and the noisy number that was
    measured. In a table with levels each row also has the number of its level and the label of the level above. `cells`: the
    cells of all tables."""
    mine = cells.filter(_compute.equal(cells.column("table_name"), tabulation.name)).to_pylist()
    by_cell = {(row["level"], row["cell"]): row for row in mine}
    deep, column = next(((axis, number) for number, axis in enumerate(tabulation.axes) if axis.is_deep), (None, 0))
    rows: list[list[object]] = []
    for level, number in enumerate(tabulation.levels):
        above = deep.list_above(level) if deep else {}
        for cell, labels in enumerate(tabulation.list_cells(level)):
            row = by_cell[level, cell]
            position = [number, above.get(labels[column], "")] if deep else []
            rows.append([*labels, *position, *(exact_text(row[name] * tabulation.step) for name in ("value", "noisy"))])
    return render_csv([*tabulation.table.columns, *(("level", "within") if deep else ()), "value", "noisy"], rows)


def view_table(tabulation: Tabulation, *, records: int, by_rho: bool) -> TableView:
    """Return a table's entry for the card; its loss is for a person with so many records."""
    table, weights = tabulation.table, tabulation.weights
    epsilon, rho = table.in_epsilon(records), table.in_rho(records)
    behind = OF_SOME if table.sum is None and tabulation.lacking else ""
    view = TableView(
        name=tabulation.name,
        file=file_of(tabulation.name),
        by=table.columns,
        sum=table.sum,
        weight=None if weights is None else WeightView(weights.column, *map(exact_text, weights.bounds)),
        having=table.having,
        lacking="nothing" if table.having is None and tabulation.lacking else None,
        epsilon=None if epsilon is None else format_nano(epsilon),
        rho=format_nano(rho) if by_rho else None,
        step=exact_text(tabulation.step),
        deep=next((axis.column for axis in tabulation.axes if axis.is_deep), None),
        levels=tuple(
            LevelView(number, cells, noise.name + behind, words)
            for number, cells, noise, words in zip(
                tabulation.levels, tabulation.shape.cells, tabulation.noise, describe_levels(tabulation), strict=True
            )
        ),
        words="",
    )
    return replace(view, words=describe_table(view))


def describe_table(table: TableView) -> str:
    """Return a sentence on what the cells of a table contain, and by which columns."""
    kind = "having" if table.having is not None else "counts" if table.sum is None else "sums"
    weight = None if table.weight is None else table.weight.column
    phrase = PUBLIC.read_phrases("tables")[kind if weight is None else f"weighted_{kind}"]
    words = phrase.format(column=table.having or table.sum, weight=weight)
    if kind == "sums" and table.lacking:
        words = PUBLIC("package.lacking", words=words)
    return PUBLIC("package.table", words=words, columns=", ".join(table.by))
