"""KDP13: what a setting measures is what the paper's words say, computed plainly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.papers import kdp13
from experiments.papers.runs import Setting, make_secrets
from experiments.papers.tables import Source, read_source
from release_pipeline.mechanisms.noise import discrete_laplace, noise_stream

SECRETS = make_secrets(5, 2)


@pytest.fixture(scope="module")
def census(reference_data: Path) -> Source:
    return read_source(reference_data, "census", kdp13.COLUMNS)


def _noisy(order: str, share: str, *, scope: str = "centroid", k: int = 10, epsilon: str = "1") -> Setting:
    return Setting.of("noisy", 2, order=order, scope=scope, share=share, k=k, epsilon=epsilon)


def _clusters_by_corner(source: Source, k: int) -> list[np.ndarray]:
    """The paper's order: by the distance from the corner of the domain where all columns are lowest."""
    units = source.units
    shares = units / np.array([grid.width for grid in source.grids])
    order = np.lexsort((*units.T[::-1], np.sum(shares**2, axis=1)))
    p = len(order) // k
    return np.split(order, [k * j for j in range(1, p)])


def _link(source: Source, released: np.ndarray) -> float:
    deviation = source.values.std(axis=0)
    total = 0.0
    for place, row in enumerate(released):
        distance = np.sum(((source.values - row) / deviation) ** 2, axis=1)
        nearest = np.flatnonzero(np.isclose(distance, distance.min(), rtol=1e-12, atol=0))
        total += (place in nearest) / len(nearest)
    return 100 * total / len(released)


@pytest.mark.parametrize("share", ["split", "whole"])
def test_a_setting_is_the_paper_computed_plainly(census: Source, reference_data: Path, share: str) -> None:
    setting = _noisy("corner", share)
    rows = kdp13.measure(reference_data, setting, SECRETS)
    eps_a = 0.25 if share == "split" else 1.0
    for secret, row in zip(SECRETS, rows, strict=True):
        released = np.empty_like(census.values)
        clusters = _clusters_by_corner(census, 10)
        for a, grid in enumerate(census.grids):
            scale = np.full(len(clusters), int(np.ceil(grid.width / eps_a)))
            noise = discrete_laplace(scale, noise_stream(secret, "kdp13", setting.key, a, "noise"))
            for cluster, drawn in zip(clusters, noise, strict=True):
                released[cluster, a] = (census.units[cluster, a].sum() + drawn) / len(cluster) * float(grid.step)
        free = np.mean((released - census.values) ** 2, axis=0) / census.values.var(axis=0)
        assert row["sse_free"] == pytest.approx(free.mean(), rel=1e-9)
        ends = [float(grid.hi) for grid in census.grids]
        inside = np.clip(released, 0, ends)
        errors = np.mean((inside - census.values) ** 2, axis=0) / census.values.var(axis=0)
        assert row["sse"] == pytest.approx(errors.mean(), rel=1e-9)
        literal = np.mean((inside - census.values) ** 2, axis=0) / census.values.var(axis=0) ** 2
        assert row["sse_paper"] == pytest.approx(literal.sum() / 16, rel=1e-9)
        assert row["linkage"] == pytest.approx(_link(census, inside), abs=1e-9)


def test_whole_epsilon_in_each_column_loses_four_times_as_much(reference_data: Path) -> None:
    split, whole = (
        kdp13.measure(reference_data, _noisy("corner", share), SECRETS[:1])[0]["loss"] for share in ("split", "whole")
    )
    assert whole == pytest.approx(4 * split, rel=1e-3)
    assert split > 1  # all centroids together, by the bound, more than the epsilon of one
