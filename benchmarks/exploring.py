"""`exploring`: sixty settings of a policy tried on a public table of twelve columns, in a fresh process, every process counted.

The table: incomes with many zeros and a long tail, weights, counts, ages, three categories. Methods, sizes of clusters and a
model are those that a steward gets who names nothing, at four epsilons. Nothing is known from before, but what is compiled is.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks import memory
from benchmarks.clock import cpu_seconds
from benchmarks.figures import Figure, Target

POLICY = "incomes"
COLUMNS, EPSILONS = 12, "2,4,8,16"
LARGE = 10**5  # records: of fewer it is shown that it runs, at one epsilon, and what is compiled on the first call counts
GOAL, MEMORY = 300, 2 * 10**9  # seconds on two idle cores; bytes
SORTS = "sorts of nine columns"
_STATES = [f"s{number:02}" for number in range(1, 51)]
_SEXES, _TIES = ("female", "male"), ("single", "married", "widowed", "divorced")
_DOMAINS = {  # of masked columns: domain, grid
    "wage": ((0, 1_000_000), "1"),
    "business": ((-50_000, 1_000_000), "1"),
    "interest": ((0, 500_000), "1"),
    "pension": ((0, 200_000), "1"),
    "tax": ((0, 500_000), "1"),
    "rent": ((0, 10_000), "1"),
    "age": ((15, 99), "1"),
    "hours": ((0, 99), "1"),
    "weight": ((0, 5_000), "0.01"),
}
_EVERY = 0.25  # seconds between looks at the memory


def exploring(sizes: Sequence[int]) -> Iterator[Figure]:
    """What `explore --like` costs."""
    for n in sizes:
        with TemporaryDirectory(prefix="release-pipeline-benchmark-") as folder:
            yield from _figures(n, Path(folder))


def _figures(n: int, folder: Path) -> Iterator[Figure]:
    columns = make_columns(n)
    [floor] = cpu_seconds(lambda: [np.sort(columns[name]) for name in _DOMAINS], runs=3)
    if n >= LARGE:
        _spend(write_site(folder / "before", make_columns(1_000)), folder / "cache", "4")  # what is compiled on the first call is
    found = _spend(write_site(folder / "site", columns), folder / "cache", EPSILONS if n >= LARGE else "4")
    case = f"{found.settings} settings"
    yield Figure("exploring", case, n, "CPU time", found.cpu, found.cpu / floor, SORTS)
    yield Figure("exploring", f"{case}, by two cores", n, "CPU time", found.cpu, found.cpu / 2 / GOAL, "of five minutes", _GOAL)
    yield Figure("exploring", case, n, "wall time", found.wall, found.wall / GOAL, "of five minutes")
    if memory.measurable():
        yield Figure("exploring", f"{case}, all processes", n, "peak memory", found.peak, found.peak / MEMORY, "of 2 GB", _GOAL)


_GOAL = Target("at most", 1)


class _Cost:
    """What an exploration took: seconds, CPU seconds, bytes, and how many settings it tried."""

    def __init__(self, wall: float, cpu: float, peak: int, settings: int) -> None:
        self.wall, self.cpu, self.peak, self.settings = wall, cpu, peak, settings


def make_columns(n: int) -> dict[str, Any]:
    """The columns of the table."""
    rng = np.random.default_rng(n)

    def money(zero: float, middle: float, spread: float, most: int) -> Any:
        return np.round(np.where(rng.random(n) < zero, 0.0, np.minimum(rng.lognormal(middle, spread, n), most)))

    wage, age = money(0.35, 10.4, 0.9, 1_000_000), rng.integers(15, 100, n)
    return {
        "wage": wage,
        "business": np.where(rng.random(n) < 0.1, -1, 1) * money(0.85, 9, 1.5, 50_000),
        "interest": money(0.6, 5, 2, 500_000),
        "pension": np.where(age > 60, money(0.3, 9.8, 0.7, 200_000), 0.0),
        "tax": np.round(0.2 * np.maximum(wage - 12_000, 0)),
        "rent": np.round(np.minimum(rng.lognormal(6.5, 0.6, n), 10_000) / 10) * 10,
        "age": age,
        "hours": np.where(wage > 0, np.clip(rng.choice([40, 20, 35, 50], n) + rng.integers(-2, 3, n), 0, 99), 0),
        "weight": np.round(np.minimum(rng.gamma(4, 120, n), 5_000), 2),
        "state": np.array(_STATES, dtype=object)[rng.integers(0, len(_STATES), n)],
        "sex": np.array(_SEXES, dtype=object)[rng.integers(0, 2, n)],
        "marital": np.array(_TIES, dtype=object)[rng.integers(0, 4, n)],
    }


def write_site(folder: Path, columns: Mapping[str, Any]) -> Path:
    """The policy, and the table beside it."""
    folder.mkdir(parents=True)
    pyarrow.csv.write_csv(pa.table({name: pa.array(values) for name, values in columns.items()}), folder / "public.csv")
    masked = [
        f"  {name}: {{role: confidential, do: noise, domain: [{low}, {high}], grid: {grid}, outside: clamp, missing: fail, "
        f"why: synthetic{', atoms: [0]' if name in ('wage', 'interest', 'pension', 'tax', 'hours') else ''}}}"
        for name, ((low, high), grid) in _DOMAINS.items()
    ]
    kept = [
        f"  {name}: {{role: quasi, do: keep, values: [{', '.join(values)}], why: synthetic}}"
        for name, values in (("state", _STATES), ("sex", _SEXES), ("marital", _TIES))
    ]
    lines = [
        f"policy: {POLICY}",
        "steward: ana",
        "population: taxpayers",
        "source: {path: confidential.csv}",
        "person: each-row",
        "releases: once",
        "protect: {method: idp-cbls, epsilon: 8, k: 10}",
        "columns:",
        *masked,
        *kept,
        "gates: {min_rows: 500}",
        "audit: {predict: {sex: {equals: male}}, groups: [state, marital]}",
        "publish: {formats: [csv]}",
    ]
    file = folder / f"{POLICY}.yaml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _spend(policy: Path, cache: Path, epsilons: str) -> _Cost:
    """Try the settings in a process, which may start others."""
    command = [sys.executable, "-m", "release_pipeline.cli", "explore", str(policy), "--like", str(policy.parent / "public.csv")]
    command += ["--public", "made up", "--epsilons", epsilons, "--quiet", "--json"]
    wall, before, peak = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN), 0
    with TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=Path(__file__).resolve().parents[1], env={**os.environ, "XDG_CACHE_HOME": str(cache)}, stdout=said
        )
        while process.poll() is None:
            peak = max(peak, _measure_all(process.pid))
            sleep(_EVERY)
        seconds, after = perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        said.seek(0)
        document = json.load(said)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Cost(seconds, cpu, peak, len(document["settings"]) + len(document["refused"]))


def _measure_all(process: int) -> int:
    """Bytes of a process and all that it started, what they share counted once; 0 where a system does not tell."""
    found = 0
    for number in (process, *_list_children(process)):
        try:
            told = Path(f"/proc/{number}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            continue
        found += sum(int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith("Pss:"))
    return found


def _list_children(process: int) -> Iterator[int]:
    try:
        told = [file.read_text(encoding="ascii") for file in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        return
    for number in (int(word) for text in told for word in text.split()):
        yield number
        yield from _list_children(number)
