"""Small groups of released quasi-identifiers: cells are blanked where that suffices, records dropped otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray, add_signed
from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.policy import Policy
from release_pipeline.policy.file.derivations import (
    Bands,
    Derived,
    Difference,
    Limit,
    Merge,
    PeriodOf,
    Sum,
    moment_of,
    order_derivations,
)
from release_pipeline.policy.kinds.base import number_of_code
from release_pipeline.policy.values.periods import name_period
from release_pipeline.rows.columns import MISSING, AnyTable, ColumnTable, Parts, cut_column, number_cells

_compute: Any = pyarrow.compute  # its functions are made at run time
Codes = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Suppression:
    """Which cells of the quasi-identifiers are blank (`blank`, one column each) and which rows are dropped, each of them standing
    for one record, or for so many as are like it (`counts`)."""

    blank: Flags
    dropped: Flags
    counts: IntArray

    @property
    def records(self) -> int:
        """How many records lost a cell or were dropped."""
        return int(self.counts[self.blank.any(axis=1) | self.dropped].sum())

    @property
    def share(self) -> float:
        """The same as a share of all records."""
        return self.records / int(self.counts.sum())


def suppress_small_groups(codes: Codes, below: int, *, fixed: int = 0, counts: IntArray | None = None) -> Suppression:
    """Suppress so that every group of equal quasi-identifiers that is left has at least `below` records.

    `codes`: one row per record, or with `counts` per so many that are alike; one column per quasi-identifier, in the order of the
    policy. Of the records in small groups those go first that form large enough groups when one single cell is blank
    (trying the columns in order), then all of them together with every cell blank if they are enough; who is left is dropped. A
    blank counts as a value of its own. The first `fixed` columns are never blank.
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
    """For each row, how many records have its codes, of rows that stand for one each or for `counts`; all of them where there is
    no column."""
    counts = np.ones(len(codes), dtype=np.int64) if counts is None else counts
    if not len(codes) or not codes.shape[1]:
        return np.full(len(codes), int(counts.sum()))
    group = group_by(codes.T)
    sizes = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.add.at(sizes, group, counts)
    return sizes[group]


def encode(columns: Iterable[Any]) -> Codes:
    """Whole-number codes of Arrow columns, equal entries getting equal codes and missing ones `MISSING`; one column each."""
    encoded = [number_cells(column)[1] for column in columns]
    return np.stack(encoded).T if encoded else np.zeros((0, 0), dtype=np.int32)  # a column's codes lie together


@dataclass(frozen=True, slots=True)
class Combinations:
    """The different rows of some columns of codes, how many records have each, and the row of every record."""

    codes: Codes
    counts: IntArray
    of_record: IntArray


def combine(columns: Sequence[Codes]) -> Combinations:
    """Those of columns of codes below 2^31, of which there is at least one."""
    of_record = group_by(columns)
    counts = np.bincount(of_record)
    one = np.empty(len(counts), dtype=np.intp)
    one[of_record] = np.arange(len(of_record))
    codes = np.stack([codes[one] for codes in columns], axis=1).astype(np.int32, copy=False)
    return Combinations(codes, counts, of_record)


def combine_cells(columns: Iterable[Any]) -> tuple[Combinations, tuple[Any, ...]]:
    """Those of Arrow columns, and the entries that the codes are places among, as they came first; missing cells are
    `MISSING`."""
    told = [number_cells(column) for column in columns]
    return combine([codes for _, codes in told]), tuple(entries for entries, _ in told)


def spell_rows(codes: Codes, entries: Sequence[Any]) -> list[Any]:
    """The columns of such rows, as they were."""
    return [known.take(pa.array(own, mask=own == MISSING)) for known, own in zip(entries, codes.T, strict=True)]


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

    def cut(column: pa.ChunkedArray, place: int | None) -> Iterator[Any]:
        for own, cells in cut_column(column):
            row = rows.of_record[own]
            told = (
                cells if place is None else _compute.if_else(pa.array(done.blank[row, place]), pa.scalar(None, cells.type), cells)
            )
            yield told.filter(pa.array(left[row])) if dropped else told

    kept = ColumnTable(tuple(table.column_names), table.num_rows - dropped, make)
    blanked = int((done.blank * rows.counts[:, np.newaxis]).sum())
    anonymity = find_smallest(codes[left], rows.counts[left])
    return SuppressedTable(kept, blanked, dropped, done.records, done.share, anonymity)


