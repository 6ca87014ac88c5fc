"""Small groups of released quasi-identifiers: cells are blanked where that suffices, records dropped otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.privacy.records import ARRAYS
from release_pipeline.stages.column_table import AnyTable, ColumnTable

_compute: Any = pyarrow.compute  # its functions are made at run time
MISSING = -1  # the code of an entry that is missing, or blank
Codes = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Suppression:
    """Which cells of the quasi-identifiers are blank (`blank`, one column each) and which records are dropped."""

    blank: Flags
    dropped: Flags

    @property
    def records(self) -> int:
        """How many records lost a cell or were dropped."""
        return int(np.count_nonzero(self.blank.any(axis=1) | self.dropped))

    @property
    def share(self) -> float:
        """The same as a share of all records."""
        return self.records / len(self.dropped)


def suppress_small_groups(codes: Codes, below: int, *, fixed: int = 0) -> Suppression:
    """Suppress so that every group of equal quasi-identifiers that is left has at least `below` records.

    `codes`: one row per record, one column per quasi-identifier, in the order of the policy. Of the records in small groups those
    go first that form large enough groups when one single cell is blank (trying the columns in order), then all of them
    together with every cell blank if they are enough; who is left is dropped. A blank counts as a value of its own. The first
    `fixed` columns are never blank.
    """
    records, columns = len(codes), codes.shape[1]
    blank = np.zeros((records, columns), dtype=np.bool_)
    if columns == 0:
        return Suppression(blank, np.zeros(records, dtype=np.bool_))
    open_records = np.flatnonzero(group_sizes(codes) < below)
    for column in range(fixed, columns):
        rest = np.delete(codes[open_records], column, axis=1)
        settled = open_records[group_sizes(rest) >= below]
        blank[settled, column] = True
        open_records = np.setdiff1d(open_records, settled, assume_unique=True)
    enough = group_sizes(codes[open_records, :fixed]) >= below
    blank[open_records[enough], fixed:] = True
    open_records = open_records[~enough]
    dropped = np.zeros(records, dtype=np.bool_)
    dropped[open_records] = True
    return Suppression(blank, dropped)


def group_sizes(codes: Codes) -> npt.NDArray[np.int64]:
    """For each row, how many rows equal it; all of them where there is no column."""
    if not codes.shape[1]:
        return np.full(len(codes), len(codes))
    return ARRAYS.count_equal(codes.T)


def encode(columns: Iterable[Any]) -> Codes:
    """Whole-number codes of Arrow columns, equal entries getting equal codes and missing ones `MISSING`; one column each."""
    encoded = [column.combine_chunks().dictionary_encode().indices.fill_null(MISSING).to_numpy() for column in columns]
    return np.stack(encoded).T if encoded else np.zeros((0, 0), dtype=np.int32)  # a column's codes lie together


@dataclass(frozen=True, slots=True)
class SuppressedTable:
    """What is left of a table; how many cells were blanked, records dropped, and records touched at all, with their share of all;
    and the smallest group of equal quasi-identifiers that is left (None without any)."""

    table: AnyTable
    cells: int
    dropped: int
    records: int
    share: float
    anonymity: int | None


def suppress_table(table: AnyTable, quasi: Sequence[str], *, below: int, fixed: Sequence[str] = ()) -> SuppressedTable:
    """`table` without small groups of its columns `fixed` and `quasi`, of which the latter may lose cells; as it is where `below`
    is 0. What is left of a column is made when it is asked for."""
    quasi = [*fixed, *quasi]
    codes = encode(table.column(name) for name in quasi)
    if not below:
        return SuppressedTable(table, 0, 0, 0, 0.0, find_smallest(codes, table.num_rows))
    done = suppress_small_groups(codes, below, fixed=len(fixed))
    codes[done.blank] = MISSING
    kept = pa.array(~done.dropped)
    rows = len(codes) - int(done.dropped.sum())

    def make(name: str) -> Any:
        column = table.column(name)
        if name in quasi and (blank := done.blank[:, quasi.index(name)]).any():
            column = _compute.if_else(pa.array(blank), pa.scalar(None, column.type), column)
        return column if rows == len(codes) else column.filter(kept)

    left = ColumnTable(tuple(table.column_names), rows, make)
    anonymity = find_smallest(codes if rows == len(codes) else codes[~done.dropped], rows)
    return SuppressedTable(left, int(done.blank.sum()), len(codes) - rows, done.records, done.share, anonymity)


def find_smallest(codes: Codes, rows: int) -> int | None:
    """How many records the smallest group has; none without records, or columns that make groups."""
    return int(group_sizes(codes).min()) if rows and codes.shape[1] else None
