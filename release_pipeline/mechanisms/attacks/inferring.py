"""Inferring: whether the rows nearest to a person reveal a value that the attacker does not know (GEM23)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.attacks.view import Attack, Attacked, AttackedColumn, People, Rows, View, draw_people, judge
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.noise import NoiseStream
from release_pipeline.mechanisms.risk.neighbours import MOST_AXES, ROUNDING, SLACK, Nearest, Neighbours, count_axes

INFERRED = 500  # the most people attacked, each once for every column, and as many in the control group
TOLERANCE = 0.05  # of the mean absolute deviation: a number is inferred if the guess is as near as this


@dataclass(frozen=True, slots=True)
class Inference:
    """The attack on every column as the secret: `overall` is the mean over the columns, person by person."""

    overall: Attack
    columns: tuple[Attack, ...]


def infer(table: Attacked, *, stream: NoiseStream, people: People | None = None, among: int | None = None) -> Inference:
    """Return how often the rows nearest by all other columns reveal a person's value in one column, for each column in turn.

    The attacker guesses the value of one of the nearest rows. A category is inferred if it is the person's own. A number is
    inferred if the guess differs by at most 5% of the mean absolute deviation of the original column from its median. (GEM23 take
    5% of the guess itself: nearly nothing near 0, and a different risk if years are counted from another origin. A tolerance from
    the released column would grow with the noise, so more noise would look like more risk. A deviation is 0 only for a constant,
    while quartiles of a column of many zeros often coincide.) `guess` is the share of all originals that the best constant gets
    right, best for the released column. `people`: who is attacked, if rows are synthetic; `among`: how many records they and the
    control group were drawn from, if not the rows of the table.
    """
    among = len(table) if among is None else among
    people = people or draw_people(len(table), stream, most=INFERRED)
    results: list[Attack] = []
    sums = [np.zeros(len(some)) for some in (people.targets, people.control)]
    is_wide = _count_axes(table) > MOST_AXES
    each = _infer_all(table, people) if is_wide else (infer_column(table, secret, people) for secret in table.columns)
    for secret, (tried, guess) in zip(table.columns, each, strict=True):
        for total, successes in zip(sums, tried, strict=True):
            total += successes
        name = f"inferring {secret.name}"
        results.append(judge(name, tried[0], tried[1], guess=guess, among=among, worst=secret.name))
    means = [total / len(table.columns) for total in sums]
    guess = float(np.mean([result.guess for result in results]))
    worst = max(results, key=lambda result: result.risk.value).worst
    return Inference(judge("inferring", means[0], means[1], guess=guess, among=among, worst=worst), tuple(results))


def _count_axes(table: Attacked) -> int:
    """Return how many axes a tree of the released rows would have: see `neighbours`."""
    return sum(1 if column.is_numeric else count_axes(len(np.unique(column.released))) for column in table.columns)


def _infer_all(table: Attacked, people: People) -> Iterator[tuple[list[FloatArray], float]]:
    """Yield what `infer_column` gives for each column, by all others, at a cost that grows with the number of columns and not
    with its square."""
    released = np.stack([column.released[people.left] for column in table.columns], dtype=np.float64)
    low, high = released.min(axis=1), released.max(axis=1)
    width = high - low
    is_number = np.array([column.is_numeric for column in table.columns])
    scale = np.where(is_number, np.divide(1.0, width, out=np.zeros_like(width), where=width > 0), -1.0)
    tolerance = np.array([_find_tolerance(column) for column in table.columns])
    both = (people.targets, people.control)
    who = np.concatenate(both)
    truth = np.stack([column.of_people(who) for column in table.columns], axis=1, dtype=np.float64)
    if not (np.isfinite(scale).all() and np.isfinite(truth).all() and np.isfinite(width).all()):
        raise InvalidArgument("there are numbers whose distance is not finite.", where="the attacked columns")
    farthest = np.where(scale < 0, 1.0, np.maximum(np.abs(truth - low), np.abs(high - truth)) * scale).max(axis=1)
    chance = np.stack(
        [_guess_of_person(released, scale, *of_person, tolerance) for of_person in zip(truth, farthest, strict=True)]
    )
    for place, column in enumerate(table.columns):
        values, count = np.unique(column.released[people.left], return_counts=True)
        guess = _guess_best(values, count, tolerance[place], column.original)
        yield np.split(chance[:, place], [len(people.targets)]), guess


def _guess_of_person(
    released: FloatArray, scale: FloatArray, truth: FloatArray, farthest: float, tolerance: FloatArray
) -> FloatArray:
    """Return for each column as the secret the share of the rows nearest by all others that have the person's value right.

    `released` has a row for each column and a column for each released row. `scale` is one over the range of a column of numbers,
    0 for one without range, -1 for categories. `farthest`: the greatest distance in one column. All distances are added up once,
    and each secret's distance is subtracted: a row that is nearest without one column is farther by at most that column's
    distance.
    """
    apart = np.abs(released - truth[:, np.newaxis])
    distance = apart * scale[:, np.newaxis]
    distance[scale < 0] = apart[scale < 0] != 0
    total = distance.sum(axis=0)
    most = total.min() * (1 + SLACK) + farthest + 2 * ROUNDING * len(released) * total.max()
    may_be_near = np.flatnonzero(total <= most)
    apart, distance, total = apart[:, may_be_near], distance[:, may_be_near], total[may_be_near]
    rest = total - distance
    nearest = rest.argmin(axis=1)
    least = np.take_along_axis(rest, nearest[:, np.newaxis], axis=1)
    rounding = ROUNDING * len(released) * np.maximum(total, total[nearest][:, np.newaxis])
    near = rest <= least * (1 + SLACK) + rounding
    right = near & (apart <= widen(tolerance, truth)[:, np.newaxis])
    return right.sum(axis=1) / near.sum(axis=1)


def widen(tolerance: Any, truth: Any) -> Any:
    """Return a slightly larger tolerance, which accepts values exactly at it, however they were rounded."""
    return tolerance * (1.0 + SLACK) + ROUNDING * (abs(truth) + tolerance)


def _find_tolerance(secret: AttackedColumn) -> float:
    """Return how far a guess may be from the truth."""
    return TOLERANCE * _mean_deviation(secret.original) if secret.is_numeric else 0.0


def infer_column(
    table: Attacked, secret: AttackedColumn, people: People, view: View | None = None
) -> tuple[list[FloatArray], float]:
    """Return the successes against targets and control group, and the constant's; by all other columns, or by those of a view."""
    values = np.unique(secret.released[people.left], return_inverse=True, return_counts=True)  # before the points use memory
    view = view or View([column for column in table.columns if column is not secret], people.left)
    tolerance = _find_tolerance(secret)
    tally = _Tally(view.neighbours, values[0], values[1], tolerance)
    both = (people.targets, people.control)
    tried = [np.concatenate([tally.chance(near, truth) for near, truth in view.search(some, secret)]) for some in both]
    return tried, _guess_best(values[0], values[2], tolerance, secret.original)


