"""Hostile moves for methods that count by value: one record goes from one cell to another, and the cells are few and small.

Wherever a record goes, two counts of a stage change by one. Faults are likely elsewhere: with counts of 0 or very large counts,
at the ends of the domain, at atoms and next to the centre, where cells are finest; if most records are in one cell, which is then
refined; and if one record decides which cells true counts would have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from release_pipeline.claims.promises import MOST_CLUSTERS
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.by_value import LEAST_STRENGTH, ByValue, Stage
from release_pipeline.mechanisms.by_value.mechanism import next_stage
from release_pipeline.mechanisms.noise import SECRET_BYTES, NoiseStream, noise_stream
from release_pipeline.policy import Policy
from release_pipeline.policy.families import find_family
from release_pipeline.policy.families.columns import ByValueFamily
from release_pipeline.policy.file.options import ByValueOptions

MOST_RECORDS = 20_000  # of a part: with fewer than a release needs, cells are coarser and the claim is the same
_FAMILY = ByValueFamily(ByValueOptions)


@dataclass(frozen=True, slots=True)
class Move:
    """A column's numbers in grid units, and the new number of the first person's records."""

    description: str
    units: IntArray
    to: int


def list_moves(policy: Policy) -> Iterator[dict[str, Move]]:
    """Yield moves of the same kind in each column, one kind after the other."""
    declared = {name: _FAMILY.declare(policy, name) for name in policy.noise_columns}
    has_labels = any(column.labels for column in declared.values())
    people = policy.records_per_person
    needed = max(math.ceil(LEAST_STRENGTH / column.budget.strength) for column in declared.values())
    records = max(min(needed, MOST_RECORDS), 4 * people)
    for moves in zip(*(_list_of_column(column, records, people, has_labels) for column in declared.values()), strict=True):
        yield {name: _spread_over(policy.parts, move, people) for name, move in zip(declared, moves, strict=True)}


def _list_of_column(declared: ByValue, records: int, people: int, has_labels: bool) -> Iterator[Move]:
    """Yield moves of so many records, of which the first `people` belong to one person. `has_labels`: whether some column has
    reasons for no value."""
    width, centre = declared.grid.width, declared.centre
    far = width if 2 * centre <= width else 0
    atom = next((atom for atom in declared.atoms if atom != centre), centre)
    heavy = _find_heavy(declared, records)

    def fill(first: int, others: Sequence[int]) -> IntArray:
        return np.append(np.full(people, first), np.resize(others, records - people)).astype(np.int64)

    yield Move("one leaves many at the centre for the far end", fill(centre, [centre]), far)
    yield Move("one goes from an empty cell to the one beside it", fill(centre, [far]), _beside(centre, width))
    yield Move("one leaves an atom for the number beside it", fill(atom, [atom, centre, far]), _beside(atom, width))
    yield Move("one leaves a cell with most records", fill(heavy, [*[heavy] * 9, centre]), far if heavy == centre else centre)
    spread = np.rint(np.linspace(0, width, records - people)).astype(np.int64)
    yield Move("one moves past all of an even spread", fill(0, spread.tolist()), width)
    stays = _count_before_other_cells(declared, records, people, far) * people
    others = [*[far] * stays, *[centre] * (records - people - stays)]
    if has_labels:
        none = width + declared.labels
        yield Move("one leaves many at the centre for no value", fill(centre, [centre]), none)
        yield Move("one has a value where nobody else has", fill(none, [none]), far)
    yield Move("one moves where true counts would then have other cells", fill(centre, others), far)


def _spread_over(parts: int, move: Move, people: int) -> Move:
    """Return the move with as many records for each random part, and every other record that many times."""
    others = move.units[people:]
    wanted = len(move.units) * parts - people
    return replace(move, units=np.append(move.units[:people], others[np.arange(wanted) * len(others) // wanted]))


def _beside(unit: int, width: int) -> int:
    return unit + 1 if unit < width else unit - 1


def _find_heavy(declared: ByValue, records: int) -> int:
    """Return the middle of the widest cell that is counted first."""
    edges = _count_first(declared, np.zeros(records, dtype=np.int64)).edges
    widest = int(np.diff(edges).argmax())
    return int(edges[widest] + edges[widest + 1] - 1) // 2


def _count_before_other_cells(declared: ByValue, records: int, people: int, far: int) -> int:
    """Return how many persons have left the centre for the far end when one more would change the cells that true counts ask
    for."""

    def cells(persons: int) -> list[int]:
        units = np.full(records, declared.centre, dtype=np.int64)
        units[: persons * people] = far
        following = next_stage([_count_first(declared, units)], declared.facts(records), declared.budget)
        return following[0].tolist() if following is not None else []

    low, high, first = 0, records // people, cells(0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cells(middle) == first else (low, middle)
    return min(low, records // people - 1)


def _count_first(declared: ByValue, units: IntArray) -> Stage:
    """Return the first stage as it would be without noise."""
    following = next_stage([], declared.facts(len(units)), declared.budget)
    if following is None:
        raise InvalidArgument("nothing is counted.", where="counts")
    edges, noise = following
    return Stage(edges, np.histogram(units, edges)[0].astype(np.int64), noise)


# Hostile neighbouring tables, made from what a policy declares: few records, the ends of the
# domain, ties. No data are read.
#
# Rank clusters and orders are separated by pairs in which one record goes from one end of the domain to the other: between only
# two clusters (so that one sum has all of the loss), or past many (so that all move). The draws show which pair is worst. Counts
# by value have no ranks: `list_moves` has their hostile tables.

CROWDS = 3
COPIES = 64  # of a class in one table, if the hierarchy has so many entries
_TABLES = bytes(SECRET_BYTES)  # tables are synthetic: nothing about them is secret


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tables that differ in the records of one person, the first `changed` of them."""

    description: str
    first: pa.Table
    second: pa.Table
    changed: int = 1


