"""The three measurements of a whole table, each of which sees records as entries of 0..width alone.

**Theorem.** For tables of n records that differ in one of them, in all of its columns if need be, all that `measure_table`
gives loses at most `Design.loss` of epsilon, or of rho.

Proof. Cut points: `cuts`, column by column, each on a budget of its own. The cells of a column are a function of its cut
points; a replaced record takes 1 from one of their counts and adds 1 to one: 2 in L1, sqrt(2) in L2, so that discrete
Laplace noise of scale t loses 2/t of epsilon and discrete Gaussian noise of variance v loses 1/v of rho. So does the
table of a pair, whose groups are a function of the noisy counts before; and that of a block of columns. Which blocks there are
is such a function too, and so are their scales, with which all of them together lose no more than was left for the pairs. Streams
of noise are apart: all adds up. What is declared to be impossible is the same for both tables: cells and groups are then a
function of it too, and no count is left out for it. The counts of pairs in a block are sums of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.arrays import pieces
from release_pipeline.privacy.by_value.noise_laws import Noise
from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.noise import NoiseStream
from release_pipeline.privacy.whole_table.blocks import Block, SummedNoise, choose_blocks, find_homes, sum_block
from release_pipeline.privacy.whole_table.cells import Cells, group_cells
from release_pipeline.privacy.whole_table.cuts import CutLaw, measure_cuts
from release_pipeline.privacy.whole_table.design import Column, Design, Pair, deviation
from release_pipeline.privacy.whole_table.places import Places

Entries = Callable[[int], IntArray]  # of a column, by its place
Stream = Callable[..., NoiseStream]  # of a purpose, by its name and the places of columns
Progress = Callable[[str], None]
Numbered = npt.NDArray[np.unsignedinteger[Any]]  # the group of each record, in as few bytes as it takes
LINES = 20  # of progress while tables are counted, about
_AT_ONCE = 1 << 20  # records that are counted together


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


def measure_table(entries: Entries, design: Design, stream: Stream, progress: Progress = lambda _: None) -> Measured:
    """The noisy counts of a table. `entries` is all that sees the data; of a record the cell, and then the group, in each column
    is kept meanwhile, a byte or two."""
    cells: list[Cells] = []
    margins: list[IntArray] = []
    found: list[npt.NDArray[Any]] = []
    for place in range(len(design.columns)):
        own = entries(place)
        cut, margin = measure_column(np.sort(own), design, place, stream)
        cells.append(cut)
        margins.append(margin)
        found.append(cut.find(own).astype(np.min_scalar_type(cut.count)))
        del own
    blocks, groups = _plan_blocks(design, cells, margins)
    grouped = [own.astype(np.uint16)[found.pop(0)] for own in groups]  # never both of all
    purpose = "block" if blocks else "pair"
    laws = dict.fromkeys(blocks, design.noise_of_each(len(blocks))) if blocks else design.pairs
    tables = dict(_count_tables(grouped, list_sizes(groups), laws, partial(stream, purpose), progress))
    return Measured(design, tuple(cells), tuple(margins), tuple(groups), tables)


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


def _count_tables(
    grouped: Sequence[npt.NDArray[np.uint16]],
    sizes: Sequence[int],
    laws: Mapping[Block, Noise],
    stream: Stream,
    progress: Progress,
) -> Iterator[tuple[Block, BlockCounts]]:
    every = math.ceil(len(laws) / LINES)
    for number, (columns, noise) in enumerate(laws.items(), 1):
        exact = count_together([grouped[column] for column in columns], [sizes[column] for column in columns])
        yield columns, BlockCounts(exact + noise.draw(exact.size, stream(*columns)).reshape(exact.shape), noise)
        if not number % every or number == len(laws):
            progress(f"counted {number:,} of {len(laws):,} tables of columns")


def count_together(grouped: Sequence[Numbered], shape: Sequence[int]) -> IntArray:
    """How many records are in each combination of groups. Piece by piece: of a record there are a byte or two, and its
    combination has eight."""
    counts = np.zeros(math.prod(shape), dtype=np.int64)
    for part in pieces(len(grouped[0]), _AT_ONCE):
        counts += _count_part(grouped, shape, part)
    return counts.reshape(shape)


def _count_part(grouped: Sequence[Numbered], shape: Sequence[int], part: slice) -> IntArray:
    """Of some records."""
    codes = grouped[0][part].astype(np.int64)
    for own, size in zip(grouped[1:], shape[1:], strict=True):
        codes *= size
        codes += own[part]
    return np.bincount(codes, minlength=math.prod(shape)).astype(np.int64)


def measure_column(ordered: IntArray, design: Design, place: int, stream: Stream) -> tuple[Cells, IntArray]:
    """The cells of a column, and their noisy counts; `ordered`: its entries, ascending."""
    cells = _cut(ordered, design.columns[place], design, place, stream)
    counted = cells.count_ordered(ordered)
    return cells, counted + design.margins.draw(len(counted), stream("margin", place))


def hold_records(design: Design, cells: Cells, margin: IntArray | FloatArray) -> FloatArray:
    """How many records cells seem to hold, by their noisy counts."""
    return cells.hold(margin, deviation(design.margins), design.records)


def _cut(ordered: IntArray, column: Column, design: Design, place: int, stream: Stream) -> Cells:
    if place not in design.cuts:
        return Cells.narrow(column)
    e, depth = design.cuts[place]
    law = CutLaw(Places(column.width, column.centre), e)
    values = ordered[: int(np.searchsorted(ordered, column.width, side="right"))]  # reasons to have none are behind them
    return Cells(column, measure_cuts(values, law, column.own_cells, depth, stream("cuts", place), column.edges))
