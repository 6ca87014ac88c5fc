"""What `grouping` is compared with: OLA and Mondrian as one would write them first, on arrays, with the same results or cuts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import numba  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.hierarchy import Hierarchy

_TABLE = 10**6  # up to so many possible classes a table of them is faster than sorting

Ints = npt.NDArray[np.int64]


def plain_search(codes: Ints, hierarchies: Sequence[Hierarchy], k: int, share: Fraction) -> tuple[tuple[int, ...], Ints]:
    """The first feasible node in order of categorical precision, each counted on the histogram of different tuples; and classes.

    In that order nothing below an infeasible node and nothing above a feasible one is met again, so there is nothing to tag.
    """
    n, m = codes.shape
    tuples, records = _distinct(codes, [len(hierarchy.values) for hierarchy in hierarchies])
    depths = [hierarchy.levels for hierarchy in hierarchies]
    nodes = list(product(*map(range, depths)))
    loss = [sum(Fraction(a, max(depth - 1, 1)) for a, depth in zip(node, depths, strict=True)) for node in nodes]
    for _, levels in sorted(zip(loss, nodes, strict=True)):
        key, space = np.zeros(len(records), dtype=np.int64), 1
        for column in range(m):
            hierarchy, level = hierarchies[column], levels[column]
            key = key * len(hierarchy.labels[level]) + hierarchy.codes[level][tuples[column]]
            space *= len(hierarchy.labels[level])
        if space > _TABLE:
            key = np.unique(key, return_inverse=True)[1]
        size = np.bincount(key, weights=records)
        if size[size < k].sum() <= floor(share * n):
            of_record = np.zeros(n, dtype=np.int64)
            for column in range(m):
                hierarchy, level = hierarchies[column], levels[column]
                of_record = of_record * len(hierarchy.labels[level]) + hierarchy.codes[level, codes[:, column]]
            _, group, size = np.unique(of_record, return_inverse=True, return_counts=True)
            return levels, np.where(size[group] >= k, group, -1)
    raise ValueError("no generalisation is possible")


def _distinct(codes: Ints, sizes: list[int]) -> tuple[list[Ints], Ints]:
    key = np.zeros(len(codes), dtype=np.int64)
    for column, size in enumerate(sizes):
        key = key * size + codes[:, column]
    present, records = np.unique(key, return_counts=True)
    return [np.ascontiguousarray(column) for column in np.unravel_index(present, sizes)], records


@numba.njit
def plain_mondrian(matrix: Any, k: int) -> Any:
    """The widest column at its median, what is at or below it to the left; the next one if a side is too small; a stack."""
    n, m = matrix.shape
    whole = np.empty(m)
    for column in range(m):
        whole[column] = max(matrix[:, column].max() - matrix[:, column].min(), 1)
    rows = np.arange(n)
    spare = np.empty(n, np.int64)
    values = np.empty(n, np.int64)
    label = np.empty(n, np.int64)
    stack = [(0, n)]
    classes = 0
    while len(stack) > 0:
        start, stop = stack.pop()
        cut = False
        if stop - start >= 2 * k:
            share = np.empty(m)
            for column in range(m):
                low = high = matrix[rows[start], column]
                for place in range(start, stop):
                    value = matrix[rows[place], column]
                    low = min(low, value)
                    high = max(high, value)
                share[column] = (high - low) / whole[column]
            for _ in range(m):
                column = np.argmax(share)
                if share[column] <= 0:
                    break
                share[column] = -1
                for place in range(start, stop):
                    values[place] = matrix[rows[place], column]
                median = np.partition(values[start:stop], (stop - start - 1) // 2)[(stop - start - 1) // 2]
                left, right = start, 0
                for place in range(start, stop):
                    if values[place] <= median:
                        left += 1
                if left - start < k or stop - left < k:
                    continue
                left = start
                for place in range(start, stop):
                    row = rows[place]
                    if values[place] <= median:
                        rows[left] = row
                        left += 1
                    else:
                        spare[right] = row
                        right += 1
                rows[left:stop] = spare[:right]
                stack.append((left, stop))
                stack.append((start, left))
                cut = True
                break
        if not cut:
            for place in range(start, stop):
                label[rows[place]] = classes
            classes += 1
    return label
