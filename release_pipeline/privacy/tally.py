"""The tally of a column: its different entries, and how many records have each. Whatever ranks or counts
are asked of a sorted column, its tally answers, and it is as long as the grid at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.counting import DENSE
from release_pipeline.privacy.grid import FloatArray, IntArray


@dataclass(frozen=True, slots=True, repr=False)
class Tally:
    """`entries`: the different ones, ascending; `ends`: how many records have each or a smaller one."""

    entries: IntArray
    ends: IntArray

    @classmethod
    def of(cls, entries: npt.NDArray[np.integer]) -> Tally:
        """The tally of records that have these entries, in any order.

        >>> [part.tolist() for part in (Tally.of(np.array([3, 5, 3])).entries, Tally.of(np.array([3, 5, 3])).ends)]
        [[3, 5], [2, 3]]
        """
        size = int(entries.max()) + 1 if len(entries) and entries.min() >= 0 else 0
        if 0 < size <= min(DENSE, 4 * len(entries)):
            return cls.of_counts(np.arange(size), np.bincount(entries, minlength=size))
        return cls.of_counts(*np.unique(entries, return_counts=True))

    @classmethod
    def of_counts(cls, entries: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]) -> Tally:
        """The tally of ascending entries that so many records have; those that none has are left out."""
        held = counts > 0
        return cls(entries[held].astype(np.int64), np.cumsum(counts[held], dtype=np.int64))

    @property
    def counts(self) -> IntArray:
        """How many records have each entry."""
        return np.diff(self.ends, prepend=0)

    def __len__(self) -> int:
        """How many records there are."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def at(self, ranks: npt.NDArray[np.integer]) -> IntArray:
        """The entries of the records of these ranks, 0 being the smallest.

        >>> Tally.of(np.array([3, 5, 3])).at(np.array([0, 1, 2])).tolist()
        [3, 3, 5]
        """
        return self.entries[np.searchsorted(self.ends, ranks, side="right")]

    def count_below(self, entries: npt.ArrayLike) -> IntArray:
        """How many records have smaller entries than each of these.

        >>> Tally.of(np.array([3, 5, 3])).count_below([3, 4, 9]).tolist()
        [0, 2, 3]
        """
        return self._before(np.searchsorted(self.entries, entries))

    def count_within(self, edges: npt.ArrayLike) -> IntArray:
        """How many records have entries from each edge to the one before the next.

        >>> Tally.of(np.array([3, 5, 3])).count_within([0, 4, 6]).tolist()
        [2, 1]
        """
        return np.diff(self.count_below(edges))

    def between(self, first: int, beyond: int) -> Tally:
        """The tally of the records whose entries are first .. beyond - 1."""
        start, stop = np.searchsorted(self.entries, [first, beyond])
        before = self.ends[start - 1] if start else 0
        return Tally(self.entries[start:stop], self.ends[start:stop] - before)

    def sum_ranks(self, starts: npt.NDArray[np.integer]) -> IntArray:
        """The exact sum of the entries of each run of ranks: from one of these to before the next, the last to
        the end. Sums beyond 64 bits on the way do no harm, if each run's own fits.

        >>> Tally.of(np.array([3, 5, 3, 9])).sum_ranks(np.array([0, 1])).tolist()
        [3, 17]
        """
        place = np.searchsorted(self.ends, starts, side="right")
        totals = np.append(0, np.cumsum(self.entries * self.counts))
        sums = totals[place] + (starts - self._before(place)) * self.entries[place]
        return np.diff(np.append(sums, totals[-1]))

    def _before(self, places: npt.NDArray[np.intp]) -> IntArray:
        """How many records come before the entry at each of these places."""
        return np.append(0, self.ends)[places]


def compare_ranks(entries: Tally, others: Tally) -> float:
    """The mean squared difference of entries of equal ranks, over the variance of the first; 0 where they are all
    alike. Of columns of other lengths a rank is a share of each."""
    own, theirs = entries.ends * len(others), others.ends * len(entries)
    ends = np.union1d(own, theirs)
    shares = np.diff(ends, prepend=0) / ends[-1]
    one = entries.entries[np.searchsorted(own, ends)].astype(np.float64)
    other = others.entries[np.searchsorted(theirs, ends)]
    variance = np.sum(shares * np.square(one - np.sum(shares * one)))
    return float(np.sum(shares * np.square(one - other)) / variance) if len(entries.entries) > 1 else 0.0


def find_gap(entries: Tally, others: Tally) -> float:
    """The largest difference of the two distribution functions (Kolmogorov-Smirnov)."""
    places = np.union1d(entries.entries, others.entries) + 1
    return float(np.max(np.abs(entries.count_below(places) / len(entries) - others.count_below(places) / len(others))))


def share_at_entries(entries: Tally, points: IntArray) -> FloatArray:
    """The share of records at each of these entries."""
    return (entries.count_below(points + 1) - entries.count_below(points)) / len(entries)
