"""Arrays on disk: in files of a private folder that have no name there, so that none outlives the process, however it ends.

No more than a piece of them is in memory for what is done to all of them at once, and every pass over an array is from one end to
the other: sorted are pieces, whose parts between common borders are then put together; what is taken from, or put to, places all
over an array is first gathered by the part of the array that the places lie in.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import spill_full
from release_pipeline.privacy.arrays import IN_MEMORY, Places, pieces

Scalar = TypeVar("Scalar", bound=np.generic)
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
            reserve_bytes(file.fileno(), count * kind.itemsize)
            return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(count,)))

    def sort(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Piece by piece, and then what lies between two borders of all of them."""
        if len(values) <= self.piece:
            values.sort()
            return values
        for run in pieces(len(values), self.piece):
            one = np.array(values[run])
            one.sort()
            values[run] = one
        out = self.empty(len(values), values.dtype)
        for place, parts, is_one_value in self._merge(values):
            if is_one_value:
                _write_all(out, place, (values[part] for part in parts), self.piece)
                continue
            between = np.concatenate([values[part] for part in parts])
            between.sort()
            out[place : place + len(between)] = between
        return out

    def argsort(self, values: npt.NDArray[Any]) -> Places:
        """The same, every value with its place beside it."""
        if len(values) <= self.piece:
            return np.argsort(values, kind="stable")
        places = self.empty(len(values), np.intp)
        for run in pieces(len(values), self.piece):
            one = np.array(values[run])
            order = np.argsort(one, kind="stable")
            values[run], places[run] = one[order], order + run.start
        out = self.empty(len(values), np.intp)
        for place, parts, is_one_value in self._merge(values):
            if is_one_value:
                _write_all(out, place, (places[part] for part in parts), self.piece)
                continue
            order = np.argsort(np.concatenate([values[part] for part in parts]), kind="stable")
            out[place : place + len(order)] = np.concatenate([places[part] for part in parts])[order]
        return out

    def _merge(self, values: npt.NDArray[Any]) -> Iterator[tuple[int, list[slice], bool]]:
        """Of values whose pieces are sorted: the next place in the order of all, the parts of the pieces that come there, no more
        than a piece together, and whether they are all one value, of which there may be any number."""
        runs = list(pieces(len(values), self.piece))
        step = max(self.piece // (_SAMPLES * len(runs)), 1)
        drawn = np.sort(np.concatenate([values[run][::step] for run in runs]))
        borders = np.unique(drawn[:: max((_SAMPLES - 1) * len(runs), 1)])
        cuts = np.array(
            [[np.searchsorted(values[run], borders, side=side) for side in ("left", "right")] for run in runs], dtype=np.intp
        )
        ends = np.array([run.stop - run.start for run in runs], dtype=np.intp)
        place, before = 0, np.zeros(len(runs), dtype=np.intp)
        for border in range(2 * len(borders) + 1):
            after = cuts[:, border % 2, border // 2] if border < 2 * len(borders) else ends
            parts = [
                slice(run.start + int(first), run.start + int(last))
                for run, first, last in zip(runs, before, after, strict=True)
                if first < last
            ]
            if parts:
                yield place, parts, border % 2 == 1
                place += sum(part.stop - part.start for part in parts)
            before = after

    def take(self, values: npt.NDArray[Scalar], places: Places) -> npt.NDArray[Scalar]:
        """Places gathered by where they lie, the values found for them there, and brought back in the order of the places."""
        out = self.empty(len(places), values.dtype)
        if len(values) <= self.piece:
            for part in pieces(len(places), self.piece):
                out[part] = values[places[part]]
            return out
        starts = self._count(places, len(values))
        gathered = self._gather(places, places, starts)
        found = self.empty(len(places), values.dtype)
        for number, within in enumerate(pieces(len(values), self.piece)):
            mine = slice(int(starts[number]), int(starts[number + 1]))
            near = np.array(values[within])
            for part in pieces(mine.stop - mine.start, self.piece):
                here = slice(mine.start + part.start, mine.start + part.stop)
                found[here] = near[gathered[here] - within.start]
        following = starts[:-1].copy()
        for part in pieces(len(places), self.piece):
            order, cuts = self._order(places[part], len(starts) - 1)
            one = np.empty(len(order), dtype=values.dtype)
            parts = [found[at : at + int(count)] for at, count in zip(following, np.diff(cuts), strict=True)]
            one[order] = np.concatenate(parts)
            following += np.diff(cuts)
            out[part] = one
        return out

    def put(self, parts: Iterable[npt.NDArray[Any]], places: Places, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Values and places gathered by where the places lie, and each part of the array written once."""
        if len(places) <= self.piece:
            return IN_MEMORY.put(parts, places, dtype)
        out, values = self.empty(len(places), dtype), self.empty(len(places), dtype)
        _write_all(values, 0, iter(parts), self.piece)
        starts = self._count(places, len(values))
        there = self._gather(places, places, starts)
        moved = self._gather(places, values, starts)
        for number, within in enumerate(pieces(len(values), self.piece)):
            mine = slice(int(starts[number]), int(starts[number + 1]))
            one = np.empty(within.stop - within.start, dtype=values.dtype)
            one[there[mine] - within.start] = moved[mine]
            out[within] = one
        return out

    def _count(self, places: Places, among: int) -> Places:
        """Where those begin that lie in each piece of an array, when they are gathered by it."""
        counts = np.zeros(-(-among // self.piece), dtype=np.intp)
        for part in pieces(len(places), self.piece):
            counts += np.bincount(places[part] // self.piece, minlength=len(counts))
        return np.concatenate([[0], np.cumsum(counts)])

    def _order(self, places: Places, parts: int) -> tuple[Places, Places]:
        """Some places in the order of the pieces that they lie in, and where the places of each begin."""
        within = places // self.piece
        narrow = within.astype(np.uint16) if parts <= 1 << 16 else within  # of so few NumPy counts instead of comparing
        return np.argsort(narrow, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(within, minlength=parts))])

    def _gather(self, places: Places, values: npt.NDArray[Scalar], starts: Places) -> npt.NDArray[Scalar]:
        """Values by the piece that their places lie in, those of one piece in the order in which they came."""
        out, following = self.empty(len(values), values.dtype), starts[:-1].copy()
        for part in pieces(len(places), self.piece):
            order, cuts = self._order(places[part], len(following))
            moved = values[part][order]
            for number in np.flatnonzero(np.diff(cuts)):
                first, last = int(cuts[number]), int(cuts[number + 1])
                at = int(following[number])
                out[at : at + last - first] = moved[first:last]
            following += np.diff(cuts)
        return out

    def keep_column(self, batches: Iterator[Any], kind: Any, count: int) -> pa.ChunkedArray:
        """A column of so many entries that comes in batches. Of one of numbers they lie in one array of a file, others as they
        came."""
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

    def _keep_batches(self, batches: Iterator[Any], kind: Any) -> pa.ChunkedArray:
        schema = pa.schema({"value": kind})
        with disk_errors(), TemporaryFile(dir=self.folder) as file:  # closing it writes, too
            with pa.RecordBatchFileWriter(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(pa.record_batch([batch], schema=schema))
            file.flush()
            stored = np.memmap(file, dtype=np.uint8, mode="r")
        return pa.RecordBatchFileReader(pa.BufferReader(pa.py_buffer(stored))).read_all().column(0)


def _write_all(out: npt.NDArray[Any], place: int, parts: Iterator[npt.NDArray[Any]], piece: int) -> None:
    """These one after the other, from a place on."""
    for values in parts:
        for part in pieces(len(values), piece):
            out[place + part.start : place + part.stop] = values[part]
        place += len(values)


def reserve_bytes(file: int, count: int) -> None:
    """Make an open file so long, with every byte of it had from the disk."""
    with disk_errors():
        os.posix_fallocate(file, 0, count)


@contextmanager
def disk_errors() -> Generator[None]:
    """A full disk in words."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise spill_full() from None
        raise
