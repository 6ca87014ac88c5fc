"""Masking several columns together: what is drawn, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import Epsilon, Grid
from release_pipeline.mechanisms.columns.methods import add_noise
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.mechanisms.vectors.vectors import (
    Insensitive,
    MdavSpec,
    check_vector_sizes,
    compute_vectors,
    find_reach,
    public_scales,
    quantise_columns,
)

SECRET = b"s" * SECRET_BYTES
RNG = np.random.default_rng(3)
GRIDS = [Grid.declare((0, 100), 1), Grid.declare((0, 10), "0.5")]
TABLE = np.column_stack([RNG.integers(0, 101, 400), RNG.integers(0, 21, 400) / 2])


def spec_of(**changes: Any) -> Insensitive:
    content: dict[str, Any] = {
        "epsilons": Epsilon.of(2).split([1, 3]),
        "k": 20,
        "order": "hilbert",
        "statistic": "plain",
        "scope": "table",
        **changes,
    }
    return Insensitive(**content)


@pytest.mark.parametrize("order", ["corner", "hilbert"])
@pytest.mark.parametrize("statistic", ["plain", "trimmed"])
@pytest.mark.parametrize("scope", ["centroid", "table"])
def test_a_release_is_its_sums_and_noise_of_its_scales(order: Any, statistic: Any, scope: Any) -> None:
    """Plain sums are those of the clusters; every record has its cluster's value; the loss at scope table is at most epsilon."""
    spec = spec_of(order=order, statistic=statistic, scope=scope)
    parts = compute_vectors(quantise_columns(TABLE.T, GRIDS), grids=GRIDS, spec=spec, secret=SECRET, context=())
    cluster = parts[0].cluster
    values = np.stack([add_noise(part, secret=SECRET, context=(place,))[cluster] for place, part in enumerate(parts)], axis=1)
    units = np.column_stack([TABLE[:, 0], TABLE[:, 1] * 2]).astype(np.int64)
    for place, part in enumerate(parts):
        sums = np.bincount(cluster, weights=units[:, place])
        assert (sums == part.statistic).all() == (statistic == "plain")
    assert np.bincount(cluster).tolist() == [20] * 20
    assert len(np.unique(values, axis=0)) <= 20
    assert all(len(np.unique(values[cluster == number], axis=0)) == 1 for number in range(20))
    assert ((values >= 0) & (values <= [100, 10])).all()
    if scope == "table":
        assert parts[0].loss["table"] <= 2


def test_public_scales_of_plain_sums() -> None:
    """t_a = W_a reach / (share_a epsilon): one chain through p clusters, or what the curve lets it."""
    spec = spec_of(order="corner")
    assert public_scales([100, 20], spec, clusters=20) == [4000, 267]  # 100 * 20 / 0.5 and 20 * 20 / 1.5, rounded up
    assert public_scales([100, 20], spec_of(scope="centroid"), clusters=20) == [200, 14]
    assert public_scales([100, 20], spec_of(scope="centroid", statistic="trimmed"), clusters=20) == [400, 27]
    assert find_reach([100, 20], spec, clusters=20) == 20
    curve = find_reach([100, 20], spec_of(), clusters=20)
    assert curve == min(Fraction((4**level - 1) * 3, 4 * 2**level) + Fraction(20, 2**level) for level in range(8)) < 20


def test_mdav_has_exact_sums_and_no_noise() -> None:
    units = quantise_columns([TABLE[:, 0], TABLE[:, 1]], GRIDS)
    parts = compute_vectors(units, grids=GRIDS, spec=MdavSpec(7), secret=SECRET, context=())
    assert all(part.claim is None and not part.scale.any() and not part.loss for part in parts)
    assert [int(part.statistic.sum()) for part in parts] == units.sum(axis=0).tolist()
    assert 7 <= parts[0].size.min() <= parts[0].size.max() <= 13


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": 2, "statistic": "trimmed"}, "trimmed sums need k of at least 3"),
        ({"epsilons": (Epsilon(0), Epsilon(1))}, "epsilon must be above 0"),
        ({"k": 2**60}, "cluster sums would not fit"),
        ({"epsilons": (Epsilon(1), Epsilon(1)), "scope": "table"}, "epsilon is too small"),
    ],
)
def test_what_cannot_be_exact_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_vector_sizes([2**40, 2**40], spec_of(**changes), clusters=1000)
    assert words in caught.value.what


def test_whether_noise_fits_is_told_by_public_facts_for_trimmed_sums_too() -> None:
    """The scales that the data could ask for at the worst are looked at, not those that they do ask for."""
    spec = spec_of(statistic="trimmed", epsilons=(Epsilon(1000), Epsilon(1000)))
    check_vector_sizes([2**28, 2**28], spec, clusters=2)
    with pytest.raises(InvalidArgument, match="epsilon is too small"):
        check_vector_sizes([2**28, 2**28], spec, clusters=2000)