@dataclass(frozen=True, slots=True)
class ClassTable:
    """A table of `copies` alike classes in order, each of records with these numbers (records by columns, in grid units)."""

    description: str
    table: pa.Table
    units: IntArray
    copies: int


def make_pairs(policy: Policy, names: Sequence[str]) -> list[Pair]:
    """Return pairs of tables that differ in the columns `names` of one person's records, for the policy's k and declared
    domains."""
    people = policy.records_per_person
    list_kinds = list_moves if find_family(policy.protect).publishes_counts else _list_moves_of_ranks
    kinds = [(moves[names[0]].description, names, moves) for moves in list_kinds(policy)]
    if len(names) > 1:  # if all columns change alike, shared noise would not show
        kinds += [(f"{description}, in {names[0]} alone", names[:1], moves) for description, _, moves in kinds[:2]]
    pairs: list[Pair] = []
    for description, moved, moves in kinds:
        before = {name: move.units for name, move in moves.items()}
        after = {name: units.copy() for name, units in before.items()}
        for name in moved:
            after[name][:people] = moves[name].to
        pairs.append(Pair(description, make_table(policy, before), make_table(policy, after), people))
    if len(names) > 1 and policy.vectors is not None:
        pairs.append(_across(policy, names))
    return pairs


def make_table(policy: Policy, units: dict[str, IntArray]) -> pa.Table:
    """Return a table of records with these numbers, in grid units; every other released column has the same value in all of
    them."""
    rows = len(next(iter(units.values())))
    columns: dict[str, pa.Array] = {}
    for name, column in policy.released_columns.items():
        if name in units:
            columns[name] = pa.array(policy.noise_columns[name].coded_grid.restore(units[name].astype(np.float64)))
        else:
            columns[name] = pa.array(column.examples(COPIES)[:1] * rows)
    return pa.table(columns)


