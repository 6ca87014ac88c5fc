"""`python -m experiments.peers`: dp-table beside AIM and MST from the field's own package, in one run, table by table.

The package (`mbi`, which needs jax) cannot live in the project's environment: `--interpreter`, or RELEASE_PIPELINE_PEERS, is a
Python that has it, and `--make FOLDER` makes one there. Without it the run says so and measures dp-table alone.

What is held equal. Every method protects the whole table at the same rho (that of epsilon at delta 1e-6) for neighbours that
replace a record; it gets the cut points that dp-table paid for, and pays for them too. `cells`: the peer sees records as
dp-table's cells, and has all that is left of rho after the cuts, its own counts of columns included. `groups`: as at most twelve
groups of these cells, with dp-table's noisy counts of columns as they are, and has what is left after these as well. Its
synthetic codes become entries by the placement of dp-table itself, and all tables are measured by `experiments.peers.synthetic`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

from experiments.benchmarks.measuring import ROOT, print_machine
from experiments.papers.tables import KEY, VARIABLE, find_data
from experiments.peers.synthetic import WHOLE, Whole, compare, read_whole
from release_pipeline.mechanisms import noise_stream
from release_pipeline.mechanisms.accounting.budget import NANO, rho_within
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.noise.unclaimed import Random, make_random
from release_pipeline.mechanisms.whole_table import Measured, TableBudget, make_design, measure_table, synthesise
from release_pipeline.mechanisms.whole_table.cells import count_valued, group_cells
from release_pipeline.mechanisms.whole_table.cuts import OUTER_LEVELS
from release_pipeline.mechanisms.whole_table.design import deviation
from release_pipeline.mechanisms.whole_table.links import Link, link_columns
from release_pipeline.mechanisms.whole_table.measure import CountedArrays, hold_records
from release_pipeline.mechanisms.whole_table.pool import Linked
from release_pipeline.mechanisms.whole_table.rows import Placing
from release_pipeline.mechanisms.whole_table.scores import MOST_ROWS, Law, Scores

INTERPRETER = "RELEASE_PIPELINE_PEERS"
PACKAGES = ("mbi==2.0.0", "jax")
SCRIPT = Path(__file__).with_name("graphical.py")
OURS, PEERS, SEEN = "dp-table", ("aim", "mst"), ("cells", "groups")
DELTA, MEGABYTES, GROUPS = Decimal("0.000001"), 2.0, 12
MEASURES = ("pairs", "triples", "spearman", "group_means", "auc", "cpu", "peak")
DATA = Path(os.environ.get(VARIABLE, "."))
EMBEDDED = ("rand-hie",)  # in a wheel: no reference data are needed for it


@dataclass(frozen=True, slots=True)
class Case:
    """One run of one method. `pure`: epsilon alone, which dp-table can do and the peers cannot."""

    table: str
    epsilon: int
    seed: int
    method: str
    seen: str = ""
    pure: bool = False

    @property
    def label(self) -> str:
        """The method, and what it sees the records as."""
        return f"{self.method} on {self.seen}" if self.seen else self.method


@dataclass(frozen=True, slots=True)
class Seen:
    """The records of a table as a peer sees them. `margins`, of which it need not pay: noisy counts, and their variances."""

    codes: IntArray
    sizes: IntArray
    rho: Fraction
    groups: tuple[IntArray, ...]  # of each cell
    margins: tuple[Any, Any] | None


def measure_ours(case: Case, whole: Whole) -> tuple[Measured, dict[str, float]]:
    """What dp-table measured, and how far its rows are off."""
    started = json.dumps(asdict(case))  # the child makes the same table: CPU and memory are of a process of its own
    with TemporaryDirectory(prefix="release-pipeline-peers-") as folder:
        written = Path(folder) / "rows.npz"
        subprocess.run([sys.executable, "-m", "experiments.peers", "--here", started, str(written)], cwd=ROOT, check=True)
        with np.load(written) as made:
            found = compare(whole, list(made["rows"])) | {"cpu": float(made["cpu"]), "peak": float(made["peak"])}
    return measure(case, whole), found


def measure(case: Case, whole: Whole) -> Measured:
    """dp-table's noisy counts."""
    design = make_design(whole.columns, whole.records, budget_of(case))
    return measure_table(
        CountedArrays(whole.entries.__getitem__), design, lambda *purpose: noise_stream(KEY, *context_of(case), *purpose)
    )


def context_of(case: Case) -> tuple[str, str, int, int]:
    """Of dp-table's noise: the same for all methods."""
    return ("pure" if case.pure else "peers", case.table, case.epsilon, case.seed)


