"""Which method for which release: single columns of census, wine and adult, thinned to several numbers of records, at the same
epsilon of their own. What decides how well a method does is records times epsilon.

Kind `many`: what is left of a column where one epsilon, for all of them together, is shared by many: pure, each with its part of
epsilon; and by rho, at a delta, each with its part of that.

Domains are [0, 1.5 max]. k is what public facts suggest (`suggest_k`), and of the iDP methods what they are used with: nobody
looked at errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from release_pipeline.experiments.runs import Setting
from release_pipeline.experiments.tables import COLUMNS, KEY, Numbers, Source, read_source
from release_pipeline.privacy import Epsilon, noise_stream
from release_pipeline.privacy.concentrated import epsilon_of, rho_within
from release_pipeline.privacy.distributions import ks_distance
from release_pipeline.privacy.methods import mask_column
from release_pipeline.privacy.noise import shuffled_positions
from release_pipeline.privacy.utility import column_error

KIND, MANY = "columns", "many"
TABLES = {**COLUMNS, "adult": ("age", "capital_gain", "capital_loss", "hours_per_week", "fnlwgt")}
RECORDS, EVERYBODY = (250, 1000), 0
EPSILONS = ("0.1", "0.3", "1", "3")
METHODS = ("laplace", "dp-um", "idp-ls", "idp-cbls", "dp-cdf")
RUNS, QUICK_RUNS = 20, 10
QUICK_COLUMNS, QUICK_EPSILONS = {"census": ("AGI",), "wine": ("pH",), "adult": ("capital_gain",)}, ("1",)
COLUMNS_TOGETHER, EPSILON, DELTA = (1, 4, 12, 60), "1", Decimal("0.000001")
MANY_KS = {"census": (20, 100, 300, 1080), "wine": (50, 300, 1000, 4898)}  # of dp-um, the best of which is looked for afterwards
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
        "ks": ks_distance(numbers, released),
        "quantiles": float(np.mean(np.abs(before - after))) / deviation,
        "zeros": abs(np.count_nonzero(numbers == 0) - np.count_nonzero(released == 0)) / len(numbers),
        "mean": abs(float(np.mean(numbers)) - float(np.mean(released))) / deviation,
    }


def _quantiles(numbers: Numbers) -> Numbers:
    found: Numbers = np.quantile(numbers, SHARES)
    return found
