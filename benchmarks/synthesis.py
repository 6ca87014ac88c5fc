"""`synthesis`: dp-table on 20 columns, from entries to rows: CPU time in sorts of them, peak memory in copies of the table.

What is counted grows with the number of records; the pool and its tables do not from 100,000 records on.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import memory
from benchmarks.clock import cpu_seconds
from benchmarks.figures import Figure, Target
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import noise_stream
from release_pipeline.privacy.unclaimed import make_random
from release_pipeline.privacy.whole_table import Column, Measured, TableBudget, make_design, measure_table, synthesise

SECRET = bytes(range(32))
RHO = Fraction(24, 1000)  # epsilon 1 at a delta of a millionth
VALUES = (2, 3, 5, 8, 20, 50)  # of the six columns of categories; the other fourteen are of amounts, a part of them 0
AMOUNTS, TOP = 14, 100_000
COPIES = Target("at most", 8)

Table = tuple[list[Column], list[IntArray]]


def synthesis(sizes: Sequence[int]) -> Iterator[Figure]:
    """Counting, and making rows, apart."""
    for n in sizes:
        columns, entries = make_up(n)
        sort, count = partial(_sort, entries), partial(measure, columns, entries)
        sorting, counting = cpu_seconds(sort, count, runs=1)
        [making] = cpu_seconds(partial(synthesise, count(), make_random(SECRET, "rows")), runs=1)
        for case, seconds in (("counts", counting), ("rows", making), ("both", counting + making)):
            yield Figure("synthesis", case, n, "CPU time", seconds, seconds / sorting, "sorts of all columns")
        if memory.measurable():
            command = [sys.executable, "-m", "benchmarks.synthesis", str(n)]
            root = Path(__file__).resolve().parents[1]
            peak = int(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout)
            target = COPIES if n >= 10**6 else None  # with fewer the pool decides
            yield Figure("synthesis", "both", n, "peak memory", peak, peak / (8 * n * len(columns)), "times the table", target)


def make_up(n: int) -> Table:
    """Columns that go together by three common factors."""
    random = np.random.default_rng(n)
    factors = random.standard_normal((3, n))
    columns: list[Column] = []
    entries: list[IntArray] = []
    for place in range(AMOUNTS + len(VALUES)):
        score = 0.7 * (factors[place % 3] + random.standard_normal(n))
        if place < AMOUNTS:
            amounts = np.where(score < -1, 0, np.exp(0.8 * score + 8))
            columns.append(Column(TOP))
            entries.append(np.clip(amounts, 0, TOP).astype(np.int64))
        else:
            count = VALUES[place - AMOUNTS]
            columns.append(Column(count - 1, nominal=True))
            entries.append(np.searchsorted(np.sort(random.standard_normal(count - 1)), score).astype(np.int64))
    return columns, entries


def measure(columns: Sequence[Column], entries: Sequence[IntArray]) -> Measured:
    """The noisy counts."""
    design = make_design(columns, len(entries[0]), TableBudget(RHO, by_rho=True))
    return measure_table(entries.__getitem__, design, lambda *purpose: noise_stream(SECRET, *purpose))


def _sort(entries: Sequence[IntArray]) -> None:
    for own in entries:
        np.sort(own)


def _peak_here(n: int) -> int:
    """Peak resident memory above what was resident right before, the table not included, in this fresh process."""
    columns, entries = make_up(n)
    synthesise(measure(*make_up(1_000)), make_random(SECRET, "rows"))
    memory.reset_peak()
    before = memory.resident("VmRSS")
    synthesise(measure(columns, entries), make_random(SECRET, "rows"))
    return max(memory.resident("VmHWM") - before, 0)


if __name__ == "__main__":
    print(_peak_here(int(sys.argv[1])))
