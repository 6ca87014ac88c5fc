"""Rows from noisy counts: groups of every column first, then cells in them, then entries in these.

Rows of a group are put in an order by normal scores that go together as the columns do, so that correlations go on inside of
groups; the records of a group's cells are handed out in that order, and within a cell entries rise with it.

Of more than `BLOCK` rows it is known how often each record of the pool is a row, and they are made block by block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.unclaimed import Random
from release_pipeline.privacy.whole_table.cells import count_valued
from release_pipeline.privacy.whole_table.design import deviation
from release_pipeline.privacy.whole_table.exchange import Counted, Listed, exchange_rows
from release_pipeline.privacy.whole_table.impossible import Groups, draw_possible, find_barred, find_groups
from release_pipeline.privacy.whole_table.links import Link, find_strength, link_columns, normal_laws
from release_pipeline.privacy.whole_table.margins import combine_margins
from release_pipeline.privacy.whole_table.measure import Measured, hold_records
from release_pipeline.privacy.whole_table.model import Model, Noisy, choose_pairs, choose_tables
from release_pipeline.privacy.whole_table.placing import Placing
from release_pipeline.privacy.whole_table.pool import Linked, choose_records, make_pool, weigh_pool
from release_pipeline.privacy.whole_table.shifts import Shifts

Block: TypeAlias = list[IntArray]  # the entries of every column, row by row
BLOCK = 1 << 18  # rows that are made together
SWEEPS = 4
_SURE = 1e-9


def synthesise(measured: Measured, random: Random, progress: Callable[[str], None] = lambda _: None) -> Block:
    """As many rows as there are records, together."""
    return [np.concatenate(columns) for columns in zip(*make_rows(measured, random, progress), strict=True)]


def make_rows(measured: Measured, random: Random, progress: Callable[[str], None] = lambda _: None) -> Iterator[Block]:
    """The same block by block."""
    blocks = -(-measured.design.records // BLOCK)
    design, held, never = measured.design, hold_all(measured), find_never(measured)
    linked = link_table(measured, held, never)
    progress("fitting a model of the strongest pairs")
    model = fit_model(measured, linked)
    if model is not None:
        linked = replace_tables(linked, model, never)
    progress("making a pool of records")
    pool = draw_possible(never, lambda: make_pool(linked, design.records, random, model))
    progress("weighing the pool")
    weights = weigh_pool(pool, linked, random)
    often = choose_records(weights, design.records, random)
    rows = Counted(pool, often) if blocks > 1 else Listed(pool[:, np.repeat(np.arange(len(often)), often)])
    progress("exchanging rows")
    exchange_rows(rows, pool, weights, linked, random)
    progress("placing entries")
    placing = [
        Placing.of(cells, own, groups, rows.count_groups(place))
        for place, (cells, own, groups) in enumerate(zip(measured.cells, held, measured.groups, strict=True))
    ]
    for number, dealt in enumerate(rows.deal(blocks, random)):
        if number:
            progress(f"placing entries of block {number + 1:,} of {blocks:,}")
        mixed = dealt[:, random.permutation(dealt.shape[1])]
        order = dict(zip(linked.ordered, score_rows(mixed, linked, random), strict=True))
        yield [
            one.place(groups, order.get(place), random) for place, (one, groups) in enumerate(zip(placing, mixed, strict=True))
        ]


def hold_all(measured: Measured) -> list[FloatArray]:
    """How many records the cells of every column seem to hold, by all counts together."""
    margins = combine_margins(measured)
    return [hold_records(measured.design, cells, margin) for cells, margin in zip(measured.cells, margins, strict=True)]


def find_never(measured: Measured) -> list[Groups]:
    """What cannot occur, in groups."""
    firsts = [cells.edges[:-1] for cells in measured.cells]
    return [find_groups(rule, firsts, measured.groups) for rule in measured.design.never]


def link_table(measured: Measured, cells: Sequence[FloatArray], never: Sequence[Groups]) -> Linked:
    """How all columns go together, by their noisy tables; `cells`: how many records these hold; `never`: what cannot occur."""
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
        barred = find_barred(never, one, other)
        links[one, other] = link_columns(noisy.astype(np.float64), held[one], held[other], spread, valued=valued, barred=barred)
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
    counted = {columns: (own.counts, own.deviation) for columns, own in measured.tables.items()}
    counted |= {pair: (measured.pairs[pair], measured.noise[pair].deviation) for pair in pairs}
    for columns in choose_tables(sizes, pairs, counted):
        own, spread = counted[columns]
        noisy.append(Noisy(columns, own.astype(np.float64), np.full(own.shape, spread**-2)))
    model = Model(sizes, noisy, records, find_never(measured))
    model.fit()
    return model


def replace_tables(linked: Linked, model: Model, never: Sequence[Groups]) -> Linked:
    """The links, with the model's tables of the pairs that are in it."""
    links = dict(linked.links)
    for one, other in model.pairs:
        table = model.table((one, other)) + _SURE
        if (barred := find_barred(never, one, other)) is not None:
            table[barred] = 0.0
        links[one, other] = replace(links[one, other], table=table, strength=find_strength(table))
    return Linked(linked.held, links, linked.ordered)


def score_rows(chosen: IntArray, linked: Linked, random: Random) -> FloatArray:
    """Normal scores of the ordered columns given those of the others, a few sweeps of Gibbs: each within its row's group, and
    anywhere where this is a reason to have no value. From the second sweep on the groups of all other columns shift them."""
    laws = normal_laws()
    rows: int = chosen.shape[1]
    low, high = np.empty((len(linked.ordered), rows)), np.empty((len(linked.ordered), rows))
    for number, (place, valued) in enumerate(linked.ordered.items()):
        held = linked.held[place][:valued]
        ends = np.append(0.0, np.cumsum(held) / held.sum())
        reasons = np.ones(len(linked.held[place]) - valued)
        low[number] = np.append(ends[:-1], 0 * reasons)[chosen[place]]
        high[number] = np.append(ends[1:], reasons)[chosen[place]]
    low, high = np.clip(low, _SURE, 1 - _SURE), np.clip(high, _SURE, 1 - _SURE)
    scores: FloatArray = laws.ndtri(low + (high - low) * random.random(low.shape))
    if len(linked.held) < 2 or not linked.ordered:
        return scores
    least, most = laws.ndtri(low), laws.ndtri(high)
    precision, shifts = np.linalg.inv(linked.correlations()), Shifts(chosen, linked)
    for sweep in range(SWEEPS):
        for number, (own, place) in enumerate(zip(precision, linked.ordered, strict=True)):
            variance = 1 / float(own[number])
            middle = scores[number] - own @ scores * variance
            if sweep:
                shift = shifts.find(place, scores[number] - middle)
                middle += shift
                variance -= min(float(shift.var()), variance / 2)  # what groups say is no longer open
            width = math.sqrt(variance)
            within: FloatArray = laws.ndtr((np.stack([least[number], most[number]]) - middle) / width)
            drawn = np.clip(within[0] + (within[1] - within[0]) * random.random(rows), 1e-12, 1 - 1e-12)
            scores[number] = np.clip(middle + width * laws.ndtri(drawn), least[number], most[number])
    return scores
