"""Predicates about rows: who meets them, and how an attacker makes them from released rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.attacks.view import Attack, Attacked, People, Rows, judge
from release_pipeline.mechanisms.noise import NoiseStream, shuffled_positions

PREDICATES = 1_000  # the most predicates tried to single somebody out
ATTEMPTS = 20_000  # attempts to make a predicate of several columns
MOST_COLUMNS = 5  # in one predicate

_ATTEMPTS_PER_ROW = 10
_SOME = 1_024  # rows that are checked first, to see whether more than one meets a predicate

Comparison: TypeAlias = Literal["<=", ">=", "=="]
_EQUAL, _AT_LEAST, _AT_MOST = range(3)
_COMPARISONS: tuple[Comparison, ...] = ("==", ">=", "<=")
Predicate: TypeAlias = tuple[tuple[int, Comparison, float], ...]


class Side:
    """Some rows, each column sorted, so that the rows that meet a predicate are searched among the few that meet its rarest
    condition."""

    def __init__(self, columns: list[npt.NDArray[Any]]) -> None:
        self.columns = columns
        self.order = [np.argsort(column, kind="stable").astype(np.int32) for column in columns]
        self.ordered = [column[order] for column, order in zip(columns, self.order, strict=True)]
        self._listed = [column.tolist() for column in self.ordered]  # searching for one entry is faster in lists

    def is_met_once(self, predicate: Predicate) -> bool:
        """Return whether exactly one row meets all conditions: if some rows show that there are more, no others are checked."""
        spans = [self._span(*condition) for condition in predicate]
        rarest = min(range(len(spans)), key=lambda number: spans[number][1] - spans[number][0])
        rows = self.order[predicate[rarest][0]][slice(*spans[rarest])]
        others = [condition for number, condition in enumerate(predicate) if number != rarest]
        met = self._count(rows[:_SOME], others)
        if met < 2:
            met += self._count(rows[_SOME:], others)
        return met == 1

    def _count(self, rows: npt.NDArray[np.int32], conditions: list[tuple[int, Comparison, float]]) -> int:
        """Return how many of these rows meet all conditions."""
        for column, comparison, value in conditions:
            if not len(rows):
                break
            there = self.columns[column][rows]
            rows = rows[there <= value if comparison == "<=" else there >= value if comparison == ">=" else there == value]
        return len(rows)

    def single_out(self, predicates: list[Predicate]) -> npt.NDArray[np.bool_]:
        """Return whether exactly one row meets each predicate."""
        return np.array([self.is_met_once(predicate) for predicate in predicates], dtype=np.bool_)

    def _span(self, column: int, comparison: Comparison, value: float) -> tuple[int, int]:
        ordered = self._listed[column]
        first = 0 if comparison == "<=" else bisect_left(ordered, value)
        return first, len(ordered) if comparison == ">=" else bisect_right(ordered, value)


def make_by_one_column(released: Side, kinds: list[bool], stream: NoiseStream) -> list[Predicate]:
    """Return predicates of one condition that single out a released row: for each row a random one of those possible."""
    n = len(released.columns[0])
    unique = np.zeros((n, len(kinds)), dtype=np.bool_)
    pool: list[tuple[int, Predicate]] = []
    for column, (ordered, order) in enumerate(zip(released.ordered, released.order, strict=True)):
        new = np.concatenate([np.ones(1, dtype=np.bool_), ordered[1:] != ordered[:-1], np.ones(1, dtype=np.bool_)])
        alone = new[:-1] & new[1:]
        unique[order[alone], column] = True
        if kinds[column] and alone[0]:
            pool.append((int(order[0]), ((column, "<=", ordered[0].item()),)))
        if kinds[column] and alone[-1]:
            pool.append((int(order[-1]), ((column, ">=", ordered[-1].item()),)))
    # the rows are in random order: of a million there is no need to list them all before choosing
    enough = int(np.searchsorted(np.cumsum(unique.any(axis=1)), PREDICATES)) + 1
    for row, column in np.argwhere(unique[:enough]).tolist():
        pool.append((row, ((column, "==", released.columns[column][row].item()),)))
    predicates: dict[int, Predicate] = {}
    for place in shuffled_positions(len(pool), stream):
        row, predicate = pool[int(place)]
        if len(predicates) < PREDICATES:
            predicates.setdefault(row, predicate)
    return list(predicates.values())


def make_by_several_columns(released: Side, kinds: list[bool], stream: NoiseStream) -> list[Predicate]:
    """Return for each row at most one predicate of two to five conditions, made from its own values, that only this row meets."""
    most = min(len(kinds), MOST_COLUMNS)
    if most < 2:
        return []
    n = len(released.columns[0])
    medians = [float(np.median(column)) if numeric else 0.0 for column, numeric in zip(released.columns, kinds, strict=True)]
    attempts = min(ATTEMPTS, _ATTEMPTS_PER_ROW * n)
    rows = np.resize(shuffled_positions(n, stream), attempts)
    sizes = 2 + shuffled_positions(attempts, stream) % (most - 1)
    chosen = _choose_columns(sizes, len(kinds), stream)
    values = [column[rows] for column in released.columns]
    compared = [
        np.where(of_rows > median, _AT_LEAST, _AT_MOST) if numeric else np.full(attempts, _EQUAL)
        for of_rows, median, numeric in zip(values, medians, kinds, strict=True)
    ]
    predicates: dict[int, Predicate] = {}
    for attempt, row in enumerate(rows.tolist()):
        if row in predicates:
            continue
        predicate: Predicate = tuple(
            (column, _COMPARISONS[int(compared[column][attempt])], values[column][attempt].item())
            for column in np.flatnonzero(chosen[attempt]).tolist()
        )
        if released.is_met_once(predicate):
            predicates[row] = predicate
            if len(predicates) == PREDICATES:
                break
    return list(predicates.values())


def make_by_chance(released: Side, kinds: list[bool], stream: NoiseStream, *, most: int) -> list[Predicate]:
    """Return predicates with random columns and values, from the ranges and categories of the released rows."""
    fewest, most = min(2, most), min(len(kinds), most)
    if most < fewest:
        return []
    sizes = fewest + shuffled_positions(PREDICATES, stream) % (most - fewest + 1)
    levels = [
        np.unique(ordered) if not numeric else ordered[[0, -1]] for ordered, numeric in zip(released.ordered, kinds, strict=True)
    ]
    columns = [np.flatnonzero(chosen).tolist() for chosen in _choose_columns(sizes, len(kinds), stream)]
    chance = shuffled_positions(PREDICATES * most, stream).reshape(PREDICATES, most) / (PREDICATES * most)
    upwards = shuffled_positions(PREDICATES * most, stream).reshape(PREDICATES, most) % 2
    predicates: list[Predicate] = []
    for number, chosen in enumerate(columns):
        conditions: list[tuple[int, Comparison, float]] = []
        for position, column in enumerate(chosen):
            level = levels[column]
            if kinds[column]:
                value = float(level[0] + (level[1] - level[0]) * chance[number, position])
                conditions.append((column, ">=" if upwards[number, position] else "<=", value))
            else:
                conditions.append((column, "==", level[int(chance[number, position] * len(level))].item()))
        predicates.append(tuple(conditions))
    return predicates


def _choose_columns(sizes: npt.NDArray[np.intp], m: int, stream: NoiseStream) -> npt.NDArray[np.bool_]:
    """Return for each size a random choice of that many different columns out of m."""
    order = shuffled_positions(len(sizes) * m, stream).reshape(len(sizes), m).argsort(axis=1)
    chosen = np.zeros((len(sizes), m), dtype=np.bool_)
    np.put_along_axis(chosen, order, np.arange(m) < sizes[:, np.newaxis], axis=1)
    return chosen


# Singling out: whether what is true of a single released row is true of a single person (GEM23).


def single_out(table: Attacked, *, stream: NoiseStream) -> tuple[Attack, Attack]:
    """Return how often what is true of a single released row is true of a single person: by one column, and by several.

    The people are halved. The attacker sees the released rows of the one half and makes predicates that exactly one of these rows
    meets, at most one predicate for each row, so that each success is another person's; a predicate succeeds if exactly one
    original of that half meets it, and in the control group if exactly one of the other half does, which is as large, so no
    correction for size is needed. By one column: the least and the greatest number where they are unique, and values that occur
    once. By several: two to five random columns of a random row, each number no less than the row's if that is above the median
    and no greater otherwise, each category equal. At most 1,000 predicates are tried, made in at most 20,000 attempts, ten for a
    row; if none can be made, the shares have no trials. `guess` is the success of predicates with random columns and random
    values of the released columns' ranges and categories.

    The cost of halving: a row with k - 1 equal ones is the only one in its half once in 2^(k-1), so small clusters seem to allow
    more predicates (k = 5: one row in sixteen) than the whole table would.
    """
    order = shuffled_positions(len(table), stream)
    half = len(table) // 2
    targets, control = order[:half], order[half : 2 * half]
    return _single_out(table, targets, People(targets, control, targets), stream)


def single_out_beside(table: Attacked, people: People, *, stream: NoiseStream) -> tuple[Attack, Attack]:
    """Return the results of `single_out` if the table was made without the control group: predicates from as many of its rows as
    there are people, who are as many as those it was made without."""
    if len(people.targets) != len(people.control):
        raise InvalidArgument("there must be as many people in the control group as others.", where="people")
    rows = people.left[shuffled_positions(len(people.left), stream)[: len(people.targets)]]
    return _single_out(table, rows, people, stream)


def _single_out(table: Attacked, rows: Rows, people: People, stream: NoiseStream) -> tuple[Attack, Attack]:
    targets, control = people.targets, people.control
    released = Side([column.released[rows] for column in table.columns])
    kinds = [column.is_numeric for column in table.columns]
    tried = [make_by_one_column(released, kinds, stream), make_by_several_columns(released, kinds, stream)]
    guesses = [make_by_chance(released, kinds, stream, most=most) for most in (1, MOST_COLUMNS)]
    del released
    side = Side([column.of_people(targets) for column in table.columns])
    hits, lucky = ([side.single_out(predicates) for predicates in made] for made in (tried, guesses))
    del side
    side = Side([column.of_people(control) for column in table.columns])
    misses = [side.single_out(predicates) for predicates in tried]
    names = ("singling out by one column", "singling out by several columns")
    attacks: list[Attack] = []
    for name, predicates, hit, missed, luck in zip(names, tried, hits, misses, lucky, strict=True):
        gain = np.zeros(len(table.columns))
        for predicate, difference in zip(predicates, hit.astype(np.int64) - missed, strict=True):
            gain[[column for column, _, _ in predicate]] += difference
        worst = table.columns[int(gain.argmax())].name if gain.max() > 0 else ""
        guess = float(luck.mean()) if len(luck) else 0.0
        attacks.append(judge(name, hit, missed, guess=guess, among=None, worst=worst))
    return attacks[0], attacks[1]
