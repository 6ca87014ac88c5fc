"""Rows exchanged until their tables are as the noisy counts say: a sample of the pool is off by chance alone, which is more than
the noise where there are few rows or much budget.

All of it reads noisy counts alone. What a batch of exchanges makes worse is not done, and then fewer are tried at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.pool import Linked

ROUNDS = 400
_SHARE, _LEAST, _MOST = 50, 50, 4_000  # rows that are tried at once: one of so many, and within limits
_COLUMN_WEIGHT = 4.0  # of a column's own table beside those of pairs


class Rows(Protocol):
    """Rows of groups, columns by rows, all of them records of a pool."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def parts(self, size: int) -> Iterator[tuple[IntArray, IntArray]]:
        """All of them, so many different ones at a time, and how often each is there."""
        ...

    def draw(self, few: int, random: Random) -> IntArray:
        """So many of them, none twice, by numbers that say where they are."""
        ...

    def at(self, places: IntArray) -> IntArray:
        """The rows that are there."""
        ...

    def replace(self, places: IntArray, pool: IntArray, coming: IntArray) -> None:
        """Others of the pool in their place."""
        ...

    def count_groups(self, column: int) -> IntArray:
        """How many have each group of a column."""
        ...

    def deal(self, blocks: int, random: Random) -> Iterator[IntArray]:
        """All of them in so many blocks, each about as the whole."""
        ...


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows one by one."""

    rows: IntArray

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.rows.shape[1])

    def parts(self, size: int) -> Iterator[tuple[IntArray, IntArray]]:
        """As they come, each once."""
        for start in range(0, self.count, size):
            some = self.rows[:, start : start + size]
            yield some, np.ones(some.shape[1], dtype=np.int64)

    def draw(self, few: int, random: Random) -> IntArray:
        """By their places."""
        return random.permutation(self.count)[:few]

    def at(self, places: IntArray) -> IntArray:
        """The rows at these places."""
        return self.rows[:, places]

    def replace(self, places: IntArray, pool: IntArray, coming: IntArray) -> None:
        """There."""
        self.rows[:, places] = pool[:, coming]

    def count_groups(self, column: int) -> IntArray:
        """How many have each group of a column."""
        return np.bincount(self.rows[column])

    def deal(self, blocks: int, random: Random) -> Iterator[IntArray]:
        """In one: there is no more than that of rows one by one."""
        yield self.rows


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows by how often each record of the pool is one: very many rows are no more than the pool."""

    pool: IntArray
    often: IntArray

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.often.sum())

    def parts(self, size: int) -> Iterator[tuple[IntArray, IntArray]]:
        """The pool."""
        for start in range(0, len(self.often), size):
            yield self.pool[:, start : start + size], self.often[start : start + size]

    def draw(self, few: int, random: Random) -> IntArray:
        """By their records in the pool."""
        ends = np.cumsum(self.often)
        return np.searchsorted(ends, random.choice(int(ends[-1]), few, replace=False), side="right").astype(np.int64)

    def at(self, places: IntArray) -> IntArray:
        """These records."""
        return self.pool[:, places]

    def replace(self, places: IntArray, pool: IntArray, coming: IntArray) -> None:
        """One less of each, and one more of others of the same pool."""
        np.subtract.at(self.often, places, 1)
        np.add.at(self.often, coming, 1)

    def count_groups(self, column: int) -> IntArray:
        """How many have each group of a column."""
        counts = np.zeros(int(self.pool[column].max()) + 1, dtype=np.int64)
        np.add.at(counts, self.pool[column], self.often)
        return counts

    def deal(self, blocks: int, random: Random) -> Iterator[IntArray]:
        """Every record as often in each block as in the others, but for one at random."""
        start, done = random.random(len(self.often)), np.zeros(len(self.often), dtype=np.int64)
        for number in range(1, blocks + 1):
            until = self.often if number == blocks else np.floor(self.often * (number / blocks) + start).astype(np.int64)
            yield self.pool[:, np.repeat(np.arange(len(done)), until - done)]
            done = until


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of all pairs and columns, one behind the other. `starts`: where each begins; `of_cells`: the weight of each
    cell's table."""

    one: IntArray
    other: IntArray
    widths: IntArray
    starts: IntArray
    targets: FloatArray
    weights: FloatArray
    of_cells: FloatArray

    @classmethod
    def of(cls, linked: Linked) -> _Tables:
        """Those that groups are linked by."""
        pairs, tables = list(linked.links), [link.table for link in linked.links.values()]
        sizes = [table.size for table in tables] + [len(held) for held in linked.held]
        starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        weights = np.append(np.ones(len(tables)), np.full(len(linked.held), _COLUMN_WEIGHT))
        return cls(
            one=np.array([pair[0] for pair in pairs], dtype=np.int64),
            other=np.array([pair[1] for pair in pairs], dtype=np.int64),
            widths=np.array([table.shape[1] for table in tables], dtype=np.int64),
            starts=starts,
            targets=np.concatenate([*(table.ravel() for table in tables), *linked.held]),
            weights=weights,
            of_cells=np.repeat(weights, sizes),
        )

    def find(self, rows: IntArray, into: IntArray) -> IntArray:
        """The cell of each row in each table, `into` an array of tables by rows: a table at a time, which stays in the cache."""
        pairs = len(self.one)
        for place, (one, other, width) in enumerate(zip(self.one, self.other, self.widths, strict=True)):
            np.multiply(rows[one], width, out=into[place])
            into[place] += rows[other]
            into[place] += self.starts[place]
        np.add(rows, self.starts[pairs:, np.newaxis], out=into[pairs:])
        return into

    def gain(self, off: FloatArray, before: IntArray, after: IntArray, into: FloatArray) -> FloatArray:
        """By how much it is better, row by row, that cells are others than before."""
        now = np.empty(before.shape[1])
        for was, becomes, of_table in zip(before, after, into, strict=True):
            np.take(off, becomes, out=of_table, mode="clip")
            of_table -= np.take(off, was, out=now, mode="clip")
            of_table -= 1
            np.copyto(of_table, 0.0, where=was == becomes)
        return self.weights @ into

    def count(self, cells: IntArray, often: IntArray | None = None) -> FloatArray:
        """How many rows are in each cell, each row once or so often."""
        weights = None if often is None else np.tile(often, len(cells))
        return np.bincount(cells.ravel(), weights, minlength=len(self.targets)).astype(np.float64)

    def measure(self, off: FloatArray) -> float:
        """The weighted sum of squares of what tables are off."""
        return float(self.of_cells @ (off * off))


