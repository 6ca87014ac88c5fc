"""The methods once more, in plain Python on plain integers, and the worst case by trying every neighbour."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

INFINITE = Fraction(10**30)


def cut(ordered: list[int], k: int) -> list[list[int]]:
    """Rank clusters of a sorted list: k by k, the last one with the rest."""
    count = len(ordered) // k
    return [ordered[j * k : (j + 1) * k] if j < count - 1 else ordered[j * k :] for j in range(count)]


def plain_sum(cluster: list[int]) -> int:
    return sum(cluster)


def trimmed_sum(cluster: list[int]) -> int:
    """The smallest value replaced by the second smallest, the largest by the second largest; values, not distinct values."""
    x = sorted(cluster)
    return sum([x[1], *x[1:-1], x[-2]])


def statistics(values: Iterable[int], *, method: str, k: int) -> list[int]:
    """The published sums before noise. `laplace`: each record's value, in record order."""
    if method == "laplace":
        return list(values)
    summed = trimmed_sum if method == "idp-cbls" else plain_sum
    return [summed(cluster) for cluster in cut(sorted(values), k)]


def losses(values: list[int], scales: list[int], *, method: str, k: int, width: int) -> tuple[Fraction, Fraction]:
    """The worst loss of a single sum and of all sums together, over every record and every new value that can matter.

    Between two neighbouring existing values every sum is linear in the new value, so the ends of those intervals suffice; the
    values beside them are tried too.
    """
    before = statistics(values, method=method, k=k)
    candidates = {0, width} | {v + d for v in values for d in (-1, 0, 1) if 0 <= v + d <= width}
    centroid = column = Fraction(0)
    for i in range(len(values)):
        for new in candidates:
            after = statistics([*values[:i], new, *values[i + 1 :]], method=method, k=k)
            ratios = [_ratio(abs(a - b), t) for a, b, t in zip(after, before, scales, strict=True)]
            centroid, column = max(centroid, *ratios), max(column, sum(ratios))
    return centroid, column


def _ratio(change: int, scale: int) -> Fraction:
    if change == 0:
        return Fraction(0)
    return Fraction(change, scale) if scale else INFINITE
