"""Clusters along an order of records once more, in plain Python on plain integers; the worst case by trying every neighbour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product

INFINITE = Fraction(10**30)

Record = tuple[int, ...]
Sums = list[list[int]]  # by cluster, and column
Key = Callable[[Record], int]


def all_records(widths: Sequence[int]) -> list[Record]:
    return list(product(*(range(width + 1) for width in widths)))


def clusters_of(records: Iterable[Record], key: Key, k: int) -> list[list[Record]]:
    """k by k in the order of (key, record, position), the last one with the rest."""
    ordered = [record for _, record, _ in sorted((key(record), record, place) for place, record in enumerate(records))]
    count = len(ordered) // k
    return [ordered[j * k : (j + 1) * k] if j < count - 1 else ordered[j * k :] for j in range(count)]


def trimmed_sum(values: Iterable[int]) -> int:
    """The smallest value replaced by the second smallest, the largest by the second largest; values, not distinct values."""
    x = sorted(values)
    return sum([x[1], *x[1:-1], x[-2]])


def sums_of(records: Iterable[Record], key: Key, k: int, *, trimmed: bool) -> Sums:
    """The (trimmed) sums that are published with noise, of each cluster and column."""
    summed = trimmed_sum if trimmed else sum
    return [[summed(column) for column in zip(*cluster, strict=True)] for cluster in clusters_of(records, key, k)]


def neighbours_of(records: Sequence[Record], every: Sequence[Record]) -> Iterator[list[Record]]:
    """The table with one record replaced; equal records are interchangeable, so one of each is enough."""
    for place, record in enumerate(records):
        if record not in records[:place]:
            for new in every:
                yield [*records[:place], new, *records[place + 1 :]]


def ratio(change: int, scale: int) -> Fraction:
    if change == 0:
        return Fraction(0)
    return Fraction(change, scale) if scale else INFINITE


def loss_between(before: Sums, after: Sums, scales: Sequence[Sequence[int]]) -> tuple[Fraction, Fraction]:
    """The loss of the worst single centroid, all of its columns together, and that of all centroids."""
    of_clusters = [
        sum((ratio(abs(x - y), t) for x, y, t in zip(*three, strict=True)), Fraction(0))
        for three in zip(before, after, scales, strict=True)
    ]
    return max(of_clusters), sum(of_clusters, Fraction(0))


def losses(
    records: Sequence[Record],
    every: Sequence[Record],
    key: Key,
    scales: Sequence[Sequence[int]],
    k: int,
    *,
    trimmed: bool,
) -> tuple[Fraction, Fraction]:
    """The worst loss of one centroid, and of all together, over every record and every record that may replace it."""
    before = sums_of(records, key, k, trimmed=trimmed)
    met: set[tuple[tuple[int, ...], ...]] = set()
    centroid = table = Fraction(0)
    for neighbour in neighbours_of(records, every):
        after = sums_of(neighbour, key, k, trimmed=trimmed)
        if (seen := tuple(map(tuple, after))) in met:
            continue
        met.add(seen)
        one, all_of_them = loss_between(before, after, scales)
        centroid, table = max(centroid, one), max(table, all_of_them)
    return centroid, table
