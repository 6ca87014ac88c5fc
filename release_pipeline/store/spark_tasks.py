"""What Spark's workers do: they read their part of the records, and give counts of it or the cells that are asked for.

A worker has only NumPy and PyArrow: this module imports no more, and goes to it by value. No exception leaves a worker, since it
could quote a cell and Spark would log it: a code goes to the driver in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

_compute: Any = import_module("pyarrow.compute")  # its functions are made at run time
_ipc: Any = import_module("pyarrow.ipc")
Batches: TypeAlias = Iterable[pa.RecordBatch]
Work: TypeAlias = Callable[[Batches], Batches]  # what a task makes of its records: rows of `RESULT`
RESULT = pa.schema([("place", pa.int32()), ("entries", pa.binary()), ("counts", pa.binary())])
DONE, FAILED = -1, -2  # in `place`: `entries` has the task's number, or a code; `counts` how many records it read
BATCH = 1 << 17  # records that are read together
_MERGED = 1 << 18  # cells of batches, different in each, that are put together at once
_BLOB = 1 << 19  # cells of a blob
_PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.float16(): pa.float32(),
}
_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"  # as DuckDB trims


class CannotRead(Exception):
    """Why a file is not read: its code alone."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some row groups of a Parquet file, and how the driver found it: its size in bytes, and when it was written."""

    path: str
    size: int
    written: int
    groups: tuple[int, ...]

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of these row groups."""
        try:
            known = Path(self.path).stat()
            if (known.st_size, known.st_mtime_ns) != (self.size, self.written):
                raise CannotRead("changed")
            with pq.ParquetFile(self.path, read_dictionary=list(columns)) as file:  # texts as the codes that the file has
                yield from file.iter_batches(BATCH, row_groups=list(self.groups), columns=list(columns), use_threads=False)
        except (FileNotFoundError, PermissionError):
            raise CannotRead("missing") from None
        except (OSError, pa.ArrowException):
            raise CannotRead("unreadable") from None


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """The columns that are read, each by its name there and its name here, and which records are: those whose column `release`
    has this text, and with `places` those of each task that are there, ascending. A column there may have several names here."""

    columns: tuple[tuple[str, str], ...]
    release: tuple[str, str] | None
    places: Sequence[npt.NDArray[np.int64]] | None = None

    @property
    def there(self) -> list[str]:
        """The columns of the source that are read, each once."""
        more = [] if self.release is None else [self.release[0]]
        return list(dict.fromkeys([*(there for there, _ in self.columns), *more]))

    def choose(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What is selected of a batch, in the types of the source; texts may be codes."""
        if self.release is not None:
            batch = batch.filter(has_entry(batch.column(self.release[0]), self.release[1]))
        return batch.select([there for there, _ in self.columns]).rename_columns([here for _, here in self.columns])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that cells are given in: some have several forms in Arrow."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return _PLAIN.get(kind, kind)


def has_entry(cells: Any, text: str) -> Any:
    """Whether each cell is this text without spaces around it, or this whole number."""
    if pa.types.is_dictionary(cells.type):
        return has_entry(cells.dictionary, text).take(cells.indices)
    cells = cells.cast(plain_type(cells.type))
    if pa.types.is_string(cells.type):
        return _compute.equal(_compute.utf8_trim(cells, characters=_SPACES), text)
    whole = int(text) if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) else None
    is_float = pa.types.is_floating(cells.type)
    if whole is None or not -(1 << 63) <= whole < 1 << 63 or (is_float and int(float(whole)) != whole):
        return pa.array(np.zeros(len(cells), dtype=np.bool_))
    return _compute.equal(cells.cast(pa.float64() if is_float else pa.int64()), float(whole) if is_float else whole)


def run_pieces(parts: Sequence[Sequence[Piece]], selection: Selection, work: Work, numbers: Batches) -> Iterator[pa.RecordBatch]:
    """What the tasks of these numbers find, which read their own row groups."""
    for batch in numbers:
        asked: list[int] = batch.column(0).to_pylist()
        for number in asked:
            yield from _run(number, selection, work, (batch for piece in parts[number] for batch in piece.read(selection.there)))


def run_partition(selection: Selection, work: Work, batches: Batches) -> Iterator[pa.RecordBatch]:
    """What a task finds in records that Spark gives it."""
    spark: Any = import_module("pyspark")  # every worker of Spark has it
    yield from _run(spark.TaskContext.get().partitionId(), selection, work, batches)