def budget_of(case: Case) -> TableBudget:
    """That of the whole table."""
    if case.pure:
        return TableBudget(Fraction(case.epsilon))
    return TableBudget(Fraction(rho_within(case.epsilon * NANO, DELTA), NANO), by_rho=True)


def show(measured: Measured, whole: Whole, seen: str) -> Seen:
    """The records as a peer sees them, and what is left of rho for it."""
    design = measured.design
    found = [cells.find(own) for cells, own in zip(measured.cells, whole.entries, strict=True)]
    levels = sum((design.budget.loss_of_cuts(e) * (depth + OUTER_LEVELS) for e, depth in design.cuts.values()), Fraction(0))
    left = design.budget.amount - levels
    if seen == "cells":
        sizes = np.array([cells.count for cells in measured.cells])
        return Seen(np.stack(found, axis=1), sizes, left, tuple(np.arange(size) for size in sizes), None)
    groups = tuple(
        group_cells(
            cells,
            hold_records(measured.design, measured.cells[place], measured.margins[place]),
            GROUPS,
            design.pair_deviation / 4,
        )
        for place, cells in enumerate(measured.cells)
    )
    both = list(zip(groups, measured.margins, strict=True))
    counts = np.concatenate([np.bincount(own, margin.astype(np.float64)) for own, margin in both])
    variances = np.concatenate([np.bincount(own) * deviation(design.margins) ** 2 for own in groups])
    codes = np.stack([own[cell] for own, cell in zip(groups, found, strict=True)], axis=1)
    sizes = np.array([int(own.max()) + 1 for own in groups])
    return Seen(codes, sizes, left - design.margins.loss * len(groups), groups, (counts, variances))


def run_peer(case: Case, seen: Seen, interpreter: Path, script: Path) -> dict[str, Any]:
    """The synthetic codes of a peer, and what it says of its run."""
    given: dict[str, Any] = {
        "method": case.method,
        "codes": seen.codes,
        "sizes": seen.sizes,
        "rho": float(seen.rho),
        "seed": case.seed,
        "megabytes": MEGABYTES,
    }
    if seen.margins is not None:
        given["margins"], given["variances"] = seen.margins
    with TemporaryDirectory(prefix="release-pipeline-peers-") as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **given)
        subprocess.run(
            [str(interpreter), str(script), str(source), str(target)], check=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        )
        with np.load(target) as made:
            return dict(made)


def enter(codes: IntArray, measured: Measured, seen: Seen, random: Random) -> list[IntArray]:
    """Entries for a peer's codes, which come in random order, by dp-table's placement; in groups of several cells, by scores
    that go together as the peer's own columns do."""
    columns = measured.design.columns
    chosen: IntArray = np.ascontiguousarray(codes.T)
    alone = seen.margins is None
    order: Mapping[int, FloatArray] = {} if alone else _score(chosen, measured, seen, random)
    entries: list[IntArray] = []
    for place in range(len(columns)):
        held = hold_records(measured.design, measured.cells[place], measured.margins[place])
        if alone:
            held = np.bincount(chosen[place], minlength=len(held)).astype(np.float64)
        rows = np.bincount(chosen[place], minlength=int(seen.groups[place].max()) + 1)
        placing = Placing.of(measured.cells[place], held, seen.groups[place], rows, random)
        entries.append(placing.place(chosen[place], np.zeros_like(rows), order.get(place), random))
    return entries


def _score(chosen: IntArray, measured: Measured, seen: Seen, random: Random) -> dict[int, FloatArray]:
    held = [np.bincount(own, minlength=int(size)) + 1e-6 for own, size in zip(chosen, seen.sizes, strict=True)]
    held = [own * (chosen.shape[1] / own.sum()) for own in held]
    ordered = {
        place: count_valued(measured.cells[place], seen.groups[place])
        for place, column in enumerate(measured.design.columns)
        if not column.nominal
    }
    links: dict[tuple[int, int], Link] = {}
    for one, other in combinations(ordered, 2):
        size = int(seen.sizes[one]), int(seen.sizes[other])
        both = np.bincount(chosen[one] * size[1] + chosen[other], minlength=size[0] * size[1]).reshape(size)
        valued = ordered[one], ordered[other]
        links[one, other] = link_columns(both.astype(np.float64), held[one], held[other], 1.0, valued=valued)
    linked = Linked(held, links, ordered)
    law = Law.fit(chosen[:, :MOST_ROWS], linked, random)
    return Scores.of(chosen, law, random).locate(chosen, np.arange(chosen.shape[1]), random)


