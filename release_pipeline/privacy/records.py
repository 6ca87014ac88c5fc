"""What is done to arrays as long as the table, behind one narrow interface: records are ranked, counted, spread and shuffled.

Everything else of a method takes one entry for each cluster (`ClusterFacts`) and does not mind where the records are. `ARRAYS`
has them in memory, and is the only implementation for now; one that keeps them elsewhere must give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.clusters import rank_clusters
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.groups import group_by
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions

Scalar = TypeVar("Scalar", bound=np.generic)
_CHUNK = 1 << 16


class ClusterFacts(Protocol):
    """What the formulas of a method take of its clusters: arrays with one entry for each, of n/k numbers."""

    @property
    def size(self) -> IntArray:
        """How many records each has."""
        ...

    @property
    def count(self) -> int:
        """How many clusters there are."""
        ...

    def sums(self) -> IntArray:
        """The exact sum of each."""
        ...

    def first(self, place: int) -> IntArray:
        """The value at `place` from the start of each, 0 to 2 (0: the smallest)."""
        ...

    def last(self, place: int) -> IntArray:
        """The value at `place` from the end of each, 0 to 2 (0: the largest)."""
        ...


class RankedRecords(ClusterFacts, Protocol):
    """Records in clusters of consecutive ranks."""

    def count_within(self, edges: IntArray) -> IntArray:
        """How many records have values from each of these edges to the one before the next."""
        ...

    @property
    def cluster(self) -> npt.NDArray[np.intp]:
        """The cluster of each record."""
        ...


class Records(Protocol):
    """Where the records are, and what can be done to all of them."""

    def rank(self, units: IntArray, k: int, *, ties: NoiseStream) -> RankedRecords:
        """Clusters of k in ascending order; equal values in the keyed order of `ties`."""
        ...

    def spread(self, per_cluster: npt.NDArray[Scalar], cluster: npt.NDArray[np.intp]) -> npt.NDArray[Scalar]:
        """One entry for each cluster, given to each of its records."""
        ...

    def count_equal(self, codes: Iterable[npt.NDArray[np.integer[Any]]]) -> IntArray:
        """For each record how many have the same codes in all of these columns, at least one."""
        ...

    def shuffle(self, count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
        """A keyed random order of so many records."""
        ...


class InMemory:
    """NumPy arrays."""

    def rank(self, units: IntArray, k: int, *, ties: NoiseStream) -> RankedRecords:
        """One sort of 64-bit words (`sort_records`)."""
        return rank_clusters(units, k, ties=ties)

    def spread(self, per_cluster: npt.NDArray[Scalar], cluster: npt.NDArray[np.intp]) -> npt.NDArray[Scalar]:
        """By the index of each record's cluster."""
        return per_cluster[cluster]

    def count_equal(self, codes: Iterable[npt.NDArray[np.integer[Any]]]) -> IntArray:
        """By the number of each record's group."""
        group = group_by(codes)
        sizes = np.bincount(group)
        for start in range(0, len(group), _CHUNK):
            part = slice(start, start + _CHUNK)
            group[part] = sizes[group[part]]
        return group

    def shuffle(self, count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
        """By one random word for each record."""
        return shuffled_positions(count, stream)


ARRAYS: Records = InMemory()
