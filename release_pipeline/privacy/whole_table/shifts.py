"""How far the score of a row is from the one that its other scores make likely, by the groups of its
other columns.

A correlation is the same for all rows. Groups say more: pensioners earn less than their age and
schooling make likely. A difference between groups goes on within the groups of the column itself:
a ridge regression of scores on the groups of all other columns finds it, and is shrunk by the share
that noise in the tables of pairs would make. It reads rows that were made of noisy counts only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.whole_table.pool import Linked

MOST_ROWS = 20_000  # that a regression is fitted to
_RIDGE = 30.0  # rows


class Shifts:
    """The regressions of all ordered columns. `chosen`: the groups of rows in random order, columns by
    rows."""

    def __init__(self, chosen: IntArray, linked: Linked) -> None:
        self._linked, self._chosen = linked, chosen
        sizes = [len(held) for held in linked.held]
        self._column_of = np.repeat(np.arange(len(sizes)), sizes)  # of each group
        self._starts = np.cumsum([0, *sizes[:-1]])
        fitted = chosen[:, :MOST_ROWS]
        self._in_group = np.zeros((fitted.shape[1], len(self._column_of)))
        for start, groups in zip(self._starts, fitted, strict=True):
            self._in_group[np.arange(len(groups)), start + groups] = 1.0
        self._inverses = {place: self._invert(place) for place in linked.ordered}

    def find(self, place: int, residuals: FloatArray) -> FloatArray:
        """The shift of every row in an ordered column. `residuals`: its scores less what the other
        scores make likely."""
        fitted, others = self._find_fitted(place), self._column_of != place
        if len(fitted) < 2:
            return np.zeros(len(residuals))
        in_group, response = self._in_group[np.ix_(fitted, others)], residuals[fitted]
        slopes = np.zeros(len(others))
        slopes[others] = self._inverses[place] @ ((response - response.mean()) @ in_group)
        shifts = np.full(len(residuals), -float(in_group.mean(axis=0) @ slopes[others]))
        for start, groups in zip(self._starts, self._chosen, strict=True):
            shifts += slopes[start + groups]
        seen = float(shifts[fitted].var())
        return shifts * max(1 - self._expect_noise(place) / seen, 0.0) if seen else shifts

    def _find_fitted(self, place: int) -> npt.NDArray[np.intp]:
        """The rows that the regression of a column is fitted to: those with a value in it."""
        return np.flatnonzero(self._chosen[place, :MOST_ROWS] < self._linked.ordered[place])

    def _invert(self, place: int) -> FloatArray:
        """The inverse of the ridge regression's matrix, for the groups of the other columns."""
        in_group = self._in_group[np.ix_(self._find_fitted(place), self._column_of != place)]
        if not len(in_group):
            return np.zeros((in_group.shape[1],) * 2)
        centred = in_group - in_group.mean(axis=0)
        products: FloatArray = centred.T @ centred + _RIDGE * np.eye(centred.shape[1])
        return np.linalg.inv(products).astype(np.float64)

    def _expect_noise(self, place: int) -> float:
        """The variance of a column's shifts that noise in the tables of its pairs would make.

        The other column of a pair has G groups, of about n / G records each. The mean score of one of
        them is off by the noise of each of its cells, times the score of the cell, over n / G."""
        linked, valued = self._linked, self._linked.ordered[place]
        records = float(linked.held[place][:valued].sum())
        return sum(
            link.deviation**2 * valued * (len(linked.held[sum(pair) - place]) / records) ** 2
            for pair, link in linked.links.items()
            if place in pair
        )
