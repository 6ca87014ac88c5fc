"""PRS20: the worst neighbour by brute force, densities summed up plainly."""

from __future__ import annotations

from itertools import combinations, product
from math import exp, inf, log, tanh
from pathlib import Path

import numpy as np
import pytest

from experiments.papers import prs20
from experiments.papers.runs import Setting, make_secrets

NOWHERE = Path("nowhere")  # no reference data are needed
SECRETS = make_secrets(5, 2)


def _law(z: int, centre: int, scale: int) -> float:
    return tanh(1 / (2 * scale)) * exp(-abs(z - centre) / scale)


def test_the_loss_is_the_largest_log_ratio_of_joint_densities_that_there_is() -> None:
    one = [np.array([0, 1, 2, 6, 6, 5]), np.array([3, 3, 4])]
    other = [np.array([6, 1, 2, 6, 6, 5]), np.array([3, 3, 4])]
    scales = [np.array([2, 3]), np.array([4])]
    centres, moved = ([prs20.sum_up(part, "dp-um") for part in tables] for tables in (one, other))
    assert [part.tolist() for part in centres] == [[3, 17], [10]]
    flat = [np.concatenate(parts).tolist() for parts in (centres, moved, scales)]
    largest = -inf
    for place in product(range(-1, 22), repeat=3):
        ratio = sum(log(_law(z, a, t) / _law(z, b, t)) for z, a, b, t in zip(place, *flat, strict=True))
        largest = max(largest, ratio)
    assert prs20.find_loss(one, other, "dp-um", scales) == pytest.approx(largest, abs=1e-9)
    assert largest == pytest.approx(5 / 2 + 1 / 3, abs=1e-9)  # 0 1 2 | 5 6 6 becomes 1 2 5 | 6 6 6


@pytest.mark.parametrize("method", prs20.SMALL_METHODS)
@pytest.mark.parametrize("clusters", [1, 2])
def test_parts_by_slot_cost_as_much_as_the_dearest_and_never_more_than_epsilon(method: str, clusters: int) -> None:
    setting = Setting.of("neighbours", 2, split="slots", method=method, clusters=clusters)
    for row in prs20.measure(NOWHERE, setting, SECRETS):
        assert row["worst"] == pytest.approx(row["greatest"], rel=1e-12)
        assert row["worst"] <= 1
        assert row["sum"] > 1.5 * row["worst"]


def test_parts_by_identity_cost_more_than_epsilon() -> None:
    for clusters in (1, 2):
        setting = Setting.of("neighbours", 2, split="identity", method="dp-um", clusters=clusters)
        assert all(row["worst"] > 1.5 for row in prs20.measure(NOWHERE, setting, SECRETS))
    assert prs20.find_hash_loss("one cluster in each part") == 2
    assert prs20.find_hash_loss("two clusters in each part") == 4


@pytest.mark.parametrize(
    ("method", "others", "t_without", "t_with"), [("dp-um", 0, 2, 2), ("dp-um", 1, 2, 2), ("idp-ls", 1, 1, 2)]
)
def test_membership_is_summed_over_all_samples(method: str, others: int, t_without: int, t_with: int) -> None:
    beyond = 7
    setting = Setting.of("membership", 1, method=method, others=others, beyond=beyond)
    [row] = prs20.measure(NOWHERE, setting, SECRETS[:1])
    z, densities = 3 * others + beyond, []
    for value in (2, 0):
        table = [value, *[others] * 29]
        drawn = list(combinations(range(30), 3))
        densities.append(
            sum(_law(z, sum(table[i] for i in rows), t_with if 0 in rows else t_without) for rows in drawn) / len(drawn)
        )
    assert [row["probability"], row["neighbour"]] == pytest.approx(densities, rel=1e-9)
    assert row["charged"] == pytest.approx(log(1 + 0.1 * (exp(1) - 1)), abs=2e-9)
    assert (row["log_ratio"] > 2 * row["charged"]) == (method == "idp-ls")
