"""The three measurements of a whole table, each of which sees records as entries of 0..width alone.

**Theorem.** For tables of n records that differ in one of them, in all of its columns if need be, all that `measure_table`
gives loses at most `Design.loss` of epsilon, or of rho.

Proof. Cut points: `cuts`, column by column, each on a budget of its own. The cells of a column are a function of its cut
points; a replaced record takes 1 from one of their counts and adds 1 to one: 2 in L1, sqrt(2) in L2, so that discrete
Laplace noise of scale t loses 2/t of epsilon and discrete Gaussian noise of variance v loses 1/v of rho. So does the
table of a pair, whose groups are a function of the noisy counts before. Streams of noise are apart: all adds up. What is declared
to be impossible is the same for both tables: cells and groups are then a function of it too, and no count is left out for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.noise import NoiseStream
from release_pipeline.privacy.whole_table.cells import Cells, group_cells
from release_pipeline.privacy.whole_table.cuts import CutLaw, measure_cuts
from release_pipeline.privacy.whole_table.design import Column, Design, Pair, deviation
from release_pipeline.privacy.whole_table.places import Places

Entries = Callable[[int], IntArray]  # of a column, by its place
Stream = Callable[..., NoiseStream]  # of a purpose, by its name and the places of columns


@dataclass(frozen=True, slots=True)
class Measured:
    """All that is known of a table: noisy counts, and the public facts that they were made with. `groups`: that of each cell of a
    column, in the tables of pairs."""

    design: Design
    cells: tuple[Cells, ...]
    margins: tuple[IntArray, ...]
    groups: tuple[IntArray, ...]
    pairs: Mapping[Pair, IntArray]


def measure_table(entries: Entries, design: Design, stream: Stream, progress: Callable[[str], None] = lambda _: None) -> Measured:
    """The noisy counts of a table. `entries` is all that sees the data."""
    cells: list[Cells] = []
    margins: list[IntArray] = []
    groups: list[IntArray] = []
    grouped: list[npt.NDArray[np.uint16]] = []
    for place in range(len(design.columns)):
        own = entries(place)
        cut, margin = measure_column(own, design, place, stream)
        held = hold_records(design, cut, margin)
        cells.append(cut)
        margins.append(margin)
        groups.append(group_cells(cut, held, design.groups, design.pair_deviation))
        grouped.append(groups[-1][cut.find(own)].astype(np.uint16))
    pairs: dict[Pair, IntArray] = {}
    for (one, other), noise in design.pairs.items():
        shape = int(groups[one].max()) + 1, int(groups[other].max()) + 1
        counted = np.bincount(grouped[one] * np.int64(shape[1]) + grouped[other], minlength=shape[0] * shape[1]).astype(np.int64)
        pairs[one, other] = (counted + noise.draw(len(counted), stream("pair", one, other))).reshape(shape)
        if other == len(design.columns) - 1:
            progress(f"counted {len(pairs):,} of {len(design.pairs):,} pairs of columns")
    return Measured(design, tuple(cells), tuple(margins), tuple(groups), pairs)


def measure_column(entries: IntArray, design: Design, place: int, stream: Stream) -> tuple[Cells, IntArray]:
    """The cells of a column, and their noisy counts."""
    cells = _cut(entries, design.columns[place], design, place, stream)
    counted = np.bincount(cells.find(entries), minlength=cells.count).astype(np.int64)
    return cells, counted + design.margins.draw(len(counted), stream("margin", place))


def hold_records(design: Design, cells: Cells, margin: IntArray | FloatArray) -> FloatArray:
    """How many records cells seem to hold, by their noisy counts."""
    return cells.hold(margin, deviation(design.margins), design.records)


def _cut(entries: IntArray, column: Column, design: Design, place: int, stream: Stream) -> Cells:
    if place not in design.cuts:
        return Cells.narrow(column)
    e, depth = design.cuts[place]
    law = CutLaw(Places(column.width, column.centre), e)
    values = np.sort(entries[entries <= column.width])
    return Cells(column, measure_cuts(values, law, column.own_cells, depth, stream("cuts", place), column.edges))
