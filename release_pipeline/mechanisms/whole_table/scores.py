"""Normal scores of the ordered columns, by which the rows of a group are put in an order: they go together as the columns do,
each within its row's group, and anywhere where this is a reason to have no value.

A correlation is the same for all rows. Groups say more: pensioners earn less than their age and
schooling make likely. A difference between groups goes on within the groups of the column itself:
a ridge regression of scores on the groups of all other columns finds it, and is shrunk by the share
that noise in the tables of pairs would make. It reads rows that were made of noisy counts only.

Scores follow from groups only. So those of the pool's records are drawn once, by a few sweeps of Gibbs, and those of a row go
on from its record's by one sweep more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.noise.unclaimed import Random
from release_pipeline.mechanisms.whole_table.links import normal_laws
from release_pipeline.mechanisms.whole_table.pool import Linked

MOST_ROWS = 20_000  # that a regression is fitted to
SWEEPS = 4
_RIDGE = 30.0  # rows
_SURE = 1e-9
_LEAST_SHARE = 1e-12
_TOGETHER = 1 << 14  # records, so that what is worked on stays in the cache
_LOGISTIC = 0.851  # tanh of so many times a score is nearly the share of records below it, from -1 to 1

Groups: TypeAlias = npt.NDArray[np.integer[Any]]
Few: TypeAlias = npt.NDArray[np.float32]  # half the memory, of what is kept for every record


@dataclass(frozen=True, slots=True, repr=False)
class Bounds:
    """Between which scores the groups of a column lie."""

    least: FloatArray
    most: FloatArray

    @classmethod
    def of(cls, held: FloatArray, valued: int) -> Bounds:
        """Those of groups that hold so many records, of which the first ones have values."""
        ends = np.append(0.0, np.cumsum(held[:valued]) / held[:valued].sum())
        reasons = np.ones(len(held) - valued)
        low, high = np.append(ends[:-1], 0 * reasons), np.append(ends[1:], reasons)
        least, most = normal_laws().ndtri(np.clip([low, high], _SURE, 1 - _SURE))
        return cls(least, most)

    def draw(self, groups: Groups, middle: FloatArray | float, width: float, random: Random) -> FloatArray:
        """Normal numbers about the middle of each row, within its group."""
        laws, least, most = normal_laws(), self.least[groups], self.most[groups]
        low, high = laws.ndtr((least - middle) / width), laws.ndtr((most - middle) / width)
        high -= low
        high *= random.random(len(groups))
        high += low
        drawn: FloatArray = laws.ndtri(np.clip(high, _LEAST_SHARE, 1 - _LEAST_SHARE, out=high), out=high)
        drawn *= width
        drawn += middle
        return np.clip(drawn, least, most, out=drawn)

    def locate(self, groups: Groups, scores: FloatArray) -> FloatArray:
        """How far up in its group each row lies, from 0 to below 1: about the share of the group's records that are below it."""
        first, last = np.tanh(_LOGISTIC * self.least), np.tanh(_LOGISTIC * self.most)
        found = np.tanh(_LOGISTIC * scores)
        found -= first[groups]
        found /= np.maximum(last - first, _SURE)[groups]
        return np.clip(found, 0, 1 - _SURE, out=found)


@dataclass(frozen=True, slots=True, repr=False)
class Law:
    """How the scores of rows follow from each other and from their groups. `widths`: the standard deviation of a score where
    all others are known; `slopes`: by how much each group of each column moves it, those of all columns one after the other."""

    bounds: dict[int, Bounds]
    sizes: tuple[int, ...]  # how many groups the columns have
    precision: FloatArray
    widths: FloatArray
    slopes: FloatArray

    @classmethod
    def fit(cls, chosen: Groups, linked: Linked, random: Random) -> Law:
        """The law by the groups of some rows, columns by rows."""
        bounds = {place: Bounds.of(linked.held[place], valued) for place, valued in linked.ordered.items()}
        sizes, precision = tuple(map(len, linked.held)), np.linalg.inv(linked.correlations()).astype(np.float64)
        law = cls(bounds, sizes, precision, np.sqrt(1 / np.diag(precision)), np.zeros((len(bounds), sum(sizes))))
        ridges = [Ridge(place, chosen, linked) for place in bounds]
        scores = law.begin(chosen, random)
        for sweep in range(SWEEPS):
            if sweep:
                law = law._refit(scores, chosen, ridges)
            law.go_on(scores, chosen, law.find_shifts(chosen), random)
        return law

    def _refit(self, scores: FloatArray, chosen: Groups, ridges: list[Ridge]) -> Law:
        slopes = [ridge.fit(scores[number] - self._expect(scores, number)) for number, ridge in enumerate(ridges)]
        law = replace(self, slopes=np.array(slopes).reshape(self.slopes.shape))
        variances = 1 / np.diag(self.precision)
        explained = np.minimum(law.find_shifts(chosen).var(axis=1), variances / 2)  # what groups say is no longer open
        return replace(law, widths=np.sqrt(variances - explained))

    def begin(self, chosen: Groups, random: Random) -> FloatArray:
        """Scores of rows that have nothing to do with each other: ordered columns by rows."""
        scores = np.empty((len(self.bounds), chosen.shape[1]))
        for own, (place, between) in zip(scores, self.bounds.items(), strict=True):
            own[:] = between.draw(chosen[place], 0.0, 1.0, random)
        return scores

    def find_shifts(self, chosen: Groups) -> FloatArray:
        """By how much the groups of each row move its scores."""
        shifts, start = np.zeros((len(self.bounds), chosen.shape[1])), 0
        for groups, size in zip(chosen, self.sizes, strict=True):
            shifts += np.take(self.slopes[:, start : start + size], groups, axis=1)
            start += size
        return shifts

    def go_on(self, scores: FloatArray, chosen: Groups, shifts: FloatArray, random: Random) -> None:
        """Draw the scores again, column after column, in place."""
        for number, (place, between) in enumerate(self.bounds.items()):
            middle = self._expect(scores, number)
            middle += shifts[number]
            scores[number] = between.draw(chosen[place], middle, float(self.widths[number]), random)

    def _expect(self, scores: FloatArray, number: int) -> FloatArray:
        """The score of one column that those of the others make likely, row by row."""
        own = self.precision[number] / self.precision[number, number]
        expected: FloatArray = scores[number] - np.einsum("c,cr->r", own, scores)  # many threads would not pay
        return expected


