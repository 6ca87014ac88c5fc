"""Weights that are made of published totals alone: raking (iterative proportional fitting, Deming and Stephan).

Every row starts with the same weight. Table after table, the weights of the rows in each cell are multiplied by what is lacking
to the cell's total; after so many rounds, or when nothing is lacking any more, they are rounded to a declared step. Rows and
totals are published, so that this loses nothing: it is post-processing.

The same input gives the same bytes on any machine: sums are made in the order of the rows (`bincount` adds one after the other),
everything else is a single correctly rounded operation on two numbers, and rounding takes away the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import FloatArray, IntArray

ROUNDS = 200
CLOSE = 1e-9  # of a total: nothing is lacking any more


def rake(
    cells: Sequence[IntArray],
    totals: Sequence[FloatArray],
    *,
    least: Fraction,
    step: Fraction,
    most: Fraction | None = None,
    every: bool = False,
) -> FloatArray:
    """The weight of each row: a positive multiple of `step`, so that rows add up to the totals as nearly as they can.

    `cells`: for each table the cell of each row; `totals`: what the rows in each of its cells are to add up to. Tables may differ
    in what they add up to in all: that of the first one counts. Cells without rows have nobody who could stand for them: the rest
    of the table does. A cell has at least `least` for each of its rows, or a step, so that every weight is positive.

    With `most`, and with `every` also from `least` on, each weight lies within these bounds, which are multiples of `step`: it is
    trimmed after each table. Totals that only weights beyond could reach are then missed: `measure_gap` says by how much.

    >>> rake([np.array([0, 0, 1]), np.array([0, 1, 1])], [np.array([30.0, 20.0]), np.array([10.0, 40.0])],
    ...      least=Fraction(1), step=Fraction(1)).tolist()
    [10.0, 20.0, 20.0]
    """
    rows = len(cells[0]) if cells else 0
    if not rows or len(cells) != len(totals):
        raise InvalidArgument("there are no rows or no totals to make weights of.")
    floor = float(max(least, step))
    everybody = math.fsum(np.maximum(totals[0], 0.0).tolist())
    wanted = [_make_reachable(cell, total, everybody, floor) for cell, total in zip(cells, totals, strict=True)]
    weights = np.full(rows, max(everybody, floor * rows) / rows)
    bounds = (float(least) if every else 0.0, math.inf if most is None else float(most)) if every or most is not None else None
    for _ in range(ROUNDS):
        gap = 0.0
        for cell, total in zip(cells, wanted, strict=True):
            reached = np.bincount(cell, weights, len(total))
            factor = np.divide(total, reached, out=np.ones(len(total)), where=reached > 0)
            gap = max(gap, float(np.abs(factor - 1).max()))
            weights = weights * factor[cell]
            if bounds is not None:
                weights = np.clip(weights, *bounds)
        if gap <= CLOSE:
            break
    units = np.maximum(np.rint(weights / float(step)), 1.0)
    if bounds is not None:
        units = np.clip(units, int(least / step) if every else 1, math.inf if most is None else int(most / step))
    return units * float(step.numerator) / float(step.denominator)


def measure_gap(cells: Sequence[IntArray], totals: Sequence[FloatArray], weights: FloatArray) -> tuple[float, ...]:
    """Of each table the largest difference of a cell between what its rows add up to and its total, as a share of the whole
    table. Cells without rows count: nobody stands for them."""
    found: list[float] = []
    for cell, total in zip(cells, totals, strict=True):
        off = np.abs(np.bincount(cell, weights, len(total)) - total)
        found.append(float(off.max()) / max(math.fsum(np.maximum(total, 0.0).tolist()), 1.0))
    return tuple(found)


def _make_reachable(cell: IntArray, total: FloatArray, everybody: float, floor: float) -> FloatArray:
    """Totals that rows with positive weights can have, which add up to everybody."""
    rows = np.bincount(cell, minlength=len(total)).astype(np.float64)
    wanted = np.where(rows > 0, np.maximum(total, floor * rows), 0.0)
    return wanted * (max(everybody, floor * len(cell)) / math.fsum(wanted.tolist()))
