"""The accountant, Proposition 9 and the column calibration against brute force over all neighbours."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from release_pipeline.mechanisms import Epsilon, MaskedColumn, mask_column
from release_pipeline.mechanisms.accounting.sensitivity import prop8_sensitivity, trimmed_moves
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.clusters.rank import RankClusters
from tests.oracles import brute_force

WIDTH = 1000
METHODS = ("laplace", "dp-um", "idp-ls", "idp-cbls")


def _table(kind: str, n: int, chance: random.Random) -> list[int]:
    draw = {
        "ties": lambda: chance.choice((0, 3, 3, 500, WIDTH)),
        "heavy tail": lambda: min(WIDTH, int(chance.paretovariate(0.7))),
        "narrow": lambda: chance.randint(400, 404),
    }[kind]
    return [draw() for _ in range(n)]


def _mask(values: list[int], *, method: str, k: int, scope: str, epsilon: str = "0.7", width: int = WIDTH) -> MaskedColumn:
    return mask_column(
        values,
        domain=(0, width),
        grid=1,
        method=method,
        epsilon=epsilon,
        k=None if method == "laplace" else k,
        scope=scope,
        secret=bytes(32),
    )


@pytest.mark.parametrize("scope", ["centroid", "column"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["ties", "heavy tail", "narrow"])
def test_loss_equals_brute_force_over_all_neighbours(kind: str, method: str, scope: str) -> None:
    """`.loss` of both scopes is the worst case over every record and new value, re-clustering included, to 1e-9."""
    chance = random.Random(f"{kind} {method} {scope}")  # noqa: S311
    for n, k in [(3, 3), (7, 3), (12, 4), (17, 5), (23, 11)]:
        values = _table(kind, n, chance)
        masked = _mask(values, method=method, k=k, scope=scope)
        centroid, column = brute_force.losses(values, masked.scale.tolist(), method=method, k=k, width=WIDTH)
        assert column < brute_force.INFINITE
        assert masked.loss["centroid"] == pytest.approx(float(centroid), abs=1e-9)
        assert masked.loss["column"] == pytest.approx(float(column), abs=1e-9)


def test_proposition_9_is_the_worst_replacement_within_a_cluster() -> None:
    """D = the largest change of the trimmed sum when one member takes any value of the domain; 0 only for equal values."""
    chance = random.Random(9)  # noqa: S311
    for _ in range(300):
        width = chance.choice((1, 5, 40))
        cluster = [chance.choice((0, width, chance.randint(0, width))) for _ in range(chance.randint(3, 9))]
        before = brute_force.trimmed_sum(cluster)
        worst = max(
            abs(brute_force.trimmed_sum([*cluster[:i], new, *cluster[i + 1 :]]) - before)
            for i in range(len(cluster))
            for new in range(-3 * width, 4 * width + 1)
        )
        found = trimmed_moves(RankClusters.of(Tally.of(np.array(cluster)), len(cluster))).worst
        assert found.tolist() == [worst]
        assert (worst == 0) == (len(set(cluster)) == 1)


def test_proposition_8_is_the_worst_replacement_within_a_cluster() -> None:
    """max(W - x_1, x_n), per cluster."""
    clusters = RankClusters.of(Tally.of(np.array([1, 2, 3, 7, 8, 10])), 3)
    assert prop8_sensitivity(clusters, 10).tolist() == [9, 10]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", ["0.01", "3.141592653", "25"])
def test_column_scope_never_exceeds_epsilon_and_uses_it_up(method: str, epsilon: str) -> None:
    """The exact rational loss at scope column is at most epsilon, and at least 0.999 of it where scales are large."""
    chance = random.Random(f"{method} {epsilon}")  # noqa: S311
    eps = Epsilon.of(epsilon).fraction
    for kind in ("ties", "heavy tail"):
        values = [v * 10**6 for v in _table(kind, 60, chance)]
        masked = _mask(values, method=method, k=4, scope="column", epsilon=epsilon, width=WIDTH * 10**6)
        exact = _exact_loss(masked, values, method, WIDTH * 10**6, 4)
        assert exact <= eps
        assert masked.loss["column"] <= float(eps)
        if method in ("idp-ls", "idp-cbls"):
            assert exact >= eps * Fraction(999, 1000)


def test_dp_um_column_loss_is_below_epsilon_in_absolute_terms() -> None:
    """The known answer of the issue: dp-um at epsilon 0.7 has a column loss of at most 0.7, with the bound met when x_1 = 0."""
    loss = _mask(list(range(0, 1001, 10)), method="dp-um", k=5, scope="column", width=1000).loss["column"]
    assert loss == pytest.approx(1000 / math.ceil(1000 / 0.7), abs=1e-12)
    assert loss <= 0.7


def test_idp_cbls_at_centroid_scope_exposes_the_column_many_times() -> None:
    """methods.md section 2: an advertised 0.01 at centroid scope with n = 1080, k = 5 costs more than 1 for the list."""
    values = np.random.default_rng(1).lognormal(10, 1, 1080)
    masked = mask_column(values, domain=(0, 10**6), grid=1, method="idp-cbls", epsilon="0.01", k=5, scope="centroid")
    assert masked.loss["centroid"] <= 0.01
    assert 0.5 * 216 * 0.01 <= masked.loss["column"] <= 216 * 0.01


def _exact_loss(masked: MaskedColumn, values: list[int], method: str, width: int, k: int) -> Fraction:
    """The accountant's sum once more in fractions, from the definition of the worst two moves."""
    if method == "laplace":
        return Fraction(max(max(values), width - min(values)), int(masked.scale[0]))
    ordered = sorted(values)
    ends = ([*ordered[1:], width], [0, *ordered[:-1]])
    before = brute_force.statistics(values, method=method, k=k)
    totals = [Fraction(0), Fraction(0)]
    for side, moved in enumerate(ends):
        for now, then, t in zip(before, brute_force.statistics(moved, method=method, k=k), masked.scale.tolist(), strict=True):
            assert now == then or t > 0
            totals[side] += Fraction(abs(now - then), t) if t else 0
    return max(totals)
