"""Predicates about rows, who meets them, and which an attacker makes of released rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.noise import NoiseStream, shuffled_positions

PREDICATES = 1_000  # with which it is tried to single somebody out, at most
ATTEMPTS = 20_000  # to make one of several columns
MOST_COLUMNS = 5  # in one predicate

_ATTEMPTS_PER_ROW = 10
_FIRST_LOOK = 4_096  # rows that most attempts fail on already

Comparison: TypeAlias = Literal["<=", ">=", "=="]
Predicate: TypeAlias = tuple[tuple[int, Comparison, float], ...]


class Side:
    """Some rows, each column sorted, so that who meets a predicate is sought among the few who meet its rarest condition."""

    def __init__(self, columns: list[npt.NDArray[Any]]) -> None:
        self.columns = columns
        self.order = [np.argsort(column, kind="stable").astype(np.int32) for column in columns]
        self.ordered = [column[order] for column, order in zip(columns, self.order, strict=True)]
        self._listed = [column.tolist() for column in self.ordered]  # of which one entry is found sooner

    def count(self, predicate: Predicate) -> int:
        """How many rows meet all conditions."""
        spans = [self._span(*condition) for condition in predicate]
        rarest = min(range(len(spans)), key=lambda number: spans[number][1] - spans[number][0])
        rows = self.order[predicate[rarest][0]][slice(*spans[rarest])]
        for number, (column, comparison, value) in enumerate(predicate):
            if number != rarest and len(rows):
                there = self.columns[column][rows]
                rows = rows[there <= value if comparison == "<=" else there >= value if comparison == ">=" else there == value]
        return len(rows)

    def single_out(self, predicates: list[Predicate]) -> npt.NDArray[np.bool_]:
        """Whether exactly one row meets each predicate."""
        return np.array([self.count(predicate) == 1 for predicate in predicates], dtype=np.bool_)

    def _span(self, column: int, comparison: Comparison, value: float) -> tuple[int, int]:
        ordered = self._listed[column]
        first = 0 if comparison == "<=" else bisect_left(ordered, value)
        return first, len(ordered) if comparison == ">=" else bisect_right(ordered, value)


def make_by_one_column(released: Side, kinds: list[bool], stream: NoiseStream) -> list[Predicate]:
    """Predicates of one condition that single out a released row: for each row one at random of those that there are."""
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
    found: dict[int, Predicate] = {}
    for place in shuffled_positions(len(pool), stream):
        row, predicate = pool[int(place)]
        if len(found) < PREDICATES:
            found.setdefault(row, predicate)
    return list(found.values())


def make_by_several_columns(released: Side, kinds: list[bool], stream: NoiseStream) -> list[Predicate]:
    """For each row at most one predicate of two to five conditions, made of its own values, that it alone meets."""
    most = min(len(kinds), MOST_COLUMNS)
    if most < 2:
        return []
    n = len(released.columns[0])
    first = Side([column[:_FIRST_LOOK] for column in released.columns])
    medians = [float(np.median(column)) if numeric else 0.0 for column, numeric in zip(released.columns, kinds, strict=True)]
    attempts = min(ATTEMPTS, _ATTEMPTS_PER_ROW * n)
    rows = np.resize(shuffled_positions(n, stream), attempts)
    sizes = 2 + shuffled_positions(attempts, stream) % (most - 1)
    found: dict[int, Predicate] = {}
    for row, chosen in zip(rows.tolist(), _random_columns(sizes, len(kinds), stream), strict=True):
        if row in found:
            continue
        conditions: list[tuple[int, Comparison, float]] = []
        for column in chosen:
            value = released.columns[column][row].item()
            comparison: Comparison = "==" if not kinds[column] else ">=" if value > medians[column] else "<="
            conditions.append((column, comparison, value))
        predicate = tuple(conditions)
        if first.count(predicate) < 2 and released.count(predicate) == 1:
            found[row] = predicate
            if len(found) == PREDICATES:
                break
    return list(found.values())


def make_by_chance(released: Side, kinds: list[bool], stream: NoiseStream, *, most: int) -> list[Predicate]:
    """Predicates with random columns and values, of those that the released rows span or have."""
    fewest, most = min(2, most), min(len(kinds), most)
    if most < fewest:
        return []
    sizes = fewest + shuffled_positions(PREDICATES, stream) % (most - fewest + 1)
    levels = [
        np.unique(ordered) if not numeric else ordered[[0, -1]] for ordered, numeric in zip(released.ordered, kinds, strict=True)
    ]
    columns = list(_random_columns(sizes, len(kinds), stream))
    chance = shuffled_positions(PREDICATES * most, stream).reshape(PREDICATES, most) / (PREDICATES * most)
    upwards = shuffled_positions(PREDICATES * most, stream).reshape(PREDICATES, most) % 2
    predicates: list[Predicate] = []
    for number, chosen in enumerate(columns):
        conditions: list[tuple[int, Comparison, float]] = []
        for place, column in enumerate(chosen):
            level = levels[column]
            if kinds[column]:
                value = float(level[0] + (level[1] - level[0]) * chance[number, place])
                conditions.append((column, ">=" if upwards[number, place] else "<=", value))
            else:
                conditions.append((column, "==", level[int(chance[number, place] * len(level))].item()))
        predicates.append(tuple(conditions))
    return predicates


def _random_columns(sizes: npt.NDArray[np.intp], m: int, stream: NoiseStream) -> Iterator[list[int]]:
    """For each size so many different columns of m, ascending."""
    order = shuffled_positions(len(sizes) * m, stream).reshape(len(sizes), m).argsort(axis=1)
    for size, columns in zip(sizes.tolist(), order, strict=True):
        yield sorted(columns[:size].tolist())
