"""Made-up records of groups, and how many of each there should be: by the graphical model, or along the tree of the strongest
links where no pair is strong; then their weights are raked to the tables of all pairs.

Everything here is made of noisy counts, with random numbers that no claim rests on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.noise.unclaimed import Random
from release_pipeline.mechanisms.whole_table.design import Pair
from release_pipeline.mechanisms.whole_table.links import Link
from release_pipeline.mechanisms.whole_table.model import Model

LEAST_POOL, MOST_POOL, PER_RECORD = 60_000, 300_000, 3
PASSES = 25
_DAMPING, _CLIP, _HEAVIEST = 0.7, 3.0, 12.0
_LEAST_EIGENVALUE = 0.02
_SOME = 1e-12


@dataclass(frozen=True, slots=True)
class Linked:
    """Groups of every column: the records that each holds, and how columns go together by pairs. `ordered`: the columns that have
    an order, and how many of their groups have values, the first ones; the others have reasons."""

    held: Sequence[FloatArray]
    links: Mapping[Pair, Link]
    ordered: Mapping[int, int]

    def table(self, one: int, other: int) -> FloatArray:
        """The table of two columns, in this order."""
        return self.links[one, other].table if one < other else self.links[other, one].table.T

    def correlations(self) -> FloatArray:
        """Those of normal scores of the ordered columns, the nearest that can be together."""
        correlations = np.eye(len(self.ordered))
        for (i, one), (j, other) in combinations(enumerate(self.ordered), 2):
            correlation = self.links[one, other].correlation
            correlations[i, j] = correlations[j, i] = 0.0 if correlation is None else correlation
        values, vectors = np.linalg.eigh(correlations)
        near = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T
        scale = np.sqrt(np.diag(near))
        possible: FloatArray = near / np.outer(scale, scale)
        return possible


def count_pool(records: int) -> int:
    """How many records the pool for so many has."""
    return min(max(PER_RECORD * records, LEAST_POOL), MOST_POOL)


def make_pool(linked: Linked, records: int, random: Random, model: Model | None = None) -> IntArray:
    """Records of groups, columns by records, more than will be kept: by a `model` where there is one, and
    along the tree of the strongest links otherwise."""
    count = count_pool(records)
    pool = _along_tree(linked, _strongest_tree(linked), count, random) if model is None else model.sample(count, random)
    return pool[:, random.permutation(count)]


def weigh_pool(pool: IntArray, linked: Linked, random: Random) -> FloatArray:
    """Weights with which the pool has the tables of all pairs, as nearly as it can: pair after pair in random order, damped."""
    count = pool.shape[1]
    weights = np.ones(count)
    codes: dict[Pair, npt.NDArray[np.unsignedinteger[Any]]] = {}
    targets: dict[Pair, FloatArray] = {}
    for pair, link in linked.links.items():
        found = pool[pair[0]] * link.table.shape[1] + pool[pair[1]]
        codes[pair] = found.astype(np.min_scalar_type(link.table.size))  # a quarter of the memory
        targets[pair] = link.table.ravel() / link.table.sum()
    pairs, times = list(targets), np.empty(count)
    for number in range(PASSES):
        damping = _DAMPING if number < PASSES // 2 else _DAMPING / 2
        order: list[int] = random.permutation(len(pairs)).tolist()
        for pair in (pairs[place] for place in order):
            own = codes[pair].astype(np.intp)
            has = np.bincount(own, weights, len(targets[pair])) / weights.sum()
            factor = np.clip(targets[pair] / np.maximum(has, _SOME), 1 / _CLIP, _CLIP) ** damping
            weights *= np.take(factor, own, out=times, mode="clip")
            np.clip(weights, 1 / (5 * _HEAVIEST), _HEAVIEST, out=weights)
            weights *= count / weights.sum()
    return weights


def choose_records(weights: FloatArray, records: int, random: Random) -> IntArray:
    """A systematic sample of just so many: how often each is in it."""
    ends = np.floor(np.cumsum(weights) * (records / weights.sum()) + random.random()).astype(np.int64)
    ends[-1] = max(int(ends[-1]), records)
    return np.diff(np.minimum(ends, records), prepend=0)


def spread_over(wanted: FloatArray, count: int, random: Random) -> IntArray:
    """So many items over cells in proportion to what is wanted: each cell its share, rounded up or down at random."""
    shares = wanted if wanted.sum() > 0 else np.ones(len(wanted))
    ends = np.floor(np.cumsum(shares) / shares.sum() * count + random.random()).astype(np.int64)
    ends[-1] = count
    return np.diff(np.minimum(ends, count), prepend=0)


def _deal(wanted: FloatArray, count: int, random: Random) -> IntArray:
    return random.permutation(np.repeat(np.arange(len(wanted)), spread_over(wanted, count, random)))


def _follow(table: FloatArray, before: IntArray, random: Random) -> IntArray:
    """An entry of one column for each record's entry in another, by the table of both."""
    entries = np.zeros(len(before), dtype=np.int64)
    for group, row in enumerate(table):
        places = np.flatnonzero(before == group)
        if len(places):
            entries[places] = _deal(row, len(places), random)
    return entries


def _along_tree(linked: Linked, tree: Sequence[Pair], count: int, random: Random) -> IntArray:
    pool = np.zeros((len(linked.held), count), dtype=np.int64)
    pool[0] = _deal(linked.held[0], count, random)
    done, rest = {0}, list(tree)
    while rest:
        pair = next(pair for pair in rest if (pair[0] in done) != (pair[1] in done))
        one, other = pair if pair[0] in done else pair[::-1]
        pool[other] = _follow(linked.table(one, other), pool[one], random)
        done.add(other)
        rest.remove(pair)
    return pool


def _strongest_tree(linked: Linked) -> list[Pair]:
    """The pairs of a spanning tree, as strong as can be."""
    tree_of = list(range(len(linked.held)))
    pairs: list[Pair] = []
    for one, other in sorted(linked.links, key=lambda pair: -linked.links[pair].strength):
        if tree_of[one] != tree_of[other]:
            pairs.append((one, other))
            tree_of = [tree_of[one] if tree == tree_of[other] else tree for tree in tree_of]
    return pairs
