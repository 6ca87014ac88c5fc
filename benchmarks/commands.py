"""`commands`: what a person waits for who asks a site: each command in a fresh process, in starts of NumPy alone.

`run` is in `pipeline`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.figures import Figure, Measure
from benchmarks.synthetic import POLICY, make_site, noise_columns, write_sources

RUNS = 3
STARTS = "starts of NumPy"
_CLI = ("-m", "release_pipeline.cli")


def commands(sizes: Sequence[int]) -> Iterator[Figure]:
    """`check`, `status` and `ledger` of a site where nothing has happened yet: imports are nearly all of it."""
    for n in sizes:
        with TemporaryDirectory(prefix="release-pipeline-benchmark-") as folder:
            yield from _figures(n, Path(folder))


def _figures(n: int, folder: Path) -> Iterator[Figure]:
    write_sources(folder, noise_columns(n))
    home = make_site(folder / "site", "../table.parquet")
    there = ("--home", str(home))
    cases = {
        "import numpy": ("-c", "import numpy"),
        "check": (*_CLI, "check", str(home / "policies" / f"{POLICY}.yaml")),
        "status": (*_CLI, "status", *there),
        "ledger": (*_CLI, "ledger", *there),
    }
    for arguments in cases.values():
        _spend(arguments)  # once, so that what is compiled on the first import is
    turns = [{case: _spend(arguments) for case, arguments in cases.items()} for _ in range(RUNS)]
    spent = {case: tuple(median(turn[case][side] for turn in turns) for side in (0, 1)) for case in cases}
    sides: list[tuple[int, Measure]] = [(0, "wall time"), (1, "CPU time")]
    for side, measure in sides:
        start = spent["import numpy"][side]
        for case, seconds in spent.items():
            yield Figure("commands", case, n, measure, seconds[side], seconds[side] / start, STARTS)


def _spend(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds by the clock, and CPU seconds, of one process, which must end well."""
    wall, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    root = Path(__file__).resolve().parents[1]
    subprocess.run([sys.executable, *arguments], cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return perf_counter() - wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
