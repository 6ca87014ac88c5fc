"""Which method for which release: single columns of census, wine and adult, thinned to several numbers of records, at the same
epsilon of their own. What decides how well a method does is records times epsilon.

Domains are [0, 1.5 max]. k is what public facts suggest (`suggest_k`), and of the iDP methods what they are used with: nobody
looked at errors. Methods have definitions of their own: laplace, dp-um and dp-cdf are eps-DP, idp-ls and idp-cbls eps-iDP for a
column's list. What is measured of a column:

- `error`: squared error over squared deviation from the column's mean; `ks`: the largest difference of the distribution
  functions;
- `quantiles`: the mean difference of the quantiles from 1% to 99%, in standard deviations;
- `zeros`: by how much the share of zeros differs, of capital gains and losses; `mean`: how far means lie apart, in standard
  deviations.

Kind `many`: what is left of a column where one epsilon is shared by many: pure, each with its part of epsilon; and by rho, at
delta 0.000001, each with its part of that. dp-um is at its best k, found by looking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.papers.reporting import OURS, Chapter, Claim, average_logs, divide, mean_runs, pick, write_table
from experiments.papers.runs import Setting
from experiments.papers.tables import COLUMNS, KEY, Numbers, Source, read_source
from release_pipeline.mechanisms import Epsilon, noise_stream
from release_pipeline.mechanisms.accounting.budget import epsilon_of, rho_within
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import column_error, find_gap
from release_pipeline.mechanisms.columns.methods import mask_column
from release_pipeline.mechanisms.noise import shuffled_positions

KIND, MANY = "columns", "many"
TABLES = {**COLUMNS, "adult": ("age", "capital_gain", "capital_loss", "hours_per_week", "fnlwgt")}
RECORDS, EVERYBODY = (250, 1000), 0
EPSILONS = ("0.1", "0.3", "1", "3")
METHODS = ("laplace", "dp-um", "idp-ls", "idp-cbls", "dp-cdf")
RUNS, QUICK_RUNS = 20, 10
QUICK_COLUMNS, QUICK_EPSILONS = {"census": ("AGI",), "wine": ("pH",), "adult": ("capital_gain",)}, ("1",)
COLUMNS_TOGETHER, EPSILON, DELTA = (1, 4, 12, 60), "1", Decimal("0.000001")
MANY_KS = {"census": (20, 100, 300, 1080), "wine": (50, 300, 1000, 4898)}  # of dp-um, the best of which is looked for afterwards
NEEDS = tuple(TABLES)
MEASURES = {"error": "Error", "ks": "KS", "quantiles": "Quantiles", "zeros": "Share of zeros", "mean": "Mean"}
BINS = (0, 30, 100, 300, 1000, 3000, 10**9)  # of records times epsilon
NAMES = ("below 30", "30 to 100", "100 to 300", "300 to 1,000", "1,000 to 3,000", "3,000 or more")
ENOUGH = 100
SHARES = np.arange(1, 100) / 100


def list_settings(*, quick: bool) -> list[Setting]:
    """Every column, thinned to some and with all of its records, by every method at every epsilon."""
    runs = QUICK_RUNS if quick else RUNS
    together = [
        Setting.of(MANY, runs, table=table, column=column, together=count, method=method, by=by, k=k)
        for table, ks in MANY_KS.items()
        for column in (QUICK_COLUMNS[table] if quick else COLUMNS[table])
        for count in (COLUMNS_TOGETHER[2:3] if quick else COLUMNS_TOGETHER)
        for by in ("epsilon", "rho")
        for method, k in (*(("dp-um", k) for k in ks), ("dp-cdf", 1))
    ]
    return together + [
        Setting.of(KIND, runs, table=table, column=column, records=records, method=method, epsilon=epsilon)
        for table, columns in (QUICK_COLUMNS if quick else TABLES).items()
        for column in columns
        for records in ((EVERYBODY,) if quick else (*RECORDS, EVERYBODY))
        for method in METHODS
        for epsilon in (QUICK_EPSILONS if quick else EPSILONS)
    ]


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """One column in all runs: the same records in each."""
    whole = read_source(data, setting.text("table"), (setting.text("column"),))
    if setting.kind == MANY:
        return [{"error": _share(whole, setting, secret)} for secret in secrets]
    numbers, epsilon = _thin(whole, setting.number("records")), setting.text("epsilon")
    return [_compare(numbers, _mask(whole, numbers, setting, epsilon, secret)) for secret in secrets]


def _share(source: Source, setting: Setting, secret: bytes) -> float:
    """The error of one column that has its part of what all of them share."""
    numbers, [grid] = source.values[:, 0], source.grids
    count, total = setting.number("together"), Epsilon.of(EPSILON)
    options: dict[str, Any] = {"epsilon": Epsilon(total.nano // count)}
    if setting.text("by") == "rho":
        part = epsilon_of(rho_within(total.nano, DELTA) // count, DELTA)
        options = {"epsilon": Epsilon(part), "definition": "zcdp", "delta": DELTA}
    masked = mask_column(
        numbers,
        domain=(grid.lo, grid.hi),
        grid=grid.step,
        method=setting.text("method"),
        k=setting.number("k"),
        secret=secret,
        context=("choosing", setting.key),
        **options,
    )
    return column_error(numbers, masked.values)


def suggest_k(records: int, epsilon: float) -> int:
    """The k of dp-um that has the least error where values are spread evenly over the domain: as large as noise, spread over k
    records, is beside what grouping takes (12 in 2 (k eps)^2 and (k/n)^2 give 24 n^2 / eps^2 = k^4)."""
    return max(min(round(24**0.25 * math.sqrt(records / epsilon)), records // 2), 1)


def _thin(source: Source, records: int) -> Numbers:
    numbers = source.values[:, 0]
    if records == EVERYBODY:
        return numbers
    chosen = shuffled_positions(len(numbers), noise_stream(KEY, "choosing", source.name, records))[:records]
    return np.asarray(numbers[chosen], dtype=np.float64)


def _mask(source: Source, numbers: Numbers, setting: Setting, epsilon: str, secret: bytes) -> Numbers:
    method, [grid] = setting.text("method"), source.grids
    ks = {"laplace": None, "dp-um": suggest_k(len(numbers), float(epsilon)), "dp-cdf": 5}
    return mask_column(
        numbers,
        domain=(grid.lo, grid.hi),
        grid=grid.step,
        method=method,
        epsilon=epsilon,
        k=ks.get(method, 25),
        atoms=() if method == "laplace" else (0,),
        secret=secret,
        context=("choosing", setting.key),
    ).values


def _compare(numbers: Numbers, released: Numbers) -> dict[str, float]:
    before, after = _quantiles(numbers), _quantiles(released)
    deviation = float(np.std(numbers))
    return {
        "records_masked": len(numbers),
        "error": column_error(numbers, released),
        "ks": find_gap(Tally.of(numbers), Tally.of(released)),
        "quantiles": float(np.mean(np.abs(before - after))) / deviation,
        "zeros": abs(np.count_nonzero(numbers == 0) - np.count_nonzero(released == 0)) / len(numbers),
        "mean": abs(float(np.mean(numbers)) - float(np.mean(released))) / deviation,
    }


def _quantiles(numbers: Numbers) -> Numbers:
    found: Numbers = np.quantile(numbers, SHARES)
    return found


def report(tables: Mapping[str, pd.DataFrame]) -> Chapter:
    """What is said of it."""
    means, many = mean_runs(tables[KIND]), mean_runs(tables[MANY]["error"])
    strength = means["records_masked"] * means.index.get_level_values("epsilon").astype(float)
    enough = means["error"][strength >= ENOUGH]
    least = many.groupby(level=["table", "column", "together", "method", "by"]).min()
    of_tables = average_logs(least, "table", "method", "by", "together")
    pure, by_rho = pick(of_tables, method="dp-um", by="epsilon"), pick(of_tables, method="dp-cdf", by="rho")
    bins = pd.cut(strength, BINS, labels=NAMES, right=False).astype(str).rename("n eps")
    binned = means.set_index(bins, append=True)[[*MEASURES]]
    has_zeros = binned.index.get_level_values("column").isin(("capital_gain", "capital_loss"))
    binned["zeros"] = binned["zeros"].where(has_zeros)
    medians = binned.groupby(level=["method", "n eps"]).median()
    in_order = [(method, name) for method in METHODS for name in NAMES if (method, name) in medians.index]
    medians = medians.loc[in_order]
    return Chapter(
        "Choosing: which method for which release",
        [
            *(Claim(f"From n eps = {ENOUGH} on dp-cdf has less error than {rival}, {words}.", OURS,
                    divide(enough, "method", rival, "dp-cdf"), note=f"The error of {rival} over that of dp-cdf, means over runs")
              for rival, words in (("dp-um", "under the same definition"), ("idp-cbls", "under the weaker one"))),
            *(Claim(f"{count} columns that share epsilon 1 have five times less error by rho, at delta 0.000001, with dp-cdf "
                    "than with pure dp-um at its best k.", OURS, pick(pure / by_rho, together=count), 5,
                    note="The error of dp-um over that of dp-cdf by rho, geometric mean over columns")
              for count in COLUMNS_TOGETHER[2:]),
        ],
        {
            **{f"{words} by records times epsilon: median of columns, means over runs": write_table(medians[name], "n eps", " ")
               for name, words in MEASURES.items()},
            "Error where columns share epsilon 1, geometric mean over columns": write_table(of_tables, "together", "columns:"),
        },
    )  # fmt: skip
