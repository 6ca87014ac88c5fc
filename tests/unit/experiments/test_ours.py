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
