"""Why isotonic consistency is refused with iDP at scope centroid and with laplace: the exact loss, by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import mask_column
from release_pipeline.mechanisms.columns.consistency import isotonic

SCALE = 2  # of the discrete Laplace; a neighbour moves every centroid by as much, which is a loss of 1 for each on its own
REACH = 24  # noise beyond it has a weight below exp(-12)
FAR = 8


def _loss_of_first_value(clusters: int) -> float:
    """The worst log-ratio over values up to FAR of the first isotonic centroid, when every true centroid moves up by one scale.

    The first value of an isotonic fit with equal weights is the least of the averages of the first j noisy values.
    """
    noise = np.arange(-REACH, REACH + 1)
    grid = np.meshgrid(*[noise] * clusters, indexing="ij")
    likelihood = np.exp(-sum(np.abs(axis) for axis in grid) / SCALE).ravel()
    sums = np.cumsum([axis.ravel() for axis in grid], axis=0) * (math.lcm(*range(1, clusters + 1)))
    first = np.min([total // count for count, total in enumerate(sums, start=1)], axis=0)
    unit = math.lcm(*range(1, clusters + 1))
    values, places = np.unique(first, return_inverse=True)
    chance = dict(zip(values.tolist(), np.bincount(places, likelihood).tolist(), strict=True))
    return max(abs(math.log(chance[v - SCALE * unit] / chance[v])) for v in values.tolist() if 0 <= v <= FAR * unit)


def test_the_shortcut_is_the_isotonic_fit() -> None:
    """The least average of the first j values is what the isotonic fit gives its first value."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        noisy = rng.integers(-9, 9, 4).astype(np.float64)
        averages = [noisy[:count].mean() for count in range(1, 5)]
        assert isotonic(noisy, np.ones(4, dtype=np.int64))[0] == pytest.approx(min(averages))


@pytest.mark.parametrize(("clusters", "least"), [(1, 0.999), (2, 1.8), (3, 2.6), (4, 3.4)])
def test_isotonic_multiplies_the_loss_of_one_centroid(clusters: int, least: float) -> None:
    """One value after isotonic regression costs nearly p times epsilon (methods.md section 3: 1.88, 2.77, 3.67)."""
    assert least <= _loss_of_first_value(clusters) <= clusters + 1e-6


def test_isotonic_over_records_gives_their_true_order_away() -> None:
    """Two neighbours that swap ranks give disjoint outputs, so no epsilon bounds the loss of laplace with isotonic."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        noise = rng.integers(-50, 50, 2)
        outputs = []
        for values in (np.array([4, 6]), np.array([8, 6])):  # the first record changes from 4 to 8
            order = np.argsort(values)
            released = np.empty(2)
            released[order] = isotonic((values + noise)[order].astype(np.float64), np.ones(2, dtype=np.int64))
            outputs.append(np.sign(released[1] - released[0]))
        assert outputs[0] >= 0
        assert outputs[1] <= 0


@pytest.mark.parametrize(
    ("method", "scope", "k"),
    [("laplace", "column", None), ("laplace", "centroid", None), ("idp-ls", "centroid", 3), ("idp-cbls", "centroid", 3)],
)
def test_forbidden_combinations_are_refused(method: str, scope: str, k: int | None) -> None:
    """mask_column raises and names the option."""
    with pytest.raises(InvalidArgument, match="consistency"):
        mask_column(range(9), domain=(0, 9), grid=1, method=method, epsilon=1, k=k, scope=scope, consistency="isotonic")


@pytest.mark.parametrize(
    ("method", "scope", "chosen"),
    [
        ("laplace", "column", "none"),
        ("dp-um", "centroid", "isotonic"),
        ("dp-um", "column", "isotonic"),
        ("idp-ls", "centroid", "none"),
        ("idp-ls", "column", "isotonic"),
        ("idp-cbls", "centroid", "none"),
        ("idp-cbls", "column", "isotonic"),
    ],
)
def test_none_means_isotonic_where_it_is_free(method: str, scope: str, chosen: str) -> None:
    """The default of methods.md section 3; isotonic results ascend with the clusters."""
    k = None if method == "laplace" else 3
    masked = mask_column(range(30), domain=(0, 30), grid=1, method=method, epsilon="0.1", k=k, scope=scope, secret=bytes(32))
    assert masked.consistency == chosen
    by_cluster = [masked.values[masked.cluster == j][0] for j in range(len(masked.size))]
    assert (by_cluster == sorted(by_cluster)) == (chosen == "isotonic")
