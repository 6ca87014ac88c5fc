"""CPU time (user and system, all threads of this process), which a busy machine disturbs less than wall time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time


def cpu_seconds(*tasks: Callable[[], object], runs: int) -> list[float]:
    """The median CPU time of each task, all of them in turn in every run, so that what slows one slows the others."""
    seconds: list[list[float]] = [[] for _ in tasks]
    for _ in range(runs):
        for task, spent in zip(tasks, seconds, strict=True):
            start = process_time()
            result = task()
            spent.append(process_time() - start)
            del result  # freed outside the measured time, and before the next task needs memory
    return [median(spent) for spent in seconds]


@contextmanager
def nothing_kept(*, when: bool) -> Iterator[None]:
    """What is called in here for the first time is compiled, `when` that is worth some seconds, although a machine keeps it."""
    before = os.environ.get("XDG_CACHE_HOME")
    with TemporaryDirectory(prefix="release-pipeline-benchmark-") as folder:
        if when:
            os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            os.environ.pop("XDG_CACHE_HOME", None)
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before


def runs_for(n: int) -> int:
    """How often tasks of size `n` run: 7 times up to 10^5, 5 up to 10^6, 3 beyond."""
    return 7 if n <= 10**5 else 5 if n <= 10**6 else 3
