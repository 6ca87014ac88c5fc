"""Clusters of consecutive records of an order: k by k, the last one k to 2k-1. In the order of one attribute they are the rank
clusters of methods.md section 1; `curve` has orders of whole records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, PositionMixer, WordArray

_u64 = np.uint64
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
        return self.spread(np.arange(self.count, dtype=np.intp))

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """The cluster index of each rank."""
        return np.repeat(np.arange(self.count, dtype=np.intp), self.size)

    def spread(self, per_cluster: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """One entry per cluster, given to each of its records."""
        of_record = np.empty(len(self.order), dtype=per_cluster.dtype)
        of_record[self.order] = np.repeat(per_cluster, self.size)
        return of_record


@dataclass(frozen=True, slots=True, repr=False)
class RankClusters(OrderClusters):
    """Clusters in ascending order of one attribute: `ordered[r]` is the value of the record of rank r."""

    ordered: IntArray

    def sums(self) -> IntArray:
        """The exact integer sum of each cluster; refused where one could leave 64 bits."""
        if max(abs(int(self.ordered[0])), abs(int(self.ordered[-1]))) * int(self.size.max()) >= 2**63:
            raise InvalidArgument("cluster sums would not fit 64-bit integers.", remedy="Use a smaller k or a coarser grid.")
        return np.add.reduceat(self.ordered, self.start)

    def first(self, place: int) -> IntArray:
        """The value at `place` from the start of each cluster (0: the smallest)."""
        return self.ordered[self.start + place]

    def last(self, place: int) -> IntArray:
        """The value at `place` from the end of each cluster (0: the largest)."""
        return self.ordered[self.start + self.size - 1 - place]

    def count_within(self, edges: IntArray) -> IntArray:
        """How many records have values from each of these edges to the one before the next."""
        return count_ordered(self.ordered, edges)


def count_ordered(ordered: IntArray, edges: IntArray) -> IntArray:
    """How many of these numbers, ascending, lie from each edge to the one before the next.

    >>> count_ordered(np.array([0, 0, 3, 7]), np.array([0, 1, 7, 9])).tolist()
    [2, 1, 1]
    """
    return np.diff(np.searchsorted(ordered, edges))


def rank_clusters(values: npt.ArrayLike, k: int, *, ties: NoiseStream | None = None) -> RankClusters:
    """The rank clusters of integer `values`: every cluster has k records, the last one n - k (floor(n/k) - 1).

    Equal values are ordered by a keyed permutation of their positions drawn from `ties`, or by position if there is none.

    >>> rank_clusters([30, 10, 20, 10, 50], 2).cluster.tolist()
    [1, 0, 1, 0, 1]
    """
    q = np.asarray(values)
    if q.ndim != 1 or q.dtype.kind not in "iu":
        raise InvalidType("rank clusters are made of one dimension of integers: put the values on their grid first.")
    if q.dtype.kind == "u" and len(q) and int(q.max()) >= 2**63:
        raise InvalidArgument("a value is beyond 64-bit integers.")
    start, size = cut_ranks(len(q), k)
    order, words = sort_records([q], ties)
    return RankClusters(order, start, size, words.view(np.int64))


def cut_ranks(n: int, k: int) -> tuple[npt.NDArray[np.intp], IntArray]:
    """The first rank and the size of each cluster of n records: all of k, and the last one with the rest."""
    if k < 1:
        raise InvalidArgument("k is below 1.")
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one cluster of {k:,}.", remedy="Lower k or publish more records.")
    clusters = n // k
    size = np.full(clusters, k, dtype=np.int64)
    size[-1] = n - (clusters - 1) * k
    return np.arange(clusters, dtype=np.intp) * k, size


def sort_records(columns: Sequence[npt.NDArray[Any]], ties: NoiseStream | None) -> tuple[npt.NDArray[np.intp], WordArray]:
    """The records in ascending order of the first column, equal ones of the next, and so on, and the first column so sorted.

    Records that are equal in all columns are ordered by a keyed permutation of their positions drawn from `ties`, or by position.
    The sorted column comes as words modulo 2^64: seen as int64 they are its values if they are signed.

    One sort of 64-bit words [first column | keyed position] where both fit; where they do not, the column's low bits are left out
    and the runs that this leaves undecided are put right afterwards, as are those that only a later column decides. Integer
    comparisons only: every processor gives the same order.
    """
    first = columns[0]
    n, lowest, highest = len(first), int(first.min()), int(first.max())
    place_bits = max((n - 1).bit_length(), 1)
    left_out = max((highest - lowest).bit_length() + place_bits - 64, 0)
    mixer = None if ties is None else PositionMixer(place_bits, ties)
    packing = _Packing(lowest % 2**64, left_out, place_bits, mixer)
    packed = packing.pack(first)
    packed.sort()
    unsettled = columns if left_out else columns[1:]
    if not unsettled:
        return packing.unmix(packing.find_place(packed)), packing.find_value(packed)
    places = packing.find_place(packed)
    _settle_runs(unsettled, places, packing.find_first(packed), mixer)
    order = packing.unmix(places)
    return order, first[order].astype(np.uint64) if left_out else packing.find_value(packed)


@dataclass(frozen=True, slots=True)
class _Packing:
    """Words of a value above `base`, less its lowest bits that are `left_out`, and of so many bits for a keyed place."""

    base: int
    left_out: int
    place_bits: int
    mixer: PositionMixer | None

    def pack(self, values: npt.NDArray[Any]) -> WordArray:
        """The words of the records."""
        words = np.arange(len(values), dtype=np.uint64)
        if self.mixer is not None:
            self.mixer.mix(words)
        above = values.astype(np.uint64)
        above -= _u64(self.base)
        above >>= _u64(self.left_out)
        above <<= _u64(self.place_bits)
        words |= above
        return words

    def find_first(self, words: WordArray) -> WordArray:
        """What they have of the value."""
        return words >> _u64(self.place_bits)

    def find_value(self, words: WordArray) -> WordArray:
        """The value, where nothing of it is left out."""
        values = self.find_first(words)
        values += _u64(self.base)
        return values

    def find_place(self, words: WordArray) -> WordArray:
        """The keyed place."""
        return words & _u64((1 << self.place_bits) - 1)

    def unmix(self, places: WordArray) -> npt.NDArray[np.intp]:
        """The records of keyed places, in the memory of these."""
        records = places if self.mixer is None else self.mixer.unmix(places)
        return records.view(np.int64).astype(np.intp, copy=False)


def _settle_runs(columns: Sequence[npt.NDArray[Any]], places: WordArray, ordered: WordArray, mixer: PositionMixer | None) -> None:
    """Put `places` (keyed positions in the order of `ordered`, equal ones ascending) in order where `columns` decide."""
    if not columns:
        return
    follows = np.empty(len(ordered), dtype=np.bool_)  # not yet told apart from the one before
    follows[0] = False
    np.equal(ordered[1:], ordered[:-1], out=follows[1:])
    ranks = np.flatnonzero(_in_runs(follows))
    follows = follows[ranks]
    keyed = places[ranks]
    records = (keyed.copy() if mixer is None else mixer.unmix(keyed.copy())).view(np.int64).astype(np.intp, copy=False)
    for column in columns:
        if not len(ranks):
            return
        values = column[records]
        descents = np.flatnonzero(follows[1:] & (values[1:] < values[:-1]))
        if len(descents):
            run = np.cumsum(~follows)
            unsorted = np.zeros(int(run[-1]) + 1, dtype=np.bool_)
            unsorted[run[descents]] = True
            wrong = np.flatnonzero(unsorted[run])
            # a stable sort by (run, value) sorts each run in its place, and leaves equal values in the order of keyed positions
            right = wrong[np.lexsort((values[wrong], run[wrong]))]
            keyed[wrong], records[wrong], values[wrong] = keyed[right], records[right], values[right]
            places[ranks[wrong]] = keyed[wrong]
        follows[1:] &= values[1:] == values[:-1]
        left = _in_runs(follows)
        ranks, keyed, records, follows = ranks[left], keyed[left], records[left], follows[left]


def _in_runs(follows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether an entry follows another or is followed by one."""
    within = follows.copy()
    within[:-1] |= follows[1:]
    return within
