"""What the analyst's kit says of confidential scales, against the scales that `compute_statistics` really takes on random and
nasty data; and its quantiles, against laws added up number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from release_pipeline.analyst.laws import bound_equal_magnitudes, bound_magnitudes, bound_sum, quantile_of_sum, reach_of
from release_pipeline.analyst.means import estimate_mean
from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.columns.methods import Statistics, compute_statistics
from tests.unit.analyst.cards import make_facts, noise

SECRET = bytes(32)
LAST_BIT = 1 + 1e-14  # where a bound is attained, floats may differ in their last digits
IDP = [("idp-cbls", "column"), ("idp-cbls", "centroid"), ("idp-ls", "column"), ("idp-ls", "centroid")]


def statistics_of(values: list[int], width: int, method: str, k: int, epsilon: str, scope: str) -> Statistics:
    return compute_statistics(
        np.array(values, dtype=np.int64),
        grid=Grid.declare((0, width), 1),
        method=method,
        epsilon=epsilon,
        k=k,
        scope=scope,
        consistency="none",
        secret=SECRET,
        context=(),
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """Values, the width of their domain and k: few or many different values, at the ends and in heaps."""
    width = draw(st.sampled_from([1, 2, 7, 100, 10**6]))
    k = draw(st.integers(3, 6))
    n = draw(st.integers(k, 12 * k))
    kind = draw(st.sampled_from(["any", "ends", "steps", "one apart"]))
    if kind == "any":
        return draw(st.lists(st.integers(0, width), min_size=n, max_size=n)), width, k
    if kind == "ends":
        return draw(st.lists(st.sampled_from([0, width]), min_size=n, max_size=n)), width, k
    if kind == "steps":  # each cluster has as much of the domain as the others, split where `first` says
        first = draw(st.integers(1, k - 1))
        p = n // k
        return sorted(width * (r // k + (r % k >= first)) // p if r // k < p else width for r in range(n)), width, k
    heap = draw(st.integers(0, width))
    return [heap] * (n - 1) + [draw(st.integers(0, width))], width, k


@pytest.mark.parametrize(("method", "scope"), IDP)
@settings(max_examples=60)
@given(table=tables(), epsilon=st.sampled_from(["0.01", "0.3", "1", "7"]))
def test_no_data_have_scales_beyond_the_reach(method: str, scope: str, table: tuple[list[int], int, int], epsilon: str) -> None:
    """Sum and square root of squares of the scales that the release really takes, and what trimming moves, stay within the
    bounds."""
    values, width, k = table
    exact = statistics_of(values, width, method, k, epsilon, scope)
    facts = make_facts(method, noise("income", width, epsilon=epsilon), rows=len(values), k=k, scope=scope)
    reach = reach_of(facts, "income")
    assert reach.draws == len(exact.scale)
    assert facts.sizes.tolist() == exact.size.tolist()
    scale = exact.scale.astype(np.float64)
    assert scale.sum() <= reach.total * LAST_BIT
    assert math.sqrt(float(np.sum(scale * scale))) <= reach.root * LAST_BIT
    assert abs(int(exact.statistic.sum()) - sum(values)) <= reach.bias
    if reach.scale is not None:
        assert exact.scale.max() <= reach.scale


def law_of_scale(t: int, reach: int) -> np.ndarray:
    """P[Z = z] for z = -reach..reach."""
    q = math.exp(-1 / t)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1)).astype(np.float64)


@pytest.mark.parametrize(("t", "draws"), [(1, 1), (3, 2), (20, 5)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_quantile_is_the_least_that_holds(t: int, draws: int, level: float) -> None:
    """Against the convolution of the laws themselves."""
    one = law_of_scale(t, 50 * t)
    law = one
    for _ in range(draws - 1):
        law = np.convolve(law, one)
    middle = len(law) // 2
    m = quantile_of_sum(t, draws, level)
    assert law[middle - m : middle + m + 1].sum() >= level - 1e-9
    assert m == 0 or law[middle - m + 1 : middle + m].sum() < level


def covers_two_ends(t: int, n: int, ones: int, level: float) -> float:
    """How often the kit's interval covers the mean of n values of 0 and 1 released by clamped laplace, by enumeration: each
    released value is 0 or 1."""
    facts = make_facts("laplace", noise("income", 1, epsilon=str(1 / t)), rows=n, clamped=True)
    q = math.exp(-1 / t)
    law = np.convolve(
        stats.binom.pmf(np.arange(n - ones + 1), n - ones, q / (1 + q)), stats.binom.pmf(np.arange(ones + 1), ones, 1 / (1 + q))
    )
    covered = 0.0
    for high in np.flatnonzero(law > 1e-9):
        mean = estimate_mean(facts, "income", np.repeat([0.0, 1.0], [n - high, high]), level)
        covered += float(law[high]) * (mean.low <= ones / n <= mean.high)
    return covered


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize(("t", "n", "share"), [(200, 50, 1), (10, 50, 2), (1, 62, 2), (2, 87, 3), (8, 320, 2)])
def test_means_of_values_moved_to_two_ends_cover(t: int, n: int, share: int, level: float) -> None:
    """At least the level, on the coarsest lattice that there is; without the half step of it 93.3% happen."""
    assert covers_two_ends(t, n, n // share, level) >= level - 1e-6


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 3, 5, 9, 30]), min_size=1, max_size=6), st.sampled_from([0.9, 0.95, 0.99]))
def test_bounds_on_sums_hold_for_discrete_numbers(scales: list[int], level: float) -> None:
    """Of the sum, and of the sum of magnitudes, from the convolved laws of any mixture of scales."""
    signed, size = np.ones(1), np.ones(1)
    for t in scales:
        one = law_of_scale(t, 45 * t)
        signed = np.convolve(signed, one)
        size = np.convolve(size, np.concatenate([[one[45 * t]], 2 * one[45 * t + 1 :]]))
    root, middle = math.sqrt(sum(t * t for t in scales)), len(signed) // 2
    x = bound_sum(root, len(scales), level)
    beyond = math.floor(x) + 1
    assert signed[: max(middle - beyond + 1, 0)].sum() + signed[middle + beyond :].sum() <= 1 - level
    for y in (
        bound_magnitudes(sum(scales), root, len(scales), level),
        bound_equal_magnitudes(max(scales), len(scales), level),
    ):
        assert size[math.floor(y) + 1 :].sum() <= 1 - level
