"""Exact nearest neighbours, with all that are equally near: the basis of record linkage and of the attacks of an audit.

The distance of two records is (sum_j |x_j - y_j|^p)^(1/p), p = 1 or 2; with p = 1 every code that differs adds 1 to it (Gower's
distance, if the numbers are scaled to a range of 1). Nothing is approximated. Two distances count as equal if they differ by no
more than one part in 10^9, or by the possible effect of rounding the coordinates: if the last bit of a float broke ties, a
released table of equal rows would look safer, or worse, than it is.

Equal known records are one point with a weight, since a microaggregated table has hundreds of them and a list of ties would
contain each. Points of few dimensions go into a k-d tree, codes as corners of a cross-polytope: level l of a column with L levels
is half a unit, up or down, on axis l // 2, so that any two different levels are at distance 1 and a column takes (L + 1) / 2
axes. In many dimensions a tree visits most points anyway, and slowly: there all points are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray

SLACK = 1e-9  # distances that differ by less, relatively, are equal
ROUNDING = 2.0**-50  # of the largest coordinate: the possible effect of scaling on a difference
MOST_AXES = 11  # with more of them all points are compared: measured with independent columns, the hardest for a tree
_LEAF = 32
_FEW = 1_000  # with so few points a tree is fast enough for any number of axes
_BLOCK = 1_024  # points looked up at once
_DISTANCES = 1 << 22  # distances in memory at once
_MAX_CODE = 2**53  # codes are compared as floats, and whole numbers up to here are exact
_MEMBERS = 1 << 20  # approximate entries of a list of ties, before it is returned


class Nearest(NamedTuple):
    """The nearest known points of some of the points looked up, from position `first` on, and their distance.

    Point first + i has the distinct known points member[start[i]:start[i + 1]] at `distance[i]`, in no order. Without known
    points the distance is infinite and no point is near.
    """

    first: int
    distance: FloatArray
    start: IntArray
    member: IntArray

    def total(self, amount: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each point looked up the sum of `amount`, which has an entry for each of `member`, over its nearest."""
        sums = np.concatenate([np.zeros(1, dtype=amount.dtype), np.cumsum(amount)])
        return sums[self.start[1:]] - sums[self.start[:-1]]


