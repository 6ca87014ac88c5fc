"""`masking` and `laplace`: CPU time of mask_column in stable argsorts of the same column, peak memory in copies of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from benchmarks import memory
from benchmarks.clock import cpu_seconds, runs_for
from benchmarks.columns import Masking, lognormal_column, warm_up
from benchmarks.figures import Figure, Target

CLUSTER_METHODS = tuple(Masking(method, scope) for method in ("dp-um", "idp-ls", "idp-cbls") for scope in ("centroid", "column"))
WITH_ATOMS = tuple(Masking(method, "column", tuple(range(0, 20_000, 1_000))) for method in ("dp-um", "idp-cbls"))
BY_VALUE = Masking("dp-cdf", "column", (0,))
TIME, COPIES = Target("at most", 3), Target("at most", 12)
FEW_SORTS, MANY = Target("at most", 1.5), 10**7


def masking(sizes: Sequence[int]) -> Iterator[Figure]:
    """Every cluster method in both scopes, and two with order restored around atoms, held to at most 3 sorts and 12 copies; and
    counts by value, to 1.5 sorts where records are so many that fitting a hundred cells is no part of it."""
    for mask in (*CLUSTER_METHODS, *WITH_ATOMS):
        yield from _figures("masking", mask, sizes, TIME, COPIES)
    for n in sizes:
        yield from _figures("masking", BY_VALUE, [n], FEW_SORTS if n >= MANY else None, COPIES if n >= MANY else None)


def laplace(sizes: Sequence[int]) -> Iterator[Figure]:
    """Method laplace, which sorts nothing and makes no clusters: for context."""
    yield from _figures("laplace", Masking("laplace", "column"), sizes, None, None)


def _figures(benchmark: str, mask: Masking, sizes: Sequence[int], time: Target | None, copies: Target | None) -> Iterator[Figure]:
    warm_up(mask)
    for n in sizes:
        seconds, ratio = _in_sorts(mask, n)
        yield Figure(benchmark, str(mask), n, "CPU time", seconds, ratio, "stable argsorts", time)
        if memory.measurable():
            peak = memory.peak_bytes(mask, n)
            yield Figure(benchmark, str(mask), n, "peak memory", peak, peak / (8 * n), "copies of the column", copies)


def _in_sorts(mask: Masking, n: int) -> tuple[float, float]:
    """CPU seconds of masking n values, and how many stable argsorts of them that is."""
    values = lognormal_column(n)
    masked, sort = cpu_seconds(partial(mask, values), partial(np.argsort, values, kind="stable"), runs=runs_for(n))
    return masked, masked / sort
