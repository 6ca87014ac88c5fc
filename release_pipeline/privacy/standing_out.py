"""Whose record stands out in its class once it has noise, and which classes have too few records then: whom (k,epsilon)-anonymity
drops. What that does to the claim is said in `class_noise`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.arrays import IN_MEMORY, PIECE, SUMMED, Arrays, order, pieces
from release_pipeline.privacy.class_noise import BoolArray, class_sizes, count_classes
from release_pipeline.privacy.grid import IntArray

_DIGITS = 50  # of the logarithms behind a confidence width: correctly rounded, so every processor gives the same integer


@cache
def confidence_width(scale: int, confidence: Decimal, columns: int) -> int:
    """The least whole w with P[|Z_a| <= w in each of `columns` columns] >= confidence, when all have this scale: one at c^(1/m).

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
    """The half-widths of each class's confidence box, a column per noise column."""
    m = len(scales)
    return np.stack([np.array([confidence_width(int(t), confidence, m) for t in scale], np.int64) for scale in scales], axis=1)


def find_exposed(
    original: Sequence[IntArray],
    released: Sequence[IntArray],
    group: IntArray,
    widths: IntArray,
    k: int,
    arrays: Arrays = IN_MEMORY,
) -> BoolArray:
    """The records whose confidence box holds some of the originals of their class, and fewer than k: those stand out.

    Confidence-based k-anonymity (KEA18; methods.md section 5). `original`, `released`: the noise columns in grid units, an entry
    per record; `group` the class of each record (-1: not released, and no original of any class), `widths` half-widths by class
    and column.
    An empty box does not count against its record, though its number may point at the original nearest to it. Each record has
    one with a probability of at most 1 - confidence: its own original lies outside too. The decision reads original data.
    """
    m, n = len(original), len(group)
    sizes = class_sizes(group, arrays=arrays)
    if widths.ndim != 2 or widths.shape[1] != m or len(sizes) > len(widths):  # compiled code checks no bounds
        raise InvalidArgument("the widths do not have a row for each class and a column for each noise column.", where="widths")
    widest = sorted(range(m), key=lambda place: -_guess_different(original[place]))  # few are in a box of its first column
    by_class = _order_by_class(group, original[widest[0]], arrays)
    gone, starts = n - int(sizes.sum()), np.concatenate([[0], np.cumsum(sizes)])
    members = by_class[gone:]
    boxes = _Boxes(
        _lay_out([original[place] for place in widest], members, arrays),
        _lay_out([released[place] for place in widest], members, arrays),
        starts,
        np.ascontiguousarray(np.minimum(widths[:, widest], 2**60)),
        k,
    )
    found = arrays.fill(boxes.find, len(members), np.bool_)
    return arrays.put(partial(_behind, found, gone), by_class, np.bool_)


def _guess_different(column: IntArray) -> int:
    """How many different numbers a column has, by some all over it."""
    return len(np.unique(column[:: max(len(column) // PIECE, 1)]))


def _order_by_class(group: IntArray, column: IntArray, arrays: Arrays) -> npt.NDArray[np.intp]:
    """The records in the order of their classes, and of a column within each; first those without a class."""
    by_column = order(arrays, column)
    return arrays.take(by_column, arrays.argsort(arrays.take(group, by_column)))


def _lay_out(columns: Sequence[IntArray], places: npt.NDArray[np.intp], arrays: Arrays) -> IntArray:
    """The numbers at these places, column after column."""
    count = len(places)
    out = arrays.empty(len(columns) * count, np.int64)
    for number, column in enumerate(columns):
        taken = arrays.take(column, places)
        for part in pieces(count, SUMMED):
            out[number * count + part.start : number * count + part.stop] = taken[part]
    return out


def _behind(flags: BoolArray, first: int, part: slice) -> BoolArray:
    """So many entries that are not flagged, and then these."""
    before = min(max(first - part.start, 0), part.stop - part.start)
    return np.concatenate([np.zeros(before, dtype=np.bool_), flags[max(part.start - first, 0) : max(part.stop - first, 0)]])


@dataclass(frozen=True, slots=True)
class _Boxes:
    """The confidence boxes of records that lie class by class, each column behind the other, and the originals likewise, which
    ascend in the first one. `starts` of the classes, and the end."""

    original: IntArray
    released: IntArray
    starts: IntArray
    reach: IntArray
    k: int

    def find(self, part: slice) -> BoolArray:
        """Whose box holds some originals of the class, and fewer than k."""
        exposed = np.zeros(part.stop - part.start, dtype=np.bool_)
        places = np.arange(part.start, part.stop, dtype=np.int64)
        group = np.searchsorted(self.starts, places, side="right") - 1
        _load_kernel().count_boxes(self.original, self.released, self.starts, self.reach, group, part.start, self.k, exposed)
        return exposed


def find_small_classes(group: IntArray, kept: BoolArray, *, k: int, arrays: Arrays = IN_MEMORY) -> BoolArray:
    """The kept records whose class has fewer than k of them. Records without a class are not among them."""
    small = class_sizes(group, kept, arrays) < k
    return arrays.fill(partial(_find_small, group, kept, small), len(group), np.bool_)


def count_different(column: npt.NDArray[Any], group: IntArray, kept: BoolArray, arrays: Arrays = IN_MEMORY) -> IntArray:
    """How many different values the kept records of each class have in a column."""
    found, waiting = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=column.dtype))], 0
    for more in arrays.over(partial(_find_pairs, column, group, kept), len(group), SUMMED):
        found.append(more)
        waiting += len(more[0])
        if waiting > len(found[0][0]):  # so that few are put in order often
            found, waiting = [_put_together(found)], 0
    return np.bincount(_put_together(found)[0], minlength=count_classes(group, arrays))


def _put_together(pairs: Sequence[tuple[IntArray, npt.NDArray[Any]]]) -> tuple[IntArray, npt.NDArray[Any]]:
    return _different(np.concatenate([groups for groups, _ in pairs]), np.concatenate([values for _, values in pairs]))


def _find_pairs(column: npt.NDArray[Any], group: IntArray, kept: BoolArray, part: slice) -> tuple[IntArray, npt.NDArray[Any]]:
    use = kept[part] & (group[part] >= 0)
    return _different(group[part][use], column[part][use])


def _different(groups: IntArray, values: npt.NDArray[Any]) -> tuple[IntArray, npt.NDArray[Any]]:
    """The different ones of some pairs."""
    by_pair = np.lexsort((values, groups))
    groups, values = groups[by_pair], values[by_pair]
    begins = np.ones(len(groups), dtype=np.bool_)
    begins[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
    return groups[begins], values[begins]


def _find_small(group: IntArray, kept: BoolArray, small: BoolArray, part: slice) -> BoolArray:
    groups = group[part]
    use = kept[part] & (groups >= 0)
    found = np.zeros(len(groups), dtype=np.bool_)
    found[use] = small[groups[use]]
    return found


@cache
def _load_kernel() -> ModuleType:
    """The compiled loops, when they are needed."""
    from release_pipeline.privacy import box_kernel

    return box_kernel