def _run(number: int, selection: Selection, work: Work, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Nothing is given before all is done."""
    records = 0

    def choose() -> Iterator[pa.RecordBatch]:
        nonlocal records
        for batch in batches:
            chosen = selection.choose(batch)
            first, records = records, records + len(chosen)
            if selection.places is not None:
                places = selection.places[min(number, len(selection.places) - 1)]  # in no task but these: the last is without any
                begin, end = np.searchsorted(places, (first, records))
                chosen = chosen.take(pa.array(places[begin:end] - first))
            yield chosen

    try:
        rows = list(work(choose()))
    except Exception as error:
        rows, end = [], (FAILED, _code(error))
    else:
        end = (DONE, str(number))
    yield from (row.cast(RESULT) for row in rows)
    yield _row(end[0], end[1].encode("ascii"), str(records).encode("ascii"))


def _code(error: Exception) -> str:
    """What went wrong, without a word of what the exception says."""
    if isinstance(error, CannotRead):
        return str(error)
    return "memory" if isinstance(error, MemoryError) else "failed"


def _row(place: int, entries: bytes, counts: bytes | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([each], kind) for each, kind in zip((place, entries, counts), RESULT.types, strict=True)], schema=RESULT
    )


def write_blob(batch: pa.RecordBatch) -> bytes:
    """A batch as bytes, with no codes in it."""
    into, schema = pa.BufferOutputStream(), pa.schema([(field.name, plain_type(field.type)) for field in batch.schema])
    with _ipc.new_stream(into, schema, options=_ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch.cast(schema))
    return into.getvalue().to_pybytes()


def read_blob(blob: bytes) -> pa.RecordBatch:
    """The batch that these bytes have."""
    with _ipc.open_stream(blob) as reader:
        return reader.read_next_batch()


def read_part(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The records of a task, as they are delivered."""
    for batch in batches:
        if len(batch):
            yield _row(0, write_blob(batch))


def sum_part(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The sum of the hashes of the records of a task, which are in the first column."""
    total = sum(int(batch.column(0).to_numpy().view(np.uint64).sum()) for batch in batches)
    yield _row(0, str(total).encode("ascii"))


def count_nothing(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Nothing but how many records there are, which every task tells."""
    for _ in batches:
        yield from ()


def _unify_numbers(cells: Any) -> Any:
    """The same cells, where -0.0 is 0.0 and every NaN has the same bits."""
    if not pa.types.is_floating(cells.type):
        return cells
    numbers = _compute.add(cells, pa.scalar(0.0, cells.type))
    return _compute.if_else(_compute.is_nan(numbers), pa.scalar(np.nan, cells.type), numbers)


def count_cells(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The different cells of every column, and how many records of a task have each: blobs of `cells` and `times`."""
    columns: list[list[pa.RecordBatch]] = []
    for batch in batches:
        columns = columns or [[] for _ in batch.columns]
        for parts, cells in zip(columns, batch.columns, strict=True):
            counted = _compute.value_counts(cells)
            values = counted.field("values").cast(plain_type(cells.type))
            parts.append(_pair(_unify_numbers(values), counted.field("counts").cast(pa.int64())))
            if sum(map(len, parts)) > max(_MERGED, 2 * len(parts[0])):  # of that the first may be all that was merged before
                parts[:] = [sum_cells(parts)]
    for column, parts in enumerate(columns):
        summed = sum_cells(parts)
        for first in range(0, len(summed), _BLOB):
            yield _row(column, write_blob(summed.slice(first, _BLOB)))


def _pair(cells: Any, times: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([cells, times], names=["cells", "times"])


def _lengthen(cells: Any) -> Any:
    """The same cells; texts may be more than 2 GiB together."""
    return cells.cast(pa.large_string()) if pa.types.is_string(cells.type) else cells


def sum_cells(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The different cells of some parts, each with how often it is in all of them."""
    cells, times = (pa.concat_arrays([_lengthen(part.column(name)) for part in parts]) for name in ("cells", "times"))
    coded = cells.dictionary_encode(null_encoding="encode")
    sums = np.zeros(len(coded.dictionary), dtype=np.int64)
    np.add.at(sums, coded.indices.to_numpy(), times.to_numpy())
    return _pair(coded.dictionary, pa.array(sums))
