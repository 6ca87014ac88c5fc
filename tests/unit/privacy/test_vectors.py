"""Masking several columns together from Python: what is drawn, what is the same again, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.privacy import Epsilon, Grid
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.privacy.vectors import (
    Insensitive,
    MdavSpec,
    check_vector_sizes,
    compute_vectors,
    find_reach,
    mask_vectors,
    public_scales,
    quantise_columns,
)

SECRET = b"s" * SECRET_BYTES
RNG = np.random.default_rng(3)
TABLE = np.column_stack([RNG.integers(0, 101, 400), RNG.integers(0, 21, 400) / 2])
DECLARED: dict[str, Any] = {"domains": [(0, 100), (0, 10)], "grids": [1, "0.5"], "k": 20, "epsilon": 2, "secret": SECRET}


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
    done = mask_vectors(TABLE, order=order, statistic=statistic, scope=scope, **DECLARED)
    units = np.column_stack([TABLE[:, 0], TABLE[:, 1] * 2]).astype(np.int64)
    sums = np.stack([np.bincount(done.cluster, weights=units[:, place]) for place in range(2)], axis=1)
    if statistic == "plain":
        assert (sums == done.statistic).all()
    else:
        assert not (sums == done.statistic).all()
    assert np.bincount(done.cluster).tolist() == [20] * 20
    assert len(np.unique(done.values, axis=0)) <= 20
    assert all(len(np.unique(done.values[done.cluster == cluster], axis=0)) == 1 for cluster in range(20))
    assert ((done.values >= 0) & (done.values <= [100, 10])).all()
    if scope == "table":
        assert done.loss <= 2
    assert str(TABLE[0, 0]) not in repr(done)


def test_public_scales_of_plain_sums() -> None:
    """t_a = W_a reach / (share_a epsilon): one chain through p clusters, or what the curve lets it."""
    spec = spec_of(order="corner")
    assert public_scales([100, 20], spec, clusters=20) == [4000, 267]  # 100 * 20 / 0.5 and 20 * 20 / 1.5, rounded up
    assert public_scales([100, 20], spec_of(scope="centroid"), clusters=20) == [200, 14]
    assert public_scales([100, 20], spec_of(scope="centroid", statistic="trimmed"), clusters=20) == [400, 27]
    assert find_reach([100, 20], spec, clusters=20) == 20
    curve = find_reach([100, 20], spec_of(), clusters=20)
    assert curve == min(Fraction((4**level - 1) * 3, 4 * 2**level) + Fraction(20, 2**level) for level in range(8)) < 20


def test_equal_columns_have_noise_of_their_own() -> None:
    twice = np.column_stack([TABLE[:, 0], TABLE[:, 0]])
    declared = {**DECLARED, "domains": [(0, 100)] * 2, "grids": [1, 1]}
    done = mask_vectors(twice, order="hilbert", statistic="plain", scope="table", **declared)
    assert (done.values[:, 0] != done.values[:, 1]).any()


def test_mdav_has_exact_sums_and_no_noise() -> None:
    grids = [Grid.declare((0, 100), 1), Grid.declare((0, 10), "0.5")]
    units = quantise_columns([TABLE[:, 0], TABLE[:, 1]], grids)
    parts = compute_vectors(units, grids=grids, spec=MdavSpec(7), secret=SECRET, context=())
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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"domains": [(0, 100)]}, "one column for each domain and grid"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"k": 401}, "cannot fill one cluster"),
        ({"order": "peano"}, "the order is none of corner, hilbert"),
    ],
)
def test_wrong_input_is_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ReleasePipelineError) as caught:
        mask_vectors(TABLE, **{**DECLARED, **changes})
    assert words in caught.value.what
