"""KDP13: insensitive microaggregation with noise on four columns of census, its error and its record linkage.

Records are put in an order that depends on each of them alone and cut into clusters of k; the sum of a cluster gets noise of
scale W_a / eps_a in column a, its centroid k times less: the paper's claim, eps-DP for each centroid on its own (scope
`centroid`). Whether the paper splits epsilon over the four columns or gives the whole of it to each is not known to us:

    split   eps_a = eps / 4: the claim of a centroid is eps, that of this project
    whole   eps_a = eps: by sequential composition the claim of a centroid is 4 eps, and its epsilon is said per column

Beside them the scope `table`, whose noise covers all that a reader sees at epsilon; `laplace` (k is 1 here), which has that claim
without clusters; and the clusters without any noise, of MDAV and of both orders.

Domain [0, 1.5 max], grid half of the data's resolution. `sse` is SSE / SST, the mean over columns of `column_error`; `sse_free`
the same of values that are not moved back into the domain; `sse_paper` is divided by variances as IDP24 has it; `linkage` is in
percent, of all records. `loss` is the accountant's bound on what all centroids together lose on these data.

`corner-middle` cuts from both ends, as the paper does, so that the cluster in the middle has the rest of the records; the other
orders have it in the last cluster. `per-record` draws noise for each record, as Algorithm 1 of the paper does: `averaged` is how
much of the noise is left, in variance, in the mean of the records of a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import cast

import numpy as np

from release_pipeline.experiments.measuring.masking import (
    KNOWN,
    Rank,
    add_losses,
    average,
    cluster_records,
    prepare_columns,
    release,
)
from release_pipeline.experiments.runs import Setting
from release_pipeline.experiments.tables import Numbers, Source, read_source
from release_pipeline.privacy import Epsilon, order_clusters
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.methods import Statistics, add_noise
from release_pipeline.privacy.noise import Context
from release_pipeline.privacy.risk import record_linkage
from release_pipeline.privacy.utility import sse_paper
from release_pipeline.privacy.vectors import Insensitive, Order, VectorScope, compute_vectors

COLUMNS = ("FICA", "FEDTAX", "INTVAL", "POTHVAL")
KS = (2, 3, 5, 7, 10, 15, 20, 25, 35, 50, 75, 100)
EPSILONS = ("0.01", "0.1", "1", "10")
ORDERS, MIDDLE = ("corner", "hilbert"), "corner-middle"
CLAIMS = (("centroid", "split"), ("centroid", "whole"), ("table", "split"))  # scope and share of epsilon
RUNS = 20
QUICK_KS, QUICK_RUNS = (2, 10, 25, 100), 3


def list_settings(*, quick: bool) -> list[Setting]:
    """Every claim with both orders, every k and epsilon; laplace; and clusters without noise."""
    ks, runs = (QUICK_KS, QUICK_RUNS) if quick else (KS, RUNS)
    alone = [Setting.of("clusters", 1, order=order, k=k) for order in ("mdav", *ORDERS, MIDDLE) for k in ks]
    own = [
        Setting.of("per-record", runs, order="corner", scope="centroid", share="split", k=k, epsilon=epsilon)
        for k in ks
        for epsilon in EPSILONS
    ]
    noisy = [
        Setting.of("noisy", runs, order=order, scope=scope, share=share, k=k, epsilon=epsilon)
        for scope, share in CLAIMS
        for order in ORDERS
        for k in ks
        for epsilon in EPSILONS
    ]
    laplace = [
        Setting.of("noisy", runs, order="laplace", scope="table", share=share, k=1, epsilon=epsilon)
        for share in ("split", "whole")
        for epsilon in EPSILONS
    ]
    return [*alone, *laplace, *noisy, *own]


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """One setting in all of its runs."""
    source = read_source(data, "census", COLUMNS)
    if setting.kind == "clusters":
        order, k = setting.text("order"), setting.number("k")
        cluster = _cut_from_both_ends(source, k) if order == MIDDLE else cluster_records(source, order, k)
        return [compare(source, average(source, [cluster] * len(COLUMNS)))] * len(secrets)
    context = ("kdp13", setting.key)
    columns = _prepare(source, setting, context)
    if setting.kind == "per-record":
        return [_measure_own_noise(source, columns, secret, context) for secret in secrets]
    loss = add_losses(columns) if setting.text("order") == "laplace" else columns[0].loss["table"]
    found: list[dict[str, float]] = []
    for secret in secrets:
        free = [add_noise(part, clamp=False, secret=secret, context=(*context, place)) for place, part in enumerate(columns)]
        without_ends = np.stack([values[part.cluster] for values, part in zip(free, columns, strict=True)], axis=1)
        measures = compare(source, release(columns, secret, context))
        found.append({**measures, "sse_free": source.measure(without_ends)[0], "loss": loss})
    return found


def _cut_from_both_ends(source: Source, k: int) -> IntArray:
    """The cluster of each record by the corner's order, with the rest of the records in the middle cluster."""
    ordered = order_clusters(source.units, [grid.width for grid in source.grids], k, order="corner")
    size = np.full(ordered.count, k)
    size[ordered.count // 2] += len(ordered.order) % k
    cluster = np.empty(len(ordered.order), dtype=np.int64)
    cluster[ordered.order] = np.repeat(np.arange(ordered.count), size)
    return cluster


def _measure_own_noise(
    source: Source, columns: Sequence[Statistics], secret: bytes, context: Sequence[Context]
) -> dict[str, float]:
    """The centroid of its cluster for each record, with noise that no other record has."""
    released, left = list[Numbers](), list[float]()
    for place, part in enumerate(columns):
        sums = part.statistic[part.cluster], part.size[part.cluster], part.scale[part.cluster]
        own = replace(part, statistic=sums[0], size=sums[1], scale=sums[2])
        noisy = add_noise(own, clamp=False, on_grid=False, secret=secret, context=(*context, place))
        noise = noisy - part.grid.restore(sums[0] / sums[1])
        mean = np.bincount(part.cluster, noise) / part.size
        left.append(float(np.mean(mean**2) / np.mean(noise**2)))
        released.append(np.clip(noisy, float(part.grid.lo), float(part.grid.hi)))
    return {**compare(source, np.stack(released, axis=1)), "averaged": float(np.mean(left))}


def compare(source: Source, released: Numbers) -> dict[str, float]:
    """The errors of a released table in record order, and the percentage of its records that are linked to their own."""
    everybody = np.arange(len(released))
    linked = record_linkage(source.values, released, everybody, positions=everybody)
    return {
        "sse": source.measure(released)[0],
        "sse_paper": sse_paper([*source.values.T], [*released.T]),
        "linkage": 100 * linked.value,
    }


def _prepare(source: Source, setting: Setting, context: Sequence[Context]) -> list[Statistics]:
    epsilon, k, order = setting.text("epsilon"), setting.number("k"), setting.text("order")
    if order == "laplace":
        times = 1 if setting.text("share") == "split" else len(source.grids)
        return prepare_columns(source, Rank("laplace", k, str(times * Decimal(epsilon))), context)
    count = len(source.grids)
    whole = Epsilon.of(epsilon)
    epsilons = tuple(whole.split([1] * count)) if setting.text("share") == "split" else (whole,) * count
    scope = cast(VectorScope, setting.text("scope"))
    spec = Insensitive(epsilons, k, cast(Order, order), "plain", scope, ("linear",) * count)
    return compute_vectors(source.units, grids=source.grids, spec=spec, secret=KNOWN, context=context)
