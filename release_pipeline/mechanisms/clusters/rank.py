"""Clusters of consecutive records, random parts of a table, and what is done to arrays as long as it.

Clusters of consecutive records of an order: k by k, the last one k to 2k-1. In the order of one attribute they are the rank
clusters of methods.md section 1; `curve` has orders of whole records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.noise import NoiseStream, mix_positions, shuffled_positions


@dataclass(frozen=True, slots=True, repr=False)
class OrderClusters:
    """n records in floor(n/k) clusters of consecutive ranks of a total order.

    `order[r]` is the record of rank r; cluster j holds ranks start[j] .. start[j] + size[j] - 1.
    """

    order: npt.NDArray[np.intp]
    start: npt.NDArray[np.intp]
    size: IntArray

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return len(self.size)

    @property
    def cluster(self) -> npt.NDArray[np.intp]:
        """The cluster index of each record."""
        of_record = np.empty(len(self.order), dtype=np.intp)
        of_record[self.order] = self.places
        return of_record

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """The cluster index of each rank."""
        return np.repeat(np.arange(self.count, dtype=np.intp), self.size)


@dataclass(frozen=True, slots=True, repr=False)
class RankClusters:
    """Clusters in ascending order of one attribute, by its tally. Equal values are alike: no figure depends on which of their
    records a cluster has. Cluster j holds ranks start[j] .. start[j] + size[j] - 1."""

    tally: Tally
    start: npt.NDArray[np.intp]
    size: IntArray

    @classmethod
    def of(cls, tally: Tally, k: int) -> RankClusters:
        """Those of the records of a tally: all of k, and the last one with the rest."""
        return cls(tally, *cut_ranks(len(tally), k))

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return len(self.size)

    def sums(self) -> IntArray:
        """The exact integer sum of each cluster; refused where one could leave 64 bits."""
        if max(abs(int(self.tally.entries[0])), abs(int(self.tally.entries[-1]))) * int(self.size.max()) >= 2**63:
            raise InvalidArgument("cluster sums would not fit 64-bit integers.", remedy="Use a smaller k or a coarser grid.")
        return self.tally.sum_clusters(self.size)

    def first(self, place: int) -> IntArray:
        """The value at `place` from the start of each cluster (0: the smallest)."""
        return self.tally.at(self.start + place)

    def last(self, place: int) -> IntArray:
        """The value at `place` from the end of each cluster (0: the largest)."""
        return self.tally.at(self.start + self.size - 1 - place)


def rank_clusters(values: npt.ArrayLike, k: int, *, ties: NoiseStream | None = None) -> npt.NDArray[np.integer[Any]]:
    """The rank cluster of each of these integers: every cluster has k, the last one n - k (floor(n/k) - 1).

    >>> rank_clusters([30, 10, 20, 10, 50], 2).tolist()
    [1, 0, 1, 0, 1]
    """
    q = np.asarray(values)
    if q.ndim != 1 or q.dtype.kind not in "iu":
        raise InvalidType("rank clusters are made of one dimension of integers: put the values on their grid first.")
    if q.dtype.kind == "u" and len(q) and int(q.max()) >= 2**63:
        raise InvalidArgument("a value is beyond 64-bit integers.")
    return rank_records(q.astype(np.int64, copy=False), k, ties)[1]


def rank_records(values: IntArray, k: int, ties: NoiseStream | None = None) -> tuple[Tally, npt.NDArray[np.integer[Any]]]:
    """The tally of these values, and the rank cluster of each record, in as few bytes as their number needs.

    Equal values are ordered by a keyed permutation of their positions drawn from `ties`, or by position if there is none.
    """
    last = count_clusters(len(values), k) - 1
    order = sort_records([values], ties)
    cluster = np.empty(len(values), dtype=np.int32 if last < 2**31 else np.int64)
    cluster[order] = np.minimum(np.arange(len(values)) // k, last)
    return Tally.of_ascending(values[order]), cluster


def count_clusters(n: int, k: int) -> int:
    """How many clusters of k records or more n of them make."""
    if k < 1:
        raise InvalidArgument("k is below 1.")
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one cluster of {k:,}.", remedy="Lower k or publish more records.")
    return n // k


def cut_ranks(n: int, k: int) -> tuple[npt.NDArray[np.intp], IntArray]:
    """The first rank and the size of each cluster of n records: all of k, and the last one with the rest."""
    clusters = count_clusters(n, k)
    size = np.full(clusters, k, dtype=np.int64)
    size[-1] = n - (clusters - 1) * k
    return np.arange(clusters, dtype=np.intp) * k, size


def sort_records(columns: Sequence[npt.NDArray[Any]], ties: NoiseStream | None) -> npt.NDArray[np.intp]:
    """The records in ascending order of the first column, equal ones of the next, and so on.

    Records that are equal in all columns are ordered by a keyed permutation of their positions drawn from `ties`, or by position.
    Integer comparisons only: every processor gives the same order.
    """
    places = np.arange(len(columns[0]), dtype=np.uint64)
    if ties is not None:
        places = mix_positions(places, max((len(places) - 1).bit_length(), 1), ties)
    return np.lexsort([places, *reversed(columns)])


# The least number of records of a class. For `lattice`, `cuts` and `mdav`.


def as_threshold(value: object, name: str) -> int:
    """`value` as k: a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidType(f"{name} must be a whole number.")
    number = int(cast(int, value))
    if number < 1:
        raise InvalidArgument(f"{name} is below 1.")
    return number


# Random parts of the records of a table (PRS20, methods.md section 5).
#
# Parts are drawn over the slots of the table, the numbers of its rows, and never look at a value or
# an identity: how many records a part has depends on n and P only, and a record that is replaced
# leaves its slot, and with it its part, to the one that replaces it. So neighbours differ in one
# part, and what is done to each part with streams of its own composes in parallel.


def draw_parts(slots: int, parts: int, stream: NoiseStream) -> IntArray:
    """The part, 0..parts-1, of each of so many slots: a keyed permutation cut into pieces whose sizes differ by at most one.

    >>> from release_pipeline.mechanisms.noise import noise_stream
    >>> np.bincount(draw_parts(10, 3, noise_stream(bytes(32)))).tolist()
    [4, 3, 3]
    """
    if not 1 <= parts <= slots:
        raise InvalidArgument("there must be at least one record for each part.", where="parts")
    part = np.empty(slots, dtype=np.int64)
    part[shuffled_positions(slots, stream)] = np.arange(slots, dtype=np.int64) * parts // slots
    return part
