"""Optimal Lattice Anonymization (OLA09): the full-domain generalisation of least loss, and whom to suppress.

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
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from release_pipeline.mechanisms.clusters.rank import as_threshold

Metric: TypeAlias = Literal["categorical-precision", "entropy"]
Progress: TypeAlias = Callable[[str], object]

MAX_NODES = 20_000_000  # 25 bytes of working memory for each
MAX_COLUMNS = 32  # that many with two levels each are beyond the nodes
_MAX_KEY = 2**62
_DIRECT = 16  # a table of all possible classes is faster than sorting while it has at most so many places per tuple
_WORTH_KEEPING = 32  # a histogram is kept for the nodes above if it is so many times smaller than the one it came from
_PROGRESS_SECONDS = 2.0


@dataclass(frozen=True, slots=True, repr=False)
class Generalisation:
    """The node of least loss, and what becomes of each record.

    `levels` per column; `suppressed` for each record whether its class is too small; `group` the number of its class, from 0
    without gaps in the order of the labels, and -1 for a suppressed record. `loss` is that of all records, before suppression:
    a share in 0..1 for categorical-precision, bits for entropy. `nodes` is the size of the
    lattice, `evaluated` how many of its nodes had their classes counted.
    """

    levels: tuple[int, ...]
    suppressed: npt.NDArray[np.bool_]
    loss: float
    group: IntArray
    nodes: int
    evaluated: int

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
    progress: Progress | None = None,
) -> Generalisation:
    """The feasible node of least loss for n records of m value numbers; among equals the lexicographically smallest levels.

    `codes`: one row per record, or with `counts` per so many that are alike; what is found has an entry for
    each row then.
    `max_suppressed`: how many records may be in classes that are too small. The losses are over all records, whether suppressed
    or not (see above why), and are compared as integers:

    - categorical-precision: the mean over the columns of level / (levels - 1), 0 for a hierarchy of one level;
    - entropy: the sum over columns and records of log2(records with the same label / records with the same value), where the
      logarithm of each prime is rounded so finely that the sums just fit 64 bits: equal losses are exactly equal.

    Where even the top is infeasible, or the lattice has more than 20 million nodes, that is refused. `progress` is given a short
    text every few seconds.
    """
    k = as_threshold(k, "k")
    if metric not in get_args(Metric):
        raise InvalidArgument("there is no such metric of loss.", remedy=f"Choose one of {', '.join(get_args(Metric))}.")
    _check_codes(codes, hierarchies)
    rows = _Rows(codes, np.ones(len(codes), dtype=np.int64) if counts is None else counts)
    n = int(rows.counts.sum())
    shape = tuple(hierarchy.levels for hierarchy in hierarchies)
    nodes = math.prod(shape)
    if nodes > MAX_NODES:
        raise InvalidArgument(
            f"the lattice has {nodes:,} nodes, more than the {MAX_NODES:,} that are searched.",
            remedy="Generalise fewer columns, or leave levels out of their hierarchies.",
        )

    counter = _Counter(rows, hierarchies, k)
    if counter.count(tuple(levels - 1 for levels in shape)) > max_suppressed:
        raise InvalidArgument(
            "no generalisation is possible: with every column at its coarsest level, more records are in classes that are too "
            f"small than the {max_suppressed:,} of {n:,} that may be suppressed.",
            remedy="Lower k, let more records be suppressed, or give the hierarchies a coarser level.",
        )
    levels, loss = _search(counter, shape, metric, max_suppressed, _Reporter(progress, counter, nodes))
    group = _group_rows(rows, hierarchies, levels, k)
    return Generalisation(levels, group < 0, loss, group, nodes, counter.evaluated)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The value numbers, and of how many records each row is."""

    codes: IntArray
    counts: IntArray


@dataclass(frozen=True, slots=True)
class _Histogram:
    """The different tuples of labels at `levels`, and the records of each."""

    levels: tuple[int, ...]
    labels: list[IntArray]
    records: IntArray


