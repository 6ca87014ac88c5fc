"""Counts by value against sums by rank, column by column: the part of `ours` that judges dp-cdf.

Each column has an epsilon of its own, and the domain is [0, alpha max]. dp-um has isotonic consistency, and every k: its best one
is picked afterwards by looking at the error on the data, as no steward may.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.papers.reporting import OURS, Claim, mean_runs, pick, write_best
from experiments.papers.runs import Setting
from experiments.papers.tables import COLUMNS, Source, read_source
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.basis.utility import column_error
from release_pipeline.mechanisms.columns.methods import add_noise, compute_statistics, mask_column

KIND = "by value"
SUMS_KS = {
    "census": (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 540, 1080),
    "wine": (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 700, 1000, 1600, 2449, 4898),
}
ALPHAS, EPSILONS = ("1.5", "10"), ("1", "0.1")
FIELDS = ["table", "column", "alpha", "epsilon"]
RUNS, QUICK_RUNS = 30, 10


def list_settings(*, quick: bool) -> list[Setting]:
    """Every column of census and wine; in a quick run at alpha 1.5 and epsilon 1 alone, with a few k."""
    runs, alphas, epsilons = (QUICK_RUNS, ALPHAS[:1], EPSILONS[:1]) if quick else (RUNS, ALPHAS, EPSILONS)
    return [
        Setting.of(KIND, runs, table=table, column=column, alpha=alpha, method=method, k=k, epsilon=epsilon)
        for table, ks in SUMS_KS.items()
        for column, alpha, epsilon in product(COLUMNS[table], alphas, epsilons)
        for method, k in (*(("dp-um", k) for k in (ks[::3] if quick else ks)), ("dp-cdf", 1))
    ]


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """The error of one column in all runs."""
    source = read_source(data, setting.text("table"), (setting.text("column"),), setting.text("alpha"))
    released = _count if setting.text("method") == "dp-cdf" else _sum
    return [{"error": error} for error in released(source, setting, secrets)]


def _count(source: Source, setting: Setting, secrets: Sequence[bytes]) -> list[float]:
    numbers, [grid] = source.values[:, 0], source.grids
    found: list[float] = []
    for secret in secrets:
        masked = mask_column(
            numbers,
            domain=(grid.lo, grid.hi),
            grid=grid.step,
            method="dp-cdf",
            epsilon=setting.text("epsilon"),
            k=setting.number("k"),
            secret=secret,
            context=("ours", setting.key),
        )
        found.append(column_error(numbers, masked.values))
    return found


def _sum(source: Source, setting: Setting, secrets: Sequence[bytes]) -> list[float]:
    """Clusters are made once: noise alone differs from run to run."""
    numbers, [grid] = source.values[:, 0], source.grids
    exact = compute_statistics(
        numbers,
        grid=grid,
        method="dp-um",
        epsilon=Epsilon.of(setting.text("epsilon")),
        k=setting.number("k"),
        scope="column",
        consistency="isotonic",
        secret=bytes(32),
        context=("ours", setting.key),
    )
    drawn = (add_noise(exact, secret=secret, context=("ours", setting.key)) for secret in secrets)
    return [column_error(numbers, np.asarray(values)[exact.cluster]) for values in drawn]


def list_claims(error: pd.Series) -> list[Claim]:
    """What this project states of dp-cdf."""
    means = mean_runs(error)
    best = pick(means, method="dp-um").groupby(level=FIELDS).min()
    ratios = best / pick(means, method="dp-cdf", k=1).reorder_levels(FIELDS).reindex(best.index)
    note = "The error of dp-um over that of dp-cdf, column by column, means over runs"
    words = "Counts by value have less error than isotonic dp-um at its best k, under the same definition."
    more = "In no column have they more than a ninth more error."
    return [Claim(words, OURS, ratios, note=note), Claim(more, OURS, ratios, 0.9, note="The same ratio")]


def write_columns(error: pd.Series) -> str:
    """A row for each column and epsilon."""
    return write_best(pick(error, alpha="1.5"), "k", "method", "table", "column", "epsilon")
