"""The tally of a column: its different entries or values, and how many records have each. It answers all questions about ranks
and counts of a sorted column, and is at most as long as the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.counting import DENSE, sum_counts
from release_pipeline.mechanisms.basis.grid import IntArray


def is_dense(span: int, records: int) -> bool:
    """Return whether an array of all possible entries in a span is no longer than arrays of so many records."""
    return span <= min(DENSE, 2 * records)


@dataclass(frozen=True, slots=True, repr=False)
class Tally:
    """The different `entries`, ascending, and their `ends`: how many records have each or a smaller one."""

    entries: npt.NDArray[Any]
    ends: IntArray

    @classmethod
    def of(cls, entries: npt.NDArray[Any]) -> Tally:
        """Return the tally of records with these entries, in any order.

        >>> [part.tolist() for part in (Tally.of(np.array([3, 5, 3])).entries, Tally.of(np.array([3, 5, 3])).ends)]
        [[3, 5], [2, 3]]
        """
        is_whole = entries.dtype.kind in "iu" and len(entries) > 0 and entries.min() >= 0
        size = int(entries.max()) + 1 if is_whole else 0
        if size and is_dense(size, len(entries)):
            counts = np.bincount(entries)
            held = np.flatnonzero(counts)
            return cls(held, np.cumsum(counts[held], dtype=np.int64))
        return cls.of_counts(*np.unique(entries, return_counts=True))

    @classmethod
    def of_counts(cls, entries: npt.NDArray[Any], counts: npt.NDArray[np.integer]) -> Tally:
        """Return the tally of ascending entries with so many records each; entries without records are left out."""
        held = counts > 0
        return cls(entries[held], np.cumsum(counts[held], dtype=np.int64))

    @classmethod
    def of_clusters(cls, values: npt.NDArray[Any], sizes: npt.NDArray[np.integer]) -> Tally:
        """Return the tally of records, so many of which have each of these values, in any order."""
        if np.all(values[1:] >= values[:-1]):
            return cls.of_ascending(values, np.cumsum(sizes, dtype=np.int64))
        return cls.of_counts(*sum_counts(values, sizes))

    @classmethod
    def of_ascending(cls, values: npt.NDArray[Any], ends: IntArray | None = None) -> Tally:
        """Return the tally of records in the order of these values: one each, or `ends` records up to each value."""
        last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
        return cls(values[last], last + 1 if ends is None else ends[last])

    @property
    def counts(self) -> IntArray:
        """Return how many records have each entry."""
        return np.diff(self.ends, prepend=0)

    def __len__(self) -> int:
        """Return how many records there are."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def at(self, ranks: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the entries of the records of these ranks, 0 being the smallest.

        >>> Tally.of(np.array([3, 5, 3])).at(np.array([0, 1, 2])).tolist()
        [3, 3, 5]
        """
        return self.entries[np.searchsorted(self.ends, ranks, side="right")]

    def count_below(self, entries: npt.ArrayLike) -> IntArray:
        """Return how many records have smaller entries than each of these.

        >>> Tally.of(np.array([3, 5, 3])).count_below([3, 4, 9]).tolist()
        [0, 2, 3]
        """
        return self._before(np.searchsorted(self.entries, entries))

    def count_up_to(self, entries: npt.ArrayLike) -> IntArray:
        """Return how many records have each of these entries or smaller ones."""
        return self._before(np.searchsorted(self.entries, entries, side="right"))

    def count_within(self, edges: npt.ArrayLike) -> IntArray:
        """Return how many records have entries from each edge to the one before the next.

        >>> Tally.of(np.array([3, 5, 3])).count_within([0, 4, 6]).tolist()
        [2, 1]
        """
        return np.diff(self.count_below(edges))

    def sum_clusters(self, sizes: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the sum of the entries of each cluster of so many consecutive ranks; the clusters cover all records. Sums of
        whole numbers are right modulo 2^64.

        >>> Tally.of(np.array([3, 5, 3, 3])).sum_clusters(np.array([2, 2])).tolist()
        [6, 8]
        """
        beyond = np.cumsum(sizes)
        place = np.searchsorted(self.ends, beyond)  # the entry of the last record of each cluster
        sums = np.cumsum(self.entries * self.counts)[place] - (self.ends[place] - beyond) * self.entries[place]
        return np.diff(sums, prepend=0)

    def head(self, count: int) -> Tally:
        """Return the tally of so many records with the smallest entries."""
        held = np.searchsorted(self.ends, count) + 1
        return Tally(self.entries[:held], np.minimum(self.ends[:held], count))

    def between(self, first: int, beyond: int) -> Tally:
        """Return the tally of the records whose entries are from `first` up to, but not including, `beyond`."""
        start, stop = np.searchsorted(self.entries, [first, beyond])
        before = self.ends[start - 1] if start else 0
        return Tally(self.entries[start:stop], self.ends[start:stop] - before)

    def _before(self, places: npt.NDArray[np.intp]) -> IntArray:
        """Return how many records come before the entry at each of these positions."""
        return np.append(0, self.ends)[places]
