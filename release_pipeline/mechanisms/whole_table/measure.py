"""The three measurements of a whole table, each of which sees records as entries of 0..width only.

**Theorem.** For tables of n records that differ in one of them, in all of its columns if need be, all that `measure_table`
gives loses at most `Design.loss` of epsilon, or of rho.

Proof. Cut points: `cuts`, column by column, each on a budget of its own. The cells of a column are a function of its cut
points; a replaced record takes 1 from one of their counts and adds 1 to one: 2 in L1, sqrt(2) in L2, so that discrete
Laplace noise of scale t loses 2/t of epsilon and discrete Gaussian noise of variance v loses 1/v of rho. So does the
table of a pair, whose groups are a function of the noisy counts before; and that of a block of columns. Which blocks there are
is such a function too, and so are their scales, with which all of them together lose no more than was left for the pairs. Streams
of noise are apart: all adds up. The counts of pairs in a block are sums of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import SourceError
from release_pipeline.mechanisms.basis.counting import TablePlan, count_tables, plan_tables
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value.noise_laws import Noise
from release_pipeline.mechanisms.noise import NoiseStream
from release_pipeline.mechanisms.whole_table.cells import Cells, group_cells
from release_pipeline.mechanisms.whole_table.cuts import CutLaw, Places, measure_cuts
from release_pipeline.mechanisms.whole_table.design import (
    Block,
    Column,
    Design,
    Pair,
    SummedNoise,
    choose_blocks,
    cover_pairs,
    deviation,
    find_homes,
    sum_block,
)

Stream = Callable[..., NoiseStream]  # of a purpose, by its name and the places of columns
Progress = Callable[[str], None]


class Counting(Protocol):
    """All that sees the records."""

    def tally(self, index: int) -> Tally:
        """The exact tally of the column of this index."""
        ...

    def count(self, plan: TablePlan) -> IntArray:
        """The exact counts of the wanted tables, one after the other."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class CountedArrays:
    """Records whose entries are arrays in memory: `entries` gives those of a column by its index."""

    entries: Callable[[int], IntArray]

    def tally(self, index: int) -> Tally:
        """By one look at the column."""
        return Tally.of(self.entries(index))

    def count(self, plan: TablePlan) -> IntArray:
        """By one look at all columns."""
        return count_tables(plan, [[self.entries(index) for index in range(len(plan.groups))]])


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """The noisy counts of columns together, an axis for each, and their noise."""

    counts: IntArray
    noise: Noise

    @property
    def deviation(self) -> float:
        """Of the noise of each count."""
        return deviation(self.noise)


@dataclass(frozen=True)
class Measured:
    """All that is known of a table: noisy counts, and the public facts that they were made with. `groups`: that of each cell of a
    column, in the tables of several columns; `tables`: these, each with noise of its own."""

    design: Design
    cells: tuple[Cells, ...]
    margins: tuple[IntArray, ...]
    groups: tuple[IntArray, ...]
    tables: Mapping[Block, BlockCounts]

    @cached_property
    def pairs(self) -> Mapping[Pair, IntArray]:
        """The table of each pair: its own, or a sum of the one in which it is with the fewest others."""
        return {pair: sum_block(self.tables[home].counts, home, pair) for pair, (home, _) in self._homes.items()}

    @cached_property
    def noise(self) -> Mapping[Pair, SummedNoise]:
        """That of the counts of each pair."""
        return {pair: SummedNoise(self.tables[home].noise, terms) for pair, (home, terms) in self._homes.items()}

    @property
    def blocks(self) -> Mapping[Block, BlockCounts]:
        """The tables that were counted, where some are of more columns than two: pairs are sums of these."""
        return self.tables if any(len(columns) > 2 for columns in self.tables) else {}

    @cached_property
    def _homes(self) -> Mapping[Pair, tuple[Block, int]]:
        return find_homes(list(self.tables), list_sizes(self.groups))


