"""Inferring: whether the rows nearest to a person tell what the attacker does not know (GEM23)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.attacks.control import Attack, People, draw_people, judge
from release_pipeline.privacy.attacks.table import Attacked, AttackedColumn, Rows
from release_pipeline.privacy.attacks.view import View
from release_pipeline.privacy.grid import FloatArray
from release_pipeline.privacy.neighbours import Nearest, Neighbours
from release_pipeline.privacy.noise import NoiseStream

INFERRED = 500  # people attacked, at most, each once for every column, and as many in the control group
TOLERANCE = 0.05  # of the mean absolute deviation: a number is inferred if the guess is as near as this


@dataclass(frozen=True, slots=True)
class Inference:
    """The attack on every column as the secret: `overall` is the mean over the columns, person by person."""

    overall: Attack
    columns: tuple[Attack, ...]


def infer(table: Attacked, *, stream: NoiseStream, people: People | None = None, among: int | None = None) -> Inference:
    """How often the rows nearest by all other columns tell a person's value in one column, for each column in turn.

    The attacker guesses the value of one of the nearest rows. A category is inferred if it is the person's own. A number is
    inferred if the guess differs by at most 5% of the mean absolute deviation of the original column from its median. (GEM23
    take 5% of the guess itself: nearly nothing near 0, and another risk if a year is counted from another one. A tolerance from
    the released column would grow with the noise, so that more of it would look like more risk. A deviation is 0 for a constant
    alone, while quartiles of a column of many zeros often coincide.) `guess` is the share of all originals that the best
    constant gets right, best for the released column. `people`: who is attacked, where no released row is
    anybody's; `among`: of how many records they and the control group were drawn, if not of the rows of the table.
    """
    among = len(table) if among is None else among
    people = people or draw_people(len(table), stream, most=INFERRED)
    results: list[Attack] = []
    sums = [np.zeros(len(some)) for some in (people.targets, people.control)]
    for secret in table.columns:
        tried, guess = infer_column(table, secret, people)
        for total, successes in zip(sums, tried, strict=True):
            total += successes
        name = f"inferring {secret.name}"
        results.append(judge(name, tried[0], tried[1], guess=guess, among=among, worst=secret.name))
    means = [total / len(table.columns) for total in sums]
    guess = float(np.mean([result.guess for result in results]))
    worst = max(results, key=lambda result: result.risk.value).worst
    return Inference(judge("inferring", means[0], means[1], guess=guess, among=among, worst=worst), tuple(results))


def infer_column(
    table: Attacked, secret: AttackedColumn, people: People, view: View | None = None
) -> tuple[list[FloatArray], float]:
    """The successes against targets and control group, and the constant's; by all other columns unless by those of a view."""
    values = np.unique(secret.released[people.left], return_inverse=True, return_counts=True)  # before the points take their room
    view = view or View([column for column in table.columns if column is not secret], people.left)
    tolerance = TOLERANCE * _mean_deviation(secret.original) if secret.is_numeric else 0.0
    tally = _Tally(view.neighbours, *values, tolerance)
    both = (people.targets, people.control)
    tried = [np.concatenate([tally.chance(near, truth) for near, truth in view.search(some, secret)]) for some in both]
    return tried, tally.guess(secret.original)


class _Tally:
    """The secret's released values at every point, ready to be counted within a tolerance."""

    def __init__(self, neighbours: Neighbours, values: npt.NDArray[Any], rank: Rows, count: Rows, tolerance: float) -> None:
        self._weight, self._values, self._count, self._tolerance = neighbours.weight, values, count, tolerance
        self._keys = np.sort(neighbours.place * len(self._values) + rank)

    def chance(self, near: Nearest, truth: npt.NDArray[Any]) -> FloatArray:
        """For each of the people looked up the share of the nearest rows whose secret is within the tolerance of the truth."""
        first = np.searchsorted(self._values, truth - self._tolerance, side="left")
        last = np.searchsorted(self._values, truth + self._tolerance, side="right")
        who = np.repeat(np.arange(len(truth)), np.diff(near.start))
        point = near.member * len(self._values)
        found = np.searchsorted(self._keys, point + last[who]) - np.searchsorted(self._keys, point + first[who])
        return near.total(found) / near.total(self._weight[near.member])

    def guess(self, original: npt.NDArray[Any]) -> float:
        """The share of originals that one constant gets right: the one within whose tolerance most released values are."""
        above = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._count)])
        ends = np.searchsorted(self._values, self._values + 2 * self._tolerance, side="right")
        least = self._values[int(np.argmax(above[ends] - above[:-1]))]
        return int(np.count_nonzero((original >= least) & (original <= least + 2 * self._tolerance))) / len(original)


def _mean_deviation(values: npt.NDArray[Any]) -> float:
    distances: FloatArray = np.abs(values - np.median(values))
    return float(distances.mean())
