"""Hostile neighbouring tables, made from what a policy declares: few records, the ends of the domain, ties. No data are read.

Rank clusters and orders are told apart by pairs in which one record goes from one end of the domain to the other: alone between
two clusters (so that one sum takes all of the loss), or past many (so that all move). Which pair hurts most, the draws tell.
Counts by value have no ranks: `moves` has what is hostile to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.moves import list_moves
from release_pipeline.claims.promises import MOST_CLUSTERS
from release_pipeline.policy import Policy
from release_pipeline.policy.families import find_family
from release_pipeline.privacy.noise import SECRET_BYTES, NoiseStream, noise_stream

Ints = npt.NDArray[np.int64]
CROWDS = 3
COPIES = 64  # of a class in one table, where the hierarchy has so many entries
_TABLES = bytes(SECRET_BYTES)  # tables are made up: nothing about them is secret


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tables that differ in the records of one person, the first `changed` of them. `words`: what they are."""

    words: str
    one: pa.Table
    other: pa.Table
    changed: int = 1


@dataclass(frozen=True, slots=True)
class ClassTable:
    """A table of `copies` alike classes, one after the other, each of records with these numbers (records by columns, in grid
    units)."""

    words: str
    table: pa.Table
    units: Ints
    copies: int


def make_pairs(policy: Policy, names: Sequence[str]) -> list[Pair]:
    """Pairs of tables that differ in the columns `names` of one person's records, for the policy's k and declared domains."""
    if find_family(policy.protect).publishes_counts:
        return list(_make_counted(policy, names))
    people = policy.records_per_person
    made: list[Pair] = []
    widths = {name: column.exact_grid.width for name, column in policy.noise_columns.items()}
    patterns = [(words, names, before, after) for words, before, after in _patterns(policy.protect.k or 1, policy.parts, people)]
    if len(names) > 1:
        patterns += [(f"{words}, in {names[0]} alone", names[:1], before, after) for words, _, before, after in patterns[:2]]
    for words, moved, before, after in patterns:
        one = {name: np.rint(before * width).astype(np.int64) for name, width in widths.items()}
        other = one | {name: np.rint(after * widths[name]).astype(np.int64) for name in moved}
        made.append(Pair(words, make_table(policy, one), make_table(policy, other), people))
    if len(names) > 1 and policy.vectors is not None:
        made.append(_across(policy, names, widths))
    return made


def make_table(policy: Policy, units: dict[str, Ints]) -> pa.Table:
    """Records with these numbers, in grid units; every other released column is the same in all of them."""
    rows = len(next(iter(units.values())))
    columns: dict[str, pa.Array] = {}
    for name, column in policy.released_columns.items():
        if name in units:
            columns[name] = pa.array(policy.noise_columns[name].coded_grid.restore(units[name].astype(np.float64)))
        else:
            columns[name] = pa.array(column.examples(COPIES)[:1] * rows)
    return pa.table(columns)


def make_classes(policy: Policy) -> list[ClassTable]:
    """Classes for (k,epsilon)-anonymity: of k records and a few more, wide apart, one in the middle, at an end of the domain and
    away from it."""
    k = policy.protect.k or 2
    columns = {name: column.exact_grid.width for name, column in policy.noise_columns.items()}
    first, column = next(iter(policy.generalised_columns.items()))
    labels = column.examples(COPIES)[:COPIES]
    made: list[ClassTable] = []
    least = max(k, 3)
    for size in (least, least + 1, least + 2):
        for words, shape in _class_shapes(size):
            for where, low, reach in (("at the lower end", 0.0, 1.0), ("inside the domain", 0.375, 0.25)):
                units = np.stack([np.rint((low + reach * shape) * width).astype(np.int64) for width in columns.values()], axis=1)
                of_column = {name: np.tile(units[:, place], len(labels)) for place, name in enumerate(columns)}
                table = make_table(policy, of_column)
                entries = pa.array([label for label in labels for _ in range(size)])
                table = table.set_column(table.column_names.index(first), first, entries)
                made.append(ClassTable(f"{size} records, {words}, {where}", table, units, len(labels)))
    return made


