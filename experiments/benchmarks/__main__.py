"""What methods cost, beside a named baseline in the same run: `python -m experiments.benchmarks [NAME ...]`.

A case is a task on so many records, and a baseline on the same records, most often a stable argsort of one column: times of a
machine say nothing about another machine, their ratio does. A target is a bound of the ratio; one that is missed is printed, and
no failure. Peak memory is of a fresh process, in copies of the data.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from experiments.benchmarks import measuring
from experiments.linkage import record_linkage
from release_pipeline.mechanisms import discrete_laplace, mdav, noise_stream, order_clusters
from release_pipeline.mechanisms.columns.methods import mask_column
from release_pipeline.mechanisms.noise import discrete_gaussian
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.mechanisms.whole_table import Column, TableBudget, make_design, measure_table, synthesise
from release_pipeline.mechanisms.whole_table.measure import CountedArrays

SECRET = bytes(32)
COLUMNS, WIDTH, TRIED = 4, 10**8, 2_000
SIGMA = 2**20
RHO = Fraction(24, 1000)  # epsilon 1 at a delta of a millionth
ATOMS = tuple(range(0, 20_000, 1_000))


@dataclass(frozen=True, slots=True)
class Case:
    """A task and its baseline, both on what `make` returns for a number of records."""

    make: Callable[[int], Any]
    task: Callable[[Any], object]
    baseline: Callable[[Any], object]
    unit: str  # what the baseline is
    most: float | None = None  # times the baseline: the target
    copies: float | None = None  # of the data: the target of its memory
    largest: int = 10**7  # records


def make_incomes(n: int) -> Any:
    """Lognormal values with a median of e^10."""
    return np.random.default_rng(n).lognormal(10, 1, n)


def make_rows(n: int) -> Any:
    """Whole numbers in four columns."""
    return np.random.default_rng(n).integers(0, WIDTH, (n, COLUMNS), endpoint=True)


def make_normal(n: int) -> Any:
    """Four independent columns: the hardest ones for an index."""
    return np.random.default_rng(n).standard_normal((n, COLUMNS))


def make_scales(n: int) -> Any:
    """Different scales up to 2^30."""
    return np.random.default_rng(n).integers(1, 2**30, n, endpoint=True)


def make_table(n: int) -> Any:
    """Fourteen columns of amounts and six of categories, which go together."""
    random = np.random.default_rng(n)
    factors = random.standard_normal((3, n))
    entries: list[Any] = []
    for place in range(20):
        score = 0.7 * (factors[place % 3] + random.standard_normal(n))
        amounts = np.clip(np.where(score < -1, 0, np.exp(0.8 * score + 8)), 0, 100_000)
        entries.append((amounts if place < 14 else np.digitize(score, [-1, 0, 1])).astype(np.int64))
    return entries


def make_released(n: int) -> Any:
    """Correlated originals, and what is released of them in clusters of five."""
    original = np.round(100 * (make_normal(n) + make_normal(n)[:, :1]))
    group = np.empty(n, dtype=np.int64)
    group[np.argsort(original[:, 0], kind="stable")] = np.arange(n) // 5
    size = np.bincount(group)
    return original, np.column_stack([np.bincount(group, column) / size for column in original.T])[[*group]]


def sort(data: Any) -> object:
    """A stable argsort of the data, or of their first column."""
    return np.argsort(data if data.ndim == 1 else np.ascontiguousarray(data[:, 0]), kind="stable")


def mask(method: str, values: Any, *, scope: str = "centroid", atoms: tuple[int, ...] = ()) -> object:
    """A column by a method, at epsilon 1."""
    k = None if method == "laplace" else 5
    options: dict[str, Any] = {} if method in ("laplace", "dp-cdf") else {"scope": scope}
    return mask_column(
        values, domain=(0, 10**7), grid="0.01", method=method, epsilon="1", k=k, atoms=atoms, secret=SECRET, context=("bench",),
        **options,
    )  # fmt: skip


def synthesise_table(entries: Any) -> object:
    """The rows of dp-table."""
    columns = [Column(100_000)] * 14 + [Column(3, nominal=True)] * 6
    design = make_design(columns, len(entries[0]), TableBudget(RHO, by_rho=True))
    measured = measure_table(CountedArrays(entries.__getitem__), design, lambda *purpose: noise_stream(SECRET, *purpose))
    return synthesise(measured, make_random(SECRET, "rows"))


def order(rows: Any, name: str) -> object:
    """An order of dp-mdav, ties included."""
    return order_clusters(rows, [WIDTH] * COLUMNS, 10, order=name, ties=noise_stream(SECRET, "ties"))


def link(both: Any) -> object:
    """Linkage of some released records to all originals, as an audit does it."""
    original, released = both
    return record_linkage(original, released, np.arange(len(released)), positions=_list_tried(released)).value


def link_by_tree(both: Any) -> object:
    """SciPy's tree as it comes: one nearest each, ties not looked for."""
    original, released = both
    deviation = original.std(axis=0)
    return KDTree(original / deviation).query(released[_list_tried(released)] / deviation)


def _list_tried(released: Any) -> Any:
    return np.linspace(0, len(released) - 1, min(len(released), TRIED)).astype(np.int64)


