"""MDAV once more, from the description, in plain NumPy and loops: every distance measured anew each time."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt


def standardise(matrix: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """z-scores; 0 in a constant column."""
    x = np.array(matrix, dtype=np.float64)
    z = np.zeros(x.shape)
    varied = [j for j in range(x.shape[1]) if len(set(x[:, j].tolist())) > 1]
    z[:, varied] = ((x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1))[:, varied]
    return z


def clusters(matrix: npt.ArrayLike, k: int) -> list[list[int]]:
    """The clusters in the order in which they are made, each with its records ascending."""
    z = standardise(matrix)
    left = list(range(len(z)))
    if k == 1:
        return [[row] for row in left]
    found: list[list[int]] = []

    def squares(point: Any) -> dict[int, float]:
        distance = np.zeros(len(left))
        for j in range(z.shape[1]):
            distance = distance + (z[left, j] - point[j]) ** 2
        return dict(zip(left, distance.tolist(), strict=True))

    def farthest(point: Any) -> int:
        distance = squares(point)
        return max(left, key=lambda row: (distance[row], -row))

    def close(seed: int) -> None:
        distance = squares(z[seed])
        others = sorted((row for row in left if row != seed), key=lambda row: (distance[row], row))
        found.append(sorted([seed, *others[: k - 1]]))
        for row in found[-1]:
            left.remove(row)

    def farthest_from_centroid() -> int:
        return farthest([fsum(z[left, j].tolist()) / len(left) for j in range(z.shape[1])])

    while len(left) >= 3 * k:
        r = farthest_from_centroid()
        close(r)
        close(farthest(z[r]))
    if len(left) >= 2 * k:
        close(farthest_from_centroid())
    if left:
        found.append(list(left))
    return found


def error(matrix: npt.ArrayLike, label: npt.ArrayLike) -> float:
    """100 SSE / SST of the z-scores."""
    z, label = standardise(matrix), np.asarray(label)
    within = sum(float(((z[label == c] - z[label == c].mean(axis=0)) ** 2).sum()) for c in set(label.tolist()))
    return 100 * within / float(((z - z.mean(axis=0)) ** 2).sum())
