"""Intervals for means of synthetic rows: the method is run again on the released table, as if that were the confidential one.

Everything needed is public: rows, their counts, the design that these and the card describe, and the code. So a released table
can be measured again with fresh noise of the same distributions, and synthesised again, any number of times, without any privacy
loss. How far a figure moves from the released table to those made from it estimates how far it moved from the confidential table
to the released one: estimate - bias +- t sd sqrt(1 + 1/R), with bias and sd those of R runs and t of R - 1 degrees of freedom, as
for one more number of the same distribution. Released tables are smoother than the confidential one, so runs show less bias and
less variation than the release has: the bias is added to the sd as if it were chance, and both are raised by `RAISED`.

This holds if noise is what moves a figure. No count shows the position of a record in its cell, nor which records of a group of
cells belong with which others: a model places them, and a table made by this model has nothing that the model could miss. Running
it again hardly moves it. Intervals are therefore wider by a part of the spread of values within cells (of a mean over all
records), or within groups of cells (of a mean by group): `IN_CELLS` and `IN_GROUPS`, which are not bounds, but values that were
enough on two tables (docs/analyst.md). How columns go together is moved by the model most: correlations and slopes are declined.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.analyst.counts import Counts, Group, Pair
from release_pipeline.analyst.facts import ColumnFacts, Facts, NoHonestAnswer, entry_of, find_column
from release_pipeline.analyst.laws import check_level
from release_pipeline.analyst.means import Interval, Moments, tell_moments
from release_pipeline.errors import InvalidArgument, InvalidType, ReleasePipelineError
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.by_value import usual_centre
from release_pipeline.mechanisms.noise import SECRET_BYTES, noise_stream
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.mechanisms.whole_table import Column, Design, TableBudget, make_design, measure_table, synthesise
from release_pipeline.mechanisms.whole_table.design import NARROW, SummedNoise, choose_blocks, find_homes
from release_pipeline.mechanisms.whole_table.design import Pair as Places
from release_pipeline.mechanisms.whole_table.measure import CountedArrays
from release_pipeline.sentences import ANALYST

LEAST_TIMES, USUAL_TIMES, MOST_TIMES = 10, 20, 1000
IN_CELLS, IN_GROUPS = 0.2, 0.5  # intervals are wider by this part of the standard deviation within cells, or groups of them
RAISED = 1.3  # how much more runs would vary for a table as rough as a confidential one
LEAST_HELD = 3.0  # standard deviations of the noise on its count, in the pair's table, that a group must hold
Arrays = Mapping[str, npt.NDArray[Any]]
Progress = Callable[[str], None]
Parts: TypeAlias = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Groups:
    """The number of records in each group with a value in a column, and the sum of these values, in grid units. `inside`: the
    spread of values within cells, or groups of them, on average over these records, computed from the released rows only."""

    held: IntArray
    total: FloatArray
    inside: FloatArray

    @property
    def means(self) -> FloatArray:
        """Return the mean of each group in grid units; NaN for an empty group."""
        return np.where(self.held > 0, self.total / np.maximum(self.held, 1), np.nan)


Sums = Mapping[tuple[int, int | None], Groups]  # of a column, by another one or over all records


@dataclass(frozen=True, eq=False)
class Rerun:
    """The released table, and the tables from running its method on it again: means, by the rows. `noise`: of the tables of
    pairs; `groups`: of a column's cells in these; `released` and `again`: sums by column and group."""

    facts: Facts
    noise: Mapping[Places, SummedNoise]
    groups: Mapping[str, tuple[Group, ...]]
    released: Sums
    again: tuple[Sums, ...]

    def __repr__(self) -> str:
        return f"<Rerun of {self.facts.rows_out:,} released rows, {len(self.again)} times>"

    def mean(self, column: str, *, level: float = 0.95) -> Any:
        """Return the mean of a column in the confidential table over all records that have a value, estimated from the released
        rows, as an `Interval`, or `Moments` for dates or times."""
        basis = ANALYST("rerun.mean", times=len(self.again))
        [interval] = self._list_intervals(self._find_masked(column, level), None, IN_CELLS, level, basis)
        if interval is None:
            raise NoHonestAnswer(ANALYST("decline.nobody"), where=column)
        return interval

    def means(self, column: str, *, by: str, level: float = 0.95) -> dict[str, Any]:
        """Return the mean of a column in the confidential table for each value of another, over records with a value in both,
        estimated from the released rows. Values that too few records have, or that were counted together with others, are left
        out, because no interval held for them; raises `NoHonestAnswer` if none is left."""
        masked, other = self._find_masked(column, level), self._find_grouping(by)
        if masked == other:
            raise InvalidArgument("a column has no means by itself.", where="by", remedy="Name another column.")
        if (masked, other) not in self.released:
            raise NoHonestAnswer(ANALYST("decline.many_values", most=NARROW + 1), where=by)
        basis = ANALYST("rerun.means", times=len(self.again), column=by)
        intervals = self._list_intervals(masked, other, IN_GROUPS, level, basis)
        alone = {group.first for group in self.groups[by] if not group.has_missing and group.first == group.last}
        spread = self.noise[min(masked, other), max(masked, other)].deviation * math.sqrt(len(self.groups[column]))
        held = self.released[masked, other].held
        large_enough = {
            name: interval
            for entry, (name, interval) in enumerate(zip(self._name_values(by), intervals, strict=True))
            if interval is not None and entry in alone and held[entry] >= LEAST_HELD * spread
        }
        if not large_enough:
            raise NoHonestAnswer(ANALYST("decline.small_groups"), where=by, remedy=ANALYST("advice.pair"))
        return large_enough

    def _find_masked(self, column: str, level: float) -> int:
        check_level(level)
        self.facts.masked_column(column)
        return design_names(self.facts).index(column)

    def _find_grouping(self, by: str) -> int:
        find_column(self.facts, by)
        if by not in self.facts.synthetic:
            raise InvalidArgument("this column has no values to group by.", where=by, remedy="Name a synthetic column.")
        return design_names(self.facts).index(by)

    def _name_values(self, by: str) -> Sequence[str]:
        known = self.facts.columns[by]
        if known.grid is None:
            return known.values
        numbers = known.grid.restore(np.arange(known.grid.width + 1, dtype=np.float64)).tolist()
        return [f"{number:g}" if known.clock is None else known.clock.show(number) for number in numbers]

    def _list_intervals(
        self, column: int, by: int | None, part: float, level: float, basis: str
    ) -> list[Interval | Moments | None]:
        """Return the interval of each group; None if no row, or no row of one of the runs, is in it."""
        known, released = self.facts.columns[design_names(self.facts)[column]], self.released[column, by]
        if known.grid is None:
            raise NoHonestAnswer(ANALYST("decline.no_numbers"), where=known.name)
        again = np.array([sums[column, by].means for sums in self.again])
        times, bias = len(again), again.mean(axis=0) - released.means
        spread = np.sqrt(np.var(again, axis=0, ddof=1) * (1 + 1 / times) + bias**2)
        reach = RAISED * _student(times - 1, level) * spread + part * released.inside
        ends = np.stack([released.means - bias + side * reach for side in (0, -1, 1)], axis=1)
        intervals: list[Interval | Moments | None] = []
        values = known.grid.restore(np.clip(ends, 0.0, float(known.grid.width)))  # in the domain, where the mean is
        for estimate, low, high in values.tolist():
            interval = None if math.isnan(estimate + high) else Interval(estimate, low, high, level, "rerun", basis)
            intervals.append(interval if interval is None or known.clock is None else tell_moments(interval, known.clock))
        return intervals


