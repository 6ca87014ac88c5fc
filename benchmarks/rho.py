"""`python -m benchmarks.rho POLICY.yaml FILE`: from how many columns on a claim by rho has less error than one by epsilon.

Some columns of the policy after the other, from one to all, are released by its method at the same epsilon, pure and by rho at a
delta of 0.000001: the errors by epsilon over those by rho, geometric mean over columns, and how many columns have less by rho.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from release_pipeline.flow.exploring.data import read_file
from release_pipeline.flow.exploring.simulating import Written
from release_pipeline.policy import Policy, load_policy
from release_pipeline.policy.load import parse_changed
from release_pipeline.stages.simulation import Records, Reference, simulate

DRAWS = 9
STARTS = (0, 3, 6)  # of the columns that are taken, where not all are


def compare(policy: Policy, written: Written, records: Records, epsilon: Decimal, count: int) -> tuple[float, int, int]:
    """Of so many columns at a time: errors by epsilon over errors by rho, how many columns have less by rho, and of how many."""
    names = list(policy.noise_columns)
    starts = STARTS if count < len(names) else (0,)
    logs: list[float] = []
    for start in starts:
        chosen = [names[(start + at) % len(names)] for at in range(count)]
        pure, by_rho = (_measure(policy, written, records, epsilon, chosen, rho=rho) for rho in (False, True))
        logs += [float(np.log(pure[name] / by_rho[name])) for name in chosen]
    return float(np.exp(np.mean(logs))), sum(log > 0 for log in logs), len(logs)


def _measure(
    policy: Policy, written: Written, records: Records, epsilon: Decimal, chosen: Sequence[str], *, rho: bool
) -> dict[str, float]:
    def change(raw: dict[str, Any]) -> dict[str, Any]:
        left = {key: raw[key] for key in ("policy", "steward", "population", "source", "releases")}
        protect = {key: raw["protect"][key] for key in ("method", "k") if key in raw["protect"]}
        by_rho = {"definition": "zcdp", "delta": Decimal("0.000001")} if rho else {}
        return {
            **left,
            "person": "each-row",
            "protect": {**protect, "epsilon": epsilon, **by_rho},
            "columns": {name: raw["columns"][name] for name in chosen},
            "gates": {"min_rows": raw["gates"]["min_rows"]},
        }

    changed = parse_changed(written.text, change, name=written.name, read=written.files.__getitem__)
    columns = changed.noise_columns
    reference = Reference(Records({name: records.columns[name] for name in columns}), columns, ())
    found = simulate(changed, [reference], secret=bytes(32), draws=DRAWS, with_linkage=False)
    return {name: float(np.median(figures["error"])) for name, figures in found.columns.items()}


def _list_counts(columns: int) -> Iterator[int]:
    yield from (count for count in (1, 2, 3, 4, 6, 9, 12, 20, 40) if count < columns)
    yield columns


def main() -> None:
    """A line for each epsilon and number of columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--epsilons", default="1,3")
    options = parser.parse_args()
    policy, written = load_policy(options.policy), Written.of(options.policy)
    records = read_file(policy, options.file, options.file.name).records
    for epsilon in map(Decimal, options.epsilons.split(",")):
        for count in _list_counts(len(policy.noise_columns)):
            times, less, columns = compare(policy, written, records, epsilon, count)
            print(f"epsilon {epsilon}, {count} columns: {times:.3g} times, less by rho in {less} of {columns}", flush=True)


if __name__ == "__main__":
    main()