class _Counter:
    """Counts classes from the histogram of different tuples: the records themselves are read once."""

    def __init__(self, rows: _Rows, hierarchies: Sequence[Hierarchy], k: int) -> None:
        base, self.hierarchies = _histogram(rows, hierarchies)
        self.k = k
        self.known = [base]  # the smallest first, and their levels
        self._levels = np.zeros((1, len(hierarchies)), dtype=np.int64)
        self.evaluated = 0
        self._steps: dict[tuple[int, int, int], IntArray] = {}

    def count(self, levels: tuple[int, ...]) -> int:
        """The records in classes of one node that are too small, from the smallest histogram that was counted below it."""
        self.evaluated += 1
        source = self.known[int((self._levels <= np.array(levels)).all(axis=1).argmax())]
        sizes = [len(hierarchy.labels[level]) for hierarchy, level in zip(self.hierarchies, levels, strict=True)]
        labels = [self._lift(source, column, level) if sizes[column] > 1 else None for column, level in enumerate(levels)]
        place, space = _address(*_combine(labels, sizes, len(source.records)))
        records = _sum_by_place(place, space, source.records)
        self._remember(source, levels, place, records)
        return int(records[records < self.k].sum())

    def column_records(self) -> list[IntArray]:
        """For every column the number of records that have each of its values."""
        base = self.known[-1]
        return [
            _sum_by_place(labels, len(hierarchy.values), base.records)
            for labels, hierarchy in zip(base.labels, self.hierarchies, strict=True)
        ]

    def _lift(self, source: _Histogram, column: int, level: int) -> IntArray:
        below = source.levels[column]
        if below == level:
            return source.labels[column]
        step = self._steps.get((column, below, level))
        if step is None:
            codes = self.hierarchies[column].codes
            step = np.empty(len(self.hierarchies[column].labels[below]), dtype=np.int64)
            step[codes[below]] = codes[level]
            self._steps[column, below, level] = step
        return step[source.labels[column]]

    def _remember(self, source: _Histogram, levels: tuple[int, ...], place: IntArray, records: IntArray) -> None:
        """Keep the classes as a histogram of their own if that makes counting the nodes above much cheaper."""
        if _WORTH_KEEPING * np.count_nonzero(records) > len(source.records):
            return
        present = np.flatnonzero(records)
        number = np.empty(len(records), dtype=np.int64)
        number[present] = np.arange(len(present))
        classes = number[place]
        one_of = np.empty(len(present), dtype=np.int64)
        one_of[classes] = np.arange(len(classes))
        labels = [self._lift(source, column, level)[one_of] for column, level in enumerate(levels)]
        place_of = bisect_left(self.known, len(present), key=lambda known: len(known.records))
        self.known.insert(place_of, _Histogram(levels, labels, records[present]))
        self._levels = np.insert(self._levels, place_of, levels, axis=0)


def _search(
    counter: _Counter, shape: tuple[int, ...], metric: Metric, budget: int, report: _Reporter
) -> tuple[tuple[int, ...], float]:
    """The best node. Its loss is known without counting: a sum of one number for each column and level.

    `open_` holds what may still be better than the best feasible node, best first. Whatever lies above a node comes after it, so
    a feasible node closes all that follow, and an infeasible one all below it. What is left at the end to be shown infeasible is
    cheapest to close from its highest nodes; a good feasible node is found fastest by halving. So: halve, and after every failure
    go half of the way that is left to the far end.
    """
    tables, unit = _loss_tables(counter, shape, metric)
    loss, order = _order_nodes(tables, shape)
    closed = np.zeros(shape, dtype=np.bool_)
    best, open_, halvings = int(order[-1]), order[:-1], 1
    while len(open_):
        report(len(open_))
        place = len(open_) - 1 - (len(open_) >> halvings)
        node = int(open_[place])
        levels = _levels_of(node, shape)
        if counter.count(levels) <= budget:
            best, open_, halvings = node, open_[:place], 1
        else:
            closed[tuple(slice(level + 1) for level in levels)] = True
            open_ = open_[~closed.reshape(-1)[open_]]
            halvings += 1
    return _levels_of(best, shape), float(Fraction(int(loss[best])) / unit)


def _levels_of(node: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(level) for level in np.unravel_index(node, shape))


def _loss_tables(counter: _Counter, shape: tuple[int, ...], metric: Metric) -> tuple[list[IntArray], Fraction]:
    """The loss of each column at each level in whole units, and how many units make up 1."""
    if metric == "entropy":
        columns = counter.column_records()
        n = int(columns[0].sum())
        unit = 2 ** (62 - (len(columns) * n * n.bit_length()).bit_length())  # so that every sum fits 64 bits
        tables = [
            _entropy_table(records, hierarchy, unit) for records, hierarchy in zip(columns, counter.hierarchies, strict=True)
        ]
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
        of_label = _sum_by_place(hierarchy.codes[level], len(hierarchy.labels[level]), records)[hierarchy.codes[level]].tolist()
        log |= {count: _log2(count, unit) for count in of_label if count not in log}
        table[level] = sum(value * (log[label] - log[value]) for label, value in zip(of_label, of_value, strict=True))
    return np.maximum.accumulate(table)  # rounding must not cost the monotony


def _log2(number: int, unit: int) -> int:
    """log2 in whole units, prime factor by prime factor: so the logarithms of equal products are equal, and not just nearly."""
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
    """Each node's loss by its number (which counts the level vectors lexicographically), and the nodes by loss, then number."""
    loss = np.zeros((1,), dtype=np.int64)
    for table in tables:
        loss = (loss[:, np.newaxis] + table).reshape(-1)
    return loss, np.argsort(loss, kind="stable")


