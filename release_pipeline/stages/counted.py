"""Records that are counted where they lie: of each reading only exact counts come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

import pyarrow as pa

from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.privacy.counting import AT_ONCE, Encoder, TablePlan
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.tally import Tally, is_dense
from release_pipeline.stages.batches import count_batches, tally_batches, unpack
from release_pipeline.stages.column_table import AnyTable, cut_table
from release_pipeline.stages.compared import Read
from release_pipeline.stages.entries import find_entries

CountPart: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Engine(Protocol):
    """What reads the records of a release where they lie."""

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """What a function makes of the records of each part of the table, which has these columns: exact counts as
        `batches.PARTIAL`, one part after the other."""
        ...


@dataclass(frozen=True, slots=True)
class ReadEngine:
    """Records that `read` gives, in memory."""

    read: Read

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """In one part."""
        return pa.Table.from_batches(list(function(self.read("records", columns).to_batches(AT_ONCE))))


@dataclass(frozen=True, slots=True)
class TableEngine:
    """The rows of a table, which may come in parts."""

    table: AnyTable

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """In one part."""
        batches = (batch for part in cut_table(self.table, columns) for batch in part.to_batches(AT_ONCE))
        return pa.Table.from_batches(list(function(batches)))


@dataclass(frozen=True, slots=True, repr=False)
class CountedRecords:
    """What is counted of the columns that have encoders: the tallies of all of them in one reading, all tables in another."""

    engine: Engine
    encoders: dict[str, Encoder]
    tallies: dict[int, Tally] = field(default_factory=dict[int, Tally])

    def tally(self, place: int) -> Tally:
        """The exact tally of a column; those of all columns come of one reading."""
        if not self.tallies:
            found = self.engine.reduce(list(self.encoders), partial(tally_batches, tuple(self.encoders.values())))
            self.tallies.update({column: Tally.of_counts(*counts) for column, counts in unpack(found).items()})
        return self.tallies[place]

    def count(self, plan: TablePlan) -> IntArray:
        """The exact counts of the wanted tables, of one reading."""
        found = self.engine.reduce(list(self.encoders), partial(count_batches, tuple(self.encoders.values()), plan))
        _, counts = unpack(found)[0]
        return counts


def tally_column(name: str, column: NoiseColumn, read: Read) -> Tally:
    """The exact tally of a column's grid units, and of its reasons for no value behind them. An array of these units is only made
    where it is shorter than one of all that there may be."""
    cells, encoder = read("records", [name]), column.coded_grid.encoder
    if not is_dense(encoder.size, cells.num_rows):
        return Tally.of(find_entries(column, cells.column(name)))
    return CountedRecords(TableEngine(cells), {name: encoder}).tally(0)
