"""The counts that a task makes in one reading of its part of the records: how many have each entry of a column, and how many
are in each combination of groups of columns. Only counts come back, in as few bytes as they need, and add up however records
are cut.

A task may run on another machine, which has only NumPy and PyArrow: this module, and `mechanisms.basis.counting`, import no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.mechanisms.basis.counting import DENSE, Encoder, Ints, TablePlan, add_counts, count_tables

_compute: Any = pyarrow.compute  # its functions are made at run time
_STEPS = 1 << 12  # of numbers that are compared
_MERGED = 16  # counts of batches that are put together at once
PARTIAL = pa.schema([("place", pa.int32()), ("entries", pa.binary()), ("counts", pa.binary())])
"""The result of a task: of each column, or of all tables, the entries and their counts as bytes."""


@dataclass(frozen=True, slots=True)
class ListEncoder:
    """Declared texts, and the entry of each: several may share one."""

    texts: tuple[str, ...]
    entries: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return how many entries there are, from the largest one."""
        return max(self.entries) + 1

    def find(self, cells: Any) -> Ints:
        """Return the entry of each text; every one is declared."""
        return np.array(self.entries, dtype=np.int64)[_find_texts(self.texts, cells)]


@dataclass(frozen=True, slots=True, repr=False)
class NumberCells:
    """Numbers as they are delivered, and the run of each, from the first number of every run, ascending. Missing values and NaN
    are in a separate run behind them."""

    firsts: npt.NDArray[Any]

    @property
    def size(self) -> int:
        """Return how many runs there are."""
        return len(self.firsts) + 1

    def find(self, cells: Any) -> Ints:
        """Return the run of each cell."""
        numbers: npt.NDArray[Any] = (cells.fill_null(0) if cells.null_count else cells).to_numpy(zero_copy_only=False)
        runs = count_up_to(self.firsts, numbers.astype(self.firsts.dtype, copy=False)) - 1
        np.maximum(runs, 0, out=runs)
        if cells.null_count:
            runs[cells.is_null().to_numpy(zero_copy_only=False)] = len(self.firsts)
        if numbers.dtype.kind == "f":
            runs[np.isnan(numbers)] = len(self.firsts)
        return runs


def count_up_to(firsts: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> Ints:
    """Return how many of `firsts`, ascending, are not above each number. Where there are many numbers, and no two of `firsts` are
    in one of equal steps, the step of a number says which one it is compared with: a fifth of the time of a search. Steps are
    rounded, but never down for a larger number."""
    if len(firsts) > 1 and len(numbers) > _STEPS:
        low, high = firsts[[0, -1]].astype(np.float64)

        def find_step(values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
            steps = values.astype(np.float64)
            steps -= low
            steps *= _STEPS / (high - low)
            np.fmax(steps, 0, out=steps)
            return np.fmin(steps, _STEPS - 1, out=steps).astype(np.intp)

        with np.errstate(all="ignore"):  # of infinite numbers
            of_firsts = find_step(firsts)
            if np.all(of_firsts[1:] > of_firsts[:-1]):
                compared = np.searchsorted(of_firsts, np.arange(_STEPS))[find_step(numbers)]
                return compared + (numbers >= firsts[compared])
    return np.searchsorted(firsts, numbers, side="right")


@dataclass(frozen=True, slots=True, repr=False)
class TextCells:
    """Texts as they are delivered, and the run of each. Missing ones are in a separate run behind them, and so are unlisted
    ones."""

    texts: tuple[str, ...]
    runs: npt.NDArray[np.int64]

    @property
    def size(self) -> int:
        """Return how many runs there are."""
        return int(self.runs.max(initial=-1)) + 2

    def find(self, cells: Any) -> Ints:
        """Return the run of each cell."""
        return np.append(self.runs, self.size - 1)[_find_texts(self.texts, cells)]


def _find_texts(texts: Sequence[str], cells: Any) -> npt.NDArray[np.int32]:
    """Return where each cell is among these texts: behind them if nowhere. Where cells are coded, each code is looked up once."""
    if isinstance(cells, pa.DictionaryArray):
        of_codes = np.append(_find_texts(texts, cells.dictionary), np.int32(len(texts)))
        return of_codes[cells.indices.cast(pa.int32()).fill_null(len(cells.dictionary)).to_numpy()]
    indices = _compute.index_in(cells.cast(pa.string()), value_set=pa.array(texts, pa.string()))
    return indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)


Cells: TypeAlias = NumberCells | TextCells


def tally_batches(encoders: Sequence[Encoder], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the entries of every column that records of these batches have, and how many have each."""
    dense = [np.zeros(own.size, dtype=np.int64) if own.size <= DENSE else None for own in encoders]
    sparse: list[list[tuple[Ints, Ints]]] = [[] for _ in encoders]
    for batch in batches:
        for index, encoder in enumerate(encoders):
            entries, counts = encoder.find(batch.column(index)), dense[index]
            if counts is None:
                sparse[index].append(np.unique(entries, return_counts=True))
                if len(sparse[index]) >= _MERGED:
                    sparse[index] = [add_counts(sparse[index])]
            elif len(counts) <= len(entries):
                counts += np.bincount(entries, minlength=len(counts))
            else:
                np.add.at(counts, entries, 1)
    for index, counts in enumerate(dense):
        if counts is not None:
            held = np.flatnonzero(counts)
            yield pack_counts(index, held, counts[held])
        elif sparse[index]:
            yield pack_counts(index, *add_counts(sparse[index]))


@dataclass(frozen=True, slots=True, repr=False)
class CountTables:
    """Counts the wanted tables of a plan: called with the batches of a task it gives the counts of all, one after the other. An
    engine that runs no function reads from it what to count."""

    encoders: Sequence[Encoder]
    plan: TablePlan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts of the records of these batches."""
        parts = ([encoder.find(cells) for encoder, cells in zip(self.encoders, batch.columns, strict=True)] for batch in batches)
        yield self.pack(count_tables(self.plan, parts))

    def pack(self, counts: Ints) -> pa.RecordBatch:
        """Return the counts of the wanted tables, one after the other, as a call gives them."""
        return pack_counts(0, np.arange(len(counts)), counts)


def pack_counts(place: int, entries: Ints, counts: Ints) -> pa.RecordBatch:
    """Return entries, ascending, and counts in as few bytes as they need, as `PARTIAL` has them."""
    steps = np.diff(entries, prepend=0)
    columns = [pa.array([place], pa.int32())]
    columns += [pa.array([_shorten(numbers)], pa.binary()) for numbers in (steps, counts)]
    return pa.record_batch(columns, schema=PARTIAL)


def _shorten(numbers: Ints) -> bytes:
    """Return non-negative numbers as bytes: how many bytes each takes, and then the numbers."""
    kind = np.min_scalar_type(int(numbers.max(initial=0)))
    return bytes([kind.itemsize]) + numbers.astype(kind).tobytes()


def unpack(partial: pa.Table) -> dict[int, tuple[Ints, Ints]]:
    """Return by place the entries and counts of all tasks together."""
    parts: dict[int, list[tuple[Ints, Ints]]] = {}
    for place, steps, counts in zip(*(partial.column(name).to_pylist() for name in PARTIAL.names), strict=True):
        parts.setdefault(place, []).append((np.cumsum(_lengthen(steps)), _lengthen(counts)))
    return {place: add_counts(own) for place, own in parts.items()}


def _lengthen(numbers: bytes) -> Ints:
    return np.frombuffer(numbers, f"u{numbers[0]}", offset=1).astype(np.int64)
