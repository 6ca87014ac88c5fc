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


class Ridges:
    """The ridge regressions of all ordered columns, as far as they follow from the groups of rows. `chosen`: the groups
    of some rows, columns by rows."""

    def __init__(self, chosen: IntArray, linked: Linked) -> None:
        self.linked = linked
        sizes = [len(held) for held in linked.held]
        self.column_of = np.repeat(np.arange(len(sizes)), sizes)  # of each group
        self.starts: IntArray = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        self.inverses = {place: self._invert(place, chosen) for place in linked.ordered}

    def number_groups(self, rows: IntArray) -> IntArray:
        """The number of the group of each row in each column, those of all columns one after the other."""
        return rows + self.starts[:, np.newaxis]

    def find_fitted(self, place: int, rows: IntArray) -> npt.NDArray[np.intp]:
        """The rows that the regression of a column is fitted to: those with a value in it."""
        return np.flatnonzero(rows[place] < self.linked.ordered[place])

    def add_up(self, numbers: IntArray, weights: FloatArray | None = None) -> FloatArray:
        """For each group the mean over these rows of what is 1 in it and 0 elsewhere, or as much as each row weighs."""
        rows, groups = numbers.shape[1], len(self.column_of)
        sums = np.zeros(groups)
        for column in numbers:
            sums += np.bincount(column, weights, groups)
        return sums / rows

    def _invert(self, place: int, chosen: IntArray) -> FloatArray:
        """The inverse of the regression's matrix for a row, by the groups of the other columns."""
        numbers = self.number_groups(chosen[:, self.find_fitted(place, chosen)])
        rows, others = numbers.shape[1], self.column_of != place
        if not rows:
            return np.zeros((int(others.sum()),) * 2)
        flags = np.zeros((rows, len(others)))
        for column in numbers:
            flags[np.arange(rows), column] = 1.0
        centred = flags[:, others] - flags[:, others].mean(axis=0)
        products: FloatArray = (centred.T @ centred + _RIDGE * np.eye(centred.shape[1])) / rows
        return np.linalg.inv(products).astype(np.float64)


class Shifts:
    """The shifts of a block of rows. `chosen`: their groups in random order, columns by rows."""

    def __init__(self, chosen: IntArray, ridges: Ridges) -> None:
        self._ridges, self._linked = ridges, ridges.linked
        self._numbers = ridges.number_groups(chosen)
        self._fitted = {place: ridges.find_fitted(place, chosen[:, :MOST_ROWS]) for place in self._linked.ordered}

    def find(self, place: int, residuals: FloatArray) -> FloatArray:
        """The shift of every row in an ordered column. `residuals`: its scores less what the other
        scores make likely."""
        fitted, others = self._fitted[place], self._ridges.column_of != place
        if len(fitted) < 2:
            return np.zeros(len(residuals))
        numbers, response = self._numbers[:, fitted], residuals[fitted]
        products = self._ridges.add_up(numbers, response - response.mean())
        slopes = np.zeros(len(others))
        slopes[others] = self._ridges.inverses[place] @ products[others]
        shifts = np.full(len(residuals), -float(self._ridges.add_up(numbers) @ slopes))
        for column, own in enumerate(self._numbers):
            if column != place:
                shifts += slopes[own]
        seen = float(shifts[fitted].var())
        return shifts * max(1 - self._expect_noise(place) / seen, 0.0) if seen else shifts

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
