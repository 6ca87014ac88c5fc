"""Arrays on disk: in files of a private folder that have no name there, so that none outlives the process, however it ends.

No more than a piece of them is in memory for what is done to all of them at once, and every pass over an array is from one end to
the other: sorted are pieces, whose parts between common borders are then put together; what is taken from, or put to, places all
over an array is first gathered by the part of the array that the places lie in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import OutOfSpace, is_full, spill_full
from release_pipeline.privacy import arrays
from release_pipeline.privacy.arrays import IN_MEMORY, Places, pieces
from release_pipeline.store.passes import (
    BroughtBack,
    Buckets,
    Chained,
    CountedPlaces,
    CutRuns,
    Filled,
    Gathered,
    LookedUp,
    Merged,
    Moves,
    OrderedRuns,
    PutDown,
    Runs,
    SortedRuns,
    Target,
    take,
)

Scalar = TypeVar("Scalar", bound=np.generic)
Found = TypeVar("Found")
_SAMPLES = 4  # of each sorted piece for every piece that there is: so many more borders than pieces to choose from


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Arrays of more than `piece` entries lie in files of `folder`, which is the owner's alone; smaller ones in memory."""

    folder: Path
    piece: int

    def empty(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """All of its bytes are had from the disk now, where it promises them: a full one is told here, and not by a signal."""
        kind = np.dtype(dtype)
        if count <= self.piece:
            return np.empty(count, dtype=kind)
        with TemporaryFile(dir=self.folder) as file:
            with disk_errors():
                reserve_bytes(file.fileno(), count * kind.itemsize)
            return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(count,)))

    @property
    def texts(self) -> Path:
        """Where columns that are no numbers lie."""
        return self.folder

    def cut(self, count: int) -> int:
        """How many of so many entries are worked on together."""
        return self.piece

    def work(self, task: Callable[[int], Found], count: int) -> list[Found]:
        """What tasks 0, 1, ... give, in their order."""
        return [task(number) for number in range(count)]

    def target(self, array: npt.NDArray[Any]) -> Target:
        """What tasks write an array through."""
        return array

    def done(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """An array that tasks have written."""
        return array

    def anew(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """What the sorted pieces of these are written to, which nobody needs any more: themselves."""
        return values

    def over(self, function: Callable[[slice], Found], count: int, size: int | None = None) -> Iterator[Found]:
        """One after the other."""
        return map(function, pieces(count, size))

    def chain(
        self, function: Callable[[slice], npt.NDArray[Any]], lengths: Sequence[int], count: int, dtype: npt.DTypeLike
    ) -> npt.NDArray[Any]:
        """Part by part."""
        out = self.empty(sum(lengths), dtype)
        if not len(out):
            return out
        ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        each = max(self.cut(count) // arrays.PIECE, 1)
        self.work(Chained(function, ends, count, arrays.PIECE, each, self.target(out)), -(-len(lengths) // each))
        return self.done(out)

    def fill(self, function: Callable[[slice], npt.NDArray[Any]], count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Piece by piece."""
        out, each = self.empty(count, dtype), max(self.cut(count) // arrays.PIECE, 1)
        self.work(Filled(function, count, arrays.PIECE, each, self.target(out)), -(-count // (each * arrays.PIECE)))
        return self.done(out)

    def sort(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Piece by piece, and then what lies between two borders of all of them."""
        if len(values) <= self.piece:
            values.sort()
            return values
        runs = self._runs(len(values))
        into = self.anew(values)
        samples = self.work(SortedRuns(values, self.target(into), runs), len(runs.starts))
        into, out = self.done(into), self.empty(len(values), values.dtype)
        buckets = self._find_buckets(into, runs, samples)
        self.work(Merged(into, None, self.target(out), buckets, runs.piece), len(buckets.groups))
        return self.done(out)

    def argsort(self, values: npt.NDArray[Any]) -> Places:
        """The same, every value with its place beside it."""
        if len(values) <= self.piece:
            return np.argsort(values, kind="stable")
        runs = self._runs(len(values))
        into, places = self.anew(values), self.empty(len(values), np.intp)
        samples = self.work(OrderedRuns(values, self.target(into), self.target(places), runs), len(runs.starts))
        into, places, out = self.done(into), self.done(places), self.empty(len(values), np.intp)
        buckets = self._find_buckets(into, runs, samples)
        self.work(Merged(into, places, self.target(out), buckets, runs.piece), len(buckets.groups))
        return self.done(out)

    def _runs(self, count: int) -> Runs:
        """The pieces, and how many of their values are drawn."""
        piece = self.cut(count)
        starts = list(range(0, count, piece))
        return Runs(starts, count, piece, max(piece // (_SAMPLES * len(starts)), 1))

    def _find_buckets(self, values: npt.NDArray[Any], runs: Runs, samples: Sequence[npt.NDArray[Any]]) -> Buckets:
        """What lies between common borders of sorted pieces, no more than a piece together."""
        drawn = np.sort(np.concatenate(list(samples)))
        borders = np.unique(drawn[:: max((_SAMPLES - 1) * len(runs.starts), 1)])
        cuts = np.array(self.work(CutRuns(values, runs, borders), len(runs.starts)), dtype=np.int64)
        return Buckets.of(runs, cuts)

    def take(self, values: npt.NDArray[Scalar], places: Places) -> npt.NDArray[Scalar]:
        """Places gathered by where they lie, the values found for them there, and brought back in the order of the places."""
        if len(values) <= self.piece:
            return self.fill(partial(take, values, places), len(places), values.dtype)
        if not len(places):
            return self.empty(0, values.dtype)
        moves = self._plan(places, len(values))
        gathered = self._gather(moves, places, None)
        found = self.empty(len(places), values.dtype)
        self.work(LookedUp(values, gathered, moves, self.target(found)), len(moves.starts) - 1)
        found, out = self.done(found), self.empty(len(places), values.dtype)
        self.work(BroughtBack(places, found, moves, self.target(out)), len(moves.at))
        return self.done(out)

    def put(self, function: Callable[[slice], npt.NDArray[Any]], places: Places, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Values and places gathered by where the places lie, and each part of the array written once."""
        if len(places) <= self.piece:
            return IN_MEMORY.put(function, places, dtype)
        moves = self._plan(places, len(places))
        there, moved = self._gather(moves, places, None), self._gather(moves, places, function, dtype)
        out = self.empty(len(places), dtype)
        self.work(PutDown(there, moved, moves, self.target(out)), len(moves.starts) - 1)
        return self.done(out)

    def _plan(self, places: Places, among: int) -> Moves:
        """How many places of each piece lie in each piece of an array of so many, and where they go when they are gathered."""
        piece = self.cut(max(among, len(places)))
        task = CountedPlaces(places, piece, -(-among // piece))
        counts = np.array(self.work(task, -(-len(places) // piece)), dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
        return Moves(piece, len(places), among, starts, starts[:-1] + np.cumsum(counts, axis=0) - counts)

    def _gather(
        self,
        moves: Moves,
        places: Places,
        function: Callable[[slice], npt.NDArray[Any]] | None,
        dtype: npt.DTypeLike = np.intp,
    ) -> npt.NDArray[Any]:
        """What a function makes of each piece, or the places themselves, by the piece that their places lie in, those of one in
        the order in which they came."""
        out = self.empty(len(places), dtype)
        self.work(Gathered(places, function, moves, self.target(out)), len(moves.at))
        return self.done(out)

    def keep_column(self, batches: Iterator[Any], kind: Any, count: int) -> Any:
        """A column of Arrow of so many entries, in batches. Numbers lie in one array of a file, others as they came."""
        import pyarrow as pa  # a large library: only where it is used

        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return self._keep_batches(batches, kind)
        numbers, known, start = self.empty(count, kind.to_pandas_dtype()), self.empty(count, np.bool_), 0
        for batch in batches:
            part = slice(start, start + len(batch))
            numbers[part] = (batch.fill_null(0) if batch.null_count else batch).to_numpy(zero_copy_only=False)
            known[part] = batch.is_valid().to_numpy(zero_copy_only=False)
            start += len(batch)
        bits = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
        return pa.chunked_array([pa.Array.from_buffers(kind, count, [bits, pa.py_buffer(numbers)])])

    def _keep_batches(self, batches: Iterator[Any], kind: Any) -> Any:
        import pyarrow as pa

        schema = pa.schema({"value": kind})
        with disk_errors(), TemporaryFile(dir=self.texts) as file:  # closing it writes, too
            with pa.RecordBatchFileWriter(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(pa.record_batch([batch], schema=schema))
            file.flush()
            stored = np.memmap(file, dtype=np.uint8, mode="r")
        return pa.RecordBatchFileReader(pa.BufferReader(pa.py_buffer(stored))).read_all().column(0)


def reserve_bytes(file: int, count: int) -> None:
    """Make an open file so long, with every byte of it had from the disk."""
    os.posix_fallocate(file, 0, count)


@contextmanager
def disk_errors(told: Callable[[], OutOfSpace] = spill_full) -> Generator[None]:
    """A full disk in words."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise told() from None
        raise