def _student(degrees: int, level: float) -> float:
    import scipy.special  # takes long to import: only where it is used

    return float(cast(Any, scipy.special).stdtrit(degrees, (1 + level) / 2))


def rerun(
    facts: Facts,
    data: Arrays,
    counts: Mapping[str, Counts],
    pairs: Mapping[tuple[str, str], Pair],
    *,
    times: int = USUAL_TIMES,
    seed: int | None = None,
    progress: Progress = lambda _: None,
) -> Rerun:
    """Return the results of running the method on released rows so many times; raises `NoHonestAnswer` for other releases."""
    _check(times, seed)
    design, noise = find_design(facts, counts, pairs), find_noise(facts, pairs)
    entries = find_entries(facts, data, counts)
    groups = _find_groups(facts, pairs)
    secret = secrets.token_bytes(SECRET_BYTES) if seed is None else hashlib.sha256(str(seed).encode()).digest()
    again: list[Sums] = []
    for number in range(times):
        progress(f"running the method again: {number + 1} of {times}")
        streams = partial(noise_stream, secret, "rerun", number)
        measured = measure_table(CountedArrays(entries.__getitem__), design, streams)
        again.append(dict(add_up(synthesise(measured, make_random(secret, "rerun", number, "rows")), design)))
    parts = [
        _parts_of(counts[name], groups.get(name)) if facts.columns[name].grid is not None else None
        for name in design_names(facts)
    ]
    return Rerun(facts, noise, groups, dict(add_up(entries, design, parts)), tuple(again))


