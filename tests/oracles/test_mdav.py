"""MDAV against its description in plain NumPy; the published errors; and what must hold of any clusters."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import mdav
from tests.oracles import plain_mdav as plain

module: Any = import_module("release_pipeline.mechanisms.clusters.mdav")  # the package has the function under this name
KINDS = ("continuous", "integers", "binary", "duplicates", "constant column", "correlated", "outliers", "lattice")


def random_matrix(rng: np.random.Generator, kind: str, n: int, m: int) -> npt.NDArray[Any]:
    if kind == "integers":
        return rng.integers(0, 5, (n, m))
    if kind == "binary":
        return rng.integers(0, 2, (n, m))
    if kind == "duplicates":
        return rng.standard_normal((max(n // 6, 1), m))[rng.integers(0, max(n // 6, 1), n)]
    if kind == "lattice":  # distances tie by symmetry, not by equality of records
        return np.stack(np.unravel_index(rng.permutation(n), (math.isqrt(n) + 1, math.isqrt(n) + 1)), axis=1)
    matrix = rng.standard_normal((n, m))
    if kind == "constant column":
        matrix[:, rng.integers(m)] = 0.1
    if kind == "correlated":
        matrix[:, 1:] = matrix[:, :1] + 0.1 * matrix[:, 1:]
    if kind == "outliers":
        matrix = np.sign(matrix) * np.exp(3 * np.abs(matrix))
    return matrix


def partition(label: npt.NDArray[np.int64]) -> list[list[int]]:
    order = np.argsort(label, kind="stable")
    return [part.tolist() for part in np.split(order, np.flatnonzero(np.diff(label[order])) + 1)]


@pytest.mark.parametrize(("k", "error"), [(3, 5.6922), (4, 7.4947), (5, 9.0884), (10, 14.1559)])
def test_the_published_errors_on_census(reference_data: Path, k: int, error: float) -> None:
    """100 SSE/SST over all 13 attributes, as the literature prints them for standard MDAV."""
    census = np.loadtxt(reference_data / "census.csv", delimiter=",", skiprows=1)
    assert census.shape == (1080, 13)
    label = mdav(census, k)
    assert round(plain.error(census, label), 4) == error
    assert partition(label) == plain.clusters(census, k)


@pytest.mark.parametrize("kind", KINDS)
def test_the_clusters_are_those_of_the_description(kind: str) -> None:
    """In the order in which they are made. n is around 2k and 3k in half of the tables."""
    for seed in range(16):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        k = int(rng.integers(1, 11))
        n = int(rng.integers(2 * k - 1, 3 * k + 2) if seed % 2 else rng.integers(k, 400))
        matrix = random_matrix(rng, kind, n, int(rng.integers(1, 7)))
        assert partition(mdav(matrix, k)) == plain.clusters(matrix, k)


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(1, 10), st.integers(0, 200))
def test_clusters_have_k_to_2k_minus_1_records(seed: int, kind: str, k: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    label = mdav(random_matrix(rng, kind, k + more, 3), k)
    assert label.dtype == np.int64
    sizes = np.bincount(label)
    assert sizes.min() >= k
    assert sizes.max() <= max(2 * k - 1, 1)
    assert sizes.sum() == k + more


def test_blocks_keep_k_and_most_of_the_quality() -> None:
    rng = np.random.default_rng(4)
    matrix = rng.standard_normal((30_000, 3))
    exact, label = mdav(matrix, 5), mdav(matrix, 5, blocks="kd")
    sizes = np.bincount(label)
    assert sizes.min() >= 5
    assert sizes.max() <= 9
    assert label.tolist() != exact.tolist()
    assert label.tolist() == mdav(matrix, 5, blocks="kd").tolist()

    def within(label: npt.NDArray[np.int64]) -> float:
        counts = np.bincount(label)
        return sum(float(np.sum(c**2) - np.sum(np.bincount(label, c) ** 2 / counts)) for c in plain.standardise(matrix).T)

    assert within(exact) < within(label) < 1.15 * within(exact)


@pytest.mark.parametrize(("n", "k"), [(20, 5), (7_501, 5), (16_000, 700), (16_000, 5_000), (9_000, 9_000)])
def test_blocks_of_any_size_have_clusters_of_k(n: int, k: int) -> None:
    """Ties at the medians, few records, large k."""
    sizes = np.bincount(mdav(np.random.default_rng(n).integers(0, 3, (n, 2)), k, blocks="kd"))
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"k": 0}, InvalidArgument, "k is below 1"),
        ({"k": True}, InvalidType, "k must be a whole number"),
        ({"k": 5}, InvalidArgument, "4 records cannot fill one cluster of 5"),
        ({"matrix": [771, 772]}, InvalidArgument, "two dimensions"),
        ({"matrix": [["771"], ["772"]]}, InvalidType, "integers or float64"),
        ({"matrix": [[771.0], [np.nan], [np.inf], [-np.inf]]}, InvalidArgument, "holds 3 missing or infinite"),
        ({"matrix": [[0, 1.7e308], [0, -1.7e308]]}, InvalidArgument, "column 1: the numbers are too large"),
        ({"matrix": [[0, 7.71e-300], [0, 7.72e-300]]}, InvalidArgument, "too near to each other"),
        ({"blocks": ""}, InvalidArgument, "blocks names no way"),
    ],
)
def test_refusals(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    """In words and counts, without a value."""
    arguments: dict[str, Any] = {"matrix": [[771], [772], [773], [774]], "k": 2, **changed}
    with pytest.raises(error, match=words) as refused:
        mdav(**arguments)
    assert "77" not in str(refused.value)
