"""Optimal Lattice Anonymization (OLA09): the full-domain generalisation of least loss, and the records to suppress.

A node of the lattice gives every column one level of its hierarchy. Records whose labels are all the same form a class. A class
is too small if it has fewer than k records. A node is feasible if the
records in classes that are too small number at most the budget.

Feasibility is monotone: one level up, classes only merge, so a class that was large enough stays so, and no record joins those in
classes that are too small. An infeasible node settles all nodes below it. The losses are monotone too (a coarser label never
loses less), which is why suppressed records are not charged to them: the higher node suppresses fewer, so a loss that counted
them could fall on the way up, and then nothing could be left out of the search without giving up the optimum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy, group_by
from release_pipeline.mechanisms.clusters.rank import as_threshold

Metric: TypeAlias = Literal["categorical-precision", "entropy"]
Progress: TypeAlias = Callable[[str], object]

MAX_NODES = 20_000_000  # each needs 25 bytes of working memory
MAX_COLUMNS = 32  # with more columns, even two levels each exceed the nodes
_PROGRESS_SECONDS = 2.0


@dataclass(frozen=True, slots=True, repr=False)
class Generalisation:
    """The node of least loss, and its effect on each record.

    `levels` per column; `group` the number of each record's class, from 0 without gaps in the order of the labels, and -1 for a
    suppressed record, whose class is too small. `loss` is that of all records, before suppression: a share in 0..1 for
    categorical-precision, bits for entropy.
    """

    levels: tuple[int, ...]
    loss: float
    group: IntArray

    def __repr__(self) -> str:
        return f"<Generalisation to levels {self.levels} with loss {self.loss:g}>"


def search_lattice(
    codes: npt.NDArray[np.int64],
    hierarchies: Sequence[Hierarchy],
    k: int,
    max_suppressed: int = 0,
    metric: Metric = "categorical-precision",
    *,
    counts: IntArray | None = None,
    progress: Progress = lambda _: None,
) -> Generalisation:
    """Return the feasible node of least loss for n records of m value numbers; among equals the lexicographically smallest
    levels.

    `codes`: one row per record, or with `counts` one row for so many equal records; the result then has an entry for each row.
    `max_suppressed`: how many records may be in classes that are too small. The losses are over all records, suppressed or not
    (the reason is above), and are compared as integers:

    - categorical-precision: the mean over the columns of level / (levels - 1), 0 for a hierarchy of one level;
    - entropy: the sum over columns and records of log2(records with the same label / records with the same value), where the
      logarithm of each prime is rounded so finely that the sums just fit 64 bits: equal losses are exactly equal.

    Refused if even the top is infeasible, or the lattice has more than 20 million nodes. `progress` gets a short text every few
    seconds.
    """
    k = as_threshold(k, "k")
    if metric not in get_args(Metric):
        raise InvalidArgument("there is no such metric of loss.", remedy=f"Choose one of {', '.join(get_args(Metric))}.")
    _check_codes(codes, hierarchies)
    rows = _Rows(codes, np.ones(len(codes), dtype=np.int64) if counts is None else counts, hierarchies, k)
    n = int(rows.counts.sum())
    shape = tuple(hierarchy.levels for hierarchy in hierarchies)
    nodes = math.prod(shape)
    if nodes > MAX_NODES:
        raise InvalidArgument(
            f"the lattice has {nodes:,} nodes, more than the {MAX_NODES:,} that are searched.",
            remedy="Generalise fewer columns, or leave levels out of their hierarchies.",
        )
    if rows.count_small(tuple(levels - 1 for levels in shape)) > max_suppressed:
        raise InvalidArgument(
            "no generalisation is possible: with every column at its coarsest level, more records are in classes that are too "
            f"small than the {max_suppressed:,} of {n:,} that may be suppressed.",
            remedy="Lower k, let more records be suppressed, or give the hierarchies a coarser level.",
        )
    levels, loss = _search(rows, shape, metric, max_suppressed, progress)
    group, records = rows.find_classes(levels)
    is_large = records >= k
    return Generalisation(levels, loss, np.where(is_large, np.cumsum(is_large) - 1, -1)[group])


@dataclass(frozen=True, slots=True)
class _Rows:
    """The value numbers of some rows, how many records each represents, and the search parameters."""

    codes: IntArray
    counts: IntArray
    hierarchies: Sequence[Hierarchy]
    k: int

    def find_classes(self, levels: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return the class of each row at a node, in the order of the labels, and how many records each class has."""
        columns = enumerate(zip(self.hierarchies, levels, strict=True))
        group = group_by([hierarchy.codes[level][self.codes[:, column]] for column, (hierarchy, level) in columns])
        return group, _sum_counts(group, self.counts)

    def count_small(self, levels: Sequence[int]) -> int:
        """Return how many records are in classes of a node that are too small."""
        _, records = self.find_classes(levels)
        return int(records[records < self.k].sum())

    def count_values(self) -> list[IntArray]:
        """Return for every column the number of records with each of its values."""
        values = [len(hierarchy.values) for hierarchy in self.hierarchies]
        return [_sum_counts(codes, self.counts, size) for codes, size in zip(self.codes.T, values, strict=True)]


