"""Rank clusters of one attribute (methods.md section 1): consecutive ranks, k by k, the last one k to 2k-1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, PositionMixer, WordArray

_CHUNK = 1 << 16
_u64 = np.uint64
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True, repr=False)
class RankClusters:
    """n records in floor(n/k) clusters of consecutive ranks, in ascending order.

    `order[r]` is the record of rank r, `ordered[r]` its value; cluster j holds ranks start[j] .. start[j] + size[j] - 1.
    """

    order: npt.NDArray[np.intp]
    ordered: IntArray
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

    def spread(self, per_cluster: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """One entry per cluster, given to each of its records."""
        out = np.empty(len(self.order), dtype=per_cluster.dtype)
        out[self.order] = np.repeat(per_cluster, self.size)
        return out


def rank_clusters(values: npt.ArrayLike, k: int, *, ties: NoiseStream | None = None) -> RankClusters:
    """The rank clusters of integer `values`: every cluster has k records, the last one n - k (floor(n/k) - 1).

    Equal values are ordered by a keyed permutation of their positions drawn from `ties`, or by position if there is none.

    >>> rank_clusters([30, 10, 20, 10, 50], 2).cluster.tolist()
    [1, 0, 1, 0, 1]
    """
    q = np.asarray(values)
    if q.ndim != 1 or q.dtype.kind not in "iu":
        raise InvalidType("rank clusters are made of one dimension of integers: put the values on their grid first.")
    n = len(q)
    if q.dtype.kind == "u" and n and int(q.max()) >= 2**63:
        raise InvalidArgument("a value is beyond 64-bit integers.")
    if k < 1:
        raise InvalidArgument("k is below 1.")
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one cluster of {k:,}.", remedy="Lower k or publish more records.")
    order, ordered = _sort(q, ties)
    start = np.arange(n // k, dtype=np.intp) * k
    size = np.full(n // k, k, dtype=np.int64)
    size[-1] = n - int(start[-1])
    return RankClusters(order, ordered, start, size)


def _sort(q: npt.NDArray[Any], ties: NoiseStream | None) -> tuple[npt.NDArray[np.intp], IntArray]:
    """The records in ascending order of value, equal values by their keyed position, and the sorted values.

    One sort of 64-bit words [value | keyed position] where both fit; where they do not, the value's low bits are left out and the
    runs that this leaves undecided are put right afterwards. Integer comparisons only: every processor gives the same order.
    """
    n = len(q)
    lowest = int(q.min())
    place_bits = max((n - 1).bit_length(), 1)
    left_out = _u64(max((int(q.max()) - lowest).bit_length() + place_bits - 64, 0))
    mixer = None if ties is None else PositionMixer(place_bits, ties)

    packed = np.arange(n, dtype=np.uint64)
    if mixer is not None:
        mixer.mix(packed)
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        packed[part] |= ((q[part].astype(np.int64) - lowest).view(np.uint64) >> left_out) << _u64(place_bits)
    packed.sort()

    ordered = np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        ordered[part] = packed[part] >> _u64(place_bits)
        packed[part] &= _u64((1 << place_bits) - 1)
    if left_out:
        _settle_runs(q, packed, ordered, mixer)
    if mixer is not None:
        mixer.unmix(packed)
    order = packed.view(np.int64).astype(np.intp, copy=False)
    if left_out:
        return order, q[order].astype(np.int64)
    ordered += lowest
    return order, ordered


def _settle_runs(q: npt.NDArray[Any], places: WordArray, coarse: IntArray, mixer: PositionMixer | None) -> None:
    """Put `places` (keyed positions, sorted by the values' high bits) in order where the low bits decide."""
    same = coarse[1:] == coarse[:-1]
    undecided = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    keyed = places[undecided]
    records = keyed.copy() if mixer is None else mixer.unmix(keyed.copy())
    # the runs ascend, so sorting all undecided records at once by (value, keyed position) sorts each run in its place
    places[undecided] = keyed[np.lexsort((keyed, q[records.astype(np.intp)]))]
