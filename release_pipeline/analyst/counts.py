"""Shares, quantiles and means of the confidential table, estimated from the noisy counts that a release was made from.

Only the counts of the last stage are used. Its cells follow from earlier counts, whose noise is independent of its own: given the
cells, the noise of each count is a fresh draw from a known distribution, so intervals have the stated level. The position of a
record in its cell was not measured, so an interval spans what the ends of the cells allow.

The number of records n is public: the counts of some cells are n minus those of all others, so the smaller set of cells is added
up.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.facts import ColumnFacts, Facts, NoHonestAnswer
from release_pipeline.analyst.laws import bound_gaussian, bound_weighted, check_level, quantile_of_gaussian, quantile_of_sum
from release_pipeline.analyst.means import Interval
from release_pipeline.errors import InvalidArgument, WrongUsage
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid, IntArray
from release_pipeline.mechanisms.by_value.noise_laws import LaplaceNoise
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.mechanisms.whole_table.design import SummedNoise
from release_pipeline.sentences import ANALYST, KIT

COUNTS = "data.counts.csv"
MISSING = "missing: "  # prefix of the cell of a reason for no value
_STEPS, _HALVES = 100, 30  # of the search for the mean of records that have a value
HEADER = ("column", "stage", "first", "last", "count", "noise")


@dataclass(frozen=True, eq=False)
class Counts:
    """The cells of a column that were counted last, ascending: from `first` to `last` in grid units, with the same noise
    distribution for each count. `missing`: the counts of records without a value, by the `reasons`."""

    grid: Grid
    records: int
    first: IntArray
    last: IntArray
    count: IntArray
    noise: SummedNoise
    reasons: tuple[str, ...] = ()
    missing: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def lacking(self, reason: str | None, level: float) -> Interval:
        """Return an interval for the share of records without a value, for one reason or for any."""
        check_level(level)
        if reason is not None and reason not in self.reasons:
            known = f"Reasons: {', '.join(self.reasons)}." if self.reasons else "The policy has none: every record has a value."
            raise InvalidArgument("the policy of this release declares no such reason.", where="reason", remedy=known)
        chosen = np.array([reason in (None, each) for each in self.reasons], dtype=np.bool_)
        cells = np.append(np.zeros(len(self.count), dtype=np.bool_), chosen)
        total, off = self._sum(cells), self._quantile(cells, level)
        estimate, lower, upper = np.clip(np.array([total, total - off, total + off]) / self.records, 0, 1).tolist()
        return Interval(estimate, lower, upper, level, "law", ANALYST("counts.exact"))

    def share(self, low: float, high: float, level: float) -> Interval:
        """Return an interval for the share of records from `low` to `high`."""
        check_level(level)
        if not low <= high:
            raise InvalidArgument("the range begins above its end.", where="low, high")
        ends = self._values(self.first), self._values(self.last)
        inside = (ends[0] >= low) & (ends[1] <= high)
        touched = (ends[1] >= low) & (ends[0] <= high)
        least, most = self._sum(inside), self._sum(touched)
        part = np.clip((np.minimum(ends[1], high) - np.maximum(ends[0], low)) / np.maximum(ends[1] - ends[0], 1e-300), 0, 1)
        between = float((self.count * np.where(touched & ~inside, part, 0.0)).sum())
        totals = np.array([least + between, least - self._quantile(inside, level), most + self._quantile(touched, level)])
        estimate, lower, upper = np.clip(totals / self.records, 0, 1).tolist()
        estimate = min(max(estimate, lower), upper)
        if (inside == touched).all():
            return Interval(estimate, lower, upper, level, "law", ANALYST("counts.exact"))
        return Interval(estimate, lower, upper, level, "bound", ANALYST("counts.spanned"))

    def quantile(self, share: float, level: float) -> Interval:
        """Return an interval for the least value that this share of the records does not exceed."""
        check_level(level)
        if not 0 < share <= 1:
            raise InvalidArgument("the share lies above 0, and is 1 at the most.", where="share")
        if self.reasons:
            return self._quantile_of_values(share, level)
        rank = max(math.ceil(share * self.records - 1e-9), 1)
        edges = np.arange(len(self.count) + 1)
        below = [np.arange(len(self.count)) < edge for edge in edges]  # the cells before each edge
        held = np.array([self._sum(cells) for cells in below])
        reach = np.array([self._quantile(cells, level) for cells in below])
        return self._find_cell(held - rank, reach, level, ANALYST("counts.quantile"))

    def _find_cell(self, beyond: FloatArray, reach: FloatArray, level: float, basis: str) -> Interval:
        """Return an interval for the value at which `beyond` becomes 0 or more, from its noisy values at the edges of cells, each
        off by at most `reach`."""
        possible = np.flatnonzero((beyond[:-1] - reach[:-1] < 0) & (beyond[1:] + reach[1:] >= 0))
        likely = min(int(np.searchsorted(np.maximum.accumulate(beyond[1:]), 0.0)), len(self.count) - 1)
        low, high = (int(possible[0]), int(possible[-1])) if len(possible) else (likely, likely)
        likely = min(max(likely, low), high)
        values = self._values(np.array([self.first[low], self.last[high], (self.first[likely] + self.last[likely]) // 2]))
        lower, upper, estimate = values.tolist()
        return Interval(estimate, lower, upper, level, "bound", basis)

    def mean(self, level: float) -> Interval:
        """Return an interval for the mean. It is c + sum (v - c) count / n for any c, because the counts of all cells add up to
        n. c is the middle of the cells' values, for which the noise is small; v the first and the last value of a cell."""
        check_level(level)
        if self.reasons:
            return self.mean_of_values(level)
        middle = (self.first + self.last) / 2
        centre = float(middle.mean())
        ends: list[float] = []
        for values, side in ((self.first, -1), (self.last, 1), (middle, 0)):
            away = (values - centre) / self.records
            ends.append(centre + float(away @ self.count) + side * (self._bound(away, level) if side else 0.0))
        lower, upper, estimate = (float(self.grid.restore(np.array([min(max(end, 0.0), self.grid.width)]))[0]) for end in ends)
        return Interval(estimate, lower, upper, level, "bound", ANALYST("counts.mean"))

    def _quantile_of_values(self, share: float, level: float) -> Interval:
        """Return an interval for the quantile over the records that have a value. With N of them, B of which are below an edge,
        the quantile is above it if B < q N. N is n minus the records without a value, so B - q N is a sum of the counts below and
        q times those of the reasons; or, if that takes fewer counts, of those above."""
        below = np.tri(len(self.count) + 1, len(self.count), -1, dtype=np.bool_)  # the cells before each edge
        lacking = np.ones(len(self.missing))
        counts, beyond, reach = np.append(self.count, self.missing), list[float](), list[float]()
        for cells in below:
            by_below = np.append(cells.astype(np.float64), share * lacking)
            by_above = np.append(-(~cells).astype(np.float64), (share - 1) * lacking)
            is_smaller = by_below @ by_below <= by_above @ by_above
            weights, constant = (by_below, -share) if is_smaller else (by_above, 1 - share)
            beyond.append(float(weights @ counts) + constant * self.records)
            reach.append(self._bound(weights, level))
        return self._find_cell(np.array(beyond), np.array(reach), level, ANALYST("counts.quantile_of_values"))

    def mean_of_values(self, level: float) -> Interval:
        """Return an interval for the mean over the records that have a value: all m for which sum (v - m) count may be 0, v being
        the first or the last value of a cell, by a bound on the noise of that sum."""
        width = float(self.grid.width)
        first: FloatArray = self.first.astype(np.float64)
        last: FloatArray = self.last.astype(np.float64)
        ends = (
            _first_possible(lambda m: float((first - m) @ self.count) <= self._bound(first - m, level), 0.0, width),
            _first_possible(lambda m: float((last - m) @ self.count) >= -self._bound(last - m, level), width, 0.0),
        )
        lower, upper = min(ends), max(ends)
        held = float(self.count.sum())
        middle = float((self.first + self.last) / 2 @ self.count) / held if held > 0 else (lower + upper) / 2
        estimate = min(max(middle, lower), upper)
        lower, upper, estimate = self.grid.restore(np.array([lower, upper, estimate], dtype=np.float64)).tolist()
        return Interval(estimate, lower, upper, level, "bound", ANALYST("counts.mean_of_values"))

    def _values(self, units: IntArray) -> FloatArray:
        return self.grid.restore(units.astype(np.float64))

    def interval_of(self, count: int, records: int, level: float) -> Interval:
        """Return the interval of one count with this noise, from 0 to `records`."""
        check_level(level)
        off = self._quantile_of(1, level)
        low, estimate, high = np.clip(np.array([count - off, count, count + off]), 0, records).tolist()
        return Interval(estimate, low, high, level, "law", ANALYST("counts.group"))

    def over(self, grid: Grid, first: IntArray, last: IntArray, count: IntArray) -> Counts:
        """Return the counts of another column with this noise."""
        return replace(self, grid=grid, first=first, last=last, count=count)

    def _sum(self, cells: npt.NDArray[np.bool_]) -> float:
        """Return the noisy number of records in these cells."""
        cells, counts = self._with_missing(cells)
        if 2 * int(cells.sum()) <= len(cells):
            return float(counts[cells].sum())
        return self.records - float(counts[~cells].sum())

    def _with_missing(self, cells: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], IntArray]:
        """Return flags for these cells among all cells, and the counts of all cells; the cells of the reasons come last."""
        without = np.zeros(len(self.count) + len(self.missing) - len(cells), dtype=np.bool_)
        return np.append(cells, without), np.append(self.count, self.missing)

    def _quantile(self, cells: npt.NDArray[np.bool_], level: float) -> float:
        """Return how far the sum of these cells is off at most, at this level."""
        cells, _ = self._with_missing(cells)
        draws = min(int(cells.sum()), int((~cells).sum()))
        return self._quantile_of(draws, level) if draws else 0.0

    def _quantile_of(self, counts: int, level: float) -> float:
        """Return how far the sum of so many counts is off at most, at this level."""
        noise, draws = self.noise.noise, counts * self.noise.terms
        if isinstance(noise, LaplaceNoise):
            return quantile_of_sum(noise.scale, draws, level)
        return quantile_of_gaussian(noise.variance, draws, level)

    def _bound(self, weights: FloatArray, level: float) -> float:
        """Return how far a weighted sum of all counts is off at most, at this level."""
        noise, weights = self.noise.noise, np.repeat(weights, self.noise.terms)
        if isinstance(noise, LaplaceNoise):
            return bound_weighted(weights, noise.scale, level)
        return bound_gaussian(weights, noise.variance, level)


