"""MDAV as one would write it first in compiled loops, four passes for every two clusters: what ours is compared with."""

from __future__ import annotations

import numba  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@numba.njit
def _square(one: Floats, other: Floats) -> float:
    total = 0.0
    for column in range(len(one)):
        difference = one[column] - other[column]
        total += difference * difference
    return total


@numba.njit
def _farthest(point: Floats, row: Ints, left: int, target: Floats) -> int:
    found, most = 0, -1.0
    for place in range(left):
        square = _square(point[place], target)
        if square > most or (square == most and row[place] < row[found]):
            found, most = place, square
    return found


@numba.njit
def _close(point: Floats, row: Ints, left: int, seed: int, k: int, label: Ints, made: int, total: Floats) -> int:
    """The cluster of a record: the k nearest in a sorted list, then the last records move to where they were."""
    target = point[seed].copy()
    square, member = np.full(k, np.inf), np.full(k, -1)
    for place in range(left):
        distance = -1.0 if place == seed else _square(point[place], target)
        if distance > square[k - 1] or (distance == square[k - 1] and row[place] > row[member[k - 1]]):
            continue
        spot = k - 1
        while spot > 0 and (distance < square[spot - 1] or (distance == square[spot - 1] and row[place] < row[member[spot - 1]])):
            square[spot], member[spot] = square[spot - 1], member[spot - 1]
            spot -= 1
        square[spot], member[spot] = distance, place
    for place in np.sort(member)[::-1]:
        label[row[place]] = made
        left -= 1
        for column in range(len(total)):
            total[column] -= point[place, column]
            point[place, column] = point[left, column]
        row[place] = row[left]
    return left


@numba.njit
def plain_mdav(z: Floats, k: int) -> Ints:
    """The cluster of each row, numbered in the order in which they are made; the centroid from running sums."""
    n, m = z.shape
    point, row, label = z.copy(), np.arange(n), np.empty(n, np.int64)
    total = np.array([z[:, column].sum() for column in range(m)])
    left, made = n, 0
    while left >= 2 * k:
        both = left >= 3 * k
        seed = _farthest(point, row, left, total / left)
        corner = point[seed].copy()
        left = _close(point, row, left, seed, k, label, made, total)
        made += 1
        if both:
            left = _close(point, row, left, _farthest(point, row, left, corner), k, label, made, total)
            made += 1
    for place in range(left):
        label[row[place]] = made
    return label
