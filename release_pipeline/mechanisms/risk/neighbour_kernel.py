"""All known points against some, compiled: for `neighbours`, where a tree would look at most of them anyway.

Known points are taken some hundreds at a time, column by column, so that they stay in the cache and the processor adds several
at once, while all points that are looked up pass over them. The least sum of each such tile is kept: only tiles that have one
within the limit are looked at a second time, to count and to list. A tile whose codes differ from a point's in more columns than
its nearest one can is left out: where known points are in the order of their codes, that is most of them. Other threads may run
meanwhile.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.compiling import compiled
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray

TILE = 512


@compiled
def _turn(known: FloatArray, codes: IntArray, first: int, tile: FloatArray) -> int:
    """Copy the points from `first` on into the columns of `tile`, numbers before codes; how many there are."""
    size = min(TILE, len(known) - first)
    for i in range(size):
        for j in range(known.shape[1]):
            tile[j, i] = known[first + i, j]
        for j in range(codes.shape[1]):
            tile[known.shape[1] + j, i] = codes[first + i, j]
    return size


@compiled
def _add_up(tile: FloatArray, size: int, point: FloatArray, code: IntArray, squared: bool, total: FloatArray) -> None:
    """The sum of (squared) differences and of mismatched codes, for each point of the tile."""
    total[:size] = 0.0
    for j in range(point.size):
        here, column = point[j], tile[j]
        if squared:
            for i in range(size):
                total[i] += (column[i] - here) * (column[i] - here)
        else:
            for i in range(size):
                total[i] += abs(column[i] - here)
    for j in range(code.size):
        level, column = float(code[j]), tile[point.size + j]
        for i in range(size):
            total[i] += 1.0 if column[i] != level else 0.0


@compiled
def _least(total: FloatArray, size: int) -> float:
    """The least of these, which are used up: one half is laid on the other, since the processor compares several at once then."""
    while size > 1:
        half = size // 2
        for i in range(half):
            one, other = total[i], total[size - half + i]
            total[i] = one if one < other else other
        size -= half
    return total[0]


@compiled
def bound_codes(codes: IntArray) -> IntArray:
    """The least and the largest code of each tile and column."""
    tiles = (len(codes) + TILE - 1) // TILE
    ends = np.empty((tiles, codes.shape[1], 2), dtype=np.int64)
    for t in range(tiles):
        for j in range(codes.shape[1]):
            ends[t, j, 0] = ends[t, j, 1] = codes[t * TILE, j]
            for i in range(t * TILE, min((t + 1) * TILE, len(codes))):
                ends[t, j, 0] = min(ends[t, j, 0], codes[i, j])
                ends[t, j, 1] = max(ends[t, j, 1], codes[i, j])
    return ends


@compiled
def find_least(
    known: FloatArray,
    codes: IntArray,
    ends: IntArray,
    points: FloatArray,
    sought: IntArray,
    squared: bool,
    slack: FloatArray,
    least: FloatArray,
) -> None:
    """For each point and tile the least sum over the known points of the tile; infinite where `ends`, the least and the largest
    codes of the tile, differ from the point's in more columns than its nearest sum, once (1 + slack[0]) and slack[1] more."""
    tile = np.empty((known.shape[1] + codes.shape[1], TILE))
    total = np.empty(TILE)
    differing = np.zeros(least.shape, dtype=np.int64)
    fewest = np.empty(len(points), dtype=np.int64)
    nearest = np.full(len(points), np.inf)
    for q in range(len(points)):
        for t in range(least.shape[1]):
            for j in range(codes.shape[1]):
                differing[q, t] += sought[q, j] < ends[t, j, 0] or sought[q, j] > ends[t, j, 1]
        fewest[q] = differing[q].min()
    for is_first in (True, False):  # tiles with the fewest differences before all others
        for t in range(least.shape[1]):
            size = 0
            for q in range(len(points)):
                if (differing[q, t] == fewest[q]) != is_first:
                    continue
                if differing[q, t] > nearest[q] * (1.0 + slack[0]) + slack[1]:
                    least[q, t] = np.inf
                    continue
                if size == 0:
                    size = _turn(known, codes, t * TILE, tile)
                _add_up(tile, size, points[q], sought[q], squared, total)
                least[q, t] = _least(total, size)
                nearest[q] = min(nearest[q], least[q, t])


@compiled
def find_within(
    known: FloatArray,
    codes: IntArray,
    point: FloatArray,
    code: IntArray,
    squared: bool,
    least: FloatArray,
    limit: float,
    found: IntArray,
) -> int:
    """How many known points have a sum of at most `limit`; their numbers in `found`, as far as there is room."""
    tile = np.empty((known.shape[1] + codes.shape[1], TILE))
    total = np.empty(TILE)
    count = 0
    for t in range(len(least)):
        if least[t] <= limit:
            size = _turn(known, codes, t * TILE, tile)
            _add_up(tile, size, point, code, squared, total)
            for i in range(size):
                if total[i] <= limit:
                    if count < len(found):
                        found[count] = t * TILE + i
                    count += 1
    return count


# The loops of `standing_out`, compiled: which released records stand out in their class. Only it
# imports this module, when it is first used, because it imports numba.


@compiled
def count_boxes(
    original: IntArray,
    released: IntArray,
    starts: IntArray,
    reach: IntArray,
    group: IntArray,
    k: int,
    exposed: npt.NDArray[np.bool_],
) -> None:
    """Mark those of the records, which lie by class, whose box has at least one original of the class in it and fewer than k. The
    columns of the records lie one behind the other; originals of a class ascend in the first one."""
    m = reach.shape[1]
    n = len(original) // m
    for record in range(n):
        g = group[record]
        low, high = released[record] - reach[g, 0], released[record] + reach[g, 0]
        left, right = starts[g], starts[g + 1]
        while left < right:  # the first original of the class that is not below the box
            middle = (left + right) // 2
            if original[middle] < low:
                left = middle + 1
            else:
                right = middle
        count = 0
        while left < starts[g + 1] and original[left] <= high and count < k:
            inside = True
            for column in range(1, m):
                if abs(original[column * n + left] - released[column * n + record]) > reach[g, column]:
                    inside = False
                    break
            count += inside
            left += 1
        exposed[record] = 0 < count < k
