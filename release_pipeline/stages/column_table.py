"""A table whose columns are made, or read, when they are asked for: no more than one need lie in memory, and of one that comes in
parts no more than a part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.privacy.arrays import pieces

_compute: Any = pyarrow.compute  # its functions are made at run time
PART = 1 << 20  # rows of a part
MISSING = -1  # the number of a cell that is missing, or blank


@dataclass(frozen=True, slots=True, repr=False)
class Parts:
    """A column that comes part by part: `make` begins anew at every call."""

    type: Any
    make: Callable[[], Iterator[Any]]

    def load(self) -> pa.ChunkedArray:
        """All of it, in memory."""
        return pa.chunked_array(list(self.make()), type=self.type)


@dataclass(frozen=True, slots=True, repr=False)
class ColumnTable:
    """What a table tells that is asked column by column. `make` gives a column, always the same."""

    column_names: tuple[str, ...]
    num_rows: int
    make: Callable[[str], Any]

    def column(self, name: str) -> pa.ChunkedArray:
        """One column, made now."""
        return _join(self.make(name))

    def select(self, names: Sequence[str]) -> pa.Table:
        """Some columns, in memory."""
        return pa.table({name: self.column(name) for name in names})

    def iterate(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Some columns, or all, in parts if all of these come in parts."""
        made = {name: self.make(name) for name in (self.column_names if names is None else names)}
        if all(isinstance(column, Parts) for column in made.values()):
            parts = zip(*(column.make() for column in made.values()), strict=True)
            yield from (pa.table(dict(zip(made, columns, strict=True))) for columns in parts)
        else:
            yield pa.table({name: _join(column) for name, column in made.items()})


def _join(made: Any) -> pa.ChunkedArray:
    """A column that was made, in memory."""
    if isinstance(made, Parts):
        return made.load()
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


@dataclass(frozen=True, slots=True, repr=False)
class CutTable(ColumnTable):
    """The same of one whose rows come some at a time, too: `cut` gives some columns of all rows, from the start at every call."""

    cut: Callable[[Sequence[str]], Iterator[pa.Table]]

    def iterate(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Some columns, or all, in parts."""
        return self.cut(self.column_names if names is None else names)


AnyTable: TypeAlias = pa.Table | ColumnTable


def select_cells(table: pa.Table, columns: Sequence[str] | None, where: tuple[str, str] | None) -> pa.Table:
    """Some columns, or all, and of the rows those that have a text in a column, where that is given."""
    rows = table if where is None else table.filter(_compute.equal(table.column(where[0]), where[1]))
    return rows if columns is None else rows.select(list(columns))


def needed_for(columns: Iterable[str], where: tuple[str, str] | None) -> list[str]:
    """What to read for `select_cells` of these columns: them, and the one that has the text."""
    return list(dict.fromkeys([*columns, *([] if where is None else where[:1])]))


def load_table(table: AnyTable) -> pa.Table:
    """The whole table, in memory."""
    return table if isinstance(table, pa.Table) else pa.concat_tables(list(table.iterate()))


def cut_table(table: AnyTable, names: Sequence[str]) -> Iterator[pa.Table]:
    """Some columns of a table, in the parts that it comes in."""
    return table.iterate(names) if isinstance(table, ColumnTable) else iter([table.select(names)])


def cut_column(column: pa.ChunkedArray) -> Iterator[tuple[slice, Any]]:
    """A column in parts, each with the rows that it has."""
    start = 0
    for chunk in column.chunks:
        for part in pieces(len(chunk), PART):
            rows = slice(start + part.start, start + part.stop)
            yield rows, chunk.slice(part.start, part.stop - part.start)
        start += len(chunk)


def take_few(column: pa.ChunkedArray, places: npt.NDArray[np.intp]) -> pa.ChunkedArray:
    """The cells at these places, part by part: of texts Arrow would put the whole column together first."""
    parts = (pa.table({"cells": pa.chunked_array([part])}) for _, part in cut_column(column))
    taken = _take(parts, places)
    return pa.chunked_array([], type=column.type) if taken is None else taken.column(0)


def take_rows(table: AnyTable, names: Sequence[str], places: npt.NDArray[np.intp]) -> pa.Table:
    """Some columns of the rows at these places, in the parts that the table comes in."""
    taken = _take(cut_table(table, names), places)
    return table.select(list(names)).slice(0, 0) if taken is None else taken


def _take(parts: Iterable[pa.Table], places: npt.NDArray[np.intp]) -> pa.Table | None:
    """The rows at these places of parts that come one after the other; None of no place."""
    order = np.argsort(places, kind="stable")
    ascending, taken, start = places[order], list[pa.Table](), 0
    for part in parts:
        first, beyond = np.searchsorted(ascending, [start, start + part.num_rows])
        if first < beyond:
            taken.append(part.take(pa.array(ascending[first:beyond] - start)))
        start += part.num_rows
    if not taken:
        return None
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return pa.concat_tables(taken).take(pa.array(back))


def filter_rows(table: AnyTable, left: npt.NDArray[np.bool_], count: int) -> ColumnTable:
    """The rows that are left, so many of them; each column is made when it is asked for."""

    def make(name: str) -> Parts:
        column = table.column(name)
        return Parts(column.type, lambda: (cells.filter(pa.array(left[rows])) for rows, cells in cut_column(column)))

    return ColumnTable(tuple(table.column_names), count, make)


def number_cells(column: pa.ChunkedArray) -> tuple[Any, npt.NDArray[np.int32]]:
    """The different entries of a column, as they came first, and the place of each cell's among them: `MISSING` of a blank."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    known = column.unique().drop_null()
    return known, _compute.index_in(column, value_set=known).fill_null(MISSING).to_numpy()
