"""The best generalisation by trying every node of the lattice, from the records, in plain Python and exact fractions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import log2

Labels = Mapping[str, Sequence[str]]  # of one column: value -> its labels, the value itself first


@dataclass(frozen=True)
class Node:
    levels: tuple[int, ...]
    loss: Fraction
    classes: list[int]  # of each record
    suppressed: list[bool]


def nodes(
    rows: Sequence[Sequence[str]],
    hierarchies: Sequence[Labels],
    k: int,
    metric: str,
) -> Iterator[Node]:
    """Every node, in lexicographic order of its levels. The loss of metric `entropy` is 2 to the power of its bits."""
    depths = [len(next(iter(labels.values()))) for labels in hierarchies]
    for levels in product(*map(range, depths)):
        tuples = [tuple(h[v][a] for v, h, a in zip(row, hierarchies, levels, strict=True)) for row in rows]
        members = defaultdict(list)
        for record, labels in enumerate(tuples):
            members[labels].append(record)
        bad = [record for records in members.values() if len(records) < k for record in records]
        numbers = {labels: number for number, labels in enumerate(members)}
        yield Node(
            levels,
            _loss(metric, rows, tuples, levels, depths),
            [numbers[labels] for labels in tuples],
            [record in set(bad) for record in range(len(rows))],
        )


def best(all_nodes: Iterator[Node], budget: Fraction | int) -> Node | None:
    """The feasible node of least loss, the lexicographically smallest among equals."""
    return min((node for node in all_nodes if sum(node.suppressed) <= budget), key=lambda n: (n.loss, n.levels), default=None)


def bits(loss: Fraction) -> float:
    return log2(loss.numerator) - log2(loss.denominator)


def _loss(metric: str, rows, tuples, levels, depths) -> Fraction:
    if metric == "categorical-precision":
        parts = [Fraction(a, depth - 1) if depth > 1 else Fraction(0) for a, depth in zip(levels, depths, strict=True)]
        return sum(parts, Fraction(0)) / len(parts)
    over = under = 1
    for values, labels in zip(zip(*rows, strict=True), zip(*tuples, strict=True), strict=True):
        of_value, of_label = Counter(values), Counter(labels)
        for value, label in zip(values, labels, strict=True):
            over *= of_label[label]
            under *= of_value[value]
    return Fraction(over, under)
