"""Total orders of records that depend on each record only, and their clusters: the base of insensitive microaggregation (KDP13).

A record is a vector q of m integers, q_a in 0..W_a, the grid units of a declared domain. Its key is a function of only the record
and declared facts. Records are ordered by (key, q_1, .., q_m, keyed position) and cut into clusters of consecutive ranks. A
changed record leaves one position of that order and takes another; between the two every record moves by one rank, so every
cluster loses at most one record and gains at most one. That is what makes the clusters insensitive.

Two orders (methods.md section 4):

`corner`, KDP13's: the squared distance to the corner of the domain where every attribute is lowest, attributes scaled to one
length: key = sum_a floor(q_a 2^s / W_a)^2, with the largest s for which m 4^s < 2^64.

`hilbert`: at depth b each attribute's domain is cut into 2^b cells, c_a = min(floor(q_a 2^b / W_a), 2^b - 1), and the key is the
position of the cell vector along the m-dimensional Hilbert curve, 0 .. 2^(mb) - 1. b = min(32, floor(64/m), bits of the largest
W_a). At every level l <= b the curve visits each of the 2^(ml) cells of that level once (its position is key >> m(b - l), the
cells are c_a >> (b - l)), and consecutive cells share a face: one c_a differs, by 1. This is Butz's curve in the form of HRC08
(Hamilton and Rau-Chaplin, "Compact Hilbert indices", Information Processing Letters 105, 2008): a level's cell is reflected by
`entry` and rotated by `turn` onto one standard Gray code, whose position gives the next m bits of the key and the next level's
entry and turn.

No floating-point number occurs, so every processor gives the same keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import MAX_WIDTH, as_rows
from release_pipeline.mechanisms.clusters.rank import OrderClusters, cut_ranks, sort_records
from release_pipeline.mechanisms.noise import NoiseStream, WordArray

ORDERS = ("corner", "hilbert")
MAX_DEPTH = 32
MAX_COLUMNS = 64  # of a Hilbert curve: each needs at least one bit of the key
_CHUNK = 1 << 14  # rows worked on at once: what they need stays in the cache
_u64 = np.uint64


def order_keys(quantised: npt.ArrayLike, widths: Sequence[int], order: str) -> WordArray:
    """Return one key per row of `quantised` (n x m integers, column a in 0..widths[a]): a function of the row and of declared
    facts.

    So equal rows have equal keys; different rows may have equal ones too. `order` is corner or hilbert.

    >>> order_keys([[0, 0], [3, 0], [3, 3], [0, 3]], [3, 3], "hilbert").tolist()
    [0, 5, 10, 15]
    """
    matrix = _as_matrix(quantised)
    declared = _as_declared(widths, order, matrix.shape[1])
    keys = np.empty(len(matrix), dtype=np.uint64)
    depth = _depth(declared)
    for start in range(0, len(matrix), _CHUNK):
        part = matrix[start : start + _CHUNK]
        columns: list[WordArray] = []
        for index, width in enumerate(declared):
            units = part[:, index].astype(np.uint64)  # negative numbers become larger than any width
            if int(units.max()) > width:
                raise InvalidArgument(
                    "a value lies outside 0 to the column's width.",
                    where=f"column {index}",
                    remedy="Put the values on their declared grid first.",
                )
            columns.append(units)
        chunk = _corner_keys(columns, declared) if order == "corner" else _hilbert_keys(columns, declared, depth)
        keys[start : start + _CHUNK] = chunk
    return keys


def order_clusters(
    quantised: npt.ArrayLike,
    widths: Sequence[int],
    k: int,
    *,
    order: str,
    ties: NoiseStream | None = None,
) -> OrderClusters:
    """Return clusters of k consecutive records (the last one has the rest) in the order of (key, q_1, .., q_m, keyed position).

    The keys are those of `order_keys`. Equal records are ordered by a keyed permutation of their positions drawn from `ties`, or
    by position if there is none. If one record is changed, each cluster loses at most one record and gains at most one.

    >>> order_clusters([[9, 9], [0, 1], [8, 9], [1, 1]], [9, 9], 2, order="hilbert").cluster.tolist()
    [1, 0, 1, 0]
    """
    matrix = _as_matrix(quantised)
    start, size = cut_ranks(len(matrix), k)
    keys = order_keys(matrix, widths, order)
    return OrderClusters(sort_records([keys, *matrix.T], ties), start, size)


def curve_depth(widths: Sequence[int]) -> int:
    """Return b, the levels of the Hilbert curve over these columns: min(32, floor(64/m), bits of the largest width).

    >>> curve_depth([1000] * 4), curve_depth([2**40] * 12), curve_depth([7, 1])
    (10, 5, 3)
    """
    return _depth(_as_declared(widths, "hilbert", len(widths)))


def cell_reach(width: int, level: int) -> Fraction:
    """Return x such that |q - q'| <= (d + 1) x for any two values in 0..width whose cells of `level` differ by d.

    The cell of a level l is min(floor(q 2^l / W), 2^l - 1), which is that of any deeper level b shifted by b - l.

    x = W/2^l. A value of cell c has c W/2^l <= q, and q <= (c + 1) W/2^l, the last cell included, which ends at W.
    So with q' in cell c + d: q' - q <= (c + d + 1) W/2^l - c W/2^l = (d + 1) W/2^l.

    """
    [length] = _as_declared([width], "hilbert", 1)
    if not 0 <= level <= MAX_DEPTH:
        raise InvalidArgument(f"the level is not one from 0 to {MAX_DEPTH}.", where="level")
    return Fraction(length, 1 << level)


def _as_matrix(quantised: npt.ArrayLike) -> npt.NDArray[Any]:
    matrix = as_rows(quantised)
    if matrix.dtype.kind not in "iu":
        raise InvalidType(
            f"the matrix must be integers, not {matrix.dtype.name}.", remedy="Put the values on their declared grid first."
        )
    return matrix


def _as_declared(widths: Sequence[int], order: str, m: int) -> list[int]:
    """Return the width of each of m columns; refused unless they are as declared."""
    if order not in ORDERS:
        raise InvalidArgument(f"the order is none of {', '.join(ORDERS)}.", where="order")
    if order == "hilbert" and m > MAX_COLUMNS:
        raise InvalidArgument(
            f"a Hilbert curve of {m:,} columns does not fit 64 bits.",
            remedy="Use fewer columns or order: corner.",
        )
    if len(widths) != m:
        raise InvalidArgument(f"there are {len(widths):,} for {m:,} columns.", where="widths")
    for index, width in enumerate(widths):
        if isinstance(width, bool) or not isinstance(cast(object, width), int | np.integer):
            raise InvalidType(f"column {index}'s is not a whole number.", where="widths")
        if not 1 <= width <= MAX_WIDTH:
            raise InvalidArgument(f"column {index}'s is not one from 1 to 2^52.", where="widths")
    return [int(width) for width in widths]


def _depth(lengths: Sequence[int]) -> int:
    return min(MAX_DEPTH, max(64 // len(lengths), 1), max(lengths).bit_length())


def _parts(units: WordArray, length: int, bits: int) -> WordArray:
    """Return floor(q 2^bits / W) for q in 0..W, exactly: by long division, as many bits at a time as fit in a word next to W."""
    divisor = _u64(length)
    step = min(64 - length.bit_length(), bits)  # no rest exceeds W, and W 2^step < 2^64
    rest = units << _u64(step)
    parts = rest // divisor
    digit, done = parts, step
    while done < bits:
        step = min(step, bits - done)
        rest = (rest - digit * divisor) << _u64(step)
        digit = rest // divisor
        parts = (parts << _u64(step)) + digit
        done += step
    return parts


def _corner_keys(columns: Sequence[WordArray], lengths: Sequence[int]) -> WordArray:
    m = len(columns)
    bits = (64 - m.bit_length()) // 2  # m < 2^(64 - 2s), so that m 4^s < 2^64
    keys = np.zeros(len(columns[0]), dtype=np.uint64)
    for units, length in zip(columns, lengths, strict=True):
        part = _parts(units, length, bits)
        part *= part
        keys += part
    return keys


def _hilbert_keys(columns: Sequence[WordArray], lengths: Sequence[int], depth: int) -> WordArray:
    m = len(columns)
    digits = np.zeros_like(columns[0])  # m bits per level, the highest level first; bit a of them is column a's
    for column, (units, length) in enumerate(zip(columns, lengths, strict=True)):
        cells = np.minimum(_parts(units, length, depth), _u64((1 << depth) - 1))
        for level in range(depth):
            digits |= (cells >> _u64(level) & _u64(1)) << _u64(m * level + column)
    return _walk(m, depth, digits)


def _walk(m: int, levels: int, digits: WordArray) -> WordArray:
    """Return the keys of so many levels of m bits each (HRC08, Algorithm 2).

    On each level the standard Gray code visits the 2^m cells; the w-th is entered at the corner gray(2 floor((w - 1) / 2)), and
    the next one is from it in direction (trailing ones of (w - 1) | 1) + 1, which together make the curve continuous.
    """
    ones, first_bit = _u64((1 << m) - 1), _u64(1)
    keys, entry, turn = (np.zeros_like(digits) for _ in range(3))
    for left in range(levels - 1, -1, -1):
        cell = ((digits >> _u64(m * left)) & ones) ^ entry
        back = _u64(m - 1) - turn  # shifted by this and by 1 more: m - turn may be 64
        w = ((cell >> turn) | (cell << back << first_bit)) & ones
        shift = 1
        while shift < m:
            w ^= w >> _u64(shift)
            shift *= 2
        keys = (keys << _u64(m) if left < levels - 1 else keys) | w
        later = (w > 0).astype(np.uint64)
        before = (w - later) | later
        corner = (before ^ later) ^ ((before ^ later) >> first_bit)
        entry = entry ^ (((corner << turn) | (corner >> back >> first_bit)) & ones)
        turn = (turn + np.bitwise_count(before ^ (before + first_bit))) % _u64(m)
    return keys
