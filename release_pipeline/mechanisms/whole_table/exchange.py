"""Rows exchanged until their tables are as the noisy counts say: a sample of the pool is off by chance only, which is more than
the noise where there are few rows or much budget.

All of it reads noisy counts only. What a batch of exchanges makes worse is not done, and then fewer are tried at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.noise.unclaimed import Random
from release_pipeline.mechanisms.whole_table.pool import Linked

ROUNDS = 400
_SHARE, _LEAST, _MOST = 50, 50, 4_000  # rows that are tried at once: one of so many, and within limits
_COLUMN_WEIGHT = 4.0  # of a column's own table compared with those of pairs


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Rows of groups, by how often each record of the pool is one: very many rows are no more than the pool. `pool`:
    columns by records."""

    pool: IntArray
    often: IntArray

    def draw(self, few: int, random: Random) -> IntArray:
        """The records of so many rows, none of these twice, in the order of the pool."""
        ends = np.cumsum(self.often)
        numbers = np.sort(random.choice(int(ends[-1]), few, replace=False))  # in order they are found much faster
        return np.searchsorted(ends, numbers, side="right").astype(np.int64)

    def replace(self, leaving: IntArray, coming: IntArray) -> None:
        """One row less of each of these records, and one more of each of others."""
        np.subtract.at(self.often, leaving, 1)
        np.add.at(self.often, coming, 1)

    def count_groups(self, column: int, groups: int) -> IntArray:
        """How many rows have each of so many groups of a column."""
        return np.bincount(self.pool[column], self.often, groups).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of all pairs and columns, one behind the other. `starts`: where each begins; `of_cells`: the weight of each
    cell's table."""

    first_columns: IntArray
    second_columns: IntArray
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
            first_columns=np.array([pair[0] for pair in pairs], dtype=np.int64),
            second_columns=np.array([pair[1] for pair in pairs], dtype=np.int64),
            widths=np.array([table.shape[1] for table in tables], dtype=np.int64),
            starts=starts,
            targets=np.concatenate([*(table.ravel() for table in tables), *linked.held]),
            weights=weights,
            of_cells=np.repeat(weights, sizes),
        )

    def find(self, rows: IntArray, into: IntArray) -> IntArray:
        """The cell of each row in each table, `into` an array of tables by rows: a table at a time, which stays in the cache."""
        pairs = len(self.first_columns)
        for index, (first, second, width) in enumerate(zip(self.first_columns, self.second_columns, self.widths, strict=True)):
            np.multiply(rows[first], width, out=into[index])
            into[index] += rows[second]
            into[index] += self.starts[index]
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
        return np.einsum("t,tr->r", self.weights, into)  # many threads would not pay

    def count(self, cells: IntArray, often: IntArray | None = None) -> FloatArray:
        """How many rows are in each cell, each row once or so often."""
        weights = None if often is None else np.tile(often, len(cells))
        return np.bincount(cells.ravel(), weights, minlength=len(self.targets)).astype(np.float64)

    def measure(self, off: FloatArray) -> float:
        """The weighted sum of squares of what tables are off."""
        return float(self.of_cells @ (off * off))


def exchange_rows(rows: Rows, weights: FloatArray, linked: Linked, random: Random) -> None:
    """Exchange some of the rows for others of the pool, whose records are as likely as their weights say."""
    tables, pool, count = _Tables.of(linked), rows.pool, int(rows.often.sum())
    off = tables.targets.copy()
    for start in range(0, pool.shape[1], _MOST):
        some = pool[:, start : start + _MOST]
        cells = tables.find(some, np.empty((len(tables.weights), some.shape[1]), dtype=np.int64))
        off -= tables.count(cells, rows.often[start : start + _MOST])
    worst, tried = tables.measure(off), min(max(count // _SHARE, _LEAST), _MOST, count)
    ends, at_once = np.cumsum(weights) / weights.sum(), tried
    before, after = (np.empty((len(tables.weights), tried), dtype=np.int64) for _ in range(2))
    gains = np.empty(before.shape)
    for _ in range(ROUNDS):
        leaving = rows.draw(tried, random)
        coming = np.minimum(np.searchsorted(ends, np.sort(random.random(tried))), len(ends) - 1)[random.permutation(tried)]
        tables.find(pool[:, leaving], before)
        tables.find(pool[:, coming], after)
        gain = tables.gain(off, before, after, gains)
        best = np.argsort(-gain, kind="stable")[:at_once]
        best = best[gain[best] > 0]
        changed = off + tables.count(before[:, best]) - tables.count(after[:, best])
        now = tables.measure(changed)
        if now < worst:
            off, worst, at_once = changed, now, min(2 * at_once, tried)
            rows.replace(leaving[best], coming[best])
        else:
            at_once = max(at_once // 2, 1)
