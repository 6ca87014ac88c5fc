"""Cells of the rows of a group, and entries in them: a group's cells as they hold records, in the order of the scores."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import cpu_count
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.noise.unclaimed import Random, make_random
from release_pipeline.mechanisms.whole_table.cells import Cells, Entering, count_valued
from release_pipeline.mechanisms.whole_table.design import Design, deviation
from release_pipeline.mechanisms.whole_table.exchange import Rows, exchange_rows
from release_pipeline.mechanisms.whole_table.links import Link, combine_margins, find_strength, link_columns
from release_pipeline.mechanisms.whole_table.measure import Measured, Stream, hold_records, measure_column
from release_pipeline.mechanisms.whole_table.model import Model, Noisy, choose_pairs, choose_tables
from release_pipeline.mechanisms.whole_table.pool import Linked, choose_records, make_pool, spread_over, weigh_pool
from release_pipeline.mechanisms.whole_table.scores import MOST_ROWS, Groups, Law, Scores

_KEYS = 1 << 16  # by which the rows of a block are put in an order: about as many as there are rows
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True, repr=False)
class Placing:
    """One column of rows that are made in blocks, in any order. `groups`: that of each cell; `rows`: how many rows each
    cell has, in all blocks together."""

    cells: Cells
    groups: IntArray
    entering: Entering
    rows: IntArray

    @property
    def order(self) -> IntArray:
        """The cells, group by group."""
        return np.argsort(self.groups, kind="stable")

    @classmethod
    def of(cls, cells: Cells, held: FloatArray, groups: IntArray, rows: IntArray, random: Random) -> Placing:
        """That of cells which hold so many records, and are in these groups, each of which has so many rows."""
        each = np.zeros(len(groups), dtype=np.int64)
        for group, count in enumerate(rows.tolist()):
            own = np.flatnonzero(groups == group)
            each[own] = spread_over(held[own], count, random)
        return cls(cells, groups, Entering.of(cells, held), each)

    def place(self, groups: Groups, before: IntArray, located: FloatArray | None, random: Random) -> IntArray:
        """An entry for each row of a block. `groups`: of the rows, which are in random order; `before`: how many rows of each
        group come in blocks before it; `located`: how far up in its group each row lies, None where that is all one."""
        keys = groups if located is None else ((groups + located) * (_KEYS // len(before))).astype(np.uint16)
        order = np.argsort(keys, kind="stable")  # of keys so short several times faster
        times = self._count_cells(before, np.bincount(groups, minlength=len(before)))[self.order]
        within = np.arange(len(order)) - np.repeat(np.cumsum(times) - times, times) + random.random(len(order))
        within /= np.repeat(times, times)
        entries = np.empty(len(order), dtype=np.int64)
        entries[order] = self.entering.enter(self.cells, np.repeat(self.order, times), within)
        return entries

    def _count_cells(self, before: IntArray, rows: IntArray) -> IntArray:
        """How many of so many rows of each group each cell has, after those before.

        Row r of a group has the cell that lies at r m modulo the group's rows, m being coprime to them: each of its rows
        once, so that all blocks together have every cell as often as they should, and each block about its share."""
        times = np.zeros(len(self.groups), dtype=np.int64)
        for group in np.flatnonzero(rows).tolist():
            cells, first = self.groups == group, int(before[group])
            ends = np.cumsum(self.rows[cells])
            total = int(ends[-1])
            places: IntArray = np.arange(first, first + int(rows[group]), dtype=np.int64) * find_stride(total) % total
            times[cells] = np.bincount(np.searchsorted(ends, places, side="right"), minlength=len(ends))
        return times


def find_stride(count: int) -> int:
    """About the golden part of a number, and coprime to it: multiples of it modulo the number are spread evenly.

    >>> find_stride(10), find_stride(1)
    (7, 1)
    """
    stride = max(round(count * _GOLDEN), 1)
    while math.gcd(stride, count) > 1:
        stride += 1
    return stride


# Rows from noisy counts: groups of every column first, then cells in them, then entries in these.
#
# Rows of a group are put in an order by normal scores that go together as the columns do, so that
# correlations go on inside of groups; the records of a group's cells are handed out in that order,
# and within a cell entries rise with it.
#
# It is known how often each record of a pool is a row, and rows are made block by block.


Block: TypeAlias = list[IntArray]  # the entries of every column, row by row
BLOCK = 1 << 16  # rows that are made together: what is worked on stays in the cache
MOST_THREADS = 8  # of some 30 MB each
_SURE = 1e-9


def synthesise(measured: Measured, random: Random, progress: Callable[[str], None] = lambda _: None) -> Block:
    """As many rows as there are records, together."""
    plan = plan_rows(measured, random, progress)
    return [np.concatenate(columns) for columns in zip(*plan.make_blocks(), strict=True)]


@dataclass(frozen=True, slots=True, repr=False)
class RowPlan:
    """All that rows are made of: noisy counts, and a key for the order of rows. Block b is a function of the plan and b
    only, so that blocks may be made anywhere, in any order, and again. `often`: how often each record of the pool is a
    row; `starts`: where between blocks its rows change over."""

    blocks: int
    pool: npt.NDArray[np.unsignedinteger[Any]]
    often: IntArray
    starts: FloatArray
    placing: tuple[Placing, ...]
    scores: Scores
    key: bytes

    def make_blocks(self) -> Iterator[Block]:
        """All blocks in their order. Several are made at once, by threads: NumPy holds no lock of Python's while it computes."""
        at_once = min(cpu_count() or 1, MOST_THREADS, self.blocks)
        with ThreadPoolExecutor(at_once) as pool:
            begun = deque(pool.submit(self.make_block, number) for number in range(at_once))
            for number in range(at_once, self.blocks + at_once):
                made = begun.popleft().result()
                if number < self.blocks:  # never more than these few wait to be taken
                    begun.append(pool.submit(self.make_block, number))
                yield made

    def make_block(self, number: int) -> Block:
        """The entries of every column in one block."""
        random = make_random(self.key, "block", number)
        before, after = self._deal(number), self._deal(number + 1)
        records = random.permutation(np.repeat(np.arange(len(before)), after - before))
        chosen = np.take(self.pool, records, axis=1)
        located = self.scores.locate(chosen, records, random)
        made: Block = []
        for place, (placing, groups) in enumerate(zip(self.placing, chosen, strict=True)):
            in_group = np.bincount(self.pool[place], before, int(placing.groups.max()) + 1).astype(np.int64)
            made.append(placing.place(groups, in_group, located.get(place), random))
        return made

    def _deal(self, blocks: int) -> IntArray:
        """How many rows of each record are in so many blocks, the first ones."""
        if blocks in (0, self.blocks):
            return self.often * (blocks > 0)
        return np.floor(self.often * (blocks / self.blocks) + self.starts).astype(np.int64)