def _first_possible(is_possible: Callable[[float], bool], begin: float, end: float) -> float:
    """Return where numbers begin to be possible on the way from `begin` to `end`, searched step by step and then by halving, from
    the impossible side; `end` if none is possible."""
    steps = np.linspace(begin, end, _STEPS + 1).tolist()
    index = next((index for index, step in enumerate(steps) if is_possible(step)), None)
    if not index:
        return end if index is None else begin
    before, after = steps[index - 1], steps[index]
    for _ in range(_HALVES):
        middle = (before + after) / 2
        before, after = (before, middle) if is_possible(middle) else (middle, after)
    return before


def read_counts(folder: Path, facts: Facts) -> dict[str, Counts]:
    """Return the counts in a package, by column; empty if the method publishes none."""
    if not counts_by_value(facts):
        return {}
    file = folder / COUNTS
    header, rows = read_rows(file)
    if tuple(header) == ("part", *HEADER):  # of several tables, each with separate counts
        return {}
    if tuple(header) != HEADER:
        raise refuse_counts(file)
    try:
        return {name: _read_last_stage([row for row in rows if row[0] == name], facts, name) for name in facts.masked}
    except (ValueError, IndexError, ZeroDivisionError):
        raise refuse_counts(file) from None


def read_rows(file: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header of a file with noisy counts, and the rows below it."""
    try:
        with file.open(newline="", encoding="utf-8") as text:
            header, *rows = csv.reader(text)
    except OSError:
        raise WrongUsage("the noisy counts of the package cannot be read.", where=str(file)) from None
    except ValueError:
        raise refuse_counts(file) from None
    return header, rows


def counts_by_value(facts: Facts) -> bool:
    """Return whether the method of a release counts by value."""
    return facts.method in METHODS and facts.spec.family == "by-value"


def find_counts(counts: Mapping[str, Counts], facts: Facts, name: str) -> Counts:
    """Return the counts of a masked column; raises `NoHonestAnswer` if there are none."""
    if name not in counts:
        facts.masked_column(name)
        why = KIT("decline.parts") if facts.in_parts else ANALYST("decline.no_counts", method=facts.method)
        raise NoHonestAnswer(f"no counts: {why}", where=name)
    return counts[name]


def _read_last_stage(rows: list[list[str]], facts: Facts, name: str) -> Counts:
    last = max((int(row[1]) for row in rows), default=0)
    return _read_column([row for row in rows if int(row[1]) == last], facts, name, at=2)


def _read_column(rows: list[list[str]], facts: Facts, name: str, *, at: int) -> Counts:
    """Return the counts of one column, a row for each cell; `at`: the position in a row of the first value of the cell, or the
    reason for none. The cells of a column of listed values are numbered from 0."""
    known = facts.columns[name]
    without = [row for row in rows if row[at].startswith(MISSING)]
    valued = rows[: len(rows) - len(without)]
    if known.grid is not None:
        grid, (first, last) = known.grid, _read_ends(known, known.grid, [row[at : at + 2] for row in valued])
    elif [row[at] for row in valued] == list(known.values):
        grid = Grid.declare((0, max(len(known.values) - 1, 1)), 1)
        first = last = np.arange(len(valued), dtype=np.int64)
    else:
        raise ValueError("other values than those of the card")
    noise = _read_noise(rows)
    if noise.terms != 1:
        raise ValueError("counts of single columns are no sums")
    count, missing = (np.array([int(row[4]) for row in part], dtype=np.int64) for part in (valued, without))
    return Counts(
        grid, facts.rows_in, first, last, count, noise, tuple(row[at].removeprefix(MISSING) for row in without), missing
    )


def _read_noise(rows: list[list[str]]) -> SummedNoise:
    """Return the noise of these counts, which is the same for all."""
    [noise] = {row[5] for row in rows}
    return SummedNoise.read(noise)


def _read_ends(known: ColumnFacts, grid: Grid, ends: Sequence[Sequence[str]]) -> tuple[IntArray, IntArray]:
    """Return the first and the last number of each cell, in grid units; together the cells are the domain."""
    first, last = (np.array(grid.units_of([known.number_text(pair[end]) for pair in ends]), dtype=np.int64) for end in (0, 1))
    if first[0] != 0 or last[-1] != grid.width or (first[1:] != last[:-1] + 1).any():
        raise ValueError("cells that are not all of the domain")
    return first, last


def refuse_counts(file: Path) -> InvalidArgument:
    """Return the error for a file that belongs to another release, or was changed."""
    return InvalidArgument("these are not the noisy counts of this release.", where=str(file), remedy="Take all files of it.")


# Answers from the noisy counts of a whole table: on single columns as above, and on two columns by the groups of both.
#
# Counts of different tables do not quite add up to each other, as their noise differs: each answer
# is from one table. Where columns were counted together, the counts of a pair are sums over the
# others, and so is their noise.


PAIRS = "data.pairs.csv"
CELLS_HEADER = ["column", "first", "last", "group", "count", "noise"]
PAIRS_HEADER = ["one", "group_of_one", "other", "group_of_other", "count", "noise"]


@dataclass(frozen=True)
class Group:
    """Cells of a column that are one group in the tables of pairs. `first` and `last`: its numbers in grid units, None if it has
    none; `has_missing`: whether it has records without a value."""

    label: str
    first: int | None = None
    last: int | None = None
    has_missing: bool = False


@dataclass(frozen=True)
class GroupCount:
    """The number of records in a group of one column and in one of another, with its interval."""

    one: str
    other: str
    count: Interval


@dataclass(frozen=True, eq=False)
class Pair:
    """The table of two columns, with the same noise distribution for each count: `counts`, groups of the first by groups of the
    other."""

    one: str
    other: str
    groups_of_one: tuple[Group, ...]
    groups_of_other: tuple[Group, ...]
    counts: IntArray
    law: Counts
    grid_of_other: Grid | None
    records: int

    def cells(self, *, level: float = 0.95) -> tuple[GroupCount, ...]:
        """Return every count, with its interval."""
        return tuple(
            GroupCount(group.label, other.label, self.law.interval_of(int(self.counts[i, j]), self.records, level))
            for i, group in enumerate(self.groups_of_one)
            for j, other in enumerate(self.groups_of_other)
        )

    def means(self, *, level: float = 0.95) -> dict[str, Interval]:
        """Return intervals for the mean of the other column in each group of the first one, over the records that have a value.
        Their estimate is NaN if a group of the other column has several values: the counts do not show where in its group a
        record is, and the middle can be far off. Then intervals are as wide as groups are."""
        if self.grid_of_other is None:
            raise NoHonestAnswer(ANALYST("decline.no_numbers"), where=self.other)
        valued = [column for column, group in enumerate(self.groups_of_other) if group.first is not None]
        if any(self.groups_of_other[column].has_missing for column in valued):
            raise NoHonestAnswer(ANALYST("decline.mixed"), where=self.other)
        first, last = (
            np.array([getattr(self.groups_of_other[column], end) for column in valued], dtype=np.int64)
            for end in ("first", "last")
        )
        means = {
            group.label: self.law.over(self.grid_of_other, first, last, self.counts[row, valued]).mean_of_values(level)
            for row, group in enumerate(self.groups_of_one)
        }
        if (first == last).all():
            return means
        return {label: replace(mean, estimate=math.nan, basis=ANALYST("counts.group_mean")) for label, mean in means.items()}


def read_cells(folder: Path, facts: Facts) -> tuple[dict[str, Counts], dict[tuple[str, str], Pair]]:
    """Return the counts of every column, and those of every pair of columns, in both orders."""
    if not facts.counts_whole_table:
        return {}, {}
    cells, pairs = _read(folder / COUNTS, CELLS_HEADER), _read(folder / PAIRS, PAIRS_HEADER)
    try:
        rows = {name: [row for row in cells if row[0] == name] for name in facts.synthetic}
        counts = {name: _read_column(rows[name], facts, name, at=1) for name in rows}
        groups = {name: tuple(_read_groups(rows[name], counts[name])) for name in rows}
        return counts, dict(_read_pairs(pairs, counts, groups, facts))
    except (ValueError, IndexError, KeyError, ZeroDivisionError):
        raise refuse_counts(folder / COUNTS) from None


def _read(file: Path, header: list[str]) -> list[list[str]]:
    read, rows = read_rows(file)
    if read != header:
        raise refuse_counts(file)
    return rows


def _read_groups(rows: list[list[str]], counts: Counts) -> Iterator[Group]:
    """Yield the groups of a column, each with its cells."""
    group_of = [int(row[3]) for row in rows]
    for group in range(max(group_of) + 1):
        cells = [cell for cell, other in enumerate(group_of) if other == group]
        valued = [cell for cell in cells if cell < len(counts.first)]
        names = ", ".join(rows[cell][1] for cell in cells)
        if not valued:
            yield Group(names)
            continue
        first, last = valued[0], valued[-1]
        is_range = last - first + 1 == len(valued) == len(cells) < counts.count.size and rows[first][1] != rows[last][2]
        label = f"{rows[first][1]} to {rows[last][2]}" if is_range else names
        yield Group(label, int(counts.first[first]), int(counts.last[last]), len(valued) < len(cells))


def _read_pairs(
    rows: list[list[str]], counts: Mapping[str, Counts], groups: Mapping[str, tuple[Group, ...]], facts: Facts
) -> Iterator[tuple[tuple[str, str], Pair]]:
    tables: dict[tuple[str, str], list[list[str]]] = {}
    for row in rows:
        tables.setdefault((row[0], row[2]), []).append(row)
    empty = np.zeros(0, dtype=np.int64)
    for (first, second), cells in tables.items():
        shape = len(groups[first]), len(groups[second])
        if [(int(row[1]), int(row[3])) for row in cells] != list(np.ndindex(shape)):
            raise ValueError("a table of other groups")
        table = np.array([int(row[4]) for row in cells], dtype=np.int64).reshape(shape)
        law = Counts(Grid.declare((0, 1), 1), facts.rows_in, empty, empty, empty, _read_noise(cells))
        grids = [counts[name].grid if facts.columns[name].grid is not None else None for name in (first, second)]
        yield (first, second), Pair(first, second, groups[first], groups[second], table, law, grids[1], facts.rows_in)
        yield (second, first), Pair(second, first, groups[second], groups[first], table.T, law, grids[0], facts.rows_in)
