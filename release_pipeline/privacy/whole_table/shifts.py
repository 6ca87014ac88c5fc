"""How far the score of a row is from the one that its other scores make likely, by the groups of its other columns.

A correlation is the same for all rows. Groups say more: pensioners earn less than their age and schooling make likely. This goes
on within the groups of the column itself: a ridge regression of scores on the groups of all other columns, shrunk by what noise in
the tables of pairs would make of it. All of it reads rows that were made of noisy counts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.whole_table.pool import Linked

MOST_ROWS = 20_000  # that a regression is fitted to
_RIDGE = 30.0  # rows


class Shifts:
    """The regressions of the ordered columns for rows of these groups, columns by rows in random order."""

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
        """The shift of every row in an ordered column, given how far scores are from what the other scores make likely."""
        fitted, others = self._fitted(place), self._column_of != place
        if len(fitted) < 2:
            return np.zeros(len(residuals))
        in_group, own = self._in_group[np.ix_(fitted, others)], residuals[fitted]
        slopes = np.zeros(len(others))
        slopes[others] = self._inverses[place] @ ((own - own.mean()) @ in_group)
        shifts = np.full(len(residuals), -float(in_group.mean(axis=0) @ slopes[others]))
        for start, groups in zip(self._starts, self._chosen, strict=True):
            shifts += slopes[start + groups]
        seen = float(shifts[fitted].var())
        return shifts * max(1 - self._noise(place) / seen, 0.0) if seen else shifts

    def _fitted(self, place: int) -> npt.NDArray[np.intp]:
        """The rows that have a value in a column, of those that regressions are fitted to."""
        return np.flatnonzero(self._chosen[place, :MOST_ROWS] < self._linked.ordered[place])

    def _invert(self, place: int) -> FloatArray:
        """The inverse of the products of the other columns' groups, without their means."""
        in_group = self._in_group[np.ix_(self._fitted(place), self._column_of != place)]
        beside = in_group - in_group.mean(axis=0)
        return np.linalg.inv(beside.T @ beside + _RIDGE * np.eye(beside.shape[1]))

    def _noise(self, place: int) -> float:
        """The variance that noise in the tables of pairs would make of the shifts of a column: a mean score in one of G equal groups
        of n records is off by noise from each cell of that group, over n/G."""
        linked, valued = self._linked, self._linked.ordered[place]
        records = float(linked.held[place][:valued].sum())
        return sum(
            link.deviation**2 * valued * (len(linked.held[sum(pair) - place]) / records) ** 2
            for pair, link in linked.links.items()
            if place in pair
        )