class Neighbours:
    """Known records, prepared for searches of those nearest to a point.

    `place[i]` is the distinct point of known record i, `weight[p]` the number of records at point p.
    """

    def __init__(self, known: FloatArray, *, power: int, codes: IntArray | None = None) -> None:
        """`known` has a row for each record and a column for each number; `codes` a row for each record too (`power` 1 only)."""
        if power not in (1, 2):
            raise InvalidArgument("the power of a distance is 1 or 2.", where="power")
        if codes is not None and codes.shape[1] and power != 1:
            raise InvalidArgument("codes have a distance of power 1 only.", where="codes")
        self._columns = _as_points(known).shape[1]
        self._power = power
        codes = np.empty((len(known), 0), dtype=np.int64) if codes is None else _as_codes(codes, len(known))
        self._levels: list[IntArray] = [np.unique(column) for column in codes.T]
        axes = self._columns + sum(count_axes(len(levels)) for levels in self._levels)
        distinct, place, weight = merge_rows(known, codes)
        has_tree = axes <= MOST_AXES or len(weight) <= _FEW
        self.place, self.weight = place, weight
        self._known, self._codes = known[distinct], codes[distinct]
        self._rounded = [j for j in range(self._columns) if not _are_whole(self._known[:, j])]
        self._size = max((float(np.abs(self._known[:, j]).max(initial=0.0)) for j in self._rounded), default=0.0)
        self._has_axes = axes > 0
        self._tree: Any = self._plant() if axes and len(self._known) and has_tree else None

    def search(self, points: FloatArray, codes: IntArray | None = None) -> Iterator[Nearest]:
        """Yield the nearest known points of each row of `points` and `codes`, block by block, so that long lists are not in
        memory together."""
        codes = np.empty((len(points), 0), dtype=np.int64) if codes is None else _as_codes(codes, len(points))
        if _as_points(points).shape[1] != self._columns or codes.shape[1] != len(self._levels):
            raise InvalidArgument("the points looked up have other columns than the known ones.")
        for start in range(0, len(points), _BLOCK):
            block = slice(start, start + _BLOCK)
            if not len(self._known):
                yield _gather(start, [(np.inf, np.empty(0, dtype=np.int64))] * len(points[block]))
            elif not self._has_axes:
                yield _gather(start, [(0.0, np.zeros(1, dtype=np.int64))] * len(points[block]))
            elif self._tree is not None:
                yield from self._climb(start, self._embed(points[block], codes[block]))
            else:
                yield from self._compare(start, points[block], codes[block])

    def count(self, points: FloatArray, codes: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """Return for each point the distance of the nearest known records, and how many there are."""
        found = [(near.distance, near.total(self.weight[near.member])) for near in self.search(points, codes)]
        if not found:
            return np.empty(0), np.empty(0, dtype=np.int64)
        distance, number = zip(*found, strict=True)
        return np.concatenate(distance), np.concatenate(number)

    def reach(self, distance: FloatArray, points: FloatArray) -> FloatArray:
        """Return the distance up to which others count as equally near."""
        return distance * (1 + SLACK) + self._rounding_of(points)

    def _rounding_of(self, points: FloatArray) -> FloatArray:
        """Return the possible effect of rounding on a distance from each of these, whichever points are looked up with it."""
        size = np.maximum(np.abs(points[..., self._rounded]).max(axis=-1, initial=0.0), self._size)
        return cast(FloatArray, ROUNDING * max(self._columns, 1) * size)

    def _plant(self) -> Any:
        from scipy.spatial import KDTree

        # on a million records neither option made searches faster, and both made building slower; smaller leaves cost memory
        points = self._embed(self._known, self._codes)
        return KDTree(points, leafsize=_LEAF, compact_nodes=False, balanced_tree=False, copy_data=False)

    def _embed(self, numbers: FloatArray, codes: IntArray) -> FloatArray:
        """Return numbers and codes as points whose distance is that of the records; a level that no known record has is one more
        level."""
        if not self._levels:
            return np.ascontiguousarray(numbers)
        axes = [count_axes(len(levels)) for levels in self._levels]
        out = np.zeros((len(numbers), self._columns + sum(axes)))
        out[:, : self._columns] = numbers
        first, rows = self._columns, np.arange(len(numbers))
        for place, (levels, width) in enumerate(zip(self._levels, axes, strict=True)):
            column = codes[:, place]
            level = np.searchsorted(levels, column)
            unknown = levels[np.minimum(level, len(levels) - 1)] != column
            level[unknown] = len(levels)
            out[rows, first + level // 2] = 0.5 - level % 2
            first += width
        return out

    def _climb(self, first: int, points: FloatArray) -> Iterator[Nearest]:
        """Yield the nearest of a block by the tree. The two nearest come first: there can be more ties only if both are equally
        near."""
        distances, members = self._tree.query(points, k=2, p=self._power, workers=-1)
        distance, reach = distances[:, 0], self.reach(distances[:, 0], points)
        tied = np.flatnonzero(distances[:, 1] <= reach)
        number = np.ones(len(points), dtype=np.int64)
        if len(tied):
            number[tied] = self._tree.query_ball_point(points[tied], reach[tied], p=self._power, workers=-1, return_length=True)
        for part in _parts(number):
            lists: list[IntArray] = []
            for point in range(part.start, part.stop):
                if number[point] > 1:
                    found = self._tree.query_ball_point(points[point], reach[point], p=self._power, return_sorted=False)
                    lists.append(np.array(found, dtype=np.int64))
                else:
                    lists.append(members[point, :1].astype(np.int64))
            yield _gather(first + part.start, list(zip(distance[part].tolist(), lists, strict=True)))

    def _compare(self, first: int, points: FloatArray, codes: IntArray) -> Iterator[Nearest]:
        """Yield the nearest of a block by comparing all, some points at a time."""
        from scipy.spatial.distance import cdist

        squared, known_codes = self._power == 2, self._codes.astype(np.float64)
        at_once = max(_DISTANCES // len(self._known), 1)
        for start in range(0, len(points), at_once):
            some = slice(start, start + at_once)
            if self._columns:
                total = cdist(points[some], self._known, "sqeuclidean" if squared else "cityblock")
            else:
                total = np.zeros((len(points[some]), len(self._known)))
            if self._levels:
                shares = cdist(codes[some].astype(np.float64), known_codes, "hamming")
                shares *= len(self._levels)
                total += np.rint(shares, out=shares)
                del shares
            nearest = total.min(axis=1)
            distance = np.sqrt(nearest) if squared else nearest
            reach = self.reach(distance, points[some])
            within = total <= (reach * reach if squared else reach)[:, np.newaxis]
            lists = [np.flatnonzero(row).astype(np.int64) for row in within]
            yield _gather(first + start, list(zip(distance.tolist(), lists, strict=True)))


def count_axes(levels: int) -> int:
    """Return how many axes a column of codes with so many levels needs as corners of a cross-polytope; one more level is for
    codes that no known record has."""
    return levels // 2 + 1


def merge_rows(known: FloatArray, codes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return a row of each distinct record, the number of each record's row, and how many records there are of each.

    Rows are sorted by a hash, and neighbours in that order are one point if they are equal. So different rows with the same hash
    are never merged; at most they keep equal rows around them as two points.
    """
    n = len(known)
    if n < 2:
        return np.arange(n), np.arange(n), np.ones(n, dtype=np.int64)
    order = np.argsort(_hash_rows(known, codes), kind="stable")
    same, point = np.ones(n - 1, dtype=np.bool_), np.empty(n, dtype=np.int64)
    for table in (known, codes):
        for column in table.T:
            ordered = column[order]
            same &= ordered[1:] == ordered[:-1]
    leads = np.concatenate([np.ones(1, dtype=np.bool_), ~same])
    point[order] = np.cumsum(leads) - 1
    return order[leads], point, np.diff(np.append(np.flatnonzero(leads), n))


def _hash_rows(known: FloatArray, codes: IntArray) -> npt.NDArray[np.uint64]:
    key = np.zeros(len(known), dtype=np.uint64)
    for column in (*known.T, *codes.T):
        words = (column + 0.0).view(np.uint64) if column.dtype.kind == "f" else column.astype(np.int64).view(np.uint64)
        key ^= words
        key *= np.uint64(0x9E3779B97F4A7C15)  # odd, so that no bit is lost
        key ^= key >> np.uint64(29)
    return key


def _are_whole(column: FloatArray) -> bool:
    """Return whether these are whole numbers, whose differences are exact."""
    return bool(np.all(column == np.rint(column))) and float(np.abs(column).max(initial=0.0)) < _MAX_CODE


def _gather(first: int, nearest: list[tuple[float, IntArray]]) -> Nearest:
    lengths = np.array([len(members) for _, members in nearest], dtype=np.int64)
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    member = np.concatenate([members for _, members in nearest])
    return Nearest(first, np.array([distance for distance, _ in nearest], dtype=np.float64), start, member)


def _parts(number: IntArray) -> Iterator[slice]:
    """Yield ranges of points whose lists together are not much longer than one may be."""
    ends = np.flatnonzero(np.diff(np.cumsum(number) // _MEMBERS)) + 1
    edges = [0, *ends.tolist(), len(number)]
    yield from (slice(a, b) for a, b in pairwise(edges) if a < b)


def _as_points(points: FloatArray) -> FloatArray:
    if points.ndim != 2 or points.dtype != np.float64:
        raise InvalidType("points must be a matrix of float64 with a row for each record.")
    if not bool(np.isfinite(points).all()):
        raise InvalidArgument("there are missing or infinite numbers among the points.")
    return points


def _as_codes(codes: IntArray, n: int) -> IntArray:
    if codes.ndim != 2 or codes.dtype.kind not in "iu" or len(codes) != n:
        raise InvalidType("codes must be a matrix of integers with a row for each record.")
    if codes.size and max(-int(codes.min()), int(codes.max())) >= _MAX_CODE:
        raise InvalidArgument("a code is beyond 2^53.", remedy="Number the values first.")
    return codes