def make_classes(policy: Policy) -> list[ClassTable]:
    """Return classes for (k,epsilon)-anonymity: of k records and a few more, wide apart, with one in the middle, at an end of the
    domain and away from it."""
    widths = {name: column.exact_grid.width for name, column in policy.noise_columns.items()}
    first, column = next(iter(policy.generalised_columns.items()))
    labels = column.examples(COPIES)[:COPIES]
    classes: list[ClassTable] = []
    least = max(policy.protect.k or 2, 3)
    for size in (least, least + 1, least + 2):
        for spread, shape in _class_shapes(size):
            for where, low, reach in (("at the lower end", 0.0, 1.0), ("inside the domain", 0.375, 0.25)):
                units = np.stack([np.rint((low + reach * shape) * width).astype(np.int64) for width in widths.values()], axis=1)
                table = make_table(policy, {name: np.tile(units[:, i], len(labels)) for i, name in enumerate(widths)})
                entries = pa.array([label for label in labels for _ in range(size)])
                table = table.set_column(table.column_names.index(first), first, entries)
                classes.append(ClassTable(f"{size} records, {spread}, {where}", table, units, len(labels)))
    return classes


def make_crowds(policy: Policy) -> list[pa.Table]:
    """Return tables to count groups in: synthetic values from all declared ones, so that some groups are small."""
    crowds: list[pa.Table] = []
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
                drawn = [_draw(stream, rows, len(entries)) for _ in range(2)]
                columns[name] = pa.array(entries).take(pa.array(np.minimum(*drawn)))
        crowds.append(pa.table(columns))
    return crowds


def _list_moves_of_ranks(policy: Policy) -> Iterator[dict[str, Move]]:
    """Yield synthetic columns, each with one record that is replaced, for which methods that rank in clusters of k lose most. In
    every table the same happens to all columns."""
    block = max(policy.protect.k or 1, policy.records_per_person) * policy.parts
    zeros, ones = np.zeros(block), np.ones(block)
    first = np.append(np.zeros(block - 1), 1.0) if block > policy.records_per_person else zeros
    shapes = {  # by shares of a domain's width
        **({"one record alone goes from end to end": (zeros, 1.0)} if block == 1 else {}),
        "one moves up in the first cluster": (np.concatenate([first, ones]), 1.0),
        "one moves down in the last cluster": (1 - np.concatenate([first, ones]), 0.0),
        "one moves up in a cluster between two": (np.concatenate([first, zeros, ones]), 1.0),
        "one moves past all of an even spread": (np.linspace(0, 1, MOST_CLUSTERS * block), 1.0),
        "one leaves many that are equal": (np.full(2 * block, 0.5), 1.0),
        "one leaves many at the lower end": (np.zeros(2 * block), 1.0),
    }
    widths = {name: column.exact_grid.width for name, column in policy.noise_columns.items()}
    for description, (shares, replaced_by) in shapes.items():
        moves = dict[str, Move]()
        for name, width in widths.items():
            moves[name] = Move(description, np.rint(shares * width).astype(np.int64), round(replaced_by * width))
        yield moves


def _across(policy: Policy, names: Sequence[str]) -> Pair:
    """Return records on two sides of the domain's corner, one side after the other along the order, so that both clusters change
    in both columns. The last cluster has one more record, so that it differs."""
    people = policy.records_per_person
    block = max(policy.protect.k or 1, people) * policy.parts
    widths = {name: column.exact_grid.width for name, column in policy.noise_columns.items()}
    first, second = names[0], names[1]
    before = {name: np.zeros(2 * block + 1, dtype=np.int64) for name in widths}
    before[first][block:] = max(widths[first] - 1, 0)
    before[second][:block] = max(widths[second] - 1, 0)
    after = {name: units.copy() for name, units in before.items()}
    after[first][:people], after[second][:people] = 0, widths[second]
    description = "one moves past clusters on two sides of the corner"
    return Pair(description, make_table(policy, before), make_table(policy, after), people)


def _class_shapes(size: int) -> Iterator[tuple[str, FloatArray]]:
    for middle in (0.0, 0.3, 0.5):
        shape = np.zeros(size)
        shape[-1] = 1.0
        if middle and size > 2:
            shape[-2] = middle
        yield f"all at one end but {'one' if not middle else f'two, one of them at {middle:g} of the way'}", shape
    yield "evenly spread", np.linspace(0, 1, size)


def _draw(stream: NoiseStream, count: int, below: int) -> IntArray:
    """Return so many random whole numbers from 0 to below - 1."""
    random_words = np.empty(count, dtype=np.uint64)
    stream.words(0, 3 * stream.take_lanes(-(-count // 3)), random_words)
    return (random_words % np.uint64(below)).astype(np.int64)