def _check(times: object, seed: object) -> None:
    if not isinstance(times, int) or isinstance(times, bool) or not LEAST_TIMES <= times <= MOST_TIMES:
        raise InvalidArgument(
            f"the method is run from {LEAST_TIMES} to {MOST_TIMES:,} times.", where="times", remedy=f"Like {USUAL_TIMES}."
        )
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
        raise InvalidType("the seed is a whole number.", where="seed", remedy="Leave it out for fresh noise each time.")


def design_names(facts: Facts) -> tuple[str, ...]:
    """Return the columns that were counted, in the order of the design: by name."""
    return tuple(sorted(facts.synthetic))


def find_noise(facts: Facts, pairs: Mapping[tuple[str, str], Pair]) -> dict[Places, SummedNoise]:
    """Return the noise of the tables of pairs, as the file of their counts has it."""
    numbers = {name: number for number, name in enumerate(design_names(facts))}
    noise = {(numbers[first], numbers[second]): pair.law.noise for (first, second), pair in pairs.items()}
    return {pair: noise[pair] for pair in sorted(noise) if pair[0] < pair[1]}


def find_design(facts: Facts, counts: Mapping[str, Counts], pairs: Mapping[tuple[str, str], Pair]) -> Design:
    """Return what was measured, and with how much noise: from the card, and from the noise distributions in the files of counts.
    It is compared with what this version of the package would measure under the card's claim; a different design is declined. If
    no pair is a sum, pairs were counted one by one."""
    names = design_names(facts)
    if not facts.counts_whole_table:
        raise NoHonestAnswer(ANALYST("decline.rerun_method", method=facts.method), remedy=ANALYST("advice.ask"))
    if facts.total is None or not all(name in counts for name in names):
        raise NoHonestAnswer(ANALYST("decline.rerun_facts"), remedy=ANALYST("advice.ask"))
    budget = TableBudget(facts.total.fraction, facts.by_rho)
    columns = [_declare(facts, facts.columns[name], counts[name]) for name in names]
    try:
        usual = make_design(columns, facts.rows_in, budget)
    except ReleasePipelineError:
        raise NoHonestAnswer(ANALYST("decline.rerun_version"), remedy=ANALYST("advice.ask")) from None
    noise = find_noise(facts, pairs)
    if list(noise) != list(usual.pairs) or {counts[name].noise.noise for name in names} != {usual.margins}:
        raise NoHonestAnswer(ANALYST("decline.rerun_version"), remedy=ANALYST("advice.ask"))
    if noise == {pair: SummedNoise(law, 1) for pair, law in usual.pairs.items()}:
        return replace(usual, in_blocks=False)
    if noise != _expect_noise(usual, _find_groups(facts, pairs), names):
        raise NoHonestAnswer(ANALYST("decline.rerun_version"), remedy=ANALYST("advice.ask"))
    return usual


def _expect_noise(design: Design, groups: Mapping[str, Sequence[Group]], names: Sequence[str]) -> Mapping[Places, SummedNoise]:
    """Return the noise of pairs if these groups are counted together as this version would."""
    sizes = [len(groups[name]) for name in names]
    blocks = choose_blocks(sizes, design.noise_of_each) if design.in_blocks else []
    noise = design.noise_of_each(len(blocks)) if blocks else design.margins
    return {pair: SummedNoise(noise, terms) for pair, (_, terms) in find_homes(blocks, sizes).items()}


def _declare(facts: Facts, known: ColumnFacts, counts: Counts) -> Column:
    """Return the public facts about a column, as the policy had them. A centre is no option of this method, so it is at 0, or in
    the middle of dates."""
    labels = len(counts.reasons)
    if known.grid is None:
        return Column(len(known.values) - 1, nominal=True, labels=labels)
    width = known.grid.width
    centre = usual_centre(known.grid) if known.clock is None else width // 2
    atoms = known.grid.units_of([known.number_text(atom) for atom in known.atoms])
    return Column(width, atoms=tuple(atoms), centre=min(max(centre, 0), width), labels=labels)


