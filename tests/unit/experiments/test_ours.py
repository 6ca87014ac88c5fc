"""Clusters of several columns: what their error is, and where the curve groups better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.papers import ours
from experiments.papers.runs import Setting, make_secrets
from experiments.papers.tables import read_source
from release_pipeline.privacy import mdav


def measure_clusters(data: Path, table: str, clusters: str, k: int) -> float:
    """The error of their centroids."""
    [row] = ours.measure(data, Setting.of("clusters", 1, table=table, clusters=clusters, k=k), make_secrets(1, 1))
    return row["error"]


def test_the_error_is_sse_over_sst(reference_data: Path) -> None:
    """On z-scores, as the literature has it: a sum by hand."""
    census = read_source(reference_data, "census")
    cluster = mdav(census.units, 20)
    z = (census.values - census.values.mean(axis=0)) / census.values.std(axis=0)
    within = sum(float(np.sum((z[cluster == own] - z[cluster == own].mean(axis=0)) ** 2)) for own in range(cluster.max() + 1))
    assert measure_clusters(reference_data, "census", "mdav", 20) == pytest.approx(within / float(np.sum(z**2)))


def test_the_curve_groups_wine_better_and_census_where_clusters_are_many(reference_data: Path) -> None:
    """And logarithms help the corner on wine alone, as docs/multivariate.md says."""
    wine = {name: measure_clusters(reference_data, "wine", name, 50) for name in ("mdav", "hilbert", "corner", "corner, log")}
    assert wine["mdav"] < wine["hilbert"] < 0.84 * wine["corner"]
    assert wine["corner, log"] < wine["corner"]
    for k, better in ((20, True), (200, False)):
        corner, hilbert = (measure_clusters(reference_data, "census", name, k) for name in ("corner", "hilbert"))
        assert (hilbert < corner) == better
    assert measure_clusters(reference_data, "wine", "hilbert, log", 50) > wine["hilbert"]


@pytest.mark.parametrize("order", ["corner", "hilbert"])
def test_a_claim_for_each_centroid_needs_less_noise(reference_data: Path, order: str) -> None:
    secrets = make_secrets(1, 3)
    fields = {"table": "census", "order": order, "k": 100, "epsilon": "1"}
    centroid = ours.measure(reference_data, Setting.of("each centroid", 3, **fields), secrets)
    plain = ours.measure(reference_data, Setting.of("together", 3, **fields, statistic="plain"), secrets)
    assert max(row["error"] for row in centroid) < 0.2 * min(row["error"] for row in plain)
    assert centroid[0]["loss"] > 1 >= plain[0]["loss"]
