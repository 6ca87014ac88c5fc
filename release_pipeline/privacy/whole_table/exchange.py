"""Rows exchanged until their tables are as the noisy counts say: a sample of the pool is off by chance alone, which is more than
the noise where there are few rows or much budget.

All of it reads noisy counts alone. What a batch of exchanges makes worse is not done, and then fewer are tried at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.pool import Linked

ROUNDS = 400
_SHARE, _LEAST, _MOST = 50, 50, 4_000  # rows that are tried at once: one of so many, and within limits
_COLUMN_WEIGHT = 4.0  # of a column's own table beside those of pairs


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of all pairs and columns, one behind the other. `starts`: where each begins."""

    one: IntArray
    other: IntArray
    widths: IntArray
    starts: IntArray
    targets: FloatArray
    weights: FloatArray

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
        )

    def find(self, rows: IntArray) -> IntArray:
        """The cell of each row in each table."""
        pairs = rows[self.one] * self.widths[:, np.newaxis] + rows[self.other]
        return np.concatenate([pairs, rows]) + self.starts[:, np.newaxis]

    def count(self, cells: IntArray) -> FloatArray:
        """How many rows are in each cell."""
        return np.bincount(cells.ravel(), minlength=len(self.targets)).astype(np.float64)

    def measure(self, off: FloatArray) -> float:
        """The weighted sum of squares of what tables are off."""
        sizes = np.diff(np.append(self.starts, len(self.targets)))
        return float(np.repeat(self.weights, sizes) @ (off * off))


def exchange_rows(chosen: IntArray, pool: IntArray, weights: FloatArray, linked: Linked, random: Random) -> IntArray:
    """The chosen rows, some of them exchanged for others of the pool; columns by rows."""
    tables, rows = _Tables.of(linked), chosen.copy()
    count: int = rows.shape[1]
    off = tables.targets.copy()
    for start in range(0, count, _MOST):
        off -= tables.count(tables.find(rows[:, start : start + _MOST]))
    worst, tried = tables.measure(off), min(max(count // _SHARE, _LEAST), _MOST, count)
    ends, at_once = np.cumsum(weights) / weights.sum(), tried
    for _ in range(ROUNDS):
        leaving: IntArray = random.permutation(count)[:tried]
        coming = np.minimum(np.searchsorted(ends, random.random(tried)), len(ends) - 1)
        before, after = tables.find(rows[:, leaving]), tables.find(pool[:, coming])
        gain = tables.weights @ np.where(before != after, off[after] - off[before] - 1, 0.0)
        best = np.argsort(-gain, kind="stable")[:at_once]
        best = best[gain[best] > 0]
        changed = off + tables.count(before[:, best]) - tables.count(after[:, best])
        now = tables.measure(changed)
        if now < worst:
            off, worst, at_once = changed, now, min(2 * at_once, tried)
            rows[:, leaving[best]] = pool[:, coming[best]]
        else:
            at_once = max(at_once // 2, 1)
    return rows