def _of_peer(case: Case, whole: Whole, measured: Measured, options: argparse.Namespace) -> dict[str, Any]:
    seen = show(measured, whole, case.seen)
    made = run_peer(case, seen, options.interpreter, options.script)
    random = make_random(KEY, "peer", *context_of(case), case.method, case.seen)
    entries = enter(random.permutation(made["codes"]), measured, seen, random)
    found = compare(whole, entries) | {"cpu": float(made["cpu"]), "peak": float(made["peak"])}
    return found | {"notes": json.loads(str(made["notes"]))}


def run(options: argparse.Namespace) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every case, method after method of each seed."""
    for name in options.tables:
        whole = read_whole(DATA, name)
        for epsilon in options.epsilons:
            for seed in range(options.seeds):
                ours = Case(name, epsilon, seed, OURS)
                measured, found = measure_ours(ours, whole)
                yield ours, found
                for method in options.methods:
                    for seen in options.seen:
                        case = Case(name, epsilon, seed, method, seen)
                        if options.interpreter is not None:
                            yield case, _of_peer(case, whole, measured, options)
                if options.pure:
                    yield (pure := Case(name, epsilon, seed, f"{OURS}, pure", pure=True)), measure_ours(pure, whole)[1]


def describe(found: Mapping[Case, Mapping[str, Any]]) -> Iterator[str]:
    """A table of medians over seeds, in Markdown, of every table and epsilon."""
    for name, epsilon in dict.fromkeys((case.table, case.epsilon) for case in found):
        mine = {case: own for case, own in found.items() if (case.table, case.epsilon) == (name, epsilon)}
        yield f"\n{name}, epsilon {epsilon}, medians of {len({case.seed for case in mine})} seeds\n"
        yield "| method | pairs | triples | Spearman | group means | AUC | CPU s | peak MiB |"
        yield "|---|---|---|---|---|---|---|---|"
        for label in dict.fromkeys(case.label for case in mine):
            runs = [own for case, own in mine.items() if case.label == label]
            medians = {measure: median(own[measure] for own in runs) for measure in MEASURES}
            figures = [f"{medians[measure]:.4f}" for measure in MEASURES[:5]]
            yield f"| {' | '.join([label, *figures])} | {medians['cpu']:.1f} | {medians['peak'] / 2**20:.0f} |"


def make_environment(folder: Path) -> Path:
    """A Python there that has the packages."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    found = folder / "bin" / "python"
    subprocess.run([str(found), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each case as it is measured, then tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.peers", description="dp-table beside AIM and MST, in one run.")
    given = os.environ.get(INTERPRETER)
    parser.add_argument(
        "--interpreter", type=Path, default=Path(given) if given else None, help=f"a Python with mbi ({INTERPRETER})"
    )
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="make such an environment there first")
    parser.add_argument("--script", type=Path, default=SCRIPT, help=argparse.SUPPRESS)
    parser.add_argument(
        "--tables", nargs="+", choices=list(WHOLE), default=["adult", "rand-hie"] if VARIABLE in os.environ else ["rand-hie"]
    )
    parser.add_argument("--epsilons", nargs="+", type=int, default=[1, 3])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--seen", nargs="+", choices=SEEN, default=["cells"], help="what peers see records as")
    parser.add_argument("--pure", action="store_true", help="dp-table at pure epsilon too")
    options = parser.parse_args(arguments)
    if options.make is not None:
        options.interpreter = make_environment(options.make)
    find_data(None, [name for name in options.tables if name not in EMBEDDED])  # says what is missing, and where to get it
    print_machine()
    if options.interpreter is None:
        print(f"No peer is measured: name a Python with mbi by --interpreter or {INTERPRETER}, or make one by --make FOLDER.\n")
    found: dict[Case, dict[str, Any]] = {}
    for case, own in run(options):
        figures = " ".join(f"{measure} {own[measure]:.4g}" for measure in MEASURES)
        print(f"{case.table} {case.epsilon} seed {case.seed} {case.label}: {figures} {own.get('notes', '')}", flush=True)
        found[case] = own
    print("\n".join(describe(found)))


def _measure_here(case: Case, target: str) -> None:
    """dp-table itself in a process of its own, as peers are."""
    whole, started = read_whole(DATA, case.table), process_time()
    rows = synthesise(measure(case, whole), make_random(KEY, *context_of(case), "rows"))
    cpu, peak = process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.savez(target, rows=np.stack(rows), cpu=cpu, peak=peak)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        _measure_here(Case(**json.loads(sys.argv[2])), sys.argv[3])
    else:
        main()