RANKS = {
    f"mask, {method}, {scope}": Case(make_incomes, partial(mask, method, scope=scope), sort, "stable argsorts", 3, 12)
    for method in ("dp-um", "idp-ls", "idp-cbls")
    for scope in ("centroid", "column")
}
CASES = RANKS | {
    "mask, dp-um, 20 atoms": Case(
        make_incomes, partial(mask, "dp-um", scope="column", atoms=ATOMS), sort, "stable argsorts", 3, 12
    ),
    "mask, dp-cdf": Case(make_incomes, partial(mask, "dp-cdf", atoms=(0,)), sort, "stable argsorts"),
    "mask, laplace": Case(make_incomes, partial(mask, "laplace"), sort, "stable argsorts"),
    "draw, Laplace": Case(
        make_scales,
        lambda scales: discrete_laplace(scales, noise_stream(SECRET, "bench")),
        lambda scales: np.random.default_rng(1).laplace(0, scales),
        "of NumPy's, not private",
    ),
    "draw, Gaussian": Case(
        make_scales,
        lambda scales: discrete_gaussian(Fraction(SIGMA**2), len(scales), noise_stream(SECRET, "bench")),
        lambda scales: discrete_laplace(np.full(len(scales), SIGMA + 1), noise_stream(SECRET, "bench")),
        "of the Laplace that proposes",
        3,
    ),
    "order, hilbert": Case(make_rows, partial(order, name="hilbert"), sort, "stable argsorts", 6),
    "order, corner": Case(make_rows, partial(order, name="corner"), sort, "stable argsorts", 6),
    "cluster, mdav": Case(make_normal, lambda matrix: mdav(matrix, 5), sort, "stable argsorts", largest=10**5),
    "audit, linkage": Case(make_released, link, link_by_tree, "of SciPy's tree", largest=10**6),
    "synthesise, dp-table": Case(
        make_table,
        synthesise_table,
        lambda entries: [np.sort(own) for own in entries],
        "sorts of all columns",
        copies=8,
        largest=10**6,
    ),
}
SIZES = (10**5, 10**6)
WARM = 30_000  # records, of which all loops are compiled
JUDGED = 10**5  # records from which on targets are meant: of fewer fixed costs decide
HEADS = ("case", "records", "CPU s", "ratio", "of what", "target", "peak MiB", "copies of the data", "target")


def measure(name: str, n: int) -> list[object]:
    """A row: CPU time and its ratio, peak memory and its ratio."""
    case = CASES[name]
    for task in (case.task, case.baseline):
        task(case.make(min(n, WARM)))  # what is loaded or compiled once is no part of it
    data = case.make(n)
    seconds, baseline = measuring.cpu_seconds(partial(case.task, data), partial(case.baseline, data), runs=3 if n < 10**6 else 1)
    ratio, row = seconds / baseline, [name, f"{n:,}", f"{seconds:.3f}"]
    memory = ["", "", ""]
    if measuring.is_memory_told():
        command = [sys.executable, "-m", "experiments.benchmarks", name, "--peak", str(n)]
        done = subprocess.run(command, cwd=measuring.ROOT, check=True, stdout=subprocess.PIPE, text=True)
        peak, size = int(done.stdout), _count_bytes(data)
        memory = [f"{peak / 2**20:.1f}", f"{peak / size:.1f}", _judge(peak / size, case.copies, n)]
    return [*row, f"{ratio:.2f}", case.unit, _judge(ratio, case.most, n), *memory]


def _judge(ratio: float, most: float | None, n: int) -> str:
    return "" if most is None or n < JUDGED else f"at most {most:g}: {'ok' if ratio <= most else 'MISSED'}"


def _count_bytes(data: Any) -> int:
    return sum(part.nbytes for part in data) if isinstance(data, (list, tuple)) else data.nbytes


def measure_peak(name: str, n: int) -> int:
    """Bytes above what was resident before, in this process, the data not included."""
    case = CASES[name]
    case.task(case.make(min(n, WARM)))
    data = case.make(n)
    measuring.reset_peak()
    before = measuring.resident("VmRSS")
    case.task(data)
    return max(measuring.resident("VmHWM") - before, 0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each case and number of records."""
    parser = argparse.ArgumentParser(prog="python -m experiments.benchmarks", description="What methods cost.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"cases that begin so (all): {', '.join(CASES)}")
    parser.add_argument("--rows", type=float, nargs="+", metavar="N", help="numbers of records (1e5 1e6)")
    parser.add_argument("--peak", type=int, metavar="N", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.peak is not None:
        print(measure_peak(options.names[0], options.peak))
        return
    chosen = [name for name in CASES if not options.names or name.startswith(tuple(options.names))]
    if not chosen:
        parser.error(f"no such case: {', '.join(options.names)} (there are {', '.join(CASES)})")
    measuring.print_machine()
    measuring.print_head(HEADS)
    for name in chosen:
        for n in [int(rows) for rows in options.rows or ()] or SIZES:
            if n <= CASES[name].largest:
                measuring.print_row(measure(name, n))


if __name__ == "__main__":
    main()
