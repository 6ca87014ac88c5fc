"""`python -m experiments.benchmarks.scale`: a release of a large table, from its source to the package, stage by stage, each in a
fresh process: CPU seconds, peak memory, what part of the whole it is, and how it grows.

The source is made here, slice by slice, so that it may be larger than memory: `--rows 1e8 --columns 10` writes some 3 GB of
Parquet. With `--folder` it is kept there, and made only once. `--memory` is the site's `memory`. CPU time is also given as a
multiple of sorting the same columns with NumPy in the same run (up to 1e7 rows; beyond that, of that of 1e7 per row). Peak
memory is told with the pages of files, which the system may take back, and without them, and that in copies of one column of 8
bytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from experiments.benchmarks import measuring
from experiments.benchmarks.journey import ALL, PEOPLE, Cost, Journey, appoint, run_stages

SLICE = 1 << 20
SIZES = (10**5, 10**6, 10**7)
MOST_SORTED = 10**7
REGIONS = 20
PROTECT = "{method: idp-cbls, epsilon: 2, k: 25, scope: column, consistency: isotonic}"
_KINDS = ("income", "age", "hours", "wealth")
_DOMAINS = {"income": (10**6, "1"), "age": (110, "1"), "hours": (100, "0.5"), "wealth": (5 * 10**6, "1")}


def name_columns(columns: int) -> list[str]:
    """So many noise columns."""
    return [f"{_KINDS[number % len(_KINDS)]}_{number // len(_KINDS) + 1}" for number in range(columns)]


def make_slice(first: int, rows: int, columns: int) -> pa.Table:
    """Some records: a person each, two kept columns, and heavy tails, whole numbers, halves and many zeros."""
    rng = np.random.default_rng(first)
    made: dict[str, Any] = {
        "person": pa.array(np.arange(first, first + rows) * 7919 % (1 << 40) + 10**8),
        "sex": pa.array(rng.integers(1, 3, rows)),
        "region": pa.array(rng.integers(1, REGIONS + 1, rows)),
    }
    for name in name_columns(columns):
        kind = name.partition("_")[0]
        if kind == "income":
            numbers = np.minimum(np.round(rng.lognormal(10, 1, rows)), 10**6)
        elif kind == "age":
            numbers = np.clip(np.round(rng.normal(45, 18, rows)), 0, 110)
        elif kind == "hours":
            numbers = np.clip(np.round(rng.normal(35, 12, rows) * 2) / 2, 0, 100)
        else:
            numbers = np.where(rng.random(rows) < 0.3, 0, np.round(rng.lognormal(11, 1.5, rows)))
        made[name] = pa.array(numbers.astype(np.float64))
    return pa.table(made)


def write_source(file: Path, rows: int, columns: int) -> None:
    """The source, slice by slice; appears whole."""
    partial = file.with_suffix(".partial")
    with pyarrow.parquet.ParquetWriter(partial, make_slice(0, 1, columns).schema) as writer:
        for first in range(0, rows, SLICE):
            writer.write_table(make_slice(first, min(SLICE, rows - first), columns))
    partial.rename(file)


def write_site(home: Path, source: Path, columns: int, protect: str, memory: str) -> Path:
    """A site with one policy for the source."""
    is_synthetic = "dp-table" in protect
    suppress = ["suppress: {quasi_groups_below: 5, at_most: 5%}"]
    if "k-epsilon" in protect:
        suppress = ["suppress: {grouping_at_most: 5%, confidence: 90%, at_most: 20%}"]
    declared = {name: f"{{{said}, label: {name}}}" for name, said in _declare(columns, protect).items()}
    rest = [*([] if is_synthetic else suppress), f"gates: {{min_rows: {10_000 if is_synthetic else 1_000}}}"]
    (home / "policies").mkdir(parents=True)
    lines = [
        "policy: scale",
        "steward: ana",
        "population: everybody",
        f"source: {{path: {json.dumps(str(source))}}}",
        "person: {column: person, records_per_release: 1}",
        "releases: once",
        f"protect: {protect}",
        "columns:",
        "  person: {role: identifier, do: drop}",
        *(f"  {column}: {said}" for column, said in declared.items()),
        *rest,
        "publish: {formats: [parquet]}",
        "audience: internal",
        "about: {title: Synthetic records, description: Made up to measure by, licence: CC0-1.0, publisher: {name: nobody}, "
        "contact: {email: nobody@example.org}}",
    ]
    (home / "policies" / "scale.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (home / "populations.yaml").write_text("everybody: {cap: {releases: 10}}\n", encoding="utf-8")
    if memory:
        (home / "site.yaml").write_text(f"memory: {memory}\n", encoding="utf-8")
    return home


def _declare_quasi(protect: str) -> dict[str, str]:
    """What a policy says of `sex` and `region`."""
    regions = list(range(1, REGIONS + 1))
    if "k-epsilon" in protect:
        coarser = "role: quasi, do: generalise, hierarchy:"
        parts = ", ".join(f"part {first}: {regions[first : first + 5]}" for first in range(0, REGIONS, 5))
        return {"sex": f"{coarser} {{groups: {{any: [1, 2]}}}}", "region": f"{coarser} {{groups: {{{parts}}}}}"}
    listed = f"role: quasi, do: {'synthesise' if 'dp-table' in protect else 'keep, why: x'}, values:"
    return {"sex": f"{listed} [1, 2]", "region": f"{listed} {regions}"}


def _declare(columns: int, protect: str) -> dict[str, str]:
    """What the policy says of each column: for `k-epsilon` ages, too, are made coarser, and no others masked."""
    number = f"role: confidential, do: {'synthesise' if 'dp-table' in protect else 'noise'}"
    found = _declare_quasi(protect)
    for name in name_columns(columns):
        kind = name.partition("_")[0]
        high, grid = _DOMAINS[kind]
        found[name] = f"{number}, domain: [0, {high}], grid: {grid}, outside: clamp, missing: fail, why: x"
        if kind == "age" and "k-epsilon" in protect:
            cuts = f"{{intervals: [5, 10, 30], domain: [0, {high}], grid: {grid}, outside: clamp}}"
            found[name] = f"role: quasi, do: generalise, why: x, hierarchy: {cuts}"
    return found


def measure(rows: int, columns: int, folder: Path, protect: str, memory: str) -> Journey:
    """What a release cost, each stage in a fresh process. The site is removed when it is done."""
    source = folder / f"source-{rows}-{columns}.parquet"
    if not source.exists():
        write_source(source, rows, columns)
    with TemporaryDirectory(dir=folder, prefix="site-") as made:
        home = Path(made)
        appoint(write_site(home, source, columns, protect, memory))
        parts: dict[str, Cost] = {}
        for stage in (*ALL, *PEOPLE):
            done = run_stages(home, (stage,))
            parts = {"imports": done.parts["imports"], **parts, stage: done.parts[stage]}
        peak, own = max(cost.peak for cost in parts.values()), max(cost.own for cost in parts.values())
        whole = Cost(sum(cost.wall for cost in parts.values()), sum(cost.cpu for cost in parts.values()), peak, own)
        return Journey(whole, parts)


def sort_columns(rows: int, columns: int) -> float:
    """CPU seconds of sorting the noise columns with NumPy, one after the other."""
    few = min(rows, MOST_SORTED)
    made = pa.concat_tables([make_slice(first, min(SLICE, few - first), columns) for first in range(0, few, SLICE)])
    [seconds] = measuring.cpu_seconds(lambda: [np.sort(made.column(name).to_numpy()) for name in name_columns(columns)], runs=1)
    return seconds * rows / few


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for each stage and number of rows."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks.scale", description="A release of a large table, stage by stage."
    )
    parser.add_argument("--rows", type=float, nargs="+", metavar="N", help="numbers of rows (1e5 1e6 1e7)")
    parser.add_argument("--columns", type=int, default=4, metavar="C", help="noise columns (4)")
    parser.add_argument("--memory", default="", metavar="SIZE", help="the site's memory, as in 8 GiB")
    parser.add_argument("--protect", default=PROTECT, metavar="YAML", help=f"the policy's protect ({PROTECT})")
    parser.add_argument("--folder", type=Path, help="keep the sources here")
    options = parser.parse_args(arguments)
    sizes = [int(rows) for rows in options.rows] if options.rows else SIZES
    measuring.print_machine()
    print(f"\n{options.columns} noise columns, {options.protect}, memory {options.memory or 'of the machine'}\n")
    heads = ["rows", "stage", "wall s", "CPU s", "of the whole", "sorts of its columns", "peak MiB", "of no file"]
    measuring.print_head([*heads, "copies of a column"])
    with TemporaryDirectory(prefix="release-pipeline-scale-") as made:
        folder: Path = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        for rows in sizes:
            floor = sort_columns(rows, options.columns)
            journey = measure(rows, options.columns, folder, options.protect, options.memory)
            for name, cost in [*journey.parts.items(), ("whole", journey.whole)]:
                share, sorts, copies = cost.cpu / journey.whole.cpu, cost.cpu / floor, cost.own / (8 * rows)
                spent = (f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{share:.0%}", f"{sorts:.1f}")
                sizes_of = (f"{cost.peak / 2**20:.0f}", f"{cost.own / 2**20:.0f}", f"{copies:.1f}")
                measuring.print_row([f"{rows:.0e}", name, *spent, *sizes_of])


if __name__ == "__main__":
    main()