@dataclass(frozen=True, slots=True, repr=False)
class Scores:
    """Those of the records of a pool, and by how much their groups move them: records by ordered columns, so that those of
    a record lie together."""

    law: Law
    scores: Few
    shifts: Few

    @classmethod
    def of(cls, pool: Groups, law: Law, random: Random) -> Scores:
        """Those of a pool of groups, columns by records."""
        made = cls(law, *(np.empty((pool.shape[1], len(law.bounds)), dtype=np.float32) for _ in range(2)))
        for part in pieces(pool.shape[1], _TOGETHER):
            chosen = pool[:, part]
            scores, shifts = law.begin(chosen, random), law.find_shifts(chosen)
            for _ in range(SWEEPS - 1):
                law.go_on(scores, chosen, shifts, random)
            made.scores[part], made.shifts[part] = scores.T, shifts.T
        return made

    def locate(self, chosen: Groups, records: IntArray, random: Random) -> dict[int, FloatArray]:
        """How far up in its group each row lies, by ordered column. `chosen`: the groups of rows, columns by rows; `records`:
        the record of the pool that each is."""
        scores, shifts = (np.take(own, records, axis=0).T.astype(np.float64, order="C") for own in (self.scores, self.shifts))
        self.law.go_on(scores, chosen, shifts, random)
        bounds = self.law.bounds
        return {place: between.locate(chosen[place], own) for (place, between), own in zip(bounds.items(), scores, strict=True)}


class Ridge:
    """The ridge regression of the scores of an ordered column on the groups of all others. `chosen`: the groups of some rows,
    columns by rows, of which it is fitted to those that have a value."""

    def __init__(self, index: int, chosen: Groups, linked: Linked) -> None:
        self._place, self._linked = index, linked
        sizes = [len(held) for held in linked.held]
        self._others = np.repeat(np.arange(len(sizes)) != index, sizes)  # of the groups of all columns, one after the other
        self._fitted = chosen[index] < linked.ordered[index]
        starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        self._numbers: IntArray = (chosen[:, self._fitted].T + starts).T
        self._inverse = self._invert()

    def fit(self, residuals: FloatArray) -> FloatArray:
        """The slope of each group of each column: by how much it moves scores. `residuals`: of each row its score less what
        its other scores make likely."""
        slopes = np.zeros(len(self._others))
        if min(self._numbers.shape) < 2:
            return slopes
        response = residuals[self._fitted]
        slopes[self._others] = self._inverse @ self._add_up(response - response.mean())[self._others]
        slopes[self._others] -= float(self._add_up() @ slopes) / (len(self._numbers) - 1)  # as each row has a group of each
        seen = float(slopes[self._numbers].sum(axis=0).var())
        return slopes * max(1 - self._expect_noise() / seen, 0.0) if seen else slopes

    def _add_up(self, weights: FloatArray | None = None) -> FloatArray:
        """For each group the mean over the rows of what is 1 in it and 0 elsewhere, or as much as each row weighs."""
        rows = self._numbers.shape[1]
        many = None if weights is None else np.tile(weights, len(self._numbers))
        return np.bincount(self._numbers.ravel(), many, len(self._others)) / rows

    def _invert(self) -> FloatArray:
        """The inverse of the regression's matrix for a row."""
        rows = self._numbers.shape[1]
        if not rows:
            return np.zeros((int(self._others.sum()),) * 2)
        flags = np.zeros((rows, len(self._others)))
        flags[np.arange(rows), self._numbers] = 1.0
        centred = flags[:, self._others] - flags[:, self._others].mean(axis=0)
        products: FloatArray = (centred.T @ centred + _RIDGE * np.eye(centred.shape[1])) / rows
        return np.linalg.inv(products).astype(np.float64)

    def _expect_noise(self) -> float:
        """The variance of a column's shifts that noise in the tables of its pairs would make.

        The other column of a pair has G groups, of about n / G records each. The mean score of one of
        them is off by the noise of each of its cells, times the score of the cell, over n / G."""
        index, linked = self._place, self._linked
        valued = linked.ordered[index]
        records = float(linked.held[index][:valued].sum())
        return sum(
            link.deviation**2 * valued * (len(linked.held[sum(pair) - index]) / records) ** 2
            for pair, link in linked.links.items()
            if index in pair
        )
