"""Tables whose columns are made, or read, when they are asked for: no more than one column need be in memory, and of one that
comes in parts no more than a part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.basis.counting import Encoder
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import declare_columns, pick_synthetic
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn
from release_pipeline.rows.batches import ListEncoder

_compute: Any = pyarrow.compute  # its functions are made at run time
PART = 1 << 20  # rows of a part
MISSING = -1  # the number of a cell that is missing, or blank


@dataclass(frozen=True, slots=True, repr=False)
class Parts:
    """A column that comes part by part: `make` begins again at every call."""

    type: Any
    make: Callable[[], Iterator[Any]]

    def load(self) -> pa.ChunkedArray:
        """All of it, in memory."""
        return pa.chunked_array(list(self.make()), type=self.type)


@dataclass(frozen=True, slots=True, repr=False)
class ColumnTable:
    """A table that is read column by column. `make` gives a column, always the same."""

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
    """A table whose rows come some at a time, too: `cut` gives some columns of all rows, from the start at every call."""

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


# A column as the numbers of its entries, and back: 0 and up for values, and behind them one for
# each reason to have none.


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


# Tables as matrices: equal entries get equal numbers in all of them.


Matrix = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
BLANK = -1


def encode_features(tables: Sequence[pa.Table]) -> list[Matrix]:
    """Each table as a model sees it: numbers as they are, entries by their code."""
    matrices = [np.empty((table.num_rows, table.num_columns)) for table in tables]
    for index, name in enumerate(tables[0].column_names):
        columns = [table.column(name) for table in tables]
        numeric = all(pa.types.is_floating(column.type) for column in columns)
        coded = [column.to_numpy() for column in columns] if numeric else encode_entries(columns)
        for matrix, column in zip(matrices, coded, strict=True):
            matrix[:, index] = column
    return matrices


def encode_entries(columns: Sequence[pa.ChunkedArray]) -> list[Codes]:
    """The place of each entry in the sorted list of all that occur, as numbers or texts; -1 for a blank."""
    if all(pa.types.is_floating(column.type) for column in columns):
        numbers = [column.to_numpy() for column in columns]
        entries = np.unique(np.concatenate(numbers))
        return [np.searchsorted(entries, part) for part in numbers]
    coded = [_dictionary_of(column) for column in columns]
    known = pa.chunked_array([entries for entries, _ in coded]).unique().sort()
    places = [_compute.index_in(entries, value_set=known).to_numpy().astype(np.int64) for entries, _ in coded]
    return [np.append(place, BLANK)[at] for place, (_, at) in zip(places, coded, strict=True)]


def _dictionary_of(column: pa.ChunkedArray) -> tuple[Any, npt.NDArray[np.int32]]:
    """The different entries as texts, and the place of each record's one, -1 for a blank: texts are made of few."""
    coded = column.combine_chunks().dictionary_encode()
    return coded.dictionary.cast(pa.string()), coded.indices.fill_null(-1).to_numpy()


Numbers = npt.NDArray[np.float64]


def read_weights(column: pa.ChunkedArray) -> Numbers:
    """A column of weights as numbers, whatever it is kept as; NaN where a cell is blank."""
    return column.cast(pa.float64()).to_numpy()


class Read(Protocol):
    """What gives what the stages before have made: a table, by its name."""

    def __call__(self, table: str, columns: Sequence[str] | None, /, *, where: tuple[str, str] | None = None) -> pa.Table:
        """Some of its columns, or all; and of its rows those that have a text in a column, where that is given. Such rows are
        together."""
        ...


def read_tables(tables: Mapping[str, pa.Table]) -> Read:
    """What gives these tables."""

    def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        return select_cells(tables[table], columns, where)

    return read


def read_with(made: Mapping[str, pa.Table], read: Read) -> Read:
    """What gives these tables, and all others as another does."""

    known = read_tables(made)

    def read_made(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        return (known if table in made else read)(table, columns, where=where)

    return read_made
