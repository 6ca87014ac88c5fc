"""Counts, sums and means by group from the tables that a package has next to its rows.

Intervals come from the measured noisy cells and their noise distribution, which the card names in full: the noise of a sum of m
cells is a sum of m independent draws. If several levels can answer, or if the other cells are fewer (all counts add up to the
number of records), the narrower interval is taken. Which one is narrower follows from the distributions only, so the level holds.

A mean is a sum over a count, each with separate noise. For a mean of theta the number S - theta N has only the noise Z_S - theta
Z_N. The interval has every theta for which that is no larger than the noise can be at the level (Fieller's method). Two bounds on
it are used; both hold for every theta, so their intersection does: the bounds of the two parts, each at half of the allowed
error, and for noise of one distribution the bound for sums of numbers of any scales.

The same holds for a weighted table: the figures are the total of weights, of weights times numbers, and the ratio of these two.
Its total is not public, so a share comes from the ratio r of the part to the rest, which are sums of different cells, as r / (1 +
r). Intervals are for the weighted figures of the confidential table; they do not include how far a sample is from its population.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.facts import Facts, LevelFacts, NoHonestAnswer, TableFacts
from release_pipeline.analyst.laws import check_level, quantile_of_gaussian, quantile_of_sum, worst_quantile
from release_pipeline.analyst.means import Interval, tell_moments
from release_pipeline.errors import InvalidArgument, InvalidType, WrongUsage
from release_pipeline.mechanisms.basis.grid import Grid, IntArray
from release_pipeline.mechanisms.tables import CellNoise
from release_pipeline.sentences import ANALYST

Where: TypeAlias = Mapping[str, "str | int | Iterable[str | int]"]  # requested labels, by column
_SURE = 3.3  # times sqrt(m): beyond it the sum of m numbers from (-1/2, 1/2) is with a probability below 1e-9 (Hoe63)


@dataclass(frozen=True, eq=False)
class Level:
    """The cells of a level. `labels`: by column, the label of each cell; `above`: for the column with several levels, the labels
    of each level from this one up, by its number; `noisy`: the noisy number of each cell, in steps."""

    facts: LevelFacts
    labels: Mapping[str, npt.NDArray[np.str_]]
    above: Mapping[int, npt.NDArray[np.str_]]
    noisy: IntArray


@dataclass(frozen=True, slots=True)
class Answer:
    """A noisy number in steps, and its noise: so many draws from a distribution."""

    number: int
    noise: CellNoise
    draws: int

    def reach(self, level: float) -> int:
        """Return how far the number is off at most, at this level, in steps."""
        if not self.draws or not self.noise.amount:
            return 0
        if self.noise.law == "Gaussian":
            return quantile_of_gaussian(self.noise.amount, self.draws, level)
        return quantile_of_sum(int(self.noise.amount), self.draws, level)

    @property
    def variance(self) -> float:
        """Return the variance of a number that bounds its noise, in steps squared."""
        if not self.noise.amount:
            return 0.0
        amount = float(self.noise.amount)
        return self.draws * (amount if self.noise.law == "Gaussian" else 2 * (amount + 1 / 12) ** 2)


@dataclass(frozen=True, eq=False)
class Table:
    """A table of a package. `others`: the tables of counts of the same package, for means."""

    facts: TableFacts
    release: Facts
    levels: tuple[Level, ...]
    others: tuple[Table, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        what = "counts of records" if self.facts.sum is None else f"sums of {self.facts.sum}"
        weighted = "" if self.facts.weight is None else f" weighted by {self.facts.weight.column}"
        return f"<Table {self.facts.name}: {what}{weighted} by {', '.join(self.facts.by)}>"

    def count(self, where: Where | None = None, *, level: float = 0.95) -> Interval:
        """Return how many records of the confidential table have these labels, such as {"town": "north", "sex": ["0", "1"]};
        without labels, how many there are in all. A weighted table gives the number of the population they represent; one with
        `having` counts records with a value there."""
        self._must_have(counts=True)
        return self._state(self._answer(_read_where(where), level), level)

    def share(self, where: Where | None = None, *, level: float = 0.95) -> Interval:
        """Return the share of all records that have these labels; for a weighted table, the share of the population."""
        self._must_have(counts=True)
        if not self.facts.has_public_total:
            return self._share_of_weights(_read_where(where), level)
        answer = self._answer(_read_where(where), level)
        reach, records = answer.reach(level), self.release.rows_in
        return _within(answer.number, reach, (0, records), 1 / records, level, ANALYST("tables.law"))

    def sum(self, where: Where | None = None, *, level: float = 0.95) -> Interval:
        """Return the sum of the column over records with these labels in the confidential table; in a weighted table each value
        times its weight."""
        self._must_have(counts=False)
        return self._state(self._answer(_read_where(where), level), level)

    def mean(self, where: Where | None = None, *, level: float = 0.95) -> Any:
        """Return the mean of the column over the records with these labels in the confidential table, if there are any, as an
        `Interval`, or `Moments` for dates or times. Their number comes from a table of counts of the package with the same
        weights; raises `NoHonestAnswer` if none has these labels."""
        self._must_have(counts=False)
        asked = _read_where(where)
        total, count = self._answer(asked, level), self._find_count(asked, level)
        grid = self._grid
        low, high = _bound_ratio(total, count, (grid.lo / grid.step, grid.hi / grid.step), level)
        estimate = min(max(total.number / max(count.number, 1), low), high)
        estimate, low, high = (float(grid.step) * end for end in (estimate, low, high))
        basis = ANALYST("tables.mean") if self.facts.weight is None else ANALYST("tables.weighted_mean")
        interval = Interval(estimate, low, high, level, "bound", basis)
        clock = self.release.columns[self.facts.sum or ""].clock
        return interval if clock is None else tell_moments(interval, clock)

    def _state(self, answer: Answer, level: float) -> Interval:
        """Return the interval of a total, cut to what is possible."""
        low, high = (self.release.rows_in * end / self.facts.step for end in self._added)
        ends = math.floor(min(low, 0)), math.ceil(max(high, 0))
        basis = ANALYST("tables.law") if self.facts.weight is None else ANALYST("tables.weighted")
        return _within(answer.number, answer.reach(level), ends, float(self.facts.step), level, basis)

    def _share_of_weights(self, asked: Mapping[str, frozenset[str]], level: float) -> Interval:
        """Return the interval of the share of the requested cells, from these and the rest of the same level."""
        self._check(asked, level)
        both = [(_add_up(of, chosen), _add_up(of, ~chosen)) for of, chosen in self._select(asked)]
        part, rest = min(both, key=lambda pair: pair[0].reach(level) + pair[1].reach(level))
        if not rest.draws:
            return Interval(1.0, 1.0, 1.0, level, "exact", ANALYST("tables.everybody"))
        low, high = (_share_of_ratio(ratio) for ratio in _bound_ratio(part, rest, (Fraction(0), math.inf), level))
        estimate = part.number / max(part.number + rest.number, 1)
        basis = ANALYST("tables.having_share") if self.facts.weight is None else ANALYST("tables.weighted_share")
        return Interval(min(max(estimate, low), high), low, high, level, "bound", basis)

    @property
    def _grid(self) -> Grid:
        """Return the declared domain and grid of the column that is added up."""
        grid = self.release.columns[self.facts.sum or ""].grid
        if grid is None:
            raise NoHonestAnswer("the card declares no domain or grid for it.", where=self.facts.sum or "")
        return grid

    @property
    def _added(self) -> tuple[Fraction, Fraction]:
        """Return the least and the most that one record adds, in the unit of the cells."""
        weight = self.facts.weight
        numbers = (Fraction(1), Fraction(1)) if self.facts.sum is None else (self._grid.lo, self._grid.hi)
        weights = (Fraction(1), Fraction(1)) if weight is None else (weight.least, weight.largest)
        corners = [number * factor for number in numbers for factor in weights]
        return min(corners), max(corners)

    def _must_have(self, *, counts: bool) -> None:
        if (self.facts.sum is None) != counts:
            what = "counts records, and adds nothing up" if self.facts.sum is None else f"adds up {self.facts.sum}"
            raise NoHonestAnswer(
                f"this table {what}.", where=self.facts.name, remedy=ANALYST("advice.tables", names=_list_names(self.release))
            )

    def _find_count(self, asked: Mapping[str, frozenset[str]], level: float) -> Answer:
        """Return the narrowest answer of a table of counts with the same weights."""
        weight, having = self.facts.weight, self.facts.sum if self.facts.lacking else None
        if not asked and weight is None and having is None:
            return Answer(self.release.rows_in, CellNoise("Laplace", Fraction(0)), 0)
        ways = [asked, finest] if (finest := self._refine(asked)) != asked else [asked]
        others = [table for table in self.others if table.facts.weight == weight and table.facts.having == having]
        answers = [table._answer(way, level) for way in ways for table in others if table._knows(way)]
        if not answers:
            if having is not None:
                why = ANALYST("decline.no_having", column=having)
            elif weight is not None:
                why = ANALYST("decline.no_weighted_table", weight=weight.column)
            else:
                why = ANALYST("decline.no_table", columns=", ".join(asked))
            raise NoHonestAnswer(f"no mean: {why}", where=self.facts.name, remedy=ANALYST("advice.sum"))
        return min(answers, key=lambda answer: answer.reach(level))

    def _refine(self, asked: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
        """Return the request in labels of the finest level: other tables may have only these."""
        deep, finest = self.facts.deep, self.levels[-1]
        meant = self._find_meant(asked[deep]) if deep is not None and deep in asked else None
        if deep is None or meant is None:
            return asked
        inside = np.isin(finest.above[meant], list(asked[deep]))
        return {**asked, deep: frozenset(finest.labels[deep][inside].tolist())}

    def _knows(self, asked: Mapping[str, frozenset[str]]) -> bool:
        return set(asked) <= set(self.facts.by) and any(True for _ in self._answers(asked))

    def _answer(self, asked: Mapping[str, frozenset[str]], level: float) -> Answer:
        """Return the answer with the narrowest interval."""
        self._check(asked, level)
        return min(self._answers(asked), key=lambda answer: answer.reach(level))

    def _check(self, asked: Mapping[str, frozenset[str]], level: float) -> None:
        """Refuse labels and columns that the table does not have."""
        check_level(level)
        for column in asked:
            if column not in self.facts.by:
                raise InvalidArgument(
                    "the table has no such column.", where=column, remedy=f"It is by {', '.join(self.facts.by)}."
                )
        if not any(True for _ in self._select(asked)):
            raise InvalidArgument(
                "the table has no such labels.", where=", ".join(asked), remedy=f"See those in {self.facts.file}."
            )

    def _answers(self, asked: Mapping[str, frozenset[str]]) -> Iterator[Answer]:
        """Yield the answer of each level that has these labels, or their parts; if the total is public, also the answer by all
        other cells."""
        for level, chosen in self._select(asked):
            yield _add_up(level, chosen)
            if self.facts.has_public_total:
                rest = _add_up(level, ~chosen)
                yield Answer(self.release.rows_in - rest.number, rest.noise, rest.draws)

    def _select(self, asked: Mapping[str, frozenset[str]]) -> Iterator[tuple[Level, npt.NDArray[np.bool_]]]:
        """Yield each level that has these labels, or their parts, with flags for the requested cells."""
        deep = self.facts.deep
        of_deep = None if deep is None else asked.get(deep)
        meant = None if of_deep is None else self._find_meant(of_deep)
        for level in self.levels:
            if of_deep is not None and (meant is None or meant not in level.above):
                continue
            chosen = np.ones(len(level.noisy), dtype=bool)
            for column, labels in asked.items():
                cells = level.labels[column] if column != deep or meant is None else level.above[meant]
                if not labels <= set(cells.tolist()):
                    break
                chosen &= np.isin(cells, list(labels))
            else:
                yield level, chosen

    def _find_meant(self, labels: frozenset[str]) -> int | None:
        """Return the number of the finest level that has all of these labels; None if no level has."""
        for level in reversed(self.levels):
            number = level.facts.number
            if labels <= set(level.above[number].tolist()):
                return number
        return None


def _add_up(level: Level, chosen: npt.NDArray[np.bool_]) -> Answer:
    """Return the sum of these cells of a level."""
    return Answer(int(level.noisy[chosen].sum()), level.facts.noise, int(chosen.sum()))


def read_tables(folder: Path, facts: Facts) -> dict[str, Table]:
    """Return the tables in a package, by name."""
    tables = {table.name: Table(table, facts, _read_levels(folder / table.file, table)) for table in facts.tables}
    counts = tuple(table for table in tables.values() if table.facts.sum is None)
    return {name: replace(table, others=counts) for name, table in tables.items()}


def find_table(tables: Mapping[str, Table], facts: Facts, name: str) -> Table:
    """Return the table of this name; any other name is refused."""
    given = cast(object, name)
    if not isinstance(given, str):
        raise InvalidType("a table is named by a text.", where="name")
    if name not in tables:
        known = _list_names(facts) if facts.tables else "none"
        raise InvalidArgument("the release has no such table.", where=name, remedy=f"It has {known}.")
    return tables[name]


def _list_names(facts: Facts) -> str:
    return ", ".join(table.name for table in facts.tables)


def _read_where(where: Where | None) -> dict[str, frozenset[str]]:
    """Return the requested labels as texts, by column."""
    given = cast(object, {} if where is None else where)
    if not isinstance(given, Mapping):
        raise InvalidType("what is asked for is a mapping from columns to labels.", where="where", remedy='Like {"town": "A"}.')
    asked: dict[str, frozenset[str]] = {}
    for column, labels in cast(Mapping[Any, Any], given).items():
        several = isinstance(labels, Iterable) and not isinstance(labels, str)
        texts = [str(label) for label in cast(Iterable[Any], labels)] if several else [str(cast(object, labels))]
        if not texts:
            raise InvalidArgument("no label is named.", where=str(column))
        asked[str(column)] = frozenset(texts)
    return asked


def _within(number: int, reach: int, ends: tuple[int, int], unit: float, level: float, basis: str) -> Interval:
    """Return the interval of a number with its largest error, cut to what is possible."""
    estimate, low, high = (unit * min(max(end, ends[0]), ends[1]) for end in (number, number - reach, number + reach))
    return Interval(estimate, low, high, level, "law" if reach else "exact", basis if reach else ANALYST("tables.exact"))


def _share_of_ratio(ratio: float) -> float:
    """Return the share of a part that is `ratio` times the rest."""
    return 1.0 if math.isinf(ratio) else ratio / (1 + ratio)


def _bound_ratio(total: Answer, count: Answer, domain: tuple[Fraction, Fraction | float], level: float) -> tuple[float, float]:
    """Return the least and the largest ratio theta in the domain with |S - theta N| <= q(theta): at the level, the ratio of the
    exact numbers meets this. q(theta) is the smaller of q_S + |theta| q_N, each at half of the allowed error, and the bound of
    `_solve_fieller`."""
    apart = (1 + level) / 2 if total.draws and count.draws and count.noise.amount else level
    off, away = total.reach(apart), count.reach(apart)
    fieller = _solve_fieller(total, count, level)
    low, high = max(float(domain[0]), fieller[0]), min(float(domain[1]), fieller[1])
    ends: list[float] = []
    for sign in (1, -1):  # of theta: |theta| is then a multiple of it
        least, most = (max(low, 0.0), high) if sign > 0 else (low, min(high, 0.0))
        least, most = _cut(least, most, count.number + sign * away, total.number - off, above=True)
        least, most = _cut(least, most, count.number - sign * away, total.number + off, above=False)
        ends += [least, most] if least <= most else []
    if ends:
        return min(ends), max(ends)
    nearest = min(max(total.number / max(count.number, 1), float(domain[0])), float(domain[1]))  # noise beyond its level
    return nearest, nearest


def _cut(least: float, most: float, factor: float, bound: float, *, above: bool) -> tuple[float, float]:
    """Return the part of least .. most with theta * factor >= bound (`above`), or <= bound."""
    if factor == 0:
        return (least, most) if (bound <= 0 if above else bound >= 0) else (math.inf, -math.inf)
    is_lower = above == (factor > 0)
    return (max(least, bound / factor), most) if is_lower else (least, min(most, bound / factor))


def _solve_fieller(total: Answer, count: Answer, level: float) -> tuple[float, float]:
    """Return, for discrete Laplace noise in both, the ends of the ratios theta with (S - theta N)^2 <= K^2 (v_S + theta^2 v_N).

    Every number Z of noise with a uniform one is more concentrated than a Laplace number of scale t + 1/12 (`bound_sum`), and the
    uniform ones are less than 3.3 sqrt(m_S + theta^2 m_N) together; K covers both. The ends are infinite if no such ratio is
    bounded.
    """
    everything = -math.inf, math.inf
    if "Gaussian" in (total.noise.law, count.noise.law) or not total.variance:
        return everything
    raised = 1 - (1 - level) * (1 - 1e-8)
    quantile = worst_quantile(raised)
    slack = max(
        _SURE * math.sqrt(answer.draws / answer.variance) / quantile if answer.variance else 0.0 for answer in (total, count)
    )
    square = (quantile * (1 + slack)) ** 2
    a = float(count.number) ** 2 - square * count.variance
    b = float(total.number) * count.number
    c = float(total.number) ** 2 - square * total.variance
    inside = b * b - a * c
    if a <= 0 or inside < 0:
        return everything
    return (b - math.sqrt(inside)) / a, (b + math.sqrt(inside)) / a


def _read_levels(file: Path, table: TableFacts) -> tuple[Level, ...]:
    try:
        with file.open(newline="", encoding="utf-8") as text:
            header, *rows = csv.reader(text)
        return tuple(_make_levels(header, rows, table))
    except OSError:
        raise WrongUsage("the table of the package cannot be read.", where=str(file)) from None
    except (ValueError, IndexError, KeyError, ZeroDivisionError):
        raise InvalidArgument(
            "this is not the table that the card describes.", where=str(file), remedy="Take all files of the release."
        ) from None


def _make_levels(header: Sequence[str], rows: Sequence[Sequence[str]], table: TableFacts) -> Iterator[Level]:
    extra = ("level", "within") if table.is_deep else ()
    if tuple(header) != (*table.by, *extra, "value", "noisy") or any(len(row) != len(header) for row in rows):
        raise ValueError("another header")
    ancestors: dict[str, dict[int, str]] = {}
    for facts in table.levels:
        mine = [row for row in rows if not table.is_deep or int(row[len(table.by)]) == facts.number]
        if len(mine) != facts.cells:
            raise ValueError("another number of cells")
        labels = {column: np.array([row[i] for row in mine], dtype=np.str_) for i, column in enumerate(table.by)}
        above: dict[int, npt.NDArray[np.str_]] = {}
        if table.is_deep and table.deep is not None:
            deep = table.by.index(table.deep)
            ancestors = {row[deep]: {**ancestors.get(row[len(table.by) + 1], {}), facts.number: row[deep]} for row in mine}
            numbers = next(iter(ancestors.values()))
            above = {number: np.array([ancestors[row[deep]][number] for row in mine], dtype=np.str_) for number in numbers}
        value, noisy = ([Fraction(row[column]) / table.step for row in mine] for column in (-2, -1))
        if any(number.denominator != 1 for number in (*value, *noisy)):
            raise ValueError("between the steps")
        yield Level(facts, labels, above, np.array([int(number) for number in noisy], dtype=np.int64))
