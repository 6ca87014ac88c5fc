"""The loops of `mdav`, compiled. Only `mdav` imports this module, when first used, because it imports numba.

The index is a tree of boxes. A squared distance from a box is computed with the very operations, in the same order, with which
that of a record is, and each of them is monotone, roundings included: so a box is never nearer (or farther) than what is in it
by as much as the last bit, and what is skipped could not have been found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.compiling import compiled
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray

_LEAF = 64  # records in a leaf at most
_PARTS = 64  # doubles that do not overlap are 40 at most
_NOBODY = 2**62  # an index after all others


class Index(NamedTuple):
    """Node 1 is the root, those below node i are 2i and 2i+1, and the leaves come last; a leaf is a short column-wise table.

    `box[i]` has the least and the greatest value in each column of the records that are still there, `first[i]` their lowest
    index (`_NOBODY` in an empty node). Leaf number j holds records `member[j, : size[j]]`, indices ascending.
    """

    point: npt.NDArray[np.float64]  # leaf, column, place
    member: IntArray
    size: IntArray
    leaf_of: IntArray
    box: npt.NDArray[np.float64]  # node, column, least and greatest
    first: IntArray


class Sums(NamedTuple):
    """For each column floats that do not overlap, ascending, with exactly the sum of the column (Shewchuk's expansions)."""

    parts: FloatArray
    used: IntArray


class Shell(NamedTuple):
    """The records that were farthest from the anchor, a former centroid, ascending in their distance from it.

    As the centroid moves slowly, the record farthest from it is nearly always one of the last; all others are known to be nearer
    as soon as one is found that is farther off than the first one's radius and the centroid's way together.
    """

    row: IntArray
    radius: FloatArray
    anchor: FloatArray
    state: IntArray  # by the numbers below


_SIZE, _ANSWERED, _RESTING = 0, 1, 2
_SHELL = 32  # one record in so many
_WORTHWHILE = 16  # a shell that answers fewer questions takes longer than searching the index
_LARGER, _TINY = 1 + 2.0**-30, 2.0**-500


@compiled
def sum_exactly(z: FloatArray) -> Sums:
    """The exact sums of the columns."""
    n, m = z.shape
    sums = Sums(np.zeros((m, _PARTS)), np.zeros(m, np.int64))
    for row in range(n):
        for column in range(m):
            _add(sums, column, z[row, column])
    return sums


@compiled
def plant(z: FloatArray, rows: IntArray) -> Index:
    """An index of some rows, cut into halves across the widest column again and again."""
    m, leaves = z.shape[1], 1
    while leaves * _LEAF < len(rows):
        leaves *= 2
    order = rows.copy()
    start, stop = np.empty(2 * leaves, np.int64), np.empty(2 * leaves, np.int64)
    start[1], stop[1] = 0, len(rows)
    box = np.empty((2 * leaves, m, 2))
    index = Index(
        np.zeros((leaves, m, _LEAF)),
        np.empty((leaves, _LEAF), np.int64),
        np.zeros(leaves, np.int64),
        np.empty(len(z), np.int64),
        box,
        np.empty(2 * leaves, np.int64),
    )
    for node in range(1, leaves):
        widest, width = 0, -1.0
        for column in range(m):
            low, high = np.inf, -np.inf
            for place in range(start[node], stop[node]):
                low = min(low, z[order[place], column])
                high = max(high, z[order[place], column])
            if high - low > width:
                widest, width = column, high - low
        middle = (start[node] + stop[node]) // 2
        _halve(z, order, widest, start[node], stop[node] - 1, middle)
        start[2 * node], stop[2 * node] = start[node], middle
        start[2 * node + 1], stop[2 * node + 1] = middle, stop[node]
    for leaf in range(leaves):
        node = leaves + leaf
        for row in order[start[node] : stop[node]]:
            place = index.size[leaf]
            while place > 0 and index.member[leaf, place - 1] > row:
                index.member[leaf, place] = index.member[leaf, place - 1]
                place -= 1
            index.member[leaf, place] = row
            index.size[leaf] += 1
            index.leaf_of[row] = leaf
        for place in range(index.size[leaf]):
            for column in range(m):
                index.point[leaf, column, place] = z[index.member[leaf, place], column]
        index.first[node] = index.member[leaf, 0] if index.size[leaf] else _NOBODY
        for column in range(m):
            _fit_column(index, leaf, column)
    for node in range(leaves - 1, 0, -1):
        _fit_node(index, node)
    return index


@compiled
def peel(index: Index, sums: Sums, z: FloatArray, k: int, label: IntArray, made: int, left: int, until: int) -> tuple[int, int]:
    """Make clusters, two at a time, until at most `until` of the `left` records of the index are left, or fewer than 3k.

    `label` has the number of each record's cluster, from `made` on; returned are the next number and how many records are left.
    """
    m = z.shape[1]
    centroid, distance = np.empty(m), np.empty(_LEAF)
    node, bound = np.empty(64, np.int64), np.empty(64)
    near, far_off = np.empty(k, np.int64), np.empty(k)
    shell = Shell(np.empty(left // _SHELL + 64, np.int64), np.empty(left // _SHELL + 64), np.empty(m), np.zeros(3, np.int64))
    while left >= 3 * k and left > until:
        for column in range(m):
            centroid[column] = round_sum(sums, column) / left
        seed = _outermost(shell, z, label, centroid)
        if seed == _NOBODY:
            seed = _farthest(index, centroid, node, bound, distance)
            _renew(shell, index, left, centroid, distance)
        for turn in range(2):
            corner = z[seed]
            label[seed] = made
            _remove(index, sums, z, seed)
            _find_nearest(index, corner, k - 1, near, far_off, node, bound, distance)
            for place in range(k - 1):
                label[near[place]] = made
                _remove(index, sums, z, near[place])
            made += 1
            left -= k
            if turn == 0:
                seed = _farthest(index, corner, node, bound, distance)
    return made, left


@compiled
def _outermost(shell: Shell, z: FloatArray, label: IntArray, centroid: FloatArray) -> int:
    """The record farthest from the centroid, of equal ones that with the lowest index; or `_NOBODY` if the shell cannot tell."""
    size = shell.state[_SIZE]
    while size > 0 and label[shell.row[size - 1]] >= 0:
        size -= 1
    shell.state[_SIZE] = size
    drift = np.sqrt(_square(centroid, shell.anchor))
    found, most, enough = _NOBODY, -1.0, -1.0
    for place in range(size - 1, -1, -1):
        # by the triangle inequality; that of the computed distances fails by far less than what is added here
        if (shell.radius[place] + drift) * _LARGER + _TINY < enough:
            shell.state[_ANSWERED] += 1
            return found
        row = shell.row[place]
        if label[row] >= 0:
            continue
        square = _square(z[row], centroid)
        if square > most or (square == most and row < found):
            found, most, enough = row, square, np.sqrt(square)
    return _NOBODY


@compiled
def _renew(shell: Shell, index: Index, left: int, anchor: FloatArray, distance: FloatArray) -> None:
    """The shell has the records that are now farthest from the centroid; it rests for a while if the last one was of no use."""
    if shell.state[_RESTING] > 0:
        shell.state[_RESTING] -= 1
        return
    if shell.state[_SIZE] > 0 and shell.state[_ANSWERED] < _WORTHWHILE:
        shell.state[_SIZE], shell.state[_RESTING] = 0, 4 * _WORTHWHILE
        return
    squares, rows = np.empty((left, 1)), np.empty(left, np.int64)
    have = 0
    for leaf in range(len(index.size)):
        _measure(index, leaf, anchor, distance)
        for place in range(index.size[leaf]):
            rows[have], squares[have, 0] = index.member[leaf, place], distance[place]
            have += 1
    order = np.arange(left)
    size = min(len(shell.row), left)
    _halve(squares, order, 0, 0, left - 1, left - size)
    for place in range(size):
        chosen: int = order[left - size + place]
        _rise(shell.row, shell.radius, place, rows[chosen], np.sqrt(squares[chosen, 0]))
    for last in range(size - 1, 0, -1):  # the greatest of the heap goes behind the others
        row, radius = shell.row[last], shell.radius[last]
        shell.row[last], shell.radius[last] = shell.row[0], shell.radius[0]
        _sink(shell.row, shell.radius, last, row, radius)
    shell.anchor[:] = anchor
    shell.state[_SIZE], shell.state[_ANSWERED] = size, 0


@compiled
def _square(one: FloatArray, other: FloatArray) -> float:
    total = 0.0
    for column in range(len(one)):
        difference = one[column] - other[column]
        total += difference * difference
    return total


@compiled
def _halve(z: FloatArray, order: IntArray, column: int, low: int, high: int, middle: int) -> None:
    """Rows before `middle` have no greater value than those from there on (Hoare's selection)."""
    while low < high:
        pivot = z[order[(low + high) // 2], column]
        i, j = low, high
        while i <= j:
            while z[order[i], column] < pivot:
                i += 1
            while z[order[j], column] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@compiled
def _fit_column(index: Index, leaf: int, column: int) -> None:
    """The box of a leaf has the ends of what is in one of its columns."""
    low, high = np.inf, -np.inf
    for place in range(index.size[leaf]):
        value = index.point[leaf, column, place]
        low = min(low, value)
        high = max(high, value)
    node = len(index.size) + leaf
    index.box[node, column, 0], index.box[node, column, 1] = low, high


@compiled
def _fit_node(index: Index, node: int) -> bool:
    """The node tells what is in the two below it; whether that is something new."""
    one, other = 2 * node, 2 * node + 1
    first = min(index.first[one], index.first[other])
    changed = index.first[node] != first
    index.first[node] = first
    for column in range(index.box.shape[1]):
        low = min(index.box[one, column, 0], index.box[other, column, 0])
        high = max(index.box[one, column, 1], index.box[other, column, 1])
        changed = changed or index.box[node, column, 0] != low or index.box[node, column, 1] != high
        index.box[node, column, 0], index.box[node, column, 1] = low, high
    return changed


@compiled
def _remove(index: Index, sums: Sums, z: FloatArray, row: int) -> None:
    """The record is in no leaf, no box and no sum any more."""
    leaf = index.leaf_of[row]
    last = index.size[leaf] - 1
    place = last
    while index.member[leaf, place] != row:
        place -= 1
    index.size[leaf] = last
    for later in range(place, last):
        index.member[leaf, later] = index.member[leaf, later + 1]
    node = len(index.size) + leaf
    changed = place == 0
    if changed:
        index.first[node] = index.member[leaf, 0] if last else _NOBODY
    for column in range(z.shape[1]):
        value = z[row, column]
        for later in range(place, last):
            index.point[leaf, column, later] = index.point[leaf, column, later + 1]
        if value == index.box[node, column, 0] or value == index.box[node, column, 1]:
            _fit_column(index, leaf, column)
            changed = True
        _add(sums, column, -value)
    if not changed:
        return
    node //= 2
    while node > 0 and _fit_node(index, node):
        node //= 2


@compiled
def _farthest(index: Index, point: FloatArray, node: IntArray, bound: FloatArray, distance: FloatArray) -> int:
    """The record farthest from a point, of equal ones that with the lowest index."""
    leaves = len(index.size)
    found, most = _NOBODY, -1.0
    node[0], bound[0] = 1, np.inf
    waiting = 1
    while waiting:
        waiting -= 1
        here = node[waiting]
        if bound[waiting] < most or (bound[waiting] == most and index.first[here] > found):
            continue
        if here >= leaves:
            _measure(index, here - leaves, point, distance)
            for place in range(index.size[here - leaves]):
                row = index.member[here - leaves, place]
                if distance[place] > most or (distance[place] == most and row < found):
                    found, most = row, distance[place]
            continue
        one, other = 2 * here, 2 * here + 1
        reach, reach_other = _reach(index, one, point), _reach(index, other, point)
        if reach > reach_other:  # the more promising one is on top
            one, other, reach, reach_other = other, one, reach_other, reach
        if index.first[one] != _NOBODY and reach >= most:
            node[waiting], bound[waiting] = one, reach
            waiting += 1
        if index.first[other] != _NOBODY and reach_other >= most:
            node[waiting], bound[waiting] = other, reach_other
            waiting += 1
    return found


@compiled
def _find_nearest(
    index: Index,
    point: FloatArray,
    count: int,
    near: IntArray,
    far_off: FloatArray,
    node: IntArray,
    bound: FloatArray,
    distance: FloatArray,
) -> None:
    """Fill `near` with the `count` records nearest to a point, of equal ones those with the lowest indices; the last on top."""
    if count == 0:
        return
    leaves = len(index.size)
    have = 0
    node[0], bound[0] = 1, 0.0
    waiting = 1
    while waiting:
        waiting -= 1
        here = node[waiting]
        if have == count and (bound[waiting] > far_off[0] or (bound[waiting] == far_off[0] and index.first[here] > near[0])):
            continue
        if here >= leaves:
            _measure(index, here - leaves, point, distance)
            for place in range(index.size[here - leaves]):
                row = index.member[here - leaves, place]
                if have < count:
                    _rise(near, far_off, have, row, distance[place])
                    have += 1
                elif distance[place] < far_off[0] or (distance[place] == far_off[0] and row < near[0]):
                    _sink(near, far_off, count, row, distance[place])
            continue
        one, other = 2 * here, 2 * here + 1
        gap, gap_other = _gap(index, one, point), _gap(index, other, point)
        if gap < gap_other:
            one, other, gap, gap_other = other, one, gap_other, gap
        if index.first[one] != _NOBODY and (have < count or gap <= far_off[0]):
            node[waiting], bound[waiting] = one, gap
            waiting += 1
        if index.first[other] != _NOBODY and (have < count or gap_other <= far_off[0]):
            node[waiting], bound[waiting] = other, gap_other
            waiting += 1


@compiled
def _measure(index: Index, leaf: int, point: FloatArray, distance: FloatArray) -> None:
    """Squared distances of the records of a leaf, column by column."""
    distance[:] = 0.0
    for column in range(len(point)):
        coordinate, values = point[column], index.point[leaf, column]
        for place in range(len(values)):  # a length that is no constant is what makes the compiler use vector instructions
            difference = values[place] - coordinate
            distance[place] += difference * difference


@compiled
def _reach(index: Index, node: int, point: FloatArray) -> float:
    """The squared distance of the farthest corner of a box: that of no record in it is above it."""
    total = 0.0
    for column in range(len(point)):
        difference = max(point[column] - index.box[node, column, 0], index.box[node, column, 1] - point[column])
        total += difference * difference
    return total


@compiled
def _gap(index: Index, node: int, point: FloatArray) -> float:
    """The squared distance of a box: that of no record in it is below it."""
    total = 0.0
    for column in range(len(point)):
        difference = max(index.box[node, column, 0] - point[column], point[column] - index.box[node, column, 1], 0.0)
        total += difference * difference
    return total


@compiled
def _rise(near: IntArray, far_off: FloatArray, place: int, row: int, square: float) -> None:
    """A new entry at the end of the heap finds its place."""
    while place > 0:
        above = (place - 1) // 2
        if far_off[above] > square or (far_off[above] == square and near[above] > row):
            break
        near[place], far_off[place] = near[above], far_off[above]
        place = above
    near[place], far_off[place] = row, square


@compiled
def _sink(near: IntArray, far_off: FloatArray, count: int, row: int, square: float) -> None:
    """A new entry takes the place of the top one and finds its own."""
    place = 0
    while 2 * place + 1 < count:
        below = 2 * place + 1
        other = below + 1
        if other < count and (
            far_off[other] > far_off[below] or (far_off[other] == far_off[below] and near[other] > near[below])
        ):
            below = other
        if square > far_off[below] or (square == far_off[below] and row > near[below]):
            break
        near[place], far_off[place] = near[below], far_off[below]
        place = below
    near[place], far_off[place] = row, square


@compiled
def _add(sums: Sums, column: int, number: float) -> None:
    """The column's sum is greater by the number, exactly."""
    kept = 0
    for place in range(sums.used[column]):
        other = sums.parts[column, place]
        if abs(number) < abs(other):
            number, other = other, number
        total = number + other
        lost = other - (total - number)
        if lost != 0.0:
            sums.parts[column, kept] = lost
            kept += 1
        number = total
    sums.parts[column, kept] = number
    sums.used[column] = kept + 1


@compiled
def round_sum(sums: Sums, column: int) -> float:
    """The column's sum, rounded once: `math.fsum` of its parts."""
    place = sums.used[column] - 1
    if place < 0:
        return 0.0
    total, lost = sums.parts[column, place], 0.0
    while place > 0:
        place -= 1
        before, part = total, sums.parts[column, place]
        total = before + part
        lost = part - (total - before)
        if lost != 0.0:
            break
    # half of the last bit was rounded to even, and what comes after says which way it should have gone
    if place > 0 and (lost > 0) == (sums.parts[column, place - 1] > 0):
        doubled = 2 * lost
        if doubled == (total + doubled) - total:
            total += doubled
    return total
