"""Which columns a model looks at together, so that it stays small: a graph of pairs, made chordal, as a tree of cliques.

It follows from public sizes and from which pairs are in it, and the order in which columns are taken away is the cheapest first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.noise.unclaimed import Random
from release_pipeline.mechanisms.whole_table.design import Pair

Clique = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CliqueTree:
    """Cliques of columns, a parent before its children (`parents`: the place of each clique's parent, -1 of the first one's), and
    the columns that each shares with its parent."""

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    shared: tuple[Clique, ...]

    def home(self, columns: Iterable[int], sizes: Sequence[int]) -> int:
        """The smallest clique that has these columns."""
        wanted = set(columns)
        fitting = [place for place, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(fitting, key=lambda place: math.prod(sizes[column] for column in self.cliques[place]))


def find_cliques(sizes: Sequence[int], pairs: Iterable[Pair]) -> list[Clique]:
    """The cliques of the graph of these pairs, with what makes it chordal: columns are taken away one by one, the one whose
    neighbours have the fewest combinations first."""
    beside: list[set[int]] = [set() for _ in sizes]
    for one, other in pairs:
        beside[one].add(other)
        beside[other].add(one)
    left, cliques = set(range(len(sizes))), list[set[int]]()
    while left:
        column = min(left, key=lambda place: (math.prod(sizes[other] for other in beside[place]) * sizes[place], place))
        clique = beside[column] | {column}
        if not any(clique <= known for known in cliques):
            cliques.append(clique)
        for other in beside[column]:
            beside[other] |= beside[column] - {other}
            beside[other].discard(column)
        left.discard(column)
    return [tuple(sorted(clique)) for clique in cliques]


def count_cells(sizes: Sequence[int], cliques: Iterable[Clique]) -> int:
    """How many combinations the tables of all cliques have."""
    return sum(math.prod(sizes[column] for column in clique) for clique in cliques)


def make_tree(sizes: Sequence[int], pairs: Iterable[Pair]) -> CliqueTree:
    """The tree of cliques that share as many columns with their parents as can be."""
    cliques = find_cliques(sizes, pairs)
    order, parents, shared = [0], [-1], [Clique()]
    waiting = set(range(1, len(cliques)))
    while waiting:
        child, parent = max(
            ((child, index) for child in waiting for index in range(len(order))),
            key=lambda edge: (len(set(cliques[edge[0]]) & set(cliques[order[edge[1]]])), -edge[0], -edge[1]),
        )
        shared.append(tuple(sorted(set(cliques[child]) & set(cliques[order[parent]]))))
        parents.append(parent)
        order.append(child)
        waiting.discard(child)
    return CliqueTree(tuple(cliques[index] for index in order), tuple(parents), tuple(shared))


# A graphical model of groups (MSM19): the distribution of greatest entropy whose tables of columns,
# and of as many of the strongest pairs as a small model can hold, are as near to the noisy counts
# as can be. It says of three columns or more what their pairs together make likely.
#
# All of it reads noisy counts only. A table of a clique is never held as counts but as a
# potential, the logarithm of what it is in proportion to; tables follow by passing messages up and
# down the tree of cliques.


MOST_CELLS = 1 << 15  # of all cliques together: larger models added little, at several times the CPU
LEAST_STRENGTH = 0.02  # of the records, that a pair of the model moves at the least
ROUNDS = 600
_CLOSE, _LOOKED_AT = 1e-4, 50  # the gain of so many rounds below which it is done
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Noisy:
    """A noisy table of some columns, and how sure each of its counts is: one over the variance of its noise."""

    columns: Clique
    counts: FloatArray
    precision: FloatArray


def choose_pairs(sizes: Sequence[int], strengths: Mapping[Pair, float], records: float) -> list[Pair]:
    """The strongest pairs, each if the model stays small with it."""
    chosen: list[Pair] = []
    for pair in sorted(strengths, key=lambda pair: (-strengths[pair], pair)):
        if strengths[pair] < LEAST_STRENGTH * records:
            break
        if count_cells(sizes, find_cliques(sizes, [*chosen, pair])) <= MOST_CELLS:
            chosen.append(pair)
    return chosen


def choose_tables(sizes: Sequence[int], pairs: Sequence[Pair], counted: Iterable[Clique]) -> list[Clique]:
    """What a model of these pairs is fitted to: the tables of three columns or more that fit into its cliques, and those of the
    pairs that are in none of them, for theirs would be sums of the same counts."""
    cliques = [set(clique) for clique in find_cliques(sizes, pairs)]
    blocks = [columns for columns in counted if len(columns) > 2 and any(clique.issuperset(columns) for clique in cliques)]
    within = {pair for block in blocks for pair in combinations(block, 2)}
    return [*blocks, *(pair for pair in pairs if pair not in within)]


class Model:
    """Potentials on the tables that were measured, and the tables of all cliques that follow."""

    def __init__(self, sizes: Sequence[int], measured: Sequence[Noisy], records: float) -> None:
        self.sizes, self.measured, self.records = list(sizes), list(measured), records
        self.pairs = sorted({pair for noisy in measured for pair in combinations(noisy.columns, 2)})
        self.tree: CliqueTree = make_tree(sizes, self.pairs)
        self._homes = [self.tree.home(noisy.columns, sizes) for noisy in measured]
        self._potentials = [np.zeros(noisy.counts.shape) for noisy in measured]
        self.tables = self._pass_messages(self._potentials)

    def fit(self) -> None:
        """Mirror descent: potentials follow the weighted differences between tables and noisy counts, in steps that are halved
        where they go too far."""
        fitted = self._project(self.tables)
        loss, slopes = self._judge(fitted)
        step = 1 / (self.records * max(float(noisy.precision.max()) for noisy in self.measured))
        before = loss
        for number in range(1, ROUNDS + 1):
            potentials = [own - step * slope for own, slope in zip(self._potentials, slopes, strict=True)]
            tables = self._pass_messages(potentials)
            after = self._project(tables)
            now, steeper = self._judge(after)
            promised = sum(float((slope * (old - new)).sum()) for slope, old, new in zip(slopes, fitted, after, strict=True))
            if now <= loss - promised / 2:
                self._potentials, self.tables, fitted, loss, slopes, step = potentials, tables, after, now, steeper, step * 1.05
            else:
                step /= 2
            if number % _LOOKED_AT == 0:
                if before - loss <= _CLOSE * max(loss, 1.0):
                    break
                before = loss

    def table(self, columns: Clique) -> FloatArray:
        """The table of columns that are in one clique, which adds up to the records."""
        home = self.tree.home(columns, self.sizes)
        return self._sum_to(self.tables[home], self.tree.cliques[home], columns)

    def sample(self, count: int, random: Random) -> IntArray:
        """Records, columns by records: as even a sample as can be, clique after clique, given what they share."""
        drawn = np.zeros((len(self.sizes), count), dtype=np.int64)
        for clique, shared, table in zip(self.tree.cliques, self.tree.shared, self.tables, strict=True):
            further = [column for column in clique if column not in shared]
            if not further:
                continue
            ordered = np.transpose(table, [clique.index(column) for column in (*shared, *further)])
            kinds = int(np.prod([self.sizes[column] for column in shared], dtype=np.int64))
            given = _ravel([drawn[column] for column in shared], [self.sizes[column] for column in shared], count)
            found = _draw_each(ordered.reshape(kinds, -1), given, random)
            for column in reversed(further):
                found, drawn[column] = np.divmod(found, self.sizes[column])
        return drawn

    def _project(self, tables: Sequence[FloatArray]) -> list[FloatArray]:
        """The tables that were measured, as the model has them."""
        return [
            self._sum_to(tables[home], self.tree.cliques[home], noisy.columns)
            for noisy, home in zip(self.measured, self._homes, strict=True)
        ]

    def _judge(self, found: Sequence[FloatArray]) -> tuple[float, list[FloatArray]]:
        """Half the weighted squares of what tables are off, and its slope."""
        slopes = [(table - noisy.counts) * noisy.precision for table, noisy in zip(found, self.measured, strict=True)]
        off = [table - noisy.counts for table, noisy in zip(found, self.measured, strict=True)]
        return sum(float((one * slope).sum()) for one, slope in zip(off, slopes, strict=True)) / 2, slopes

    def _pass_messages(self, potentials: Sequence[FloatArray]) -> list[FloatArray]:
        """The tables of all cliques, which agree in what they share."""
        tree = self.tree
        held: list[FloatArray] = [np.zeros([self.sizes[column] for column in clique]) for clique in tree.cliques]
        for noisy, home, potential in zip(self.measured, self._homes, potentials, strict=True):
            held[home] += potential.reshape(self._spread(noisy.columns, tree.cliques[home]))
        messages: list[FloatArray] = [np.zeros(())] * len(held)
        for index in range(len(held) - 1, 0, -1):
            clique, shared, parent = tree.cliques[index], tree.shared[index], tree.parents[index]
            top = held[index].max()
            sums = self._sum_to(np.exp(held[index] - top), clique, shared)
            messages[index] = np.log(np.maximum(sums, _TINY)) + top
            held[parent] = held[parent] + messages[index].reshape(self._spread(shared, tree.cliques[parent]))
        tables: list[FloatArray] = []
        for index, potentials_of_clique in enumerate(held):
            if index == 0:
                table = np.exp(potentials_of_clique - potentials_of_clique.max())
                tables.append(table * (self.records / table.sum()))
                continue
            clique, shared, parent = tree.cliques[index], tree.shared[index], tree.parents[index]
            within = np.exp(potentials_of_clique - messages[index].reshape(self._spread(shared, clique)))
            above = self._sum_to(tables[parent], tree.cliques[parent], shared)
            tables.append(within * above.reshape(self._spread(shared, clique)))
        return tables

    def _spread(self, columns: Clique, clique: Clique) -> list[int]:
        return [self.sizes[column] if column in columns else 1 for column in clique]

    def _sum_to(self, table: FloatArray, clique: Clique, columns: Clique) -> FloatArray:
        summed: FloatArray = table.sum(axis=tuple(place for place, column in enumerate(clique) if column not in columns))
        return summed


def _ravel(codes: Sequence[IntArray], sizes: Sequence[int], count: int) -> IntArray:
    found = np.zeros(count, dtype=np.int64)
    for own, size in zip(codes, sizes, strict=True):
        found = found * size + own
    return found


def _draw_each(tables: FloatArray, given: IntArray, random: Random) -> IntArray:
    """An entry for each record by the row of `tables` that it is given, spread evenly over the records of that row."""
    kinds, width = len(tables), int(tables.shape[1])
    held = np.maximum(tables, 0.0)
    total = held.sum(axis=1, keepdims=True)
    shares: FloatArray = np.where(total > 0, held / np.maximum(total, _TINY), 1 / width)
    ends: FloatArray = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:]
    counts = np.bincount(given, minlength=kinds)
    mixed = random.permutation(len(given))
    order = mixed[np.argsort(given[mixed], kind="stable")]
    starts = np.cumsum(counts) - counts
    within = np.empty(len(given))
    within[order] = (np.arange(len(given)) - starts[given[order]] + random.random(len(given))) / counts[given[order]]
    places = np.searchsorted((ends + np.arange(kinds)[:, np.newaxis]).ravel(), given + within, side="right")
    return np.clip(places - given * width, 0, width - 1).astype(np.int64)