def find_smallest(codes: Codes, counts: IntArray | None = None) -> int | None:
    """How many records the smallest group has, of rows that stand for one each or for `counts`; none without records, or columns
    that make groups."""
    return int(group_sizes(codes, counts).min()) if len(codes) and codes.shape[1] else None


# Recomputed columns: derived columns made of what is published, by the functions that the policy
# declares. The same are made of the records by the database (`store.raw`); a test compares both.

Column: TypeAlias = Any  # an Arrow array, whose types are unknown to pyright


def recompute(table: pa.Table, policy: Policy) -> dict[str, Column]:
    """The recomputed columns of a published table, each made after what it is made of. Where an input is empty, so is what is
    made of it. Whole numbers may be texts, as in a CSV."""
    found: dict[str, Column] = {name: table.column(name).combine_chunks() for name in policy.released_columns}
    for name in order_derivations(policy.derive):
        if name in policy.recomputed_columns:
            how = policy.derive[name]
            found[name] = make_column(how, [found[column] for column in how.inputs])
    return {name: found[name] for name in policy.recomputed_columns}


def make_column(how: Derived, inputs: list[Column]) -> Column:
    """One derived column of these."""
    match how:
        case Sum():
            return _numbers(add_signed([(1, read_numbers(column, how.codes)) for column in inputs]))
        case Difference():
            signs = [1, *(-1 for _ in inputs[1:])]
            terms = [(sign, read_numbers(column, how.codes)) for sign, column in zip(signs, inputs, strict=True)]
            return _numbers(add_signed(terms))
        case Limit():
            low, high = (None if end is None else float(end) for end in (how.bottom, how.top))
            return _numbers(np.clip(read_numbers(inputs[0], how.codes), low, high))
        case Bands():
            numbers = read_numbers(inputs[0], how.codes)
            places = np.searchsorted([float(edge) for edge in how.at], numbers, side="right")
            return pa.array(list(how.outputs), pa.string()).take(pa.array(places, mask=np.isnan(numbers)))
        case Merge():
            other, groups = None if how.other is None else str(how.other), how.groups
            return _by_entry(inputs[0], lambda entry: None if entry in how.codes else groups.get(entry, other))
        case PeriodOf():
            return _by_entry(inputs[0], lambda entry: _name(how, entry))
        case _:
            raise TypeError(f"nothing makes a column by {type(how).__name__}")


def read_numbers(column: Column, codes: tuple[str, ...] = ()) -> FloatArray:
    """A published column as numbers; NaN where it is empty, or one of the codes."""
    if pa.types.is_string(column.type):
        numbers: FloatArray = _by_entry(column, lambda entry: None if entry in codes else _number(entry), pa.float64()).to_numpy(
            zero_copy_only=False
        )
    else:
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    known = [float(code) for code in map(number_of_code, codes) if isinstance(code, Decimal)]
    return np.where(np.isin(numbers, known), np.nan, numbers) if known else numbers


def _number(entry: str) -> float | None:
    number = number_of_code(entry)
    return float(number) if isinstance(number, Decimal) else None


def _name(how: PeriodOf, entry: str) -> str | None:
    moment = None if entry in how.codes else moment_of(entry)
    return None if moment is None else name_period(how.every, moment)


def _by_entry(column: Column, make: Callable[[str], Any], kind: Any = None) -> Column:
    """What becomes of each entry, made once for all that are equal."""
    encoded = column.cast(pa.string()).dictionary_encode()
    made = pa.array([make(entry) for entry in encoded.dictionary.to_pylist()], kind or pa.string())
    return made.take(encoded.indices)


def _numbers(values: FloatArray) -> Column:
    return pa.array(values, pa.float64(), mask=np.isnan(values))