def _search(
    rows: _Rows, shape: tuple[int, ...], metric: Metric, budget: int, progress: Progress
) -> tuple[tuple[int, ...], float]:
    """Return the best node. Its loss is known without counting: a sum of one number for each column and level.

    `open_` holds what may still be better than the best feasible node, best first. All nodes above a node come after it, so a
    feasible node closes all that follow, and an infeasible one all below it. The nodes left to be shown infeasible at the end are
    cheapest to close from the highest ones; a good feasible node is found fastest by halving. So: halve, and after every failure
    go half of the remaining way to the far end.
    """
    tables, unit = _loss_tables(rows, shape, metric)
    loss, order = _order_nodes(tables, shape)
    closed = np.zeros(shape, dtype=np.bool_)
    best, open_, halvings = int(order[-1]), order[:-1], 1
    counted, reported = 0, time.monotonic()
    while len(open_):
        if time.monotonic() - reported >= _PROGRESS_SECONDS:
            progress(f"{counted:,} of {len(order):,} generalisations counted, {len(open_):,} to decide")
            reported = time.monotonic()
        position = len(open_) - 1 - (len(open_) >> halvings)
        node = int(open_[position])
        levels = _levels_of(node, shape)
        counted += 1
        if rows.count_small(levels) <= budget:
            best, open_, halvings = node, open_[:position], 1
        else:
            closed[tuple(slice(level + 1) for level in levels)] = True
            open_ = open_[~closed.reshape(-1)[open_]]
            halvings += 1
    return _levels_of(best, shape), float(Fraction(int(loss[best])) / unit)


def _levels_of(node: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(level) for level in np.unravel_index(node, shape))


def _loss_tables(rows: _Rows, shape: tuple[int, ...], metric: Metric) -> tuple[list[IntArray], Fraction]:
    """Return the loss of each column at each level in whole units, and how many units make up 1."""
    if metric == "entropy":
        columns = rows.count_values()
        n = int(columns[0].sum())
        unit = 2 ** (62 - (len(columns) * n * n.bit_length()).bit_length())  # so that every sum fits 64 bits
        tables = [_entropy_table(records, hierarchy, unit) for records, hierarchy in zip(columns, rows.hierarchies, strict=True)]
        return tables, Fraction(unit)
    common = math.lcm(*(max(levels - 1, 1) for levels in shape))
    steps = [common // max(levels - 1, 1) for levels in shape]
    tables = [np.arange(levels, dtype=np.int64) * step for levels, step in zip(shape, steps, strict=True)]
    return tables, Fraction(common * len(shape))


def _entropy_table(records: IntArray, hierarchy: Hierarchy, unit: int) -> IntArray:
    table = np.empty(hierarchy.levels, dtype=np.int64)
    of_value = records.tolist()
    log = {1: 0}
    for level in range(hierarchy.levels):
        of_label = _sum_counts(hierarchy.codes[level], records)[hierarchy.codes[level]].tolist()
        log |= {count: _log2(count, unit) for count in of_label if count not in log}
        table[level] = sum(value * (log[label] - log[value]) for label, value in zip(of_label, of_value, strict=True))
    return np.maximum.accumulate(table)  # rounding must not break monotonicity


def _log2(number: int, unit: int) -> int:
    """Return log2 in whole units, prime factor by prime factor: so the logarithms of equal products are exactly equal."""
    total, prime = 0, 2
    while number > 1:
        if prime * prime > number:
            prime = number
        while number % prime == 0:
            total += round(math.log2(prime) * unit)
            number //= prime
        prime += 1
    return total


def _order_nodes(tables: list[IntArray], shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Return each node's loss by its number (which counts the level vectors lexicographically), and the nodes by loss, then
    number."""
    loss = np.zeros((1,), dtype=np.int64)
    for table in tables:
        loss = (loss[:, np.newaxis] + table).reshape(-1)
    return loss, np.argsort(loss, kind="stable")


def _sum_counts(place: IntArray, counts: IntArray, size: int = 0) -> IntArray:
    """Return the number of records at each position. The sums are whole numbers far below 2^53, so floats add them exactly."""
    return np.bincount(place, weights=counts, minlength=size).astype(np.int64)


def _check_codes(codes: npt.NDArray[Any], hierarchies: Sequence[Hierarchy]) -> None:
    if codes.ndim != 2 or codes.dtype != np.int64:
        raise InvalidType("the codes must be an array of int64 with a row for each record and a column for each hierarchy.")
    if codes.shape[1] != len(hierarchies):
        raise InvalidArgument(f"there are {codes.shape[1]} columns and {len(hierarchies)} hierarchies.")
    if not 1 <= len(hierarchies) <= MAX_COLUMNS:
        raise InvalidArgument(f"there are {len(hierarchies)} columns to generalise, and there can be 1 to {MAX_COLUMNS}.")
    if not len(codes):
        raise InvalidArgument("there are no records.")
    for column, hierarchy in enumerate(hierarchies):
        if int(codes[:, column].min()) < 0 or int(codes[:, column].max()) >= len(hierarchy.values):
            raise InvalidArgument(f"column {column} has numbers that its hierarchy does not know.")
