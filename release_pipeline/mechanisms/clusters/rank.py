"""Clusters of consecutive records, random parts of a table, and operations on arrays as long as it.

Clusters of consecutive records of an order: k by k, the last one k to 2k-1. In the order of one attribute they are the rank
clusters of methods.md section 1; `curve` has orders of whole records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally, is_dense
from release_pipeline.mechanisms.noise import NoiseStream, PositionMixer, WordArray, shuffled_positions

_u64 = np.uint64


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
        """Return how many clusters there are."""
        return len(self.size)

    @property
    def cluster(self) -> npt.NDArray[np.intp]:
        """Return the cluster index of each record."""
        of_record = np.empty(len(self.order), dtype=np.intp)
        of_record[self.order] = self.places
        return of_record

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """Return the cluster index of each rank."""
        return np.repeat(np.arange(self.count, dtype=np.intp), self.size)


@dataclass(frozen=True, slots=True, repr=False)
class RankClusters:
    """Clusters in ascending order of one attribute, by its tally. Equal values are interchangeable: no figure depends on which of
    their records a cluster has. Cluster j holds ranks start[j] .. start[j] + size[j] - 1."""

    tally: Tally
    start: npt.NDArray[np.intp]
    size: IntArray

    @classmethod
    def of(cls, tally: Tally, k: int) -> RankClusters:
        """Return the clusters of the records of a tally: all of k, and the last one with the rest."""
        return cls(tally, *cut_ranks(len(tally), k))

    @property
    def count(self) -> int:
        """Return how many clusters there are."""
        return len(self.size)

    def sums(self) -> IntArray:
        """Return the exact integer sum of each cluster; refused if one could leave 64 bits."""
        if max(abs(int(self.tally.entries[0])), abs(int(self.tally.entries[-1]))) * int(self.size.max()) >= 2**63:
            raise InvalidArgument("cluster sums would not fit 64-bit integers.", remedy="Use a smaller k or a coarser grid.")
        return self.tally.sum_clusters(self.size)

    def first(self, place: int) -> IntArray:
        """Return the value at `place` from the start of each cluster (0: the smallest)."""
        return self.tally.at(self.start + place)

    def last(self, place: int) -> IntArray:
        """Return the value at `place` from the end of each cluster (0: the largest)."""
        return self.tally.at(self.start + self.size - 1 - place)


def rank_clusters(values: npt.ArrayLike, k: int, *, ties: NoiseStream | None = None) -> npt.NDArray[np.integer[Any]]:
    """Return the rank cluster of each of these integers: every cluster has k, the last one n - k (floor(n/k) - 1).

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
    """Return the tally of these values, and the rank cluster of each record, in as few bytes as their number needs.

    Equal values are ordered by a keyed permutation of their positions drawn from `ties`, or by position if there is none. If
    there are few values for so many records, records are read in that order, in pieces: the rank of each is the one that its
    value has reached. No order of all is made.
    """
    n, last = len(values), count_clusters(len(values), k) - 1
    cluster = np.empty(n, dtype=np.int32 if last < 2**31 else np.int64)
    lowest = int(values.min())
    span = int(values.max()) - lowest + 1
    if not is_dense(span, n):
        order = sort_records([values], ties)
        for part in pieces(n):
            ranks = np.arange(part.start, part.stop, dtype=np.int64)
            cluster[order[part]] = np.minimum(ranks // k, last)
        return Tally.of_ascending(values[order]), cluster
    column = Tally.of(values)
    reached = np.empty(span, dtype=np.int64)  # the rank of the next record of each value
    reached[column.entries - lowest] = column.ends - column.counts
    for records in _order_positions(n, ties):
        found = values[records] - lowest
        order = _sort_places(found, span)
        found, records = found[order], records[order]
        begins = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
        counts = np.diff(begins, append=len(found))
        ranks = np.repeat(reached[found[begins]] - begins, counts) + np.arange(len(found))
        reached[found[begins]] += counts
        cluster[records] = np.minimum(ranks // k, last)
    return column, cluster


def _order_positions(count: int, ties: NoiseStream | None) -> Iterator[npt.NDArray[np.intp]]:
    """Yield all positions in the order of their keyed numbers, in pieces; in their own order without a key."""
    bits = _count_bits(count)
    mixer = None if ties is None else PositionMixer(bits, ties)
    for part in pieces(count if mixer is None else 1 << bits):
        numbers = np.arange(part.start, part.stop, dtype=np.uint64)
        positions = (numbers if mixer is None else mixer.unmix(numbers)).view(np.int64).astype(np.intp, copy=False)
        if len(positions := positions[positions < count]):
            yield positions


def _sort_places(places: IntArray, span: int) -> npt.NDArray[np.intp]:
    """Return the stable order of numbers below `span`, sorted 16 bits at a time, without comparisons."""
    order = np.argsort(places.astype(np.uint16), kind="stable")
    for done in range(16, (span - 1).bit_length(), 16):
        order = order[np.argsort((places[order] >> done).astype(np.uint16), kind="stable")]
    return order


def count_clusters(n: int, k: int) -> int:
    """Return how many clusters n records make, with k records or more in each."""
    if k < 1:
        raise InvalidArgument("k is below 1.")
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one cluster of {k:,}.", remedy="Lower k or publish more records.")
    return n // k


def cut_ranks(n: int, k: int) -> tuple[npt.NDArray[np.intp], IntArray]:
    """Return the first rank and the size of each cluster of n records: all of k, and the last one with the rest."""
    clusters = count_clusters(n, k)
    size = np.full(clusters, k, dtype=np.int64)
    size[-1] = n - (clusters - 1) * k
    return np.arange(clusters, dtype=np.intp) * k, size


def sort_records(columns: Sequence[npt.NDArray[Any]], ties: NoiseStream | None) -> npt.NDArray[np.intp]:
    """Return the records in ascending order of the first column, equal ones of the next, and so on.

    Records that are equal in all columns are ordered by a keyed permutation of their positions drawn from `ties`, or by position.

    One sort of 64-bit words [first column | keyed position] is enough if both fit. Otherwise the column's low bits are left out,
    and the undecided runs are sorted afterwards, as are those that only a later column decides. Integer comparisons only: every
    processor gives the same order.
    """
    first = columns[0]
    lowest, highest, place_bits = int(first.min()), int(first.max()), _count_bits(len(first))
    left_out = max((highest - lowest).bit_length() + place_bits - 64, 0)
    mixer = None if ties is None else PositionMixer(place_bits, ties)
    packing = _Packing(lowest % 2**64, left_out, place_bits, mixer)
    packed = packing.pack(first)
    packed.sort()
    places = packing.find_place(packed)
    if unsettled := columns if left_out else columns[1:]:
        _settle_runs(unsettled, places, packing.find_first(packed), mixer)
    return packing.unmix(places)


def _count_bits(records: int) -> int:
    """Return how many bits a position needs."""
    return max((records - 1).bit_length(), 1)


@dataclass(frozen=True, slots=True)
class _Packing:
    """The layout of words: a value above `base` without its lowest `left_out` bits, and so many bits for a keyed position."""

    base: int
    left_out: int
    place_bits: int
    mixer: PositionMixer | None

    def pack(self, values: npt.NDArray[Any]) -> WordArray:
        """Return the words of the records."""
        words = np.arange(len(values), dtype=np.uint64)
        if self.mixer is not None:
            self.mixer.mix(words)
        for part in pieces(len(words)):
            above = values[part].astype(np.uint64) - _u64(self.base)
            words[part] |= above >> _u64(self.left_out) << _u64(self.place_bits)
        return words

    def find_first(self, words: WordArray) -> WordArray:
        """Return the value's part of the words."""
        return words >> _u64(self.place_bits)

    def find_place(self, words: WordArray) -> WordArray:
        """Return the keyed position in the words."""
        return words & _u64((1 << self.place_bits) - 1)

    def unmix(self, places: WordArray) -> npt.NDArray[np.intp]:
        """Return the records of keyed positions, in the same memory."""
        records = places if self.mixer is None else self.mixer.unmix(places)
        return records.view(np.int64).astype(np.intp, copy=False)


def _settle_runs(columns: Sequence[npt.NDArray[Any]], places: WordArray, ordered: WordArray, mixer: PositionMixer | None) -> None:
    """Put `places` (keyed positions in the order of `ordered`, equal ones ascending) in order where `columns` decide."""
    follows = np.empty(len(ordered), dtype=np.bool_)  # not yet distinguished from the one before
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
            # a stable sort by (run, value) sorts within each run, and leaves equal values in the order of keyed positions
            right = wrong[np.lexsort((values[wrong], run[wrong]))]
            keyed[wrong], records[wrong], values[wrong] = keyed[right], records[right], values[right]
            places[ranks[wrong]] = keyed[wrong]
        follows[1:] &= values[1:] == values[:-1]
        left = _in_runs(follows)
        ranks, keyed, records, follows = ranks[left], keyed[left], records[left], follows[left]


def _in_runs(follows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether an entry follows another or is followed by one."""
    within = follows.copy()
    within[:-1] |= follows[1:]
    return within


# The least number of records of a class. For `lattice`, `cuts` and `mdav`.


def as_threshold(value: object, name: str) -> int:
    """Return `value` as k: a whole number from 1; anything else is refused."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidType(f"{name} must be a whole number.")
    number = int(cast(int, value))
    if number < 1:
        raise InvalidArgument(f"{name} is below 1.")
    return number


# Random parts of the records of a table (PRS20, methods.md section 5).
#
# Parts are drawn over the slots of the table, the numbers of its rows, and never depend on a value or an identity: the size of a
# part depends only on n and P, and a replaced record leaves its slot, and with it its part, to its replacement. So neighbours
# differ in one part, and mechanisms on each part with separate streams compose in parallel.


def draw_parts(slots: int, parts: int, stream: NoiseStream) -> IntArray:
    """Return the part, 0..parts-1, of each of so many slots: a keyed permutation cut into pieces whose sizes differ by at most
    one.

    >>> from release_pipeline.mechanisms.noise import noise_stream
    >>> np.bincount(draw_parts(10, 3, noise_stream(bytes(32)))).tolist()
    [4, 3, 3]
    """
    if not 1 <= parts <= slots:
        raise InvalidArgument("there must be at least one record for each part.", where="parts")
    part = np.empty(slots, dtype=np.int64)
    part[shuffled_positions(slots, stream)] = np.arange(slots, dtype=np.int64) * parts // slots
    return part
