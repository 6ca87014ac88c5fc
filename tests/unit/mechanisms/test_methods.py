"""mask_column: what it returns, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import Epsilon, Grid, mask_column
from release_pipeline.mechanisms.accounting.sensitivity import Moves, calibrate_column, centroid_loss, column_loss

VALUES = np.random.default_rng(0).lognormal(3, 1, 500)
GOOD: dict[str, Any] = {"domain": (0, 1000), "grid": "0.1", "method": "idp-cbls", "epsilon": 1, "k": 10, "secret": bytes(32)}
METHODS = [("laplace", None), ("dp-um", 10), ("idp-ls", 10), ("idp-cbls", 10)]


@pytest.mark.parametrize(("method", "k"), METHODS)
@pytest.mark.parametrize("scope", ["centroid", "column"])
def test_released_values_are_the_noisy_statistics(method: str, k: int | None, scope: str) -> None:
    """Without clamp and consistency a value is lo + g (statistic + Z) / size, with whole Z, 0 where the scale is 0."""
    masked = mask_column(VALUES, **GOOD | {"method": method, "k": k}, scope=scope, consistency="none", clamp=False)
    assert masked.values.dtype == np.float64
    units = masked.values / 0.1 * masked.size[masked.cluster] - masked.statistic[masked.cluster]
    assert np.allclose(units, np.rint(units), atol=1e-4)
    assert np.all(np.rint(units)[masked.scale[masked.cluster] == 0] == 0)
    assert (masked.claim.definition, masked.claim.epsilon, masked.claim.scope) == ("idp" if "idp" in method else "dp", 1, scope)
    assert int(masked.size.sum()) == len(VALUES)


@pytest.mark.parametrize(("method", "k"), METHODS)
def test_clamp_keeps_released_values_in_the_domain(method: str, k: int | None) -> None:
    """With a small epsilon noise leaves the domain; clamping brings every value back, to the nearest point of the grid."""
    small = GOOD | {"method": method, "k": k, "epsilon": "0.001"}
    free, clamped = (mask_column(VALUES, **small, consistency="none", clamp=clamp).values for clamp in (False, True))
    assert free.min() < 0
    assert free.max() > 1000
    between = mask_column(VALUES, **small, consistency="none", on_grid=False).values
    assert np.array_equal(np.clip(free, 0, 1000), between)
    assert np.allclose(np.rint(between / 0.1) / 10, clamped, atol=1e-9)
    grid = Grid.declare((0, 1000), "0.1")
    assert np.array_equal(grid.restore(grid.quantise(clamped).astype(np.float64)), clamped)


def test_secret_and_context_decide_the_noise() -> None:
    """Same secret and context: the same; another context or none given: different."""
    base = mask_column(VALUES, **GOOD, context=("release", "income")).values
    assert np.array_equal(base, mask_column(VALUES, **GOOD, context=("release", "income")).values)
    assert not np.array_equal(base, mask_column(VALUES, **GOOD, context=("release", "rent")).values)
    fresh = GOOD | {"secret": None}
    assert not np.array_equal(mask_column(VALUES, **fresh).values, mask_column(VALUES, **fresh).values)


def test_order_of_ties_is_keyed_and_changes_nothing_else() -> None:
    """Another secret puts tied records into other clusters; the exact statistics stay the same."""
    tied = np.repeat([1.0, 2.0, 3.0], 40)
    a, b = (mask_column(tied, **GOOD | {"secret": bytes([i]) * 32, "k": 7}) for i in (1, 2))
    assert not np.array_equal(a.cluster, b.cluster)
    assert np.array_equal(a.statistic, b.statistic)
    assert np.array_equal(a.scale, b.scale)


def test_constant_clusters_get_no_noise() -> None:
    """D = 0 exactly when all values of a cluster are equal; such sums are exact."""
    masked = mask_column(np.repeat([5.0, 9.0], 50), **GOOD, scope="column", consistency="none")
    assert masked.scale.tolist() == [0] * 10
    assert set(masked.values.tolist()) == {5.0, 9.0}
    assert masked.loss == {"centroid": 0.0, "column": 0.0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scope": "table"}, "scope"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": "much"}, "epsilon"),
        ({"k": None}, "needs k"),
        ({"k": 2}, "at least 3"),
        ({"k": 501}, "500 records"),
        ({"method": "laplace", "k": 10}, "no k"),
        ({"method": "dp-um", "k": 0}, "at least 1"),
        ({"grid": "0.3", "domain": (0, 1)}, "whole number of grid steps"),
        ({"grid": "1e-12", "domain": (0, 4000), "epsilon": "0.001"}, "64-bit"),
        ({"secret": b"short"}, "32 bytes"),
    ],
)
def test_wrong_arguments_are_refused_in_words(change: dict[str, Any], words: str) -> None:
    """Each names what is wrong."""
    with pytest.raises(InvalidArgument, match=words):
        mask_column(VALUES, **GOOD | change)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")] * 20])
def test_wrong_values_are_refused_without_showing_them(values: list[float]) -> None:
    """Empty, missing, infinite."""
    with pytest.raises(InvalidArgument):
        mask_column(values, **GOOD)


def test_values_that_are_no_numbers_are_refused_without_showing_them() -> None:
    """The text of the cell is not in the error."""
    with pytest.raises(InvalidType) as caught:
        mask_column(["canary"] * 20, **GOOD)
    assert "canary" not in str(caught.value)


def test_extreme_but_admissible_sizes_are_exact() -> None:
    """The widest domain with a fine grid: sums and scales near the limits stay exact integers."""
    masked = mask_column(
        [0, 2**52] * 10, domain=(0, 2**52), grid=1, method="dp-um", epsilon=1, k=5, secret=bytes(32), clamp=False
    )
    assert masked.statistic.tolist() == [0, 0, 5 * 2**52, 5 * 2**52]
    assert set(masked.scale.tolist()) == {2**52}
    assert masked.loss["column"] == 1.0


def test_scales_that_rounding_made_too_small_grow_until_the_sum_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verified loss is the sum over clusters: with two alike ones the largest term fits long before the sum does."""
    ceil, moves, sizes, epsilon = np.ceil, Moves(np.full(2, 1000), np.full(2, 1000)), np.full(2, 10), Epsilon.of(1)
    monkeypatch.setattr(np, "ceil", lambda wanted: ceil(0.7 * wanted))
    scales = calibrate_column(moves, sizes, epsilon)
    assert 0.5 < column_loss(moves, scales) <= 1


def test_one_moving_sum_without_noise_is_an_infinite_loss() -> None:
    """Whatever noise the others have."""
    assert centroid_loss(Moves(np.array([1, 2]), np.array([0, 0])), np.array([0, 5])) == np.inf


def test_the_loss_of_counts_by_value_is_the_sum_over_their_stages() -> None:
    """Each stage has a share of epsilon, and together they use it up."""
    masked = mask_column(VALUES, **GOOD | {"method": "dp-cdf", "epsilon": "0.5"})
    assert masked.loss == {"centroid": 0.5, "column": 0.5}
