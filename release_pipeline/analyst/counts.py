"""Shares, quantiles and means of the confidential table from the noisy counts that a release was made of.

Only the counts of the last stage are used. Which cells it has follows from the counts before it, whose noise says nothing of its
own: given the cells, the noise of each count is a fresh draw of a known law, and intervals hold as they say. Where in its cell a
record is was not measured, so that an interval spans what the ends of the cells allow.

The number of records n is public: the counts of some cells are n less those of all others, and the fewer are added up.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
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
MISSING = "missing: "  # how the cell of a reason to have no value begins
_STEPS, _HALVES = 100, 30  # by which the mean of those that have a value is looked for
HEADER = ("column", "stage", "first", "last", "count", "noise")


@dataclass(frozen=True, eq=False)
class Counts:
    """The cells of a column that were counted last, ascending: from `first` to `last` in grid units, with noise of one law on
    each count. `laplace`: the scale of a discrete Laplace, or `gaussian`: the variance of a discrete Gaussian; the noise is the
    sum of so many `terms` of it."""

    grid: Grid
    records: int
    first: IntArray
    last: IntArray
    count: IntArray
    laplace: int | None = None
    gaussian: Fraction | None = None
    reasons: tuple[str, ...] = ()
    missing: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    terms: int = 1

    def lacking(self, reason: str | None, level: float) -> Interval:
        """The share of the records that have no value, for one reason or for any."""
        check_level(level)
        if reason is not None and reason not in self.reasons:
            known = f"Reasons: {', '.join(self.reasons)}." if self.reasons else "The policy has none: every record has a value."
            raise InvalidArgument("the policy of this release declares no such reason.", where="reason", remedy=known)
        cells = np.array([reason in (None, one) for one in self.reasons], dtype=np.bool_)
        whole = np.append(np.zeros(len(self.count), dtype=np.bool_), cells)
        found, off = self._sum(whole), self._quantile(whole, level)
        estimate, lower, upper = np.clip(np.array([found, found - off, found + off]) / self.records, 0, 1).tolist()
        return Interval(estimate, lower, upper, level, "law", ANALYST("counts.exact"))

    def share(self, low: float, high: float, level: float) -> Interval:
        """The share of the records from `low` to `high`."""
        check_level(level)
        if not low <= high:
            raise InvalidArgument("the range begins above its end.", where="low, high")
        ends = self._values(self.first), self._values(self.last)
        inside = (ends[0] >= low) & (ends[1] <= high)
        touched = (ends[1] >= low) & (ends[0] <= high)
        least, most = self._sum(inside), self._sum(touched)
        part = np.clip((np.minimum(ends[1], high) - np.maximum(ends[0], low)) / np.maximum(ends[1] - ends[0], 1e-300), 0, 1)
        between = float((self.count * np.where(touched & ~inside, part, 0.0)).sum())
        found = np.array([least + between, least - self._quantile(inside, level), most + self._quantile(touched, level)])
        estimate, lower, upper = np.clip(found / self.records, 0, 1).tolist()
        is_exact = bool((inside == touched).all())
        words = ANALYST("counts.exact") if is_exact else ANALYST("counts.spanned")
        return Interval(min(max(estimate, lower), upper), lower, upper, level, "law" if is_exact else "bound", words)

    def quantile(self, share: float, level: float) -> Interval:
        """The least value that so large a share of the records do not exceed."""
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
        starts, ends = held[:-1] - reach[:-1] < rank, held[1:] + reach[1:] >= rank
        possible = np.flatnonzero(starts & ends)
        likely = min(int(np.searchsorted(np.maximum.accumulate(held[1:]), rank)), len(self.count) - 1)
        low, high = (int(possible[0]), int(possible[-1])) if len(possible) else (likely, likely)
        likely = min(max(likely, low), high)
        values = self._values(np.array([self.first[low], self.last[high], (self.first[likely] + self.last[likely]) // 2]))
        lower, upper, estimate = values.tolist()
        return Interval(estimate, lower, upper, level, "bound", ANALYST("counts.quantile"))

    def mean(self, level: float) -> Interval:
        """The mean: c + sum (v - c) count / n for any c, as the counts of all cells are n. c is the middle of the cells' values,
        for which the noise is small; v the first and the last value of a cell."""
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
        """Of the records that have a value. With N of them, of which B lie below an edge, the quantile lies above it if B < q N.
        N is n less those without a value, so that B - q N is a sum of the counts below and of q times those of the reasons; or,
        with fewer counts, of those above."""
        below = np.tri(len(self.count) + 1, len(self.count), -1, dtype=np.bool_)  # the cells before each edge
        lacking = np.ones(len(self.missing))
        counts, off, held = np.append(self.count, self.missing), list[float](), list[float]()
        for cells in below:
            one = np.append(cells.astype(np.float64), share * lacking)
            other = np.append(-(~cells).astype(np.float64), (share - 1) * lacking)
            is_one = one @ one <= other @ other
            weights, constant = (one, -share) if is_one else (other, 1 - share)
            held.append(float(weights @ counts) + constant * self.records)
            off.append(self._bound(weights, level))
        difference, reach = np.array(held), np.array(off)
        possible = np.flatnonzero((difference[:-1] - reach[:-1] < 0) & (difference[1:] + reach[1:] >= 0))
        likely = min(int(np.searchsorted(np.maximum.accumulate(difference[1:]), 0.0)), len(self.count) - 1)
        low, high = (int(possible[0]), int(possible[-1])) if len(possible) else (likely, likely)
        likely = min(max(likely, low), high)
        values = self._values(np.array([self.first[low], self.last[high], (self.first[likely] + self.last[likely]) // 2]))
        lower, upper, estimate = values.tolist()
        return Interval(estimate, lower, upper, level, "bound", ANALYST("counts.quantile_of_values"))

    def mean_of_values(self, level: float) -> Interval:
        """Of the records that have a value: the m for which sum (v - m) count may be 0, v the first or the last value of a cell,
        by a bound on the noise of that sum."""
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
        """One count with this noise."""
        check_level(level)
        off = self._quantile_of(1, level)
        low, estimate, high = np.clip(np.array([count - off, count, count + off]), 0, records).tolist()
        return Interval(estimate, low, high, level, "law", ANALYST("counts.group"))

    def over(self, grid: Grid, first: IntArray, last: IntArray, count: IntArray) -> Counts:
        """Other counts with this noise."""
        return replace(self, grid=grid, first=first, last=last, count=count)

    def _sum(self, cells: npt.NDArray[np.bool_]) -> float:
        """The records in these cells."""
        cells, counts = self._with_missing(cells)
        if 2 * int(cells.sum()) <= len(cells):
            return float(counts[cells].sum())
        return self.records - float(counts[~cells].sum())

    def _with_missing(self, cells: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], IntArray]:
        """Some of the cells, among all that there are: those of the reasons come last."""
        without = np.zeros(len(self.count) + len(self.missing) - len(cells), dtype=np.bool_)
        return np.append(cells, without), np.append(self.count, self.missing)

    def _quantile(self, cells: npt.NDArray[np.bool_], level: float) -> float:
        """How far such a sum is off."""
        cells, _ = self._with_missing(cells)
        draws = min(int(cells.sum()), int((~cells).sum()))
        return self._quantile_of(draws, level) if draws else 0.0

    def _quantile_of(self, counts: int, level: float) -> float:
        """How far the sum of so many counts is off."""
        draws = counts * self.terms
        if self.laplace is not None:
            return quantile_of_sum(self.laplace, draws, level)
        return quantile_of_gaussian(self._variance, draws, level)

    def _bound(self, weights: FloatArray, level: float) -> float:
        """How far a weighted sum of all counts is off."""
        weights = np.repeat(weights, self.terms)
        return bound_weighted(weights, self.laplace, level) if self.laplace else bound_gaussian(weights, self._variance, level)

    @property
    def _variance(self) -> Fraction:
        if self.gaussian is None:
            raise InvalidArgument("nothing says what noise the counts have.", where=COUNTS)
        return self.gaussian


def _first_possible(is_possible: Callable[[float], bool], begin: float, end: float) -> float:
    """Where numbers begin to be possible on the way from `begin` to `end`: looked for step by step, and then by halves, from the
    side of those that are not; `end` where none is."""
    steps = np.linspace(begin, end, _STEPS + 1).tolist()
    place = next((place for place, step in enumerate(steps) if is_possible(step)), None)
    if not place:
        return end if place is None else begin
    before, after = steps[place - 1], steps[place]
    for _ in range(_HALVES):
        middle = (before + after) / 2
        before, after = (before, middle) if is_possible(middle) else (middle, after)
    return before


def read_counts(folder: Path, facts: Facts) -> dict[str, Counts]:
    """The counts in a package, by column; none where the method publishes none."""
    if not counts_by_value(facts):
        return {}
    file = folder / COUNTS
    header, rows = read_rows(file)
    if tuple(header) == ("part", *HEADER):  # of several tables, each with counts of its own
        return {}
    if tuple(header) != HEADER:
        raise refuse_counts(file)
    try:
        return dict(_read_columns(rows, facts))
    except (ValueError, IndexError, ZeroDivisionError):
        raise refuse_counts(file) from None


def read_rows(file: Path) -> tuple[list[str], list[list[str]]]:
    """The header of a file with noisy counts, and the rows below it."""
    try:
        with file.open(newline="", encoding="utf-8") as text:
            header, *rows = csv.reader(text)
    except OSError:
        raise WrongUsage("the noisy counts of the package cannot be read.", where=str(file)) from None
    except ValueError:
        raise refuse_counts(file) from None
    return header, rows


def counts_by_value(facts: Facts) -> bool:
    """Whether the method of a release counts by value."""
    return facts.method in METHODS and facts.spec.family == "by-value"


def find_counts(counts: Mapping[str, Counts], facts: Facts, name: str) -> Counts:
    """Those of a masked column, or `NoHonestAnswer`."""
    if name not in counts:
        facts.masked_column(name)
        why = KIT("decline.parts") if facts.in_parts else ANALYST("decline.no_counts", method=facts.method)
        raise NoHonestAnswer(f"no counts: {why}", where=name)
    return counts[name]


def _read_columns(rows: list[list[str]], facts: Facts) -> Iterator[tuple[str, Counts]]:
    for name in facts.masked:
        known, grid = facts.columns[name], facts.columns[name].grid
        mine = [row for row in rows if row[0] == name]
        stage = max((int(row[1]) for row in mine), default=0)
        last = [row for row in mine if int(row[1]) == stage]
        without = [row for row in last if row[2].startswith(MISSING)]
        last = last[: len(last) - len(without)]
        if grid is None:
            raise ValueError("no grid that cells could lie on")
        laplace, gaussian = read_own_law({row[5] for row in last})
        first, final = read_ends(known, grid, [row[2:4] for row in last])
        count = np.array([int(row[4]) for row in last], dtype=np.int64)
        reasons = tuple(row[2].removeprefix(MISSING) for row in without)
        missing = np.array([int(row[4]) for row in without], dtype=np.int64)
        yield name, Counts(grid, facts.rows_in, first, final, count, laplace, gaussian, reasons, missing)


def read_law(laws: set[str]) -> tuple[int | None, Fraction | None, int]:
    """The scale of a Laplace or the variance of a Gaussian, where all counts have noise of one law, and of how many numbers with
    this law the noise is the sum."""
    if len(laws) != 1:
        raise ValueError("no counts of one law")
    sums = SummedNoise.read(laws.pop())
    if isinstance(sums.noise, LaplaceNoise):
        return sums.noise.scale, None, sums.terms
    return None, sums.noise.variance, sums.terms


def read_own_law(laws: set[str]) -> tuple[int | None, Fraction | None]:
    """The same of counts that are no sums."""
    laplace, gaussian, terms = read_law(laws)
    if terms != 1:
        raise ValueError("counts of single columns are no sums")
    return laplace, gaussian


def read_ends(known: ColumnFacts, grid: Grid, ends: Sequence[Sequence[str]]) -> tuple[IntArray, IntArray]:
    """The first and the last number of each cell, in grid units: together they are the domain."""
    first, last = (np.array(grid.units_of([known.number_text(pair[end]) for pair in ends]), dtype=np.int64) for end in (0, 1))
    if first[0] != 0 or last[-1] != grid.width or (first[1:] != last[:-1] + 1).any():
        raise ValueError("cells that are not all of the domain")
    return first, last


def refuse_counts(file: Path) -> InvalidArgument:
    """That a file is of another release, or has been changed."""
    return InvalidArgument("these are not the noisy counts of this release.", where=str(file), remedy="Take all files of it.")


# What the noisy counts of a whole table answer: of single columns as `counts` has it, and of two
# columns by the groups of both.
#
# Counts of different tables do not quite add up to each other, as their noise differs: each answer
# is from one table. Where columns were counted together, the counts of a pair are sums over the
# others, and so is their noise.


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
        counts = dict(_read_paired_columns(cells, facts))
        groups = {name: tuple(_read_groups([row for row in cells if row[0] == name], counts[name])) for name in counts}
        return counts, dict(_read_pairs(pairs, counts, groups, facts))
    except (ValueError, IndexError, KeyError, ZeroDivisionError):
        raise refuse_counts(folder / COUNTS) from None


def _read(file: Path, header: list[str]) -> list[list[str]]:
    found, rows = read_rows(file)
    if found != header:
        raise refuse_counts(file)
    return rows


def _read_paired_columns(rows: list[list[str]], facts: Facts) -> Iterator[tuple[str, Counts]]:
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
