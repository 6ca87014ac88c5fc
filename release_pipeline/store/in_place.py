"""Records that are counted in their source, without a copy; and SHA-256 of cells, the same wherever these are."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.mechanisms.basis.arrays import gather
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.policy.values.scalars import OURS
from release_pipeline.rows.counted import CountPart
from release_pipeline.store.database import Identifier, open_memory, read_batches, source_errors, statement
from release_pipeline.store.raw import Columns, RawTable, ReleaseFilter, choose_columns


def hash_columns(batches: Iterable[pa.RecordBatch]) -> dict[str, str]:
    """The digest of every column of some records, by its name; of one batch at least.

    It is of the type, of how many cells there are, and of three runs of bytes: where a cell is missing, how long every other text
    is, and all other cells. Each run has a digest of its own, so that it does not matter how records are cut into batches. Their
    order does matter: DuckDB delivers rows as they were stored, whatever its threads (`preserve_insertion_order`). Numbers that
    are equal are one, -0.0 and 0.0, as is every NaN, since DuckDB may give either of two; moments are in UTC.
    """
    digests: dict[str, _ColumnDigest] = {}
    for batch in batches:
        digests = digests or {field.name: _ColumnDigest(field.type) for field in batch.schema}
        for digest, cells in zip(digests.values(), batch.columns, strict=True):
            digest.add(cells)
    return {name: digest.finish() for name, digest in digests.items()}


class _ColumnDigest:
    """The digest of a column, which is given some of its cells at a time."""

    def __init__(self, kind: pa.DataType) -> None:
        has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
        self._kind = pa.timestamp(kind.unit, "UTC") if has_zone else kind
        self._count = 0
        self._missing, self._lengths, self._values = (hashlib.sha256() for _ in range(3))

    def add(self, cells: Any) -> None:
        """The next cells."""
        if cells.null_count:
            self._missing.update(view_bytes(self._count + np.flatnonzero(cells.is_null())))
        self._count += len(cells)
        there = cells.drop_null()
        if pa.types.is_floating(self._kind):
            numbers = there.to_numpy() + 0.0
            numbers[np.isnan(numbers)] = np.nan
            self._values.update(view_bytes(numbers))
        elif pa.types.is_integer(self._kind):
            self._values.update(view_bytes(there.to_numpy()))
        elif len(there):
            self._add_texts(there.cast(self._kind))

    def _add_texts(self, cells: Any) -> None:
        """Texts, or what is written as such."""
        texts = (cells if pa.types.is_binary(cells.type) else cells.cast(pa.large_string())).cast(pa.large_binary())
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
        self._lengths.update(view_bytes(np.diff(ends)))
        if data is not None:  # they are not all empty
            self._values.update(data[int(ends[0]) : int(ends[-1])])

    def finish(self) -> str:
        """The digest of all cells that were added."""
        runs = (self._missing, self._lengths, self._values)
        parts = [str(self._kind), self._count, *(run.hexdigest() for run in runs)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def view_bytes(numbers: npt.NDArray[Any]) -> Any:
    """The bytes of an array, without a copy of it where they lie together."""
    return np.ascontiguousarray(numbers).view(np.uint8).data


# Records that are counted in their source. What pins them is noted when they are first counted, and
# compared before anything else is read of them.


CellsOfColumn: TypeAlias = tuple[str, Iterable[pa.RecordBatch]]
TIMES = f"{OURS}_times"  # how many records have a cell
COUNTED = re.compile(r"U?(TINY|SMALL)INT|U?INTEGER|BIGINT|FLOAT|DOUBLE|VARCHAR")  # the types whose cells are counted in place
_BATCH = 1 << 17  # records that are read together
_HASHED = 1 << 20  # persons that are hashed together


class RecordsInPlace(Protocol):
    """The records of one release in their source, by the columns that the policy needs."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """The type of every column, by DuckDB's name."""
        ...

    def snapshot(self) -> str:
        """Is another when other records are delivered."""
        ...

    def count_cells(self, columns: Sequence[str]) -> Iterator[CellsOfColumn]:
        """Each of these columns with its different cells as they are delivered, ascending, and in `TIMES` how many records have
        each."""
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


def read_persons(batches: Iterable[pa.RecordBatch], column: str, name: str, key: bytes) -> Iterator[pa.Array]:
    """Yield the persons of a column as it is delivered, as hashes under a key: no cell is stored."""
    for part in gather(batches, _HASHED):
        with open_table(pa.Table.from_batches(part), name) as raw:
            yield from raw.persons(column, key)


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

    def count_cells(self, columns: Sequence[str]) -> Iterator[CellsOfColumn]:
        """See `RecordsInPlace`."""
        for column in columns:
            with source_errors(self._name):
                cells = self._query("in_place/count_cells", column=column, times=TIMES)
            yield column, self._read(cells)

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
