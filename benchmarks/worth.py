"""`python -m benchmarks.worth POLICY.yaml FILE`: what a table made by this policy is worth to who asks it first questions.

Releases of the file that nobody gets, and how far their figures are from those of its records: the mean of every column, its
quantiles, the share of zeros, and means of groups (`audit: {groups: ...}`, else of kept columns). Medians over releases, and in
brackets what 95 of 100 releases stay below. Figures of records that a weight counts are not among them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from release_pipeline.flow.exploring.records import read_like
from release_pipeline.policy import Policy, load_policy
from release_pipeline.stages.served import SHARES
from release_pipeline.stages.simulation import Records, Reference, list_groupings, list_looked_at, simulate

RELEASES = 50
MOST = 0.95  # of releases stay below what is told in brackets

Numbers = npt.NDArray[np.float64]


def measure(policy: Policy, records: Records, releases: int) -> Iterator[list[str]]:
    """A line for every column."""
    reference = Reference(records, policy.noise_columns, list_groupings(policy, records))
    found = simulate(policy, [reference], secret=bytes(32), draws=releases, with_risks=False)
    if found.refusal:
        raise SystemExit(f"No such release would be made: {found.refusal}")
    for name, figures in found.columns.items():
        own = reference.figures[name]
        mean = float(own["mean"][0])
        groups = np.abs(figures["groups"] / own["groups"] - 1)
        yield [
            name,
            f"{mean:,.0f}",
            _share(np.abs(figures["mean"][:, 0] / mean - 1)),
            *([_share(np.nanmedian(groups, axis=1)), _share(np.nanmax(groups, axis=1))] if groups.size else ["", ""]),
            *(_say(np.abs(figures["quantiles"][:, at] - of), of) for at, of in enumerate(own["quantiles"])),
            _points(policy, name, own["at"], figures["at"]),
        ]


def _points(policy: Policy, name: str, own: Numbers, found: Numbers) -> str:
    """How far the share of zeros is off, in percentage points."""
    at = np.flatnonzero(list_looked_at(policy.noise_columns[name]) == 0)
    if not len(at):
        return ""
    off = 100 * np.abs(found[:, at[0]] - own[at[0]])
    return f"{100 * own[at[0]]:.1f}% ± {np.median(off):.2f} [{np.quantile(off, MOST):.2f}]"


def _share(off: Numbers) -> str:
    return f"{np.median(off):.1%} [{np.quantile(off, MOST):.1%}]"


def _say(off: Numbers, of: float) -> str:
    return f"{of:,.0f} ± {np.median(off):,.0f} [{np.quantile(off, MOST):,.0f}]"


def main() -> None:
    """A table in Markdown."""
    parser = argparse.ArgumentParser(description="What a table made by a policy is worth to who asks it first questions.")
    parser.add_argument("policy", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--releases", type=int, default=RELEASES)
    options = parser.parse_args()
    policy = load_policy(options.policy)
    records = read_like(policy, options.file, release=None, progress=lambda _: None).records
    quantiles = [f"{share:.0%} quantile" for share in SHARES]
    head = ["column", "mean", "off by", "means of groups, the middle one", "the worst one", *quantiles, "zeros"]
    for row in [head, ["---"] * len(head), *measure(policy, records, options.releases)]:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