class _Tally:
    """The secret's released values at every point, prepared for counting within a tolerance."""

    def __init__(self, neighbours: Neighbours, values: npt.NDArray[Any], rank: Rows, tolerance: float) -> None:
        self._weight, self._values, self._tolerance = neighbours.weight, values, tolerance
        self._keys = np.sort(neighbours.place * len(self._values) + rank)

    def chance(self, near: Nearest, truth: npt.NDArray[Any]) -> FloatArray:
        """Return for each person looked up the share of the nearest rows whose secret is within the tolerance of the truth."""
        most: FloatArray = widen(self._tolerance, truth)
        first = np.searchsorted(self._values, truth - most, side="left")
        last = np.searchsorted(self._values, truth + most, side="right")
        who = np.repeat(np.arange(len(truth)), np.diff(near.start))
        point = near.member * len(self._values)
        found = np.searchsorted(self._keys, point + last[who]) - np.searchsorted(self._keys, point + first[who])
        return near.total(found) / near.total(self._weight[near.member])


def _guess_best(values: npt.NDArray[Any], count: Rows, tolerance: float, original: npt.NDArray[Any]) -> float:
    """Return the share of originals that one constant gets right: the constant with the most released values within its
    tolerance."""
    above = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count)])
    ends = np.searchsorted(values, values + 2 * tolerance, side="right")
    least = values[int(np.argmax(above[ends] - above[:-1]))]
    return int(np.count_nonzero((original >= least) & (original <= least + 2 * tolerance))) / len(original)


def _mean_deviation(values: npt.NDArray[Any]) -> float:
    distances: FloatArray = np.abs(values - np.median(values))
    return float(distances.mean())


# Linking: whether the released table joins two sources' knowledge of the same person (GEM23).


TARGETS = 1_000  # the most people attacked, and as many in the control group


def link(table: Attacked, *, stream: NoiseStream) -> Attack:
    """Return how often the released table joins what two sources know about the same person, who is in both under different
    names.

    Each source knows every other column. The attacker takes one of the rows nearest by the first source's columns, one of those
    nearest by the second's, and wins if it is the same row: with sets A and B of rows equally near, the chance is |A and B| /
    (|A| |B|). Without ties this is GEM23's attack with one neighbour; k equal rows, however near, link with 1/k, while with ties
    broken by the order of rows they would always. `guess` is 1 over the number of rows: the chance that two random rows are the
    same.
    """
    people = draw_people(len(table), stream, most=TARGETS)
    one, other = (View(table.columns[start::2], people.left) for start in (0, 1))
    join = _Join(one.neighbours, other.neighbours)
    tried = [
        np.array([join.chance(*lists) for lists in zip(one.lists(some), other.lists(some), strict=True)])
        for some in (people.targets, people.control)
    ]
    return judge("linking", tried[0], tried[1], guess=1 / len(people.left), among=len(table))


class _Join:
    """The rows at a point of one view and at a point of the other."""

    def __init__(self, one: Neighbours, other: Neighbours) -> None:
        self._one, self._other = one, other
        self._pairs = np.sort(one.place * len(other.weight) + other.place)
        self._rows: tuple[IntArray, IntArray] | None = None
        self._marked = np.zeros(len(other.weight), dtype=np.bool_)

    def chance(self, points_of_one: IntArray, other: IntArray) -> float:
        """Return |A and B| / (|A| |B|) for the rows A at some points of one view and the rows B at some of the other."""
        sizes = int(self._one.weight[points_of_one].sum()), int(self._other.weight[other].sum())
        if len(points_of_one) * len(other) <= sizes[0]:
            wanted = (points_of_one[:, np.newaxis] * len(self._marked) + other).reshape(-1)
            first, last = (np.searchsorted(self._pairs, wanted, side=side) for side in ("left", "right"))
            both = int(np.sum(last - first))
        else:
            self._marked[other] = True
            both = sum(int(np.count_nonzero(self._marked[self._other.place[rows]])) for rows in self._rows_at(points_of_one))
            self._marked[other] = False
        return both / (sizes[0] * sizes[1])

    def _rows_at(self, points: IntArray) -> Iterator[IntArray]:
        if self._rows is None:
            order = np.argsort(self._one.place, kind="stable")
            self._rows = order, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._one.weight)])
        rows, start = self._rows
        yield from (rows[start[point] : start[point + 1]] for point in points.tolist())
