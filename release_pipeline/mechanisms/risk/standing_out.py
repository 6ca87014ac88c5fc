"""Records that stand out in their class once they have noise, and classes that then have too few records: (k,epsilon)-anonymity
drops both. `class_noise` has the effect on the claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.arrays import PIECE
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.columns.class_noise import BoolArray, class_sizes, count_classes

_DIGITS = 50  # of the logarithms of a confidence width: correctly rounded, so every processor gives the same integer


@cache
def confidence_width(scale: int, confidence: Decimal, columns: int) -> int:
    """Return the least whole w with P[|Z_a| <= w in each of `columns` columns] >= confidence, if all have this scale: one at
    c^(1/m).

    P[|Z| <= w] = 1 - 2 q^(w+1) / (1 + q) with q = exp(-1/t), so w = ceil(t ln(2 / ((1 + q)(1 - c')))) - 1.

    >>> confidence_width(10, Decimal("0.99"), 1), confidence_width(0, Decimal("0.99"), 1)
    (46, 0)
    """
    if not 0 < confidence < 1:
        raise InvalidArgument("the confidence does not lie between 0 and 1.", where="confidence")
    if scale == 0:
        return 0
    with localcontext() as context:
        context.prec = _DIGITS
        each = confidence ** (Decimal(1) / columns)
        if each >= 1:
            raise InvalidArgument("the confidence does not lie between 0 and 1 by its first 50 digits.", where="confidence")
        q = (Decimal(-1) / scale).exp()
        return max(math.ceil(scale * (2 / ((1 + q) * (1 - each))).ln()) - 1, 0)


def confidence_widths(scales: Sequence[IntArray], confidence: Decimal) -> IntArray:
    """Return the half-widths of each class's confidence box, a column per noise column."""
    m = len(scales)
    return np.stack([np.array([confidence_width(int(t), confidence, m) for t in scale], np.int64) for scale in scales], axis=1)


def find_exposed(
    original: Sequence[IntArray], released: Sequence[IntArray], group: IntArray, widths: IntArray, k: int
) -> BoolArray:
    """Return the records whose confidence box holds some of the originals of their class, and fewer than k: those stand out.

    Confidence-based k-anonymity (KEA18; methods.md section 5). `original`, `released`: the noise columns in grid units, an entry
    per record; `group` the class of each record (-1: not released, and no original of any class), `widths` half-widths by class
    and column. An empty box does not count against its record, though its number may point at the original nearest to it. Each
    record has an empty box with a probability of at most 1 - confidence, because its own original is outside too. The decision
    reads original data.
    """
    m, sizes = len(original), class_sizes(group)
    if widths.ndim != 2 or widths.shape[1] != m or len(sizes) > len(widths):
        raise InvalidArgument("the widths do not have a row for each class and a column for each noise column.", where="widths")
    widest = sorted(range(m), key=lambda index: -_guess_different(original[index]))  # the box of its first column holds few
    by_class = np.lexsort((original[widest[0]], group))
    members = by_class[len(group) - int(sizes.sum()) :]  # records without a class come first
    exposed = np.zeros(len(group), dtype=np.bool_)
    exposed[members] = _count_boxes(
        [original[index][members] for index in widest],
        [released[index][members] for index in widest],
        np.repeat(np.minimum(widths[: len(sizes), widest], 2**60), sizes, axis=0),
        sizes,
        k,
    )
    return exposed


def _count_boxes(
    original: Sequence[IntArray], released: Sequence[IntArray], reach: IntArray, sizes: IntArray, k: int
) -> BoolArray:
    """Return the records, sorted by class, whose box holds at least one original of the class and fewer than k. Originals of a
    class ascend in the first column; `reach` has a row for each record."""
    count = len(released[0])
    position, last, held = (np.zeros(count, dtype=np.int64) for _ in range(3))
    ends = np.cumsum(sizes)
    for first, end in zip(ends - sizes, ends, strict=True):
        own = slice(first, end)
        position[own] = first + np.searchsorted(original[0][own], released[0][own] - reach[own, 0], side="left")
        last[own] = first + np.searchsorted(original[0][own], released[0][own] + reach[own, 0], side="right")
    open_boxes = np.flatnonzero(position < last)
    while len(open_boxes):  # the next original of every box that has fewer than k
        at = position[open_boxes]
        inside = np.ones(len(open_boxes), dtype=np.bool_)
        for column in range(1, len(original)):
            inside &= np.abs(original[column][at] - released[column][open_boxes]) <= reach[open_boxes, column]
        held[open_boxes] += inside
        position[open_boxes] += 1
        open_boxes = open_boxes[(position[open_boxes] < last[open_boxes]) & (held[open_boxes] < k)]
    return (held > 0) & (held < k)


def _guess_different(column: IntArray) -> int:
    """Return an estimate of how many different numbers a column has, from a sample all over it."""
    return len(np.unique(column[:: max(len(column) // PIECE, 1)]))


def find_small_classes(group: IntArray, kept: BoolArray, *, k: int) -> BoolArray:
    """Return the kept records whose class has fewer than k of them. Records without a class are not among them."""
    small = class_sizes(group, kept) < k
    use = kept & (group >= 0)
    found = np.zeros(len(group), dtype=np.bool_)
    found[use] = small[group[use]]
    return found


def count_different(column: npt.NDArray[Any], group: IntArray, kept: BoolArray) -> IntArray:
    """Return how many different values the kept records of each class have in a column."""
    use = kept & (group >= 0)
    groups, values = group[use], column[use]
    by_pair = np.lexsort((values, groups))
    groups, values = groups[by_pair], values[by_pair]
    begins = np.ones(len(groups), dtype=np.bool_)
    begins[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
    return np.bincount(groups[begins], minlength=count_classes(group))
