"""What a task counts in one reading of its part of the records: how many have each entry of a column, and how many are
in each combination of groups of columns. No noise is here: all of it is confidential.

A task may run on another machine, which has NumPy and PyArrow alone: functions go there by value, and this module
imports nothing of ours. Tables of few columns are sums of tables of more, so that fewer are counted: the pairs of 20
columns are sums of about 40 tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

_compute: Any = pyarrow.compute  # its functions are made at run time

Ints = npt.NDArray[np.int64]
Columns = tuple[int, ...]  # the places of columns, ascending
AT_ONCE = 1 << 16  # records whose groups stay in the cache
DENSE = 1 << 24  # entries of a column that are counted in an array of all of them
_DENSE_GROUPS = 1 << 20  # entries of a column whose groups lie in an array
_MERGED = 16  # counts of batches that are put together at once
PARTIAL = pa.schema([("place", pa.int32()), ("entries", pa.binary()), ("counts", pa.binary())])
"""What a task gives: of each column, or of all tables, the entries and their counts as bytes."""


class Encoder(Protocol):
    """How cells of a column become entries, 0 .. `size` - 1."""

    @property
    def size(self) -> int:
        """How many entries there may be."""
        ...

    def find(self, cells: Any) -> Ints:
        """The entry of each cell."""
        ...


@dataclass(frozen=True, slots=True)
class NumberEncoder:
    """Numbers on a grid of `width` steps of numerator / denominator from `low` to `high`: those outside are moved to its
    ends. Correctly rounded operations only, so that every processor gives the same entries."""

    low: float
    high: float
    numerator: float
    denominator: float
    width: int

    @property
    def size(self) -> int:
        """A point for each end of a step."""
        return self.width + 1

    def find(self, cells: Any) -> Ints:
        """The nearest point of the grid to each number."""
        steps = np.clip(_as_numpy(cells), self.low, self.high)
        steps -= self.low
        if self.denominator != 1.0:
            steps *= self.denominator
        if self.numerator != 1.0:
            steps /= self.numerator
        np.rint(steps, out=steps)
        entries = steps.astype(np.int64)
        return np.clip(entries, 0, self.width, out=entries)


def _as_numpy(cells: Any) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[Any] = cells if hasattr(cells, "astype") else cells.to_numpy(zero_copy_only=False)
    return numbers.astype(np.float64)


@dataclass(frozen=True, slots=True)
class ListEncoder:
    """Declared texts, and the entry of each: several may share one."""

    texts: tuple[str, ...]
    entries: tuple[int, ...]

    @property
    def size(self) -> int:
        """As many as the largest entry says."""
        return max(self.entries) + 1

    def find(self, cells: Any) -> Ints:
        """The entry of each text; every one is declared."""
        places = _compute.index_in(cells.cast(pa.string()), value_set=pa.array(self.texts, pa.string()))
        return np.array(self.entries, dtype=np.int64)[np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)]


@dataclass(frozen=True, slots=True, repr=False)
class GroupsOfEntries:
    """The group of every entry of a column: that of the last of `firsts` which is not above it."""

    firsts: Ints
    groups: npt.NDArray[np.uint16]
    dense: npt.NDArray[np.uint16] | None = field(default=None)

    @classmethod
    def of(cls, firsts: Ints, groups: Ints, size: int) -> GroupsOfEntries:
        """From the first entry of each cell, ascending, and the group of the cell; there are `size` entries."""
        small = groups.astype(np.uint16)
        begins = np.append(True, small[1:] != small[:-1])
        made = cls(firsts[begins], small[begins])
        return cls(made.firsts, made.groups, made.find(np.arange(size))) if size <= _DENSE_GROUPS else made

    def find(self, entries: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint16]:
        """The group of each of these entries."""
        if self.dense is not None:
            return self.dense[entries]
        return self.groups[np.searchsorted(self.firsts, entries, side="right") - 1]


@dataclass(frozen=True, slots=True, repr=False)
class TablePlan:
    """Which tables are wanted, of which larger ones they are sums, and the groups of the columns' entries."""

    groups: tuple[GroupsOfEntries, ...]
    sizes: tuple[int, ...]
    wanted: tuple[Columns, ...]
    counted: tuple[Columns, ...]

    def split(self, counts: Ints) -> list[Ints]:
        """The wanted tables, of all their counts one after the other."""
        shapes = [tuple(self.sizes[column] for column in columns) for columns in self.wanted]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(counts, ends[:-1]), shapes, strict=True)]


def plan_tables(
    groups: Iterable[GroupsOfEntries], sizes: Iterable[int], wanted: Iterable[Columns], cover: Iterable[Columns]
) -> TablePlan:
    """A plan for the wanted tables: each is a sum of one of `cover`, or is counted by itself."""
    tables, counted = tuple(wanted), list[Columns]()
    for larger in (*cover, *sorted(tables, key=len, reverse=True)):
        missing = (table for table in tables if not any(set(table) <= set(other) for other in counted))
        if any(set(table) <= set(larger) for table in missing):
            counted.append(larger)
    return TablePlan(tuple(groups), tuple(sizes), tables, tuple(sorted(counted)))


