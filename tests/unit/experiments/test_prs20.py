"""PRS20: the worst neighbour by brute force, densities summed up plainly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import exp, inf, log, tanh
from pathlib import Path

import numpy as np
import pytest

from experiments.papers import prs20
from experiments.papers.runs import Setting, make_secrets
from experiments.papers.tables import Source, make_up
from release_pipeline.privacy import Epsilon, noise_stream
from release_pipeline.privacy.methods import add_noise, compute_statistics
from release_pipeline.privacy.partition import draw_parts

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


def test_a_list_without_noise_that_moves_loses_everything() -> None:
    assert prs20.find_loss([np.array([0, 0, 0])], [np.array([0, 0, 1])], "dp-um", [np.array([0])]) == inf
    assert prs20.find_loss([np.array([0, 0, 0])], [np.array([0, 0, 1])], "idp-cbls", [np.array([0])]) == 0


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


def test_a_neighbour_replaces_one_record_in_its_part_or_in_any() -> None:
    lists = [np.array([1, 2]), np.array([3, 4])]
    here = [[sorted(part.tolist()) for part in found] for found in prs20.list_neighbours(lists, moves=False)]
    assert len(here) == 4 * 7
    assert all(len(a) == len(b) == 2 and (a == [1, 2] or b == [3, 4]) for a, b in here)
    anywhere = [[len(part) for part in found] for found in prs20.list_neighbours(lists, moves=True)]
    assert len(anywhere) == 2 * 4 * 7
    assert [1, 3] in anywhere


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


def test_theory_is_the_two_formulas() -> None:
    found = prs20.compare_bounds("2", Fraction(1, 5))
    assert found["bbg18"] == pytest.approx(log(1 + 0.2 * (exp(2) - 1)), abs=2e-9)
    assert found["prs20"] == pytest.approx(log((exp(2) * 0.2 + 0.8) / 0.8), rel=1e-12)


def test_errors_are_those_of_each_part_masked_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    small = make_up(3_000)
    monkeypatch.setattr(prs20, "make_up", lambda _: small)
    setting = Setting.of("error", 2, method="idp-cbls, isotonic", epsilon="1", parts=4)
    for secret, row in zip(SECRETS, prs20.measure(NOWHERE, setting, SECRETS), strict=True):
        part = draw_parts(3_000, 4, noise_stream(secret, "prs20", "parts", 4))
        released, losses = np.empty_like(small.values), []
        for number in range(4):
            rows = np.flatnonzero(part == number)
            assert len(rows) == 750
            loss = 0.0
            for a in range(4):
                context = ("prs20", setting.key, "part", number, a)
                exact = compute_statistics(
                    small.values[rows, a],
                    grid=small.grids[a],
                    method="idp-cbls",
                    epsilon=Epsilon.of("0.25"),
                    k=25,
                    scope="column",
                    consistency="isotonic",
                    secret=bytes(32),
                    context=context,
                )
                released[rows, a] = add_noise(exact, on_grid=False, secret=secret, context=context)[exact.cluster]
                loss += exact.loss["column"]
            losses.append(loss)
        assert row["error"] == pytest.approx(small.measure(released)[0], rel=1e-12)
        assert row["loss"] == pytest.approx(max(losses), rel=1e-12)
        assert row["sum_of_losses"] == pytest.approx(sum(losses), rel=1e-12)


@pytest.mark.parametrize("name", prs20.CLUSTERS)
def test_clusters_are_of_one_part_each(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    small = Source("small", make_up(3_000).values[:1_000], make_up(3_000).grids)
    monkeypatch.setattr(prs20, "make_up", lambda _: small)
    one, four = (
        prs20.measure(NOWHERE, Setting.of("clusters", 1, clusters=name, parts=parts), SECRETS[:1])[0]["error"] for parts in (1, 2)
    )
    assert 0 < one < four < 1.01


def test_a_quick_run_measures_settings_of_the_full_one() -> None:
    full = {setting.key for setting in prs20.list_settings(quick=False)}
    quick = [setting.key for setting in prs20.list_settings(quick=True)]
    assert set(quick) < full
    assert len(set(quick)) == len(quick)
