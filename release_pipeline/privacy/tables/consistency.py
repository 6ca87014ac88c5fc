"""Values that add up, from noisy cells alone: least squares, then no negative counts, then whole numbers.

Noisy cells contradict each other: groups and what is in them were measured apart, and counts add up to n, which is public. The
values that are nearest to all of them, each level weighed by one over its variance, are found on the tree of cells in two passes.

Upwards a cell's own number and the sum of those below it are two independent estimates, which are averaged with the inverse of
their variances. Downwards what is missing to the value above is shared out in proportion to those variances. That is the least
squares solution (each pass is one step of eliminating variables in a tree), and `tests/oracles` compares it with the plain one.

Then, from the coarsest level down, the values in each group are moved to the nearest ones that add up to the whole number above
and, where nothing can be below 0, are not; and rounded, up where most is cut off. All of it reads noisy cells and declared facts
alone, and loses nothing. Moving values up to 0 makes small cells too large on average: whoever computes uses the noisy cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.tables.shape import Shape


def reconcile(
    noisy: Sequence[IntArray], shape: Shape, spread: Sequence[float], *, total: int | None, negative: bool
) -> list[IntArray]:
    """Whole numbers for every level, the coarsest first, that add up, and to `total` where that is known. `spread`: in proportion
    to the variance of each level, 0 for what is exact; `negative`: whether a cell can be below 0."""
    wanted = fit_levels(noisy, shape, spread, total=total)
    first = wanted[0] if negative else np.maximum(wanted[0], 0.0)
    values = [_whole(first) if total is None else _share_out(wanted[0], total, negative=negative)]
    for level, parents in enumerate(shape.parents, 1):
        below = np.zeros(shape.cells[level], dtype=np.int64)
        order = np.argsort(parents, kind="stable")
        starts = np.searchsorted(parents[order], np.arange(shape.cells[level - 1] + 1))
        for cell in range(shape.cells[level - 1]):
            mine = order[starts[cell] : starts[cell + 1]]
            if len(mine):
                below[mine] = _share_out(wanted[level][mine], int(values[-1][cell]), negative=negative)
        values.append(below)
    return values


def fit_levels(noisy: Sequence[IntArray], shape: Shape, spread: Sequence[float], *, total: int | None) -> list[FloatArray]:
    """The least squares solution: what is nearest to all noisy cells, and adds up."""
    own = [level.astype(np.float64) for level in noisy]
    unsure = [np.full(len(level), of, dtype=np.float64) for level, of in zip(own, spread, strict=True)]
    for level in range(len(own) - 1, 0, -1):
        parents, count = shape.parents[level - 1], shape.cells[level - 1]
        held = np.bincount(parents, own[level], count)
        their = np.bincount(parents, unsure[level], count)
        part = np.divide(unsure[level - 1], unsure[level - 1] + their, out=np.zeros(count), where=their > 0)
        own[level - 1] = own[level - 1] + part * (held - own[level - 1])
        unsure[level - 1] = unsure[level - 1] * (1 - part)
    if total is not None and (all_of := float(unsure[0].sum())) > 0:
        own[0] = own[0] + unsure[0] / all_of * (total - own[0].sum())
    for level, parents in enumerate(shape.parents, 1):
        count = shape.cells[level - 1]
        missing = own[level - 1] - np.bincount(parents, own[level], count)
        their = np.bincount(parents, unsure[level], count)
        each = np.divide(missing, their, out=np.zeros(count), where=their > 0)
        own[level] = own[level] + unsure[level] * each[parents]
    return own


def _share_out(wanted: FloatArray, total: int, *, negative: bool) -> IntArray:
    """The whole numbers nearest to those wanted that add up to the total: not below 0 unless they may be."""
    if negative:
        moved = wanted + (total - float(wanted.sum())) / len(wanted)
    else:
        moved = np.maximum(wanted - level_off(wanted, total), 0.0)
    return _round(moved, total, negative=negative)


def level_off(wanted: FloatArray, total: int) -> float:
    """What is taken from each of these so that what is left above 0 adds up to the total: the nearest such point."""
    down = np.sort(wanted)[::-1]
    off = (np.cumsum(down) - total) / np.arange(1, len(down) + 1)
    return float(off[max(int(np.count_nonzero(down > off)) - 1, 0)])


def _round(moved: FloatArray, total: int, *, negative: bool) -> IntArray:
    """Rounded down, and one more for those that lost most by it (ties: the first), until all is shared out."""
    low = np.floor(moved).astype(np.int64)
    order = np.argsort(low - moved, kind="stable")
    rest = total - int(low.sum())
    if rest > 0:
        each, more = divmod(rest, len(low))
        low += each
        low[order[:more]] += 1
    while rest < 0:  # sums beyond 2^53, of which floats lose units
        fits = order[::-1] if negative else order[::-1][low[order[::-1]] > 0]
        taken = fits[: min(-rest, len(fits))]
        low[taken] -= 1
        rest += len(taken)
    return low


def _whole(wanted: FloatArray) -> IntArray:
    return np.rint(wanted).astype(np.int64)