def exchange_rows(rows: Rows, pool: IntArray, weights: FloatArray, linked: Linked, random: Random) -> None:
    """Exchange some of the rows for others of the pool."""
    tables, count = _Tables.of(linked), rows.count
    off = tables.targets.copy()
    for some, often in rows.parts(_MOST):
        off -= tables.count(tables.find(some, np.empty((len(tables.weights), some.shape[1]), dtype=np.int64)), often)
    worst, tried = tables.measure(off), min(max(count // _SHARE, _LEAST), _MOST, count)
    ends, at_once = np.cumsum(weights) / weights.sum(), tried
    before, after = (np.empty((len(tables.weights), tried), dtype=np.int64) for _ in range(2))
    gains = np.empty(before.shape)
    for _ in range(ROUNDS):
        leaving = rows.draw(tried, random)
        coming = np.minimum(np.searchsorted(ends, random.random(tried)), len(ends) - 1)
        tables.find(rows.at(leaving), before)
        tables.find(pool[:, coming], after)
        gain = tables.gain(off, before, after, gains)
        best = np.argsort(-gain, kind="stable")[:at_once]
        best = best[gain[best] > 0]
        changed = off + tables.count(before[:, best]) - tables.count(after[:, best])
        now = tables.measure(changed)
        if now < worst:
            off, worst, at_once = changed, now, min(2 * at_once, tried)
            rows.replace(leaving[best], pool, coming[best])
        else:
            at_once = max(at_once // 2, 1)
