"""CPU time of all threads, peak memory (told by Linux alone), the machine, and one table for the figures."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

ROOT = Path(__file__).resolve().parents[2]  # where `python -m experiments` is called
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def print_machine() -> None:
    """Kind and number of processors, load, Python and NumPy: not whose machine it is."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}, Python {platform.python_version()}, NumPy {np.__version__}\n", flush=True)


def print_row(cells: Sequence[object]) -> None:
    """A row of a table in Markdown."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_head(heads: Sequence[str]) -> None:
    """The head of a table in Markdown."""
    print_row(heads)
    print(f"|{'---|' * len(heads)}", flush=True)


def cpu_seconds(*tasks: Callable[[], object], runs: int) -> list[float]:
    """The median CPU time of each task; each run has all of them, so that what slows one slows the others."""
    seconds: list[list[float]] = [[] for _ in tasks]
    for _ in range(runs):
        for task, spent in zip(tasks, seconds, strict=True):
            start = process_time()
            result = task()
            spent.append(process_time() - start)
            del result  # freed outside of the measured time, and before the next task needs memory
    return [median(spent) for spent in seconds]


def is_memory_told() -> bool:
    """Whether this system tells the peak of memory in this way."""
    return _RESET.exists()


def reset_peak() -> None:
    """Let the peak begin anew with what is resident now."""
    _RESET.write_text("5")


def resident(field: str) -> int:
    """Bytes of this process: resident now (VmRSS), of no file (RssAnon), or at most since the last reset (VmHWM)."""
    line = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    if line is None:
        raise RuntimeError(f"{_STATUS} has no {field}.")
    return int(line[1]) * 1024
