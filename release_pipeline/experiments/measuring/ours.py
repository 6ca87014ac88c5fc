"""Every method at the same exact loss: the comparison that the papers lack.

The papers compare methods at the same advertised epsilon, which for one method is the loss of a whole column of centroids and for
another that of each centroid on its own. Here the exact joint loss of each column's list, on these very data, is the same for
all: its share of epsilon, split equally over the columns. `scales` says how that is reached.

    public      by public facts alone, as the method has it: eps-DP. Its epsilon is for the worst data, the loss on these is less
    rescaled    in the proportions of the paper's scales (Prop. 8, Prop. 9; or all equal), scaled so that the loss is exact: iDP
    calibrated  in the proportions that give the least expected error (methods.md section 2): iDP, this project's own
    advertised  as the paper has it, epsilon for each centroid: not the same loss, and told apart

Kind `together`: dp-mdav, whose claim covers the whole table and whose loss is bounded by epsilon (methods.md section 4), in both
orders; kind `clusters`: what grouping costs without noise; kind `by value`: dp-cdf against dp-um, in a module of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from release_pipeline.experiments.measuring import by_value
from release_pipeline.experiments.measuring.masking import (
    KNOWN,
    Rank,
    add_losses,
    average,
    cluster_records,
    prepare_at_exact_loss,
    prepare_columns,
    release_all,
)
from release_pipeline.experiments.runs import Setting
from release_pipeline.experiments.tables import MADE_UP_RECORDS, Source, make_up, read_source
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.methods import Statistics
from release_pipeline.privacy.vectors import Insensitive, Order, compute_vectors

MADE_UP = "made up"
KS = {
    "census": (5, 10, 20, 50, 100, 200, 540, 1080),  # two clusters, and one
    "wine": (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4898),
    MADE_UP: (20, 50, 100, 200, 500, 1000, 2000, 5000),
}
TOGETHER_KS = {"census": (20, 50, 100, 200, 400), "wine": (50, 100, 200, 400, 1000), MADE_UP: (200, 500, 1000, 2000, 5000)}
ALIKE_KS = {"census": (20, 50, 100, 200, 400), "wine": (50, 100, 200, 400, 1000)}  # MDAV of 100,000 records takes minutes
EPSILONS = ("0.1", "1", "10")
VARIANTS = (  # method, scales
    ("dp-um", "public"),
    ("dp-um", "rescaled"),
    ("idp-ls", "rescaled"),
    ("idp-ls", "calibrated"),
    ("idp-cbls", "rescaled"),
    ("idp-cbls", "calibrated"),
)
STATED_KS = (20, 100)  # for which methods.md section 6 states figures
RUNS, TOGETHER_RUNS, QUICK_RUNS = 40, 10, 10
QUICK_KS, QUICK_EPSILONS = (20, 100), ("1",)


def list_settings(*, quick: bool) -> list[Setting]:
    """Every method at every k and epsilon, with and without consistency; on fewer tables in a quick run."""
    runs, epsilons = (QUICK_RUNS, QUICK_EPSILONS) if quick else (RUNS, EPSILONS)
    found: list[Setting] = []
    for table, ks in KS.items():
        chosen = [k for k in ks if not quick or k in QUICK_KS]
        for epsilon in epsilons:
            for scales in ("public", "rescaled"):
                found.append(_column_setting(runs, table, "laplace", scales, 1, epsilon, "none"))
            found += [
                _column_setting(runs, table, method, scales, k, epsilon, consistency)
                for method, scales in VARIANTS
                for k in chosen
                for consistency in ("none", "isotonic")
                if not (quick and table == MADE_UP and scales == "rescaled")
            ]
        if not (quick and table == MADE_UP):
            found += [_column_setting(runs, table, "idp-cbls", "advertised", k, "1", "none") for k in STATED_KS]
    runs = QUICK_RUNS if quick else TOGETHER_RUNS
    for table, ks in TOGETHER_KS.items():
        if quick and table == MADE_UP:
            continue
        found += [
            Setting.of("together", runs, table=table, order=order, statistic=statistic, k=k, epsilon=epsilon)
            for k in ks
            if not quick or k == 100
            for epsilon in epsilons
            for order in ("corner", "hilbert")
            for statistic in ("plain", "trimmed")
        ]
    for clusters, of in (("corner", TOGETHER_KS), ("hilbert", TOGETHER_KS), ("mdav", ALIKE_KS)):
        found += [
            Setting.of("clusters", 1, table=table, clusters=clusters, k=k)
            for table, ks in of.items()
            for k in ks
            if not quick or (k == 100 and table != MADE_UP)
        ]
    return found + by_value.list_settings(quick=quick)


def _column_setting(runs: int, table: str, method: str, scales: str, k: int, epsilon: str, consistency: str) -> Setting:
    return Setting.of("columns", runs, table=table, method=method, scales=scales, k=k, epsilon=epsilon, consistency=consistency)


def read(data: Path, table: str) -> Source:
    """One of the tables."""
    return make_up(MADE_UP_RECORDS) if table == MADE_UP else read_source(data, table)


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """One setting in all of its runs."""
    if setting.kind == by_value.KIND:
        return by_value.measure(data, setting, secrets)
    source, context = read(data, setting.text("table")), ("ours", *_list_noise(setting))
    if setting.kind == "clusters":
        return [_measure_clusters(source, setting)]
    if setting.kind == "columns":
        columns = _prepare(source, setting, context)
        shares = [float(share) for share in Epsilon.of(setting.text("epsilon")).split([1] * len(columns))]
        each = [part.loss["column"] / share for part, share in zip(columns, shares, strict=True)]
        losses = {"loss": add_losses(columns), "least_share": min(each), "most_share": max(each)}
    else:
        columns = _prepare_together(source, setting, context)
        losses = {"loss": columns[0].loss["table"]}
    return [{**_errors(source, released), **losses} for released in release_all(columns, secrets, context)]


def _list_noise(setting: Setting) -> list[str | int]:
    """What the noise of a setting depends on: with consistency it is the same as without, which is what consistency starts
    from."""
    return [setting.kind, *(value for name, value in setting.fields if name != "consistency")]


def _errors(source: Source, released: np.ndarray) -> dict[str, float]:
    mean, median = source.measure(released)
    return {"error": mean, "median_error": median}


def _prepare(source: Source, setting: Setting, context: Sequence[str | int]) -> list[Statistics]:
    scales = setting.text("scales")
    how = Rank(
        setting.text("method"),
        setting.number("k"),
        setting.text("epsilon"),
        scope="centroid" if scales == "advertised" else "column",
        consistency=setting.text("consistency"),
    )
    return (prepare_at_exact_loss if scales == "rescaled" else prepare_columns)(source, how, context)


def _prepare_together(source: Source, setting: Setting, context: Sequence[str | int]) -> list[Statistics]:
    count = len(source.grids)
    spec = Insensitive(
        Epsilon.of(setting.text("epsilon")).split([1] * count),
        setting.number("k"),
        _order(setting.text("order")),
        "plain" if setting.text("statistic") == "plain" else "trimmed",
        "table",
        ("linear",) * count,
    )
    return compute_vectors(source.units, grids=source.grids, spec=spec, secret=KNOWN, context=context)


def _measure_clusters(source: Source, setting: Setting) -> dict[str, float]:
    """Centroids as they are."""
    cluster = cluster_records(source, setting.text("clusters"), setting.number("k"))
    return _errors(source, average(source, [cluster] * len(source.grids)))


def _order(name: str) -> Order:
    return "corner" if name == "corner" else "hilbert"
