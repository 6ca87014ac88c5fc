"""`pipeline`: a whole release of 12 columns, through Dagster and stage by stage, in sorts of its ten noise columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import memory
from benchmarks.clock import cpu_seconds, runs_for
from benchmarks.figures import Figure, Measure, Target
from benchmarks.journey import Cost, run_job, run_stages
from benchmarks.synthetic import COLUMNS, make_site, noise_columns, write_sources

AROUND = Target("at most", 20)  # percent of the job: Dagster and Great Expectations
SORTS, COPIES = "sorts of ten columns", "copies of the table"


def pipeline(sizes: Sequence[int]) -> Iterator[Figure]:
    """The job, its stages, what Dagster and Great Expectations add to them, and CSV against Parquet."""
    for n in sizes:
        with TemporaryDirectory(prefix="release-pipeline-benchmark-") as folder:
            yield from _figures(n, Path(folder))


def _figures(n: int, folder: Path) -> Iterator[Figure]:
    floor = _write_and_sort(n, folder)

    def figure(case: str, measure: Measure, amount: float, ratio: float, unit: str, target: Target | None = None) -> Figure:
        return Figure("pipeline", case, n, measure, amount, ratio, unit, target)

    def whole(case: str, cost: Cost) -> Iterator[Figure]:
        yield figure(case, "wall time", cost.wall, cost.wall / floor, SORTS)
        yield figure(case, "CPU time", cost.cpu, cost.cpu / floor, SORTS)
        yield from peak(case, cost)

    def peak(case: str, cost: Cost) -> Iterator[Figure]:
        if memory.measurable():
            yield figure(case, "peak memory", cost.peak, cost.peak / (8 * COLUMNS * n), COPIES)

    yield figure("numpy.sort of the ten columns", "CPU time", floor, 1, SORTS)
    job = run_job(make_site(folder / "job", "../table.parquet"))
    plain = run_stages(make_site(folder / "stages", "../table.parquet"))
    yield from whole("Dagster job, Parquet", job.whole)
    yield from whole("plain stages, Parquet", plain.whole)
    for name, cost in plain.parts.items():
        yield figure(name, "wall time", cost.wall, 100 * cost.wall / plain.whole.wall, "% of the plain stages")
        yield figure(name, "CPU time", cost.cpu, 100 * cost.cpu / plain.whole.cpu, "% of the plain stages")
        yield from peak(name, cost)
    for measure, all_of_it, stages in (
        ("wall time", job.whole.wall, plain.whole.wall),
        ("CPU time", job.whole.cpu, plain.whole.cpu),
    ):
        around = max(all_of_it - stages, 0.0)
        yield figure("Dagster and Great Expectations", measure, around, 100 * around / all_of_it, "% of the job", AROUND)

    csv = run_stages(make_site(folder / "csv", "../table.csv"), ("ingest", "validate"))
    for stage in ("ingest", "validate"):
        mine, other = csv.parts[stage], plain.parts[stage]
        yield figure(f"{stage}, CSV", "wall time", mine.wall, mine.wall / other.wall, "times Parquet")
        yield figure(f"{stage}, CSV", "CPU time", mine.cpu, mine.cpu / other.cpu, "times Parquet")
        yield from peak(f"{stage}, CSV", mine)


def _write_and_sort(n: int, folder: Path) -> float:
    """Write the sources, and the CPU seconds of sorting their noise columns with NumPy."""
    noise = noise_columns(n)
    write_sources(folder, noise)
    [seconds] = cpu_seconds(lambda: [np.sort(values) for values in noise.values()], runs=runs_for(n))
    return seconds
