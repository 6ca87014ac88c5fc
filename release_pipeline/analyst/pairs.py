"""What the noisy counts of a whole table answer: of single columns as `counts` has it, and of two columns by the groups of both.

Counts of different tables do not quite add up to each other, as their noise differs: each answer is from one table. Where columns
were counted together, the counts of a pair are sums over the others, and so is their noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from release_pipeline.analyst.counts import COUNTS, MISSING, Counts, read_ends, read_law, read_own_law, read_rows, refuse_counts
from release_pipeline.analyst.facts import Facts, NoHonestAnswer
from release_pipeline.analyst.means import Interval
from release_pipeline.privacy.grid import Grid, IntArray
from release_pipeline.sentences import ANALYST

PAIRS = "data.pairs.csv"
CELLS_HEADER = ["column", "first", "last", "group", "count", "noise"]
PAIRS_HEADER = ["one", "group_of_one", "other", "group_of_other", "count", "noise"]


@dataclass(frozen=True)
class Group:
    """Cells of a column that are one in the tables of pairs: what is in it, in words. `first` and `last`: its numbers in grid
    units, None where it has none; `reasons`: whether it has records without a value."""

    words: str
    first: int | None = None
    last: int | None = None
    reasons: bool = False


@dataclass(frozen=True)
class GroupCount:
    """How many records are in a group of one column and in one of another, with its interval."""

    one: str
    other: str
    count: Interval


@dataclass(frozen=True, eq=False)
class Pair:
    """The table of two columns, with noise of one law on each count."""

    one: str
    other: str
    groups_of_one: tuple[Group, ...]
    groups_of_other: tuple[Group, ...]
    counts: IntArray
    law: Counts
    grid_of_other: Grid | None
    records: int

    def cells(self, *, level: float = 0.95) -> tuple[GroupCount, ...]:
        """Every count, with its interval."""
        return tuple(
            GroupCount(one.words, other.words, self.law.interval_of(int(self.counts[i, j]), self.records, level))
            for i, one in enumerate(self.groups_of_one)
            for j, other in enumerate(self.groups_of_other)
        )

    def means(self, *, level: float = 0.95) -> dict[str, Interval]:
        """Intervals for the mean of the other column in each group of the first one, over the records that have a value. Their
        estimate is NaN where a group of the other column has several values: the counts do not show where in its group a record
        is, and the middle can be far off. Then intervals are as wide as groups are."""
        if self.grid_of_other is None:
            raise NoHonestAnswer(ANALYST("decline.no_numbers"), where=self.other)
        valued = [place for place, group in enumerate(self.groups_of_other) if group.first is not None and not group.reasons]
        if len(valued) + sum(group.first is None for group in self.groups_of_other) != len(self.groups_of_other):
            raise NoHonestAnswer(ANALYST("decline.mixed"), where=self.other)
        first, last = (
            np.array([getattr(self.groups_of_other[place], end) for place in valued], dtype=np.int64) for end in ("first", "last")
        )
        means = {
            group.words: self.law.over(self.grid_of_other, first, last, self.counts[row, valued]).mean_of_values(level)
            for row, group in enumerate(self.groups_of_one)
        }
        if (first == last).all():
            return means
        return {words: replace(mean, estimate=math.nan, words=ANALYST("counts.group_mean")) for words, mean in means.items()}


def read_cells(folder: Path, facts: Facts) -> tuple[dict[str, Counts], dict[tuple[str, str], Pair]]:
    """The counts of every column, and those of every pair of columns, in both orders."""
    if not facts.counts_whole_table:
        return {}, {}
    cells, pairs = _read(folder / COUNTS, CELLS_HEADER), _read(folder / PAIRS, PAIRS_HEADER)
    try:
        counts = dict(_read_columns(cells, facts))
        groups = {name: tuple(_read_groups([row for row in cells if row[0] == name], counts[name])) for name in counts}
        return counts, dict(_read_pairs(pairs, counts, groups, facts))
    except (ValueError, IndexError, KeyError, ZeroDivisionError):
        raise refuse_counts(folder / COUNTS) from None


def _read(file: Path, header: list[str]) -> list[list[str]]:
    found, rows = read_rows(file)
    if found != header:
        raise refuse_counts(file)
    return rows


def _read_columns(rows: list[list[str]], facts: Facts) -> Iterator[tuple[str, Counts]]:
    for name in facts.synthetic:
        known = facts.columns[name]
        mine = [row for row in rows if row[0] == name]
        without = [row for row in mine if row[1].startswith(MISSING)]
        valued = mine[: len(mine) - len(without)]
        grid = known.grid if known.grid is not None else Grid.declare((0, max(len(known.values) - 1, 1)), 1)
        if known.grid is None:
            if [row[1] for row in valued] != list(known.values):
                raise ValueError("other values than those of the card")
            first = last = np.arange(len(valued), dtype=np.int64)
        else:
            first, last = read_ends(known, grid, [row[1:3] for row in valued])
        count, missing = (np.array([int(row[4]) for row in part], dtype=np.int64) for part in (valued, without))
        reasons = tuple(row[1].removeprefix(MISSING) for row in without)
        laplace, gaussian = read_own_law({row[5] for row in mine})
        yield name, Counts(grid, facts.rows_in, first, last, count, laplace, gaussian, reasons, missing)


def _read_groups(rows: list[list[str]], counts: Counts) -> Iterator[Group]:
    """The groups of a column: which of its cells each has."""
    own = [int(row[3]) for row in rows]
    for group in range(max(own) + 1):
        places = [place for place, other in enumerate(own) if other == group]
        inside = [place for place in places if place < len(counts.first)]
        names = [rows[place][1] for place in places]
        if not inside:
            yield Group(", ".join(names))
            continue
        first, last = int(counts.first[inside[0]]), int(counts.last[inside[-1]])
        is_range = inside[-1] - inside[0] + 1 == len(inside) == len(places) and rows[inside[0]][1] != rows[inside[-1]][2]
        words = (
            f"{rows[inside[0]][1]} to {rows[inside[-1]][2]}" if is_range and counts.count.size > len(inside) else ", ".join(names)
        )
        yield Group(words, first, last, len(inside) < len(places))


def _read_pairs(
    rows: list[list[str]], counts: Mapping[str, Counts], groups: Mapping[str, tuple[Group, ...]], facts: Facts
) -> Iterator[tuple[tuple[str, str], Pair]]:
    tables: dict[tuple[str, str], list[list[str]]] = {}
    for row in rows:
        tables.setdefault((row[0], row[2]), []).append(row)
    for (one, other), mine in tables.items():
        shape = len(groups[one]), len(groups[other])
        places = [(int(row[1]), int(row[3])) for row in mine]
        if places != [(i, j) for i in range(shape[0]) for j in range(shape[1])]:
            raise ValueError("a table of other groups")
        table = np.array([int(row[4]) for row in mine], dtype=np.int64).reshape(shape)
        laplace, gaussian, terms = read_law({row[5] for row in mine})
        empty = np.zeros(0, dtype=np.int64)
        law = Counts(Grid.declare((0, 1), 1), facts.rows_in, empty, empty, empty, laplace, gaussian, terms=terms)
        grids = [counts[name].grid if facts.columns[name].grid is not None else None for name in (one, other)]
        yield (one, other), Pair(one, other, groups[one], groups[other], table, law, grids[1], facts.rows_in)
        yield (other, one), Pair(other, one, groups[other], groups[one], table.T, law, grids[0], facts.rows_in)
