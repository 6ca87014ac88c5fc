"""`python -m benchmarks.foresight POLICY.yaml FILE...`: whether figures of releases lie where `explore` says.

Every file is cut into two halves at random. What `explore --like` says of one half is compared with releases of the other, which
go through the strategy of the policy as every release does: of each setting and column, how many have error, distance, quantiles
and shares in the range that 99 of 100 should be in. `--other FILE`: releases are of this file, and not of a
half.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt

from release_pipeline.flow.exploring.document import ColumnFigures
from release_pipeline.flow.exploring.ranges import RangeView
from release_pipeline.flow.exploring.records import read_like
from release_pipeline.flow.exploring.trials import Bench, Refused, Written, try_settings
from release_pipeline.flow.exploring.views import view_setting
from release_pipeline.policy import load_policy
from release_pipeline.policy.settings import Axes, list_settings
from release_pipeline.stages.simulation import Reference, list_groupings, simulate

Numbers = npt.NDArray[np.float64]
RELEASES = 200


def compare(policy_file: Path, file: Path, other: Path | None, axes: Axes, releases: int) -> Iterator[list[object]]:
    """For every setting: how many releases are where they should be, by figure, and the column that is worst."""
    policy, written = load_policy(policy_file), Written.of(policy_file)
    one = read_like(policy, file, release=None, progress=_quiet).records
    if other is None:
        order = np.random.default_rng(1).permutation(one.count)
        one, second = one.take(np.sort(order[: one.count // 2])), one.take(np.sort(order[one.count // 2 :]))
    else:
        second = read_like(policy, other, release=None, progress=_quiet).records
    bench = Bench(written, policy, one, second.count, bytes(32), resampled=True)
    target = Reference(second, policy.noise_columns, list_groupings(policy, second), bench.reference)
    for tested in try_settings(bench, list(list_settings(written.raw, policy, axes)), workers=1, progress=_quiet):
        if isinstance(tested, Refused):
            yield [file.stem, second.count, tested.setting.words, tested.why, "", "", "", ""]
            continue
        said = view_setting(bench, tested, 1)
        found = simulate(tested.policy, [target], secret=bytes(range(32)), draws=releases, with_risks=False)
        held: dict[str, dict[str, float]] = defaultdict(dict)
        for name, figures in said.columns.items():
            for figure, shares in _list_held(figures, found.columns[name]):
                held[figure][name] = shares
        worst = min(held["error"].items(), key=lambda pair: pair[1])
        each = [f"{fmean(held[figure].values()):.1%}" for figure in ("error", "ks", "quantiles", "shares")]
        yield [file.stem, second.count, tested.setting.words, *each, f"{worst[0]} {worst[1]:.1%}"]


def _list_held(said: ColumnFigures, found: object) -> Iterator[tuple[str, float]]:
    figures = found if isinstance(found, dict) else dict(found)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]
    yield "error", _held(said.error, figures["error"][:, 0])
    yield "ks", _held(said.ks, figures["ks"][:, 0])
    yield "quantiles", fmean(_held(one.released, figures["quantiles"][:, at]) for at, one in enumerate(said.quantiles))
    if said.shares:
        yield "shares", fmean(_held(one.released, figures["at"][:, at]) for at, one in enumerate(said.shares))


def _held(said: RangeView, found: Numbers) -> float:
    """The share of figures that are in the range; what is rounded is within."""
    if said.low is None or said.high is None:
        return 1.0
    slack = 1e-5 * max(abs(said.low), abs(said.high))
    return float(np.mean((found >= said.low - slack) & (found <= said.high + slack)))


def _quiet(_: str) -> None:
    """Nothing is told."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description="Whether figures of releases lie where `explore` says.")
    parser.add_argument("policy", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--other", type=Path, help="releases are of this file")
    parser.add_argument("--releases", type=int, default=RELEASES, help="of every setting (200)")
    parser.add_argument("--methods", default="", help="of these methods")
    options = parser.parse_args(arguments)
    axes = Axes(methods=[name for name in options.methods.split(",") if name], epsilons=(), sizes=(10, 30))
    head = ["file", "records", "setting", "error", "ks", "quantiles", "shares", "worst column"]
    for file in options.files:
        rows = list(compare(options.policy, file, options.other, axes, options.releases))
        print("\n".join(" | ".join(map(str, row)) for row in [head, *rows]), flush=True)


if __name__ == "__main__":
    main()