def _find_groups(facts: Facts, pairs: Mapping[tuple[str, str], Pair]) -> dict[str, tuple[Group, ...]]:
    """Return the groups of each column in the tables of its pairs: the same in all of them."""
    return {name: pair.groups_of_one for (name, _), pair in pairs.items()}


def find_entries(facts: Facts, data: Arrays, counts: Mapping[str, Counts]) -> list[IntArray]:
    """Return the released rows in the form of the design: for each the number of its entry, or of its reason for no value."""
    entries = [_number_cells(facts.columns[name], data, counts[name].reasons) for name in design_names(facts)]
    if any(len(column) != facts.rows_out for column in entries) or facts.rows_out != facts.rows_in:
        raise NoHonestAnswer(ANALYST("decline.rerun_rows"), remedy=ANALYST("advice.all_rows"))
    return entries


def _number_cells(known: ColumnFacts, data: Arrays, reasons: Sequence[str]) -> IntArray:
    name, why = known.name, f"{known.name}_missing"
    for column in (name, *([why] if reasons else [])):
        if column not in data:
            raise InvalidArgument("the data have no such column.", where=column)
    if known.grid is None:
        width = len(known.values) - 1
        numbers = _look_up(data[name], known.values)
    else:
        grid, width = known.grid, known.grid.width
        values = known.clock.count(data[name]) if known.clock is not None else data[name].astype(np.float64)
        blank = np.isnan(values)
        numbers = np.where(blank, -1, grid.quantise(np.where(blank, float(grid.lo), values)))
    if reasons:
        reason = _look_up(data[why], reasons)
        numbers = np.where((numbers < 0) & (reason >= 0), width + 1 + reason, numbers)
    if (numbers < 0).any():
        raise InvalidArgument(
            "a cell of this column is none that the card declares.", where=name, remedy="Pass all columns as they are."
        )
    return numbers.astype(np.int64)


def _look_up(cells: npt.NDArray[Any], listed: Sequence[str]) -> IntArray:
    """Return the position of each cell's entry in the list, -1 for any other entry."""
    numbers = {entry: number for number, entry in enumerate(listed)}
    return np.array([numbers.get(entry_of(cell), -1) for cell in cells.tolist()], dtype=np.int64)


def add_up(
    entries: Sequence[IntArray], design: Design, parts: Sequence[Parts | None] = ()
) -> Iterator[tuple[tuple[int, int | None], Groups]]:
    """Yield records and sums of every column with numbers: over all records with a value, and by each column with few entries.
    `parts`: cells and groups of each column's numbers, if the spread of values in them is needed."""
    columns = list(zip(entries, design.columns, strict=True))
    for number, (entry, column) in enumerate(columns):
        if column.nominal:
            continue
        valued = entry <= column.width
        values = entry[valued].astype(np.float64)
        firsts = parts[number] if parts else None
        in_cells, in_groups = (_measure_spread(values, first) for first in firsts) if firsts else (np.zeros(len(values)),) * 2
        yield (number, None), _by(np.zeros(len(values), dtype=np.int64), 1, values, in_cells)
        for other, (group, by) in enumerate(columns):
            if other != number and (by.nominal or by.width <= NARROW):
                yield (number, other), _by(group[valued], by.width + 1, values, in_groups)


def _by(entry: IntArray, count: int, numbers: FloatArray, apart: FloatArray) -> Groups:
    """Return records and sums by entry; `count`: how many entries there are."""
    held = np.bincount(entry, minlength=count)[:count].astype(np.int64)
    total, inside = (np.bincount(entry, weights, count)[:count].astype(np.float64) for weights in (numbers, apart))
    return Groups(held, total, inside / np.maximum(held, 1))


def _parts_of(counts: Counts, groups: tuple[Group, ...] | None) -> Parts:
    """Return where the cells of a column's numbers begin, and where their groups in the tables of pairs begin."""
    firsts = [group.first for group in groups or () if group.first is not None]
    return counts.first, np.array(sorted(firsts) or [0], dtype=np.int64)


def _measure_spread(numbers: FloatArray, firsts: IntArray) -> FloatArray:
    """Return for each record the standard deviation of all numbers in its part; `firsts`: where parts begin."""
    part = np.searchsorted(firsts, numbers, side="right") - 1
    held = np.maximum(np.bincount(part, minlength=len(firsts)), 1)
    means = np.bincount(part, numbers, len(firsts)) / held
    squares = np.bincount(part, (numbers - means[part]) ** 2, len(firsts)) / held
    spread: FloatArray = np.sqrt(squares)[part]
    return spread
