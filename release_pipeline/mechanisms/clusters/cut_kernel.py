"""The loops of `cuts`, compiled. Only `cuts` imports this module, when first used, because it imports numba.

All columns are int64 that sort like their values (`cuts` says how), so that every decision is one of integers.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.compiling import compiled
from release_pipeline.mechanisms.basis.grid import IntArray

WHOLE, FLOAT, LABELS = 0, 1, 2  # kinds of columns: integers; floats as ordered words; values of a hierarchy in its order
_NEARLY = 2.0**-48  # two shares of floats that differ by more, relatively, differ in truth: each has at most four roundings
_TINY = 2.0**-900  # below it a share may have lost bits
_LOWEST = 2272  # the accumulator's lowest bit is 2^-2272: a float is a whole number times 2^-1126 or more
_LIMBS = 140  # of 32 bits each: up to 2^2048 for the product of two floats, and room for sums and a sign
_BUCKET_BITS = 11


@compiled
def cut_kernel(
    columns: IntArray,
    kinds: IntArray,
    least: IntArray,
    most: IntArray,
    trees: IntArray,
    offset: IntArray,
    k: int,
    label: IntArray,
    level: IntArray,
) -> int:
    """Cut until nothing is allowable; fill `label` per record and `level` per class and column; return the number of classes.

    `columns` (m x n) are permuted in place so that a class is always a range of them. `least` and `most` are those of the whole
    table. Of a column of labels, `trees` from `offset` on has the number of value v's label on level a, level by level, ascending
    in v; its `most` is the number of values.
    """
    m, n = columns.shape
    record = np.arange(n, dtype=np.int64)
    spare = np.empty(n, np.int64)
    side = np.empty(n, np.int64)
    limbs = np.zeros(_LIMBS, np.int64)
    word = np.zeros(1, np.int64)
    pending = np.empty((n // k + 1, 2), np.int64)
    pending[0, 0], pending[0, 1] = 0, n
    low, high, reached = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    share = np.empty(m, np.float64)
    tried = np.empty(m, np.bool_)
    waiting, classes = 1, 0
    while waiting:
        waiting -= 1
        start, stop = pending[waiting, 0], pending[waiting, 1]
        parts = 0
        final = stop - start < 2 * k
        for column in range(m):
            tried[column] = True
            reached[column] = -1
            if final and kinds[column] != LABELS:
                continue
            ends = _ends(columns[column, start:stop])
            low[column], high[column] = ends
            if kinds[column] == LABELS:
                reached[column] = _meet(trees[offset[column] :], most[column], ends[0], ends[1])
            if ends[0] < ends[1] and not final:
                tried[column] = False
                if kinds[column] == LABELS:  # the share of values under the label
                    codes = _codes_of(trees, offset[column], most[column], reached[column])
                    own = codes[ends[0]]
                    low[column], high[column] = 0, _count(codes, own)
                share[column] = _share(low[column], high[column], least[column], most[column], kinds[column], word)
        while parts == 0:
            column = -1
            for other in range(m):
                if not tried[other] and (
                    column < 0 or _is_wider(other, column, share, low, high, least, most, kinds, limbs, word)
                ):
                    column = other
            if column < 0:
                break
            tried[column] = True
            part = columns[column, start:stop]
            if kinds[column] == LABELS:
                codes = _codes_of(trees, offset[column], most[column], reached[column] - 1)
                parts = _cut_labels(part, codes, k, side)
            else:
                parts = _cut_median(part, low[column], high[column], k, side, spare)
        if parts == 0:
            for row in range(start, stop):
                label[record[row]] = classes
            for column in range(m):
                level[classes, column] = reached[column]
            classes += 1
            continue
        # the first part is cut first: so classes are numbered from the lowest values to the highest
        place = np.zeros(parts, np.int64)
        for row in range(stop - start):
            place[side[row]] += 1
        end = stop
        for number in range(parts - 1, -1, -1):
            pending[waiting, 0], pending[waiting, 1] = end - place[number], end
            end -= place[number]
            place[number] = end - start
            waiting += 1
        for column in range(m):
            _sort_out(columns[column, start:stop], side, place, spare)
        _sort_out(record[start:stop], side, place, spare)
    return classes


@compiled
def _ends(part: IntArray) -> tuple[int, int]:
    least = most = part[0]
    for value in part:
        least = min(least, value)
        most = max(most, value)
    return least, most


@compiled
def _count(codes: IntArray, own: int) -> int:
    often = 0
    for code in codes:
        often += code == own
    return often


@compiled
def _codes_of(trees: IntArray, offset: int, values: int, level: int) -> IntArray:
    return trees[offset + level * values : offset + (level + 1) * values]


@compiled
def _meet(tree: IntArray, values: int, one: int, other: int) -> int:
    """The finest level on which two values share a label: the coarsest has but one."""
    level = 0
    while tree[level * values + one] != tree[level * values + other]:
        level += 1
    return level


@compiled
def _number(value: int, word: IntArray) -> float:
    """The float of an ordered word."""
    word[0] = value if value >= 0 else value ^ 0x7FFFFFFFFFFFFFFF
    return word.view(np.float64)[0]


@compiled
def _share(low: int, high: int, least: int, most: int, kind: int, word: IntArray) -> float:
    """About (high - low) / (most - least); what is decided is decided by `_is_wider`."""
    if kind == FLOAT:
        width = _number(most, word) - _number(least, word)
        return np.nan if np.isinf(width) else (_number(high, word) - _number(low, word)) / width
    return float(np.uint64(high) - np.uint64(low)) / float(np.uint64(most) - np.uint64(least))


@compiled
def _is_wider(
    one: int,
    other: int,
    share: npt.NDArray[np.float64],
    low: IntArray,
    high: IntArray,
    least: IntArray,
    most: IntArray,
    kinds: IntArray,
    limbs: IntArray,
    word: IntArray,
) -> bool:
    """Whether the first column's share is above the second's, exactly; floats decide where they cannot be wrong."""
    larger = max(share[one], share[other])
    if larger > _TINY and abs(share[one] - share[other]) > _NEARLY * larger:
        return share[one] > share[other]
    limbs[:] = 0
    for term in range(8):  # (high - low)[one] (most - least)[other] - (high - low)[other] (most - least)[one]
        mine, its = (one, other) if term < 4 else (other, one)
        ranged = high[mine] if term & 1 else low[mine]
        whole = most[its] if term & 2 else least[its]
        sign = 1 if (term & 1 == term >> 1 & 1) == (term < 4) else -1
        _add_product(limbs, ranged, kinds[mine] == FLOAT, whole, kinds[its] == FLOAT, sign, word)
    carry = 0
    positive = False
    for place in range(_LIMBS):
        total = limbs[place] + carry
        carry = total >> 32
        positive = positive or total & 0xFFFFFFFF != 0
    return carry == 0 and positive


@compiled
def _add_product(limbs: IntArray, one: int, one_float: bool, other: int, other_float: bool, sign: int, word: IntArray) -> None:
    """limbs += sign * one * other, where an ordered word stands for its float: mantissas in pieces of 24 bits, then shifted."""
    exponent = _LOWEST
    a, b = one, other
    if one_float:
        mantissa, power = math.frexp(_number(one, word))
        a = np.int64(mantissa * 2.0**53)
        exponent += power - 53
    if other_float:
        mantissa, power = math.frexp(_number(other, word))
        b = np.int64(mantissa * 2.0**53)
        exponent += power - 53
    for i in range(3):
        first = a >> 48 if i == 2 else (a >> (24 * i)) & 0xFFFFFF
        for j in range(3):
            second = b >> 48 if j == 2 else (b >> (24 * j)) & 0xFFFFFF
            product = sign * first * second  # below 2^48 in amount
            shift = exponent + 24 * (i + j)
            place, rest = shift >> 5, shift & 31
            bottom, top = (product & 0xFFFFFFFF) << rest, (product >> 32) << rest
            limbs[place] += bottom & 0xFFFFFFFF
            limbs[place + 1] += (bottom >> 32) + (top & 0xFFFFFFFF)
            limbs[place + 2] += top >> 32


@compiled
def _cut_median(part: IntArray, low: int, high: int, k: int, side: IntArray, spare: IntArray) -> int:
    """Cut between two values, nearest to the median: right before or right after the values that are equal to it."""
    n = len(part)
    rank = (n - 1) // 2
    below, within = 0, n
    base, width = np.uint64(low), np.uint64(high) - np.uint64(low)
    candidates = part
    while width > 0:
        bits = 0
        while bits < 64 and width >> np.uint64(bits) > 0:
            bits += 1
        size = 4
        while size < _BUCKET_BITS and within >> size > 0:
            size += 1
        shift = np.uint64(max(bits - size, 0))
        often = np.zeros(np.int64(width >> shift) + 1, np.int64)
        for value in candidates:
            often[(np.uint64(value) - base) >> shift] += 1
        bucket = 0
        while below + often[bucket] <= rank:
            below += often[bucket]
            bucket += 1
        within = often[bucket]
        kept = 0
        for value in candidates:
            if (np.uint64(value) - base) >> shift == np.uint64(bucket):
                spare[kept] = value  # never ahead of what is still to be read
                kept += 1
        candidates = spare[:kept]
        base += np.uint64(bucket) << shift
        width = (np.uint64(1) << shift) - np.uint64(1)
    median = np.int64(base)
    after = below + within
    before_fits, after_fits = below >= k, n - after >= k
    if not before_fits and not after_fits:
        return 0
    use_before = before_fits and (not after_fits or n - 2 * below <= 2 * after - n)
    for row in range(n):
        side[row] = 1 if part[row] > median or (use_before and part[row] == median) else 0
    return 2


@compiled
def _cut_labels(part: IntArray, codes: IntArray, k: int, side: IntArray) -> int:
    """One part for each label of the next level that occurs, if all of them are allowable."""
    n = len(part)
    lowest, highest = _ends(part)
    often = np.zeros(codes[highest] - codes[lowest] + 1, np.int64)
    for row in range(n):
        side[row] = codes[part[row]] - codes[lowest]
        often[side[row]] += 1
    number = np.empty(len(often), np.int64)
    parts = 0
    for label in range(len(often)):
        number[label] = parts
        if often[label] > 0:
            parts += 1
            if often[label] < k:
                return 0
    for row in range(n):
        side[row] = number[side[row]]
    return parts


@compiled
def _sort_out(part: IntArray, side: IntArray, place: IntArray, spare: IntArray) -> None:
    """Part by part, in the order that they had; `place` is where each part starts."""
    if len(place) == 2:
        left = right = 0
        for row in range(len(part)):  # both are written and one counts: cheaper than a branch that nobody can predict
            value = part[row]
            part[left] = value
            spare[right] = value
            right += side[row]
            left += 1 - side[row]
        for row in range(right):
            part[left + row] = spare[row]
        return
    following = np.empty(len(place), np.int64)
    for number in range(len(place)):
        following[number] = place[number]
    for row in range(len(part)):
        spare[following[side[row]]] = part[row]
        following[side[row]] += 1
    for row in range(len(part)):
        part[row] = spare[row]