def plan_rows(measured: Measured, random: Random, progress: Callable[[str], None] = lambda _: None) -> RowPlan:
    """The plan of as many rows as there are records."""
    design, held = measured.design, hold_all(measured)
    linked = link_table(measured, held)
    progress("fitting a model of the strongest pairs")
    model = fit_model(measured, linked)
    if model is not None:
        linked = replace_tables(linked, model)
    progress("making a pool of records")
    pool = make_pool(linked, design.records, random, model)
    progress("weighing the pool")
    weights = weigh_pool(pool, linked, random)
    rows = Rows(pool, choose_records(weights, design.records, random))
    progress("exchanging rows")
    exchange_rows(rows, weights, linked, random)
    placing = [
        Placing.of(cells, own, groups, rows.count_groups(place, int(groups.max()) + 1), random)
        for place, (cells, own, groups) in enumerate(zip(measured.cells, held, measured.groups, strict=True))
    ]
    there = np.flatnonzero(rows.often)
    pool, often = pool[:, there].astype(np.min_scalar_type(int(pool.max()))), rows.often[there]
    drawn = Rows(pool, often).draw(min(design.records, MOST_ROWS), random)
    starts, blocks = random.random(len(often)), -(-design.records // BLOCK)
    scores = Scores.of(pool, Law.fit(pool[:, drawn], linked, random), random)
    return RowPlan(blocks, pool, often, starts, tuple(placing), scores, random.bytes(32))


def hold_all(measured: Measured) -> list[FloatArray]:
    """How many records the cells of every column seem to hold, by all counts together."""
    margins = combine_margins(measured)
    return [hold_records(measured.design, cells, margin) for cells, margin in zip(measured.cells, margins, strict=True)]


def link_table(measured: Measured, cells: Sequence[FloatArray]) -> Linked:
    """How all columns go together, by their noisy tables; `cells`: how many records these hold."""
    held = [
        np.bincount(groups, own) + _SURE * measured.design.records for groups, own in zip(measured.groups, cells, strict=True)
    ]
    held = [own * (measured.design.records / own.sum()) for own in held]
    ordered = {
        place: count_valued(cut, groups)
        for place, (cut, groups) in enumerate(zip(measured.cells, measured.groups, strict=True))
        if not cut.column.nominal
    }
    links: dict[tuple[int, int], Link] = {}
    for (one, other), noisy in measured.pairs.items():
        valued = (ordered[one], ordered[other]) if one in ordered and other in ordered else None
        spread = measured.noise[one, other].deviation
        links[one, other] = link_columns(noisy.astype(np.float64), held[one], held[other], spread, valued=valued)
    return Linked(held, links, ordered)


def fit_model(measured: Measured, linked: Linked) -> Model | None:
    """The graphical model of the strongest pairs, by their noisy counts as they are, and by those of columns that were counted
    together; None where no pair is strong."""
    records = float(measured.design.records)
    sizes = [len(held) for held in linked.held]
    pairs = choose_pairs(sizes, {pair: link.strength for pair, link in linked.links.items()}, records)
    if not pairs:
        return None
    noisy: list[Noisy] = []
    variance = deviation(measured.design.margins) ** 2
    for place, groups in enumerate(measured.groups):
        counts: FloatArray = np.bincount(groups, measured.margins[place].astype(np.float64)).astype(np.float64)
        noisy.append(Noisy((place,), counts, 1 / (variance * np.bincount(groups))))
    counted = {columns: (table.counts, table.deviation) for columns, table in measured.tables.items()}
    counted |= {pair: (measured.pairs[pair], measured.noise[pair].deviation) for pair in pairs}
    for columns in choose_tables(sizes, pairs, counted):
        table, spread = counted[columns]
        noisy.append(Noisy(columns, table.astype(np.float64), np.full(table.shape, spread**-2)))
    model = Model(sizes, noisy, records)
    model.fit()
    return model


def replace_tables(linked: Linked, model: Model) -> Linked:
    """The links, with the model's tables of the pairs that are in it."""
    links = dict(linked.links)
    for one, other in model.pairs:
        table = model.table((one, other)) + _SURE
        links[one, other] = replace(links[one, other], table=table, strength=find_strength(table))
    return Linked(linked.held, links, linked.ordered)


# What rows of a column are to be expected, before there are any: by simulated counts of that column
# alone.


def expect_column(entries: Tally, design: Design, place: int, stream: Stream, random: Random) -> Tally:
    """The tally of a simulated release of a column with these entries. Of a cell with fewer rows than entries every row
    is drawn; of any other each entry has the rows that the cell's density says, so that the work is bounded by the grid."""
    cells, margin = measure_column(entries, design, place, stream)
    held = hold_records(design, cells, margin)
    rows = spread_over(held, design.records, random)
    found, counts = map(np.concatenate, zip(*_fill_cells(cells, Entering.of(cells, held), rows, random), strict=True))
    return Tally.of_counts(found, counts)


def _fill_cells(cells: Cells, entering: Entering, rows: IntArray, random: Random) -> Iterator[tuple[IntArray, IntArray]]:
    """The entries of each cell and how many rows have them, cell after cell."""
    widths = np.append(np.diff(cells.edges), np.ones(cells.column.labels, dtype=np.int64))
    for cell in np.flatnonzero(rows).tolist():
        count, width = int(rows[cell]), int(widths[cell])
        if count < width:
            within = (np.arange(count) + random.random(count)) / count
            yield np.unique(entering.enter(cells, np.full(count, cell), within), return_counts=True)
            continue
        ends = np.floor(entering.share_below(cell, width) * count + random.random()).astype(np.int64)
        ends[-1] = count
        first = int(entering.enter(cells, np.array([cell]), np.zeros(1))[0])
        yield first + np.arange(width), np.diff(np.minimum(ends, count), prepend=0)
