"""`ordering`: CPU time of order_clusters over four attributes in stable argsorts of one random column with as many rows.

The attributes have 10^8 grid steps. Uniform records hardly ever agree in the bits that the first sort sees; lognormal ones, like
incomes in a wide domain, mostly do and need a second sort, unless a logarithm comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.clock import cpu_seconds, runs_for
from benchmarks.figures import Figure, Target
from release_pipeline.privacy import noise_stream, order_clusters

M, WIDTH, K = 4, 10**8, 10
TIME = Target("at most", 6)
UNIT = "stable argsorts"

Ints = npt.NDArray[np.int64]


def ordering(sizes: Sequence[int]) -> Iterator[Figure]:
    """Both orders, and the curve over skewed records too, keys and ties included, held to at most 6 sorts of one column."""
    _order(_uniform(100), "hilbert", "linear")  # makes the tables
    for case, order, transform, make in _CASES:
        for n in sizes:
            rows = make(n)
            words = np.random.default_rng(n).integers(0, 2**63 - 1, n, endpoint=True)
            ours, sort = cpu_seconds(
                partial(_order, rows, order, transform), partial(np.argsort, words, kind="stable"), runs=runs_for(n)
            )
            del rows, words
            yield Figure("ordering", f"{case}, {M} columns", n, "CPU time", ours, ours / sort, UNIT, TIME)


def _order(rows: Ints, order: str, transform: str) -> object:
    return order_clusters(rows, [WIDTH] * M, K, order=order, transforms=[transform] * M, ties=noise_stream(bytes(32), "ties"))


def _uniform(n: int) -> Ints:
    return np.random.default_rng(n).integers(0, WIDTH, (n, M), endpoint=True)


def _lognormal(n: int) -> Ints:
    """Median e^10; column by column, so that no copies of the whole are needed."""
    rows = np.empty((n, M), dtype=np.int64)
    rng = np.random.default_rng(n)
    for column in range(M):
        rows[:, column] = np.minimum(rng.lognormal(10, 1, n), WIDTH)
    return rows


_CASES: tuple[tuple[str, str, str, Callable[[int], Ints]], ...] = (
    ("hilbert", "hilbert", "linear", _uniform),
    ("corner", "corner", "linear", _uniform),
    ("hilbert, skewed", "hilbert", "linear", _lognormal),
    ("hilbert of logs, skewed", "hilbert", "log", _lognormal),
)