def make_crowds(policy: Policy) -> list[pa.Table]:
    """Tables to count groups in: records of made-up values among all that are declared, so that some groups are small."""
    found: list[pa.Table] = []
    for number in range(CROWDS):
        stream = noise_stream(_TABLES, "crowd", number)
        rows = max(policy.protect.k or 1, policy.groups_below, policy.block_size, 2) * 7 * policy.parts + number
        columns: dict[str, pa.Array] = {}
        for name, column in policy.released_columns.items():
            if name in policy.noise_columns:
                grid = policy.noise_columns[name].coded_grid
                columns[name] = pa.array(grid.restore(_draw(stream, rows, grid.width + 1).astype(np.float64)))
            else:  # the smaller of two draws: some entries are rare
                entries = column.examples(COPIES)
                one, other = (_draw(stream, rows, len(entries)) for _ in range(2))
                columns[name] = pa.array(entries).take(pa.array(np.minimum(one, other)))
        found.append(pa.table(columns))
    return found


def _patterns(k: int, parts: int, people: int) -> Iterator[tuple[str, npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Numbers between 0 and 1, as shares of a domain's width, before and after the first `people` of them were replaced."""
    block = max(k, people) * parts
    if block == 1:
        yield "one record alone goes from end to end", np.zeros(1), np.ones(1)
    zeros, ones = np.zeros(block), np.ones(block)
    first = np.append(np.zeros(block - 1), 1.0) if block > people else zeros
    shapes = {
        "one moves up in the first cluster": (np.concatenate([first, ones]), 1.0),
        "one moves down in the last cluster": (1 - np.concatenate([first, ones]), 0.0),
        "one moves up in a cluster between two": (np.concatenate([first, zeros, ones]), 1.0),
        "one moves past all of an even spread": (np.linspace(0, 1, MOST_CLUSTERS * block), 1.0),
        "one leaves many that are equal": (np.full(2 * block, 0.5), 1.0),
        "one leaves many at the lower end": (np.zeros(2 * block), 1.0),
    }
    for words, (before, to) in shapes.items():
        after = before.copy()
        after[:people] = to
        yield words, before, after


def _make_counted(policy: Policy, names: Sequence[str]) -> Iterator[Pair]:
    """In one of several columns alone, too: where all change alike, noise that they share shows nothing."""
    people = policy.records_per_person
    kinds = [(moves[names[0]].words, names, moves) for moves in list_moves(policy)]
    if len(names) > 1:
        kinds += [(f"{words}, in {names[0]} alone", names[:1], moves) for words, _, moves in kinds[:2]]
    for words, moved, moves in kinds:
        one = {name: move.units for name, move in moves.items()}
        other = {name: units.copy() for name, units in one.items()}
        for name in moved:
            other[name][:people] = moves[name].to
        yield Pair(words, make_table(policy, one), make_table(policy, other), people)


def _across(policy: Policy, names: Sequence[str], widths: dict[str, int]) -> Pair:
    """Records on two sides of the domain's corner, one side after the other along the order, so that both clusters change in both
    columns. The last cluster has a record more, which tells it apart."""
    block = max(policy.protect.k or 1, policy.records_per_person) * policy.parts
    one = {name: np.zeros(2 * block + 1, dtype=np.int64) for name in widths}
    near = {name: max(width - 1, 0) for name, width in widths.items()}
    first, second = names[0], names[1]
    one[first][block:] = near[first]
    one[second][:block] = near[second]
    other = {name: units.copy() for name, units in one.items()}
    people = policy.records_per_person
    other[first][:people], other[second][:people] = 0, widths[second]
    return Pair("one moves past clusters on two sides of the corner", make_table(policy, one), make_table(policy, other), people)


def _class_shapes(size: int) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    for middle in (0.0, 0.3, 0.5):
        shape = np.zeros(size)
        shape[-1] = 1.0
        if middle and size > 2:
            shape[-2] = middle
        yield f"all at one end but {'one' if not middle else f'two, one of them at {middle:g} of the way'}", shape
    yield "evenly spread", np.linspace(0, 1, size)


def _draw(stream: NoiseStream, count: int, below: int) -> Ints:
    """So many whole numbers from 0 to below - 1."""
    words = np.empty(count, dtype=np.uint64)
    stream.words(0, 3 * stream.take_lanes(-(-count // 3)), words)
    return (words % np.uint64(below)).astype(np.int64)
