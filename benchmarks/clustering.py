"""`clustering`: MDAV against a plain compiled loop with the same clusters, k = 5, on normal and independent columns.

Independent columns are the hardest ones for an index: the more of them there are, the less does the place of a box tell. For a
million records the plain loop would need many minutes: there blocks are measured, beside exact clusters by the index.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt

from benchmarks import memory
from benchmarks.clock import cpu_seconds, nothing_kept
from benchmarks.figures import Figure, Target
from release_pipeline.privacy import mdav

K = 5
COLUMNS = (4, 10)
CENSUS = 1_080
MEMORY_FROM = 10_000  # records: with fewer, what every process needs decides
FIRST = 30_000  # so many records that the loops are compiled for them
AT_MOST = Target("at most", 1)
CLOSE = Target("at most", 1.1)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def clustering(sizes: Sequence[int]) -> Iterator[Figure]:
    """All sizes but the last one by both ways, exactly; the last one in blocks."""
    from benchmarks.plain_clustering import plain_mdav

    *exact, most = sizes
    start = perf_counter()
    with nothing_kept(when=most >= MEMORY_FROM):
        mdav(_normal(FIRST, 1), K)
    seconds = perf_counter() - start
    yield Figure("clustering", "MDAV, its first call", FIRST, "wall time", seconds, seconds, "seconds, once a machine")
    plain_mdav(_normal(3 * K, 1), K)
    for m in COLUMNS:
        for n in exact:
            matrix = _normal(n, m)
            z = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
            if n <= 10**4 and not np.array_equal(mdav(matrix, K), plain_mdav(z, K)):
                raise RuntimeError("the plain loop makes other clusters.")
            ours, plain = cpu_seconds(partial(mdav, matrix, K), partial(plain_mdav, z, K), runs=3 if n < 10**5 else 1)
            target = AT_MOST if n >= 10**4 else None  # at a millisecond fixed costs decide
            yield Figure("clustering", f"MDAV, {m} columns", n, "CPU time", ours, ours / plain, "plain loops", target)
            yield Figure("clustering", f"plain loop, {m} columns", n, "CPU time", plain, 1.0, "plain loops")
            yield from _memory(n, m, "")
    yield from _blocks(exact[-1], most)


def _blocks(both: int, most: int) -> Iterator[Figure]:
    m = COLUMNS[0]
    for n in (both, most):
        matrix = _normal(n, m)
        seconds, exactly = cpu_seconds(partial(mdav, matrix, K, blocks="kd"), partial(mdav, matrix, K), runs=1)
        error = cluster_sse(matrix, mdav(matrix, K, blocks="kd")) / cluster_sse(matrix, mdav(matrix, K))
        yield Figure("clustering", f"blocks, {m} columns, their SSE", n, "CPU time", seconds, error, "SSE without", CLOSE)
        yield Figure("clustering", f"blocks, {m} columns", n, "CPU time", seconds, seconds / exactly, "times without")
        yield from _memory(n, m, "kd")


def _memory(n: int, m: int, blocks: str) -> Iterator[Figure]:
    if memory.measurable() and (n >= MEMORY_FROM or blocks):
        command = [sys.executable, "-m", "benchmarks.clustering", str(n), str(m), blocks]
        root = Path(__file__).resolve().parents[1]
        peak = int(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout)
        case = f"{'blocks' if blocks else 'MDAV'}, {m} columns"
        yield Figure("clustering", case, n, "peak memory", peak, peak / (8 * n * m), "times the matrix")


def _peak_here(n: int, m: int, blocks: str) -> int:
    """Peak resident memory above what was resident right before, the matrix not included, in this fresh process."""
    mdav(_normal(FIRST, 1), K)
    matrix = _normal(n, m)
    memory.reset_peak()
    before = memory.resident("VmRSS")
    mdav(matrix, K, blocks=blocks or None)
    return max(memory.resident("VmHWM") - before, 0)


def cluster_sse(matrix: Floats, label: Ints) -> float:
    """100 SSE / SST of the z-scores."""
    z = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    size = np.bincount(label)
    between = sum(float(np.sum(np.bincount(label, column) ** 2 / size)) for column in z.T)
    return 100 * (1 - between / z.size)


def _normal(n: int, m: int) -> Floats:
    return np.random.default_rng(n).standard_normal((n, m))


if __name__ == "__main__":
    size, columns, *cut = sys.argv[1:]
    print(_peak_here(int(size), int(columns), "".join(cut)))