class _Reporter:
    """Tells now and then how far the search is."""

    def __init__(self, progress: Progress | None, counter: _Counter, nodes: int) -> None:
        self.progress, self.counter, self.nodes = progress, counter, nodes
        self.last = time.monotonic()

    def __call__(self, left: int) -> None:
        if self.progress is not None and time.monotonic() - self.last >= _PROGRESS_SECONDS:
            self.progress(f"{self.counter.evaluated:,} of {self.nodes:,} generalisations counted, {left:,} to decide")
            self.last = time.monotonic()


def _histogram(rows: _Rows, hierarchies: Sequence[Hierarchy]) -> tuple[_Histogram, list[Hierarchy]]:
    """The different tuples of values, and the hierarchies of the values that occur."""
    codes = rows.codes
    sizes = [len(hierarchy.values) for hierarchy in hierarchies]
    place, space = _combine([codes[:, column] for column in range(len(sizes))], sizes, len(codes))
    if math.prod(sizes) == space:
        present, records = _count_places(place, space, rows.counts)
        tuples = _split(present, sizes)
    else:  # the places were numbered anew on the way, so that they no longer tell the values
        present, first, number = np.unique(place, return_index=True, return_inverse=True)
        records = _sum_by_place(number, len(present), rows.counts)
        tuples = [codes[first, column] for column in range(len(sizes))]
    used = [np.unique(column) for column in tuples]
    labels = [np.searchsorted(values, column) for values, column in zip(used, tuples, strict=True)]
    occurring = [hierarchy.of_values(values) for hierarchy, values in zip(hierarchies, used, strict=True)]
    return _Histogram((0,) * len(sizes), labels, records.astype(np.int64, copy=False)), occurring


def _group_rows(rows: _Rows, hierarchies: Sequence[Hierarchy], levels: tuple[int, ...], k: int) -> IntArray:
    """The class of each row at a node, numbered in the order of the labels; -1 where it is too small."""
    codes = rows.codes
    sizes = [len(hierarchy.labels[level]) for hierarchy, level in zip(hierarchies, levels, strict=True)]
    labels = [
        hierarchy.codes[level][codes[:, column]] if sizes[column] > 1 else None
        for column, (hierarchy, level) in enumerate(zip(hierarchies, levels, strict=True))
    ]
    place, space = _address(*_combine(labels, sizes, len(codes)))
    records = _sum_by_place(place, space, rows.counts)
    kept = (records > 0) & (records >= k)
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    return number[place]


def _combine(labels: Sequence[IntArray | None], sizes: list[int], n: int) -> tuple[IntArray, int]:
    """A number below `space` for each tuple of labels, equal for equal tuples, in lexicographic order; None stands for one label.

    `space` is the product of the sizes; where that is beyond 64 bits, the numbers are made dense on the way.
    """
    place, space = np.zeros(n, dtype=np.int64), 1
    for column, size in zip(labels, sizes, strict=True):
        if column is None or size == 1:
            continue
        if space * size > _MAX_KEY:
            present, place = np.unique(place, return_inverse=True)
            space = len(present)
        place = place * size + column if space > 1 else column
        space *= size
    return place, space


def _split(place: IntArray, sizes: list[int]) -> list[IntArray]:
    """The tuples back from the numbers that `_combine` gave them."""
    columns: list[IntArray] = []
    for size in reversed(sizes):
        place, column = np.divmod(place, size)
        columns.append(column)
    return columns[::-1]


def _address(place: IntArray, space: int) -> tuple[IntArray, int]:
    """The numbers as they are if a table with a place for each is small, else made dense; in the same order."""
    if space <= _DIRECT * len(place):
        return place, space
    present, place = np.unique(place, return_inverse=True)
    return place, len(present)


def _sum_by_place(place: IntArray, space: int, records: IntArray) -> IntArray:
    """The records at each place. The sums are whole numbers far below 2^53, so floats add them exactly."""
    return np.bincount(place, weights=records, minlength=space).astype(np.int64)


def _count_places(place: IntArray, space: int, records: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """The places that occur, ascending, and how often; or how many records are there, of rows that stand for so many."""
    if space <= _DIRECT * len(place):
        often = np.bincount(place, minlength=space) if records is None else _sum_by_place(place, space, records)
        present = np.flatnonzero(often)
        return present, often[present]
    by_place = np.argsort(place) if records is not None else None
    ordered = np.sort(place) if by_place is None else place[by_place]
    start = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if by_place is None or records is None:
        return ordered[start], np.diff(start, append=len(ordered))
    return ordered[start], np.add.reduceat(records[by_place], start)


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