def tally_batches(encoders: Sequence[Encoder], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The entries of every column that records of these batches have, and how many have each."""
    dense = [np.zeros(own.size, dtype=np.int64) if own.size <= DENSE else None for own in encoders]
    sparse: list[list[tuple[Ints, Ints]]] = [[] for _ in encoders]
    for batch in batches:
        for place, encoder in enumerate(encoders):
            entries, counts = encoder.find(batch.column(place)), dense[place]
            if counts is None:
                sparse[place].append(np.unique(entries, return_counts=True))
                if len(sparse[place]) >= _MERGED:
                    sparse[place] = [add_counts(sparse[place])]
            elif len(counts) <= len(entries):
                counts += np.bincount(entries, minlength=len(counts))
            else:
                np.add.at(counts, entries, 1)
    for place, counts in enumerate(dense):
        if counts is not None:
            held = np.flatnonzero(counts)
            yield _pack(place, held, counts[held])
        elif sparse[place]:
            yield _pack(place, *add_counts(sparse[place]))


def count_batches(encoders: Sequence[Encoder], plan: TablePlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The counts of all wanted tables, one after the other, of the records of these batches."""
    parts = ([encoder.find(cells) for encoder, cells in zip(encoders, batch.columns, strict=True)] for batch in batches)
    counts = count_tables(plan, parts)
    yield _pack(0, np.arange(len(counts)), counts)


def count_tables(plan: TablePlan, parts: Iterable[Sequence[npt.NDArray[np.integer[Any]]]]) -> Ints:
    """The counts of all wanted tables, one after the other. Each of `parts` has the entries of some records, by column."""
    shapes = {columns: [plan.sizes[column] for column in columns] for columns in plan.counted}
    counts = {columns: np.zeros(math.prod(shape), dtype=np.int64) for columns, shape in shapes.items()}
    for part in parts:
        for start in range(0, len(part[0]), AT_ONCE):
            groups = [
                own.find(entries[start : start + AT_ONCE]).astype(np.int64)
                for own, entries in zip(plan.groups, part, strict=True)
            ]
            known: dict[Columns, Ints] = {}
            for columns, held in counts.items():
                held += np.bincount(_combine(columns, groups, plan.sizes, known), minlength=len(held))
    tables = {columns: held.reshape(shapes[columns]) for columns, held in counts.items()}
    summed = [np.empty(0, dtype=np.int64)]
    for wanted in plan.wanted:
        home = min((columns for columns in tables if set(wanted) <= set(columns)), key=lambda columns: tables[columns].size)
        others = tuple(axis for axis, column in enumerate(home) if column not in wanted)
        summed.append(tables[home].sum(axis=others).ravel())
    return np.concatenate(summed)


def _combine(columns: Columns, groups: Sequence[Ints], sizes: Sequence[int], known: dict[Columns, Ints]) -> Ints:
    """The combination of groups of each record. `known`: those of the first of these columns, which tables share."""
    if len(columns) == 1:
        return groups[columns[0]]
    if columns not in known:
        last = columns[-1]
        known[columns] = _combine(columns[:-1], groups, sizes, known) * sizes[last] + groups[last]
    return known[columns]


def add_counts(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """The entries and counts of all parts together, ascending."""
    if len(parts) == 1:
        return parts[0]
    entries, places = np.unique(np.concatenate([own for own, _ in parts]), return_inverse=True)
    counts = np.zeros(len(entries), dtype=np.int64)
    np.add.at(counts, places, np.concatenate([own for _, own in parts]))
    return entries, counts


def _pack(place: int, entries: Ints, counts: Ints) -> pa.RecordBatch:
    """Entries, ascending, and counts in as few bytes as they need."""
    steps = np.diff(entries, prepend=0)
    columns = [pa.array([place], pa.int32())]
    columns += [pa.array([_shorten(numbers)], pa.binary()) for numbers in (steps, counts)]
    return pa.record_batch(columns, schema=PARTIAL)


def _shorten(numbers: Ints) -> bytes:
    """Numbers that are not negative: how many bytes each takes, and they themselves."""
    kind = np.min_scalar_type(int(numbers.max(initial=0)))
    return bytes([kind.itemsize]) + numbers.astype(kind).tobytes()


def unpack(partial: pa.Table) -> dict[int, tuple[Ints, Ints]]:
    """By place the entries and counts of all tasks together."""
    parts: dict[int, list[tuple[Ints, Ints]]] = {}
    for place, steps, counts in zip(*(partial.column(name).to_pylist() for name in PARTIAL.names), strict=True):
        parts.setdefault(place, []).append((np.cumsum(_lengthen(steps)), _lengthen(counts)))
    return {place: add_counts(own) for place, own in parts.items()}


def _lengthen(numbers: bytes) -> Ints:
    return np.frombuffer(numbers, f"u{numbers[0]}", offset=1).astype(np.int64)
