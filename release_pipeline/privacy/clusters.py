"""Clusters of consecutive records of an order: k by k, the last one k to 2k-1. In the order of one attribute they are the rank
clusters of methods.md section 1; `curve` has orders of whole records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays, find_ends, make, pieces
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, PositionMixer, WordArray

_u64 = np.uint64
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True, repr=False)
class OrderClusters:
    """n records in floor(n/k) clusters of consecutive ranks of a total order.

    `order[r]` is the record of rank r; cluster j holds ranks start[j] .. start[j] + size[j] - 1.
    """

    order: npt.NDArray[np.intp]
    start: npt.NDArray[np.intp]
    size: IntArray
    arrays: Arrays = field(default=IN_MEMORY, kw_only=True)

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
        return self.arrays.put(partial(_repeat, per_cluster, int(self.size[0])), self.order, per_cluster.dtype)


def _repeat(per_cluster: npt.NDArray[Scalar], k: int, ranks: slice) -> npt.NDArray[Scalar]:
    """One entry per cluster of k, as often as it has some of these ranks; the last cluster has all that follow."""
    first, last = (min(rank // k, len(per_cluster) - 1) for rank in (ranks.start, ranks.stop - 1))
    often = np.full(last - first + 1, k)
    often[-1] = ranks.stop - last * k
    often[0] -= ranks.start - first * k
    return np.repeat(per_cluster[first : last + 1], often)


@dataclass(frozen=True, slots=True, repr=False)
class RankClusters(OrderClusters):
    """Clusters in ascending order of one attribute: `ordered[r]` is the value of the record of rank r."""

    ordered: IntArray

    def sums(self) -> IntArray:
        """The exact integer sum of each cluster; refused where one could leave 64 bits."""
        if max(abs(int(self.ordered[0])), abs(int(self.ordered[-1]))) * int(self.size.max()) >= 2**63:
            raise InvalidArgument("cluster sums would not fit 64-bit integers.", remedy="Use a smaller k or a coarser grid.")
        return self.arrays.fill(partial(_add_clusters, self.ordered, self.start), self.count, np.int64)

    def first(self, place: int) -> IntArray:
        """The value at `place` from the start of each cluster (0: the smallest)."""
        return self.arrays.fill(partial(_take_places, self.ordered, self.start, None, place), self.count, np.int64)

    def last(self, place: int) -> IntArray:
        """The value at `place` from the end of each cluster (0: the largest)."""
        return self.arrays.fill(partial(_take_places, self.ordered, self.start, self.size, place), self.count, np.int64)

    def count_within(self, edges: IntArray) -> IntArray:
        """How many records have values from each of these edges to the one before the next."""
        return count_ordered(self.ordered, edges)


def _add_clusters(ordered: IntArray, start: npt.NDArray[np.intp], clusters: slice) -> IntArray:
    """The sums of some clusters."""
    mine = start[clusters]
    end = int(start[clusters.stop]) if clusters.stop < len(start) else len(ordered)
    return np.add.reduceat(ordered[int(mine[0]) : end], mine - mine[0])


def _take_places(ordered: IntArray, start: npt.NDArray[np.intp], size: IntArray | None, place: int, clusters: slice) -> IntArray:
    """The value of some clusters at a place from the start, or from the end where sizes are given."""
    return ordered[start[clusters] + place if size is None else start[clusters] + size[clusters] - 1 - place]


def count_ordered(ordered: IntArray, edges: IntArray) -> IntArray:
    """How many of these numbers, ascending, lie from each edge to the one before the next.

    >>> count_ordered(np.array([0, 0, 3, 7]), np.array([0, 1, 7, 9])).tolist()
    [2, 1, 1]
    """
    return np.diff(np.searchsorted(ordered, edges))


def rank_clusters(values: npt.ArrayLike, k: int, *, ties: NoiseStream | None = None, arrays: Arrays = IN_MEMORY) -> RankClusters:
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
    start, size = cut_ranks(len(q), k, arrays)
    order, words = sort_records([q], ties, arrays)
    return RankClusters(order, start, size, words.view(np.int64), arrays=arrays)


def cut_ranks(n: int, k: int, arrays: Arrays = IN_MEMORY) -> tuple[npt.NDArray[np.intp], IntArray]:
    """The first rank and the size of each cluster of n records: all of k, and the last one with the rest."""
    if k < 1:
        raise InvalidArgument("k is below 1.")
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one cluster of {k:,}.", remedy="Lower k or publish more records.")
    clusters = n // k
    start = arrays.fill(partial(_start_clusters, k), clusters, np.intp)
    return start, arrays.fill(partial(_size_clusters, n, k, clusters), clusters, np.int64)


def _start_clusters(k: int, clusters: slice) -> npt.NDArray[np.intp]:
    return np.arange(clusters.start, clusters.stop, dtype=np.intp) * k


def _size_clusters(n: int, k: int, count: int, clusters: slice) -> IntArray:
    size = np.full(clusters.stop - clusters.start, k, dtype=np.int64)
    if clusters.stop == count:
        size[-1] = n - (count - 1) * k
    return size


def sort_records(
    columns: Sequence[npt.NDArray[Any]], ties: NoiseStream | None, arrays: Arrays = IN_MEMORY
) -> tuple[npt.NDArray[np.intp], WordArray]:
    """The records in ascending order of the first column, equal ones of the next, and so on, and the first column so sorted.

    Records that are equal in all columns are ordered by a keyed permutation of their positions drawn from `ties`, or by position.
    The sorted column comes as words modulo 2^64: seen as int64 they are its values if they are signed.

    One sort of 64-bit words [first column | keyed position] where both fit; where they do not, the column's low bits are left out
    and the runs that this leaves undecided are put right afterwards, as are those that only a later column decides. Integer
    comparisons only: every processor gives the same order.
    """
    first = columns[0]
    n, (lowest, highest) = len(first), map(int, find_ends(first, arrays))
    place_bits = max((n - 1).bit_length(), 1)
    left_out = max((highest - lowest).bit_length() + place_bits - 64, 0)
    mixer = None if ties is None else PositionMixer(place_bits, ties)
    packing = _Packing(lowest % 2**64, left_out, place_bits, mixer)
    packed = arrays.sort(arrays.fill(partial(packing.pack, first), n, np.uint64))
    unsettled = columns if left_out else columns[1:]
    if not unsettled:
        order = make(arrays, packing.find_record, packed, dtype=np.intp)
        return order, make(arrays, packing.find_value, packed, dtype=np.uint64)
    places = arrays.empty(n, np.uint64)  # one that no task has written: what is put right here nobody writes again
    for part in pieces(n):
        places[part] = packing.find_place(packed[part])
    _settle_runs(unsettled, places, make(arrays, packing.find_first, packed, dtype=np.uint64), mixer)
    order = make(arrays, packing.unmix, places, dtype=np.intp)
    if left_out:
        return order, make(arrays, _as_words, arrays.take(first, order), dtype=np.uint64)
    return order, make(arrays, packing.find_value, packed, dtype=np.uint64)


def _as_words(values: npt.NDArray[Any]) -> WordArray:
    return values.astype(np.uint64)


@dataclass(frozen=True, slots=True)
class _Packing:
    """Words of a value above `base`, less its lowest bits that are `left_out`, and of so many bits for a keyed place."""

    base: int
    left_out: int
    place_bits: int
    mixer: PositionMixer | None

    def pack(self, values: npt.NDArray[Any], part: slice) -> WordArray:
        """The words of some records."""
        words = np.arange(part.start, part.stop, dtype=np.uint64)
        if self.mixer is not None:
            self.mixer.mix(words)
        words |= ((values[part].astype(np.uint64) - _u64(self.base)) >> _u64(self.left_out)) << _u64(self.place_bits)
        return words

    def find_first(self, words: WordArray) -> WordArray:
        """What they have of the value."""
        return words >> _u64(self.place_bits)

    def find_value(self, words: WordArray) -> WordArray:
        """The value, where nothing of it is left out."""
        return self.find_first(words) + _u64(self.base)

    def find_place(self, words: WordArray) -> WordArray:
        """The keyed place."""
        return words & _u64((1 << self.place_bits) - 1)

    def find_record(self, words: WordArray) -> npt.NDArray[np.intp]:
        """The record."""
        return self.unmix(self.find_place(words))

    def unmix(self, places: WordArray) -> npt.NDArray[np.intp]:
        """The records of keyed places."""
        records = places.copy()
        if self.mixer is not None:
            self.mixer.unmix(records)
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