def measure_table(counting: Counting, design: Design, stream: Stream, progress: Progress = lambda _: None) -> Measured:
    """The noisy counts of a table. `counting` is all that sees the data, and is asked twice: for the tally of every
    column, and for all tables of groups."""
    tallies = [counting.tally(index) for index in range(len(design.columns))]
    measured = [measure_column(tally, design, index, stream) for index, tally in enumerate(tallies)]
    cells, margins = [column for column, _ in measured], [counts for _, counts in measured]
    blocks, groups = _plan_blocks(design, cells, margins)
    laws = dict.fromkeys(blocks, design.noise_of_each(len(blocks))) if blocks else design.pairs
    tables: dict[Block, BlockCounts] = {}
    if laws:
        progress(f"counting {len(laws):,} tables of columns")
        of_entries = [column.groups_of_entries(of_cells) for column, of_cells in zip(cells, groups, strict=True)]
        sizes = list_sizes(groups)
        plan = plan_tables(of_entries, sizes, laws, () if blocks else cover_pairs(sizes))
        exact = plan.split(counting.count(plan))
        counted = [column.count_records(tally) for column, tally in zip(cells, tallies, strict=True)]
        _check_margins(exact, plan, [np.bincount(of_cells, own) for of_cells, own in zip(groups, counted, strict=True)])
        purpose = "block" if blocks else "pair"
        for (columns, noise), counts in zip(laws.items(), exact, strict=True):
            drawn = noise.draw(counts.size, stream(purpose, *columns)).reshape(counts.shape)
            tables[columns] = BlockCounts(counts + drawn, noise)
    return Measured(design, tuple(cells), tuple(margins), tuple(groups), tables)


def _check_margins(exact: Sequence[IntArray], plan: TablePlan, held: Sequence[npt.NDArray[Any]]) -> None:
    """Refuse tables whose groups do not hold as many records as the tallies said: the records have changed in between."""
    for columns, counts in zip(plan.wanted, exact, strict=True):
        for axis, column in enumerate(columns):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            if not np.array_equal(counts.sum(axis=others), held[column]):
                raise SourceError(
                    "the records changed while they were counted.",
                    remedy="Run the release again once the source stays as it is.",
                )


def _plan_blocks(design: Design, cells: Sequence[Cells], margins: Sequence[IntArray]) -> tuple[list[Block], list[IntArray]]:
    """The blocks of columns that are counted together, none where pairs are; and the groups of every column. How many groups
    there may be follows from how much noise pairs have, and this from the blocks: they are chosen for the groups of pairs that
    are counted one by one, and once more for the finer groups that this allows, where these still have some."""
    held = [hold_records(design, cut, margin) for cut, margin in zip(cells, margins, strict=True)]
    groups = _group_all(design, cells, held, design.pair_deviation)
    if not design.in_blocks or len(design.columns) < 3:
        return [], groups
    sizes = list_sizes(groups)
    blocks = choose_blocks(sizes, design.noise_of_each)
    if not blocks:
        return [], groups
    noise = design.noise_of_each(len(blocks))
    usual = float(np.median([SummedNoise(noise, terms).deviation for _, terms in find_homes(blocks, sizes).values()]))
    finer = _group_all(design, cells, held, min(usual, design.pair_deviation))
    others = choose_blocks(list_sizes(finer), design.noise_of_each)
    return (others, finer) if others else (blocks, groups)


def _group_all(design: Design, cells: Sequence[Cells], held: Sequence[FloatArray], spread: float) -> list[IntArray]:
    groups = design.groups_at(spread)
    return [group_cells(cut, own, groups, spread) for cut, own in zip(cells, held, strict=True)]


def list_sizes(groups: Sequence[IntArray]) -> list[int]:
    """How many groups every column has."""
    return [int(own.max()) + 1 for own in groups]


def measure_column(entries: Tally, design: Design, index: int, stream: Stream) -> tuple[Cells, IntArray]:
    """The cells of a column, and their noisy counts."""
    cells = _cut(entries, design.columns[index], design, index, stream)
    counted = cells.count_records(entries)
    return cells, counted + design.margins.draw(len(counted), stream("margin", index))


def hold_records(design: Design, cells: Cells, margin: IntArray | FloatArray) -> FloatArray:
    """How many records cells seem to hold, by their noisy counts."""
    return cells.hold(margin, deviation(design.margins), design.records)


def _cut(entries: Tally, column: Column, design: Design, index: int, stream: Stream) -> Cells:
    if index not in design.cuts:
        return Cells.narrow(column)
    e, depth = design.cuts[index]
    law = CutLaw(Places(column.width, column.centre), e)
    values = entries.between(0, column.width + 1)  # reasons to have none are behind them
    return Cells(column, measure_cuts(values, law, column.own_cells, depth, stream("cuts", index)))
