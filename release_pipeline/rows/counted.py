"""Records that are counted where they are: only exact counts come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from release_pipeline.mechanisms.basis.counting import AT_ONCE, Encoder, GroupsOfEntries, TablePlan
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally, is_dense
from release_pipeline.mechanisms.whole_table.measure import Counting as CountingTables
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.rows.batches import Cells, CountTables, NumberCells, TextCells, tally_batches, unpack
from release_pipeline.rows.columns import AnyTable, Read, cut_table, find_entries

CountPart: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Engine(Protocol):
    """An interface to the records of a release in their source."""

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """Return the results of a function on the records of each part of the table, which has these columns: exact counts as
        `batches.PARTIAL`, one part after the other."""
        ...


class Counting(CountingTables, Protocol):
    """The counts of the columns that are released together."""

    @property
    def encoders(self) -> Mapping[str, Encoder]:
        """Return by name how many entries each column may have, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class TableEngine:
    """The rows of a table, which may come in parts."""

    table: AnyTable

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """Return the results of a function on the records, in one part."""
        batches = (batch for part in cut_table(self.table, columns) for batch in part.to_batches(AT_ONCE))
        return pa.Table.from_batches(list(function(batches)))


@dataclass(frozen=True, slots=True, repr=False)
class CountedRecords:
    """Records in the pipeline's form, counted: the tallies of all columns in one reading, all tables in another."""

    engine: Engine
    encoders: dict[str, Encoder]
    tallies: dict[int, Tally] = field(default_factory=dict[int, Tally])

    def tally(self, index: int) -> Tally:
        """Return the tally of a column; those of all columns come from one reading."""
        if not self.tallies:
            found = self.engine.reduce(list(self.encoders), partial(tally_batches, tuple(self.encoders.values())))
            self.tallies.update({column: Tally.of_counts(*counts) for column, counts in unpack(found).items()})
        return self.tallies[index]

    def count(self, plan: TablePlan) -> IntArray:
        """Return the counts of a plan, from one reading."""
        _, counts = unpack(self.engine.reduce(list(self.encoders), CountTables(tuple(self.encoders.values()), plan)))[0]
        return counts


@dataclass(frozen=True, slots=True, repr=False)
class DeliveredCells:
    """The different cells of a column as they were delivered, numbers ascending: what entry each is read as, and how many records
    have it. Of numbers one after the other that are read as one entry the first may stand for all."""

    cells: pa.Array
    entries: IntArray
    records: IntArray

    @classmethod
    def of_parts(cls, parts: Iterable[tuple[pa.Array, IntArray, IntArray]]) -> DeliveredCells:
        """Of the cells, entries and records of each part, one after the other: no more numbers are held than there are entries,
        however many were delivered."""
        cells, entries, records = zip(*(_shorten(*part) for part in parts), strict=True)
        return cls(pa.concat_arrays(cells), np.concatenate(entries), np.concatenate(records))

    def tally(self) -> Tally:
        """Return the tally of the entries."""
        return Tally.of_clusters(self.entries, self.records)

    def cut(self, groups: GroupsOfEntries) -> tuple[Cells, GroupsOfEntries]:
        """Return the finder of a delivered cell's run, and the group of every run, where the groups of entries are known."""
        of_cells = groups.find(self.entries).astype(np.int64)
        missing = np.asarray(self.cells.is_null(nan_is_null=True))
        cells, of_present = self.cells.filter(pa.array(~missing)), of_cells[~missing]
        behind = of_cells[missing][:1] if missing.any() else np.zeros(1, dtype=np.int64)  # otherwise the margins would show one
        encoder: Cells
        if pa.types.is_string(cells.type):
            of_runs, runs = np.unique(of_present, return_inverse=True)
            encoder = TextCells(tuple(cells.to_pylist()), runs.astype(np.int64))
        else:
            begins = np.append(True, of_present[1:] != of_present[:-1])[: len(of_present)]
            of_runs = of_present[begins]
            encoder = NumberCells(cells.to_numpy()[begins])
        return encoder, GroupsOfEntries.of(np.arange(encoder.size), np.append(of_runs, behind), encoder.size)


@dataclass(frozen=True, slots=True, repr=False)
class CountedInPlace:
    """Records that stay in their source. Their tallies follow from the different cells of every column, which are known; tables
    are counted by an engine there."""

    engine: Engine
    encoders: dict[str, Encoder]
    cells: Callable[[str], DeliveredCells]
    tallies: dict[int, Tally] = field(default_factory=dict[int, Tally])

    def tally(self, index: int) -> Tally:
        """Return the tally of a column from its cells, made once."""
        if index not in self.tallies:
            self.tallies[index] = self.cells(list(self.encoders)[index]).tally()
        return self.tallies[index]

    def count(self, plan: TablePlan) -> IntArray:
        """Return the counts of a plan, from one reading in the source."""
        cut = [self.cells(name).cut(groups) for name, groups in zip(self.encoders, plan.groups, strict=True)]
        own = replace(plan, groups=tuple(groups for _, groups in cut))
        _, counts = unpack(self.engine.reduce(list(self.encoders), CountTables([cells for cells, _ in cut], own)))[0]
        return counts


def _shorten(cells: pa.Array, entries: IntArray, records: IntArray) -> tuple[pa.Array, IntArray, IntArray]:
    """Of numbers that are read as one entry the first, with the records of all. Missing ones stay apart from others."""
    if not len(cells) or (not pa.types.is_floating(cells.type) and not pa.types.is_integer(cells.type)):
        return cells, entries, records
    missing = np.asarray(cells.is_null(nan_is_null=True))
    firsts = np.flatnonzero(np.append(True, (entries[1:] != entries[:-1]) | (missing[1:] != missing[:-1])))
    return cells.take(pa.array(firsts)), entries[firsts], np.add.reduceat(records, firsts)


def tally_column(name: str, column: NoiseColumn, read: Read) -> Tally:
    """Return the exact tally of a column's grid units, and of its reasons for no value behind them. An array of these units is
    only made where it is shorter than one of all possible units."""
    cells, encoder = read("records", [name]), column.coded_grid.encoder
    if not is_dense(encoder.size, cells.num_rows):
        return Tally.of(find_entries(column, cells.column(name)))
    return CountedRecords(TableEngine(cells), {name: encoder}).tally(0)
