"""Small groups of released quasi-identifiers: cells are blanked where that suffices, records dropped otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.rows.columns import MISSING, AnyTable, ColumnTable, Parts, cut_column, number_cells

_compute: Any = pyarrow.compute  # its functions are made at run time
Codes = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Suppression:
    """The suppression of a table: which cells of the quasi-identifiers are blank (`blank`, one column each) and which rows are
    dropped. Each row represents one record, or as many equal ones as `counts` has."""

    blank: Flags
    dropped: Flags
    counts: IntArray

    @property
    def records(self) -> int:
        """Return how many records lost a cell or were dropped."""
        return int(self.counts[self.blank.any(axis=1) | self.dropped].sum())

    @property
    def share(self) -> float:
        """Return the share of all records that lost a cell or were dropped."""
        return self.records / int(self.counts.sum())


def suppress_small_groups(codes: Codes, below: int, *, fixed: int = 0, counts: IntArray | None = None) -> Suppression:
    """Return the suppression after which every remaining group of equal quasi-identifiers has at least `below` records.

    `codes`: (rows, quasi-identifiers), one row per record, or with `counts` per so many equal ones; columns in the order of the
    policy. Of the records in small groups those go first that form large enough groups when a single cell is blank (trying the
    columns in order), then all of them together with every cell blank if they are enough; the remaining ones are dropped. A blank
    counts as a separate value. The first `fixed` columns are never blank.
    """
    records, columns = len(codes), codes.shape[1]
    counts = np.ones(records, dtype=np.int64) if counts is None else counts
    blank = np.zeros((records, columns), dtype=np.bool_)
    if columns == 0:
        return Suppression(blank, np.zeros(records, dtype=np.bool_), counts)
    open_records = np.flatnonzero(group_sizes(codes, counts) < below)
    for column in range(fixed, columns):
        rest = np.delete(codes[open_records], column, axis=1)
        settled = open_records[group_sizes(rest, counts[open_records]) >= below]
        blank[settled, column] = True
        open_records = np.setdiff1d(open_records, settled, assume_unique=True)
    enough = group_sizes(codes[open_records, :fixed], counts[open_records]) >= below
    blank[open_records[enough], fixed:] = True
    open_records = open_records[~enough]
    dropped = np.zeros(records, dtype=np.bool_)
    dropped[open_records] = True
    return Suppression(blank, dropped, counts)


def group_sizes(codes: Codes, counts: IntArray | None = None) -> IntArray:
    """Return for each row how many records have its codes, where a row represents one record or `counts`; all records where there
    is no column."""
    counts = np.ones(len(codes), dtype=np.int64) if counts is None else counts
    if not len(codes) or not codes.shape[1]:
        return np.full(len(codes), int(counts.sum()))
    group = group_by(codes.T)
    sizes = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.add.at(sizes, group, counts)
    return sizes[group]


@dataclass(frozen=True, slots=True)
class Combinations:
    """The different rows of some columns of codes, how many records have each, and the row of every record."""

    codes: Codes
    counts: IntArray
    of_record: IntArray


def combine(columns: Sequence[Codes]) -> Combinations:
    """Return the combinations of columns of codes below 2^31, of which there is at least one."""
    of_record = group_by(columns)
    counts = np.bincount(of_record)
    one = np.empty(len(counts), dtype=np.intp)
    one[of_record] = np.arange(len(of_record))
    codes = np.stack([codes[one] for codes in columns], axis=1).astype(np.int32, copy=False)
    return Combinations(codes, counts, of_record)


def combine_cells(columns: Iterable[Any]) -> tuple[Combinations, tuple[Any, ...]]:
    """Return the combinations of Arrow columns, and the entries that the codes point to, in order of appearance; missing cells
    are `MISSING`."""
    numbered = [number_cells(column) for column in columns]
    return combine([codes for _, codes in numbered]), tuple(entries for entries, _ in numbered)


def spell_rows(codes: Codes, entries: Sequence[Any]) -> list[Any]:
    """Return the original columns of such rows."""
    return [known.take(pa.array(own, mask=own == MISSING)) for known, own in zip(entries, codes.T, strict=True)]


@dataclass(frozen=True, slots=True)
class SuppressedTable:
    """The remaining table; how many cells were blanked, records dropped, and records touched at all, with their share of all; and
    the smallest remaining group of equal quasi-identifiers (None without any)."""

    table: AnyTable
    cells: int
    dropped: int
    records: int
    share: float
    anonymity: int | None


def suppress_table(table: AnyTable, quasi: Sequence[str], *, below: int, fixed: Sequence[str] = ()) -> SuppressedTable:
    """Return `table` without small groups of its columns `fixed` and `quasi`, of which the latter may lose cells; unchanged where
    `below` is 0. The remaining part of a column is made when it is asked for."""
    quasi = [*fixed, *quasi]
    if not quasi:
        return SuppressedTable(table, 0, 0, 0, 0.0, None)
    rows, _ = combine_cells(table.column(name) for name in quasi)
    if not below:
        return SuppressedTable(table, 0, 0, 0, 0.0, find_smallest(rows.codes, rows.counts))
    done = suppress_small_groups(rows.codes, below, fixed=len(fixed), counts=rows.counts)
    codes = np.where(done.blank, MISSING, rows.codes)
    dropped, left = int(rows.counts[done.dropped].sum()), ~done.dropped

    def make(name: str) -> Any:
        place = quasi.index(name) if name in quasi else None
        loses_cells = place is not None and bool(done.blank[:, place].any())
        column = table.column(name)
        return Parts(column.type, lambda: cut(column, place if loses_cells else None)) if loses_cells or dropped else column

    def cut(column: pa.ChunkedArray, index: int | None) -> Iterator[Any]:
        for own, cells in cut_column(column):
            row = rows.of_record[own]
            told = (
                cells if index is None else _compute.if_else(pa.array(done.blank[row, index]), pa.scalar(None, cells.type), cells)
            )
            yield told.filter(pa.array(left[row])) if dropped else told

    kept = ColumnTable(tuple(table.column_names), table.num_rows - dropped, make)
    blanked = int((done.blank * rows.counts[:, np.newaxis]).sum())
    anonymity = find_smallest(codes[left], rows.counts[left])
    return SuppressedTable(kept, blanked, dropped, done.records, done.share, anonymity)


def find_smallest(codes: Codes, counts: IntArray | None = None) -> int | None:
    """Return how many records the smallest group has, where a row represents one record or `counts`; None without records, or
    columns that make groups."""
    return int(group_sizes(codes, counts).min()) if len(codes) and codes.shape[1] else None


def find_large(table: AnyTable, left: AnyTable, names: Sequence[str], *, at_least: int) -> Flags:
    """For each row of a table, whether at least so many rows of what is left of it have its entries in some columns."""
    rows, counts = _count_rows(left, names)
    sizes = dict(zip(rows, counts.counts, strict=True))
    rows, before = _count_rows(table, names)
    return np.array([sizes.get(row, 0) >= at_least for row in rows], dtype=np.bool_)[before.of_record]


def _count_rows(table: AnyTable, names: Sequence[str]) -> tuple[list[tuple[Any, ...]], Combinations]:
    """The different rows of some columns of a table."""
    combined, entries = combine_cells(table.column(name) for name in names)
    columns = [column.to_pylist() for column in spell_rows(combined.codes, entries)]
    return list(zip(*columns, strict=True)), combined
