"""Records that are counted where their source has them: no copy of them is made. What pins them is noted when they are first
counted, and compared before anything else is read of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from release_pipeline.policy.scalars import OURS
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.store.connections import open_memory, read_batches, source_errors
from release_pipeline.store.fingerprints import hash_columns
from release_pipeline.store.loading import Columns, ReleaseFilter, choose_columns
from release_pipeline.store.raw import RawTable
from release_pipeline.store.sql import Identifier, statement

CountPart: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
TIMES = f"{OURS}_times"  # how many records have a cell
COUNTED = re.compile(r"U?(TINY|SMALL)INT|U?INTEGER|BIGINT|FLOAT|DOUBLE|VARCHAR")  # the types whose cells are counted in place
_BATCH = 1 << 17  # records that are read together


class RecordsInPlace(Protocol):
    """The records of one release in their source, by the columns that the policy needs."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """The type of every column, by DuckDB's name."""
        ...

    def snapshot(self) -> str:
        """Is another when other records are delivered."""
        ...

    def count_cells(self, column: str) -> Iterable[pa.RecordBatch]:
        """The different cells of a column as they are delivered, ascending, and in `TIMES` how many records have each."""
        ...

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """What a function makes of the cells of each part of the records: exact counts, one part after the other."""
        ...

    def read_column(self, column: str) -> Iterable[pa.RecordBatch]:
        """A column as it is delivered."""
        ...

    def sample(self, columns: Sequence[str], count: int, key: bytes) -> pa.Table:
        """So many records as they are delivered, or all where there are no more: drawn by the key, each as likely."""
        ...


@dataclass(frozen=True, slots=True)
class Batches:
    """A table that comes batch by batch, one at least."""

    batches: Iterable[pa.RecordBatch]

    def iterate(self) -> Iterator[pa.Table]:
        """A part for each batch."""
        return (pa.Table.from_batches([batch]) for batch in self.batches)


def give_one(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """These batches, or an empty one where there is none."""
    is_empty = True
    for batch in batches:
        is_empty = False
        yield batch
    if is_empty:
        yield pa.record_batch([pa.array([], kind) for kind in schema.types], schema=schema)


@contextmanager
def open_table(records: pa.Table, name: str) -> Generator[RawTable]:
    """Records in memory, read as those of a source; never spilled to disk."""
    with open_memory() as connection:
        connection.from_arrow(records).create("raw")
        yield RawTable(connection, name)


class RelationInPlace:
    """What DuckDB reads: Parquet files, or a table of its own."""

    def __init__(self, name: str, delivered: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None) -> None:
        self._name = name
        with source_errors(name):
            self._records = choose_columns(delivered, columns, release)

    @property
    def kinds(self) -> dict[str, str]:
        """DuckDB's type of every column."""
        return {column: str(kind) for column, kind in zip(self._records.columns, self._records.types, strict=True)}

    def snapshot(self) -> str:
        """See `RecordsInPlace`."""
        with source_errors(self._name):
            hashes = hash_columns(self._read(self._records))
        return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()

    def count_cells(self, column: str) -> Iterator[pa.RecordBatch]:
        """See `RecordsInPlace`."""
        with source_errors(self._name):
            cells = self._query("in_place/count_cells", column=column, times=TIMES)
        yield from self._read(cells)

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """In one part."""
        return pa.Table.from_batches(list(function(self._read(self._select(columns)))))

    def read_column(self, column: str) -> Iterator[pa.RecordBatch]:
        """See `RecordsInPlace`."""
        yield from self._read(self._select([column]))

    def sample(self, columns: Sequence[str], count: int, key: bytes) -> pa.Table:
        """See `RecordsInPlace`."""
        total, first, taken = self._records.shape[0], 0, list[pa.RecordBatch]()
        places = np.sort(make_random(key, "sample").choice(total, min(count, total), replace=False, shuffle=False))
        for batch in self._read(self._select(columns)):
            within = places[np.searchsorted(places, first) : np.searchsorted(places, first + len(batch))] - first
            taken.append(batch.take(pa.array(within)))
            first += len(batch)
        return pa.Table.from_batches(taken)

    def _query(self, name: str, **names: Identifier | Sequence[Identifier]) -> duckdb.DuckDBPyRelation:
        """What a query of sql/ gives of the records, which it calls `delivered`."""
        found = self._records.query("delivered", statement(name, **names))
        assert found is not None  # noqa: S101  for the type checker: a query has a result
        return found

    def _select(self, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        return self._records.select(*(duckdb.ColumnExpression(column) for column in columns))

    def _read(self, relation: duckdb.DuckDBPyRelation) -> Iterator[Any]:
        with source_errors(self._name):
            reader = relation.to_arrow_reader(_BATCH)
            yield from give_one(read_batches(reader), reader.schema)
