"""Numbers made of released ones, record by record: what is published of a sum is the sum of what is published.

A function of released values alone is post-processing: it costs nothing under any of the definitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from release_pipeline.privacy.grid import FloatArray

DIGITS = 9  # after the point, of decimals that are added exactly
_WHOLE = 2.0**53  # up to here a float has every whole number


def add_signed(terms: Sequence[tuple[int, FloatArray]]) -> FloatArray:
    """The sum of these columns, each with its sign; NaN where one of them has no value.

    Where all of a record's numbers are decimals of d digits or fewer (d up to nine), the sum is the float next to the exact
    decimal one: 0.1 and 0.2 are 0.3, and cents add up to cents. Others are added as floats are. Both ways what is added to a
    number and is not below 0 gives no smaller one.

    >>> add_signed([(1, np.array([0.1, 5.0])), (1, np.array([0.2, np.nan]))]).tolist()
    [0.3, nan]
    """
    total: FloatArray = np.zeros(len(terms[0][1]), dtype=np.float64)
    for sign, column in terms:
        total = total + sign * column
    is_open = ~np.isnan(total)
    for digits in range(DIGITS + 1):
        power = 10.0**digits
        units = np.zeros(len(total), dtype=np.float64)
        size = np.zeros(len(total), dtype=np.float64)
        exact = is_open.copy()
        for sign, column in terms:
            whole = np.rint(np.where(is_open, column, 0.0) * power)
            exact &= whole / power == column
            units, size = units + sign * whole, size + np.abs(whole)
        exact &= size < _WHOLE  # so is every sum on the way
        total[exact] = units[exact] / power
        is_open &= ~exact
    return total + 0.0  # no minus before a zero
