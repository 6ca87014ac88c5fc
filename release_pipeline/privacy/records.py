"""What is done to arrays as long as the table, behind one narrow interface: records are ranked, spread and shuffled.

Everything else of a method takes one entry for each cluster (`ClusterFacts`) and does not mind where the records are. `ARRAYS`
has them in memory; with other `Arrays` they lie on disk. One that keeps them elsewhere must give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.arrays import IN_MEMORY, Arrays
from release_pipeline.privacy.clusters import rank_clusters
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions

Scalar = TypeVar("Scalar", bound=np.generic)


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

    @property
    def ordered(self) -> IntArray:
        """The value of each record, ascending."""
        ...

    def count_within(self, edges: IntArray) -> IntArray:
        """How many records have values from each of these edges to the one before the next."""
        ...

    @property
    def cluster(self) -> npt.NDArray[np.intp]:
        """The cluster of each record."""
        ...


class Records(Protocol):
    """Where the records are, and what can be done to all of them."""

    @property
    def arrays(self) -> Arrays:
        """Where arrays of theirs lie."""
        ...

    def rank(self, units: IntArray, k: int, *, ties: NoiseStream) -> RankedRecords:
        """Clusters of k in ascending order; equal values in the keyed order of `ties`."""
        ...

    def spread(self, per_cluster: npt.NDArray[Scalar], cluster: npt.NDArray[np.intp]) -> npt.NDArray[Scalar]:
        """One entry for each cluster, given to each of its records."""
        ...

    def shuffle(self, count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
        """A keyed random order of so many records."""
        ...


@dataclass(frozen=True, slots=True)
class ArrayRecords:
    """Arrays of NumPy, wherever these lie."""

    arrays: Arrays

    def rank(self, units: IntArray, k: int, *, ties: NoiseStream) -> RankedRecords:
        """One sort of 64-bit words (`sort_records`)."""
        return rank_clusters(units, k, ties=ties, arrays=self.arrays)

    def spread(self, per_cluster: npt.NDArray[Scalar], cluster: npt.NDArray[np.intp]) -> npt.NDArray[Scalar]:
        """By the index of each record's cluster."""
        return self.arrays.take(per_cluster, cluster)

    def shuffle(self, count: int, stream: NoiseStream) -> npt.NDArray[np.intp]:
        """By one random word for each record."""
        return shuffled_positions(count, stream, self.arrays)


ARRAYS: Records = ArrayRecords(IN_MEMORY)
