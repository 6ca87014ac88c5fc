"""Guesses of every column from the rows that are nearest by all others, compiled: for `inferring`.

The distances by all columns are added up once for a person, and each secret's own is taken off. So
a table of twice as many columns costs twice as much, and not four times.
"""

from __future__ import annotations

import numpy as np

from release_pipeline.mechanisms.attacks.inferring import widen
from release_pipeline.mechanisms.basis.compiling import compiled
from release_pipeline.mechanisms.basis.grid import FloatArray
from release_pipeline.mechanisms.risk.neighbours import ROUNDING, SLACK

_widen = compiled(widen)


@compiled
def _distance(released: float, truth: float, scale: float) -> float:
    """How far a value is from a person's; a scale below 0 marks a category."""
    if scale < 0.0:
        return 1.0 if released != truth else 0.0
    return abs(released - truth) * scale


@compiled
def guess_all(released: FloatArray, scale: FloatArray, truth: FloatArray, tolerance: FloatArray, chance: FloatArray) -> None:
    """Fill `chance`, a row for each person and a column for each secret, with the share of the nearest
    rows that have the secret right.

    `released` has a row for each column and a column for each released row, `truth` a row for each
    person. `scale` is one over the range of a column of numbers, 0 for a column without range, -1 for
    categories. A guess is right within `tolerance`, one for each column.
    """
    columns, rows = released.shape
    total, rest = np.empty(rows), np.empty(rows)
    for person in range(len(truth)):
        total[:] = 0.0
        for column in range(columns):
            for row in range(rows):
                total[row] += _distance(released[column, row], truth[person, column], scale[column])
        for secret in range(columns):
            least, nearest = np.inf, 0
            for row in range(rows):
                rest[row] = total[row] - _distance(released[secret, row], truth[person, secret], scale[secret])
                if rest[row] < least:
                    least, nearest = rest[row], row
            near, right = 0, 0
            for row in range(rows):
                rounding = ROUNDING * columns * max(total[row], total[nearest])
                if rest[row] <= least * (1.0 + SLACK) + rounding:
                    near += 1
                    most = _widen(tolerance[secret], truth[person, secret])
                    if abs(released[secret, row] - truth[person, secret]) <= most:
                        right += 1
            chance[person, secret] = right / near
