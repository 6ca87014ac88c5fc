"""Expected means and errors of groups, by plain sums."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.audit.subgroups import Served, expect_served
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import parse_policy
from release_pipeline.policy.plans.plan import describe_plan, make_plan
from tests.integration.sites import policy_text, refusal

COLUMNS = """
  town: {role: quasi, do: keep, values: [a, b, c], why: needed}
  w: {role: weight, do: keep, values: [1, 3], why: design}
  income: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, why: known}"""
PARTS = {"columns": COLUMNS, "drop": "", "person": "each-row", "releases": "once", "source": "{path: x.csv}"}


def make(**parts: str) -> Policy:
    """A policy with a limit on means of groups."""
    gates = "{group_mean: {income: 2}}"
    return parse_policy(policy_text(**{**PARTS, "gates": gates, "audit": "{groups: [town]}", **parts}), name="people")


def test_figures_are_means_over_releases_of_the_worst() -> None:
    """Known by hand: two releases of five clusters; who has no value counts not."""
    numbers = np.array([10.0, 20, 30, 40, np.nan])
    cluster = np.array([0, 1, 2, 3, 4])
    simulated = [np.array([12.0, 20, 30, 44, np.nan]), np.array([8.0, 20, 30, 40, np.nan])]
    served = Served((np.array([0, 0, 1, 1, -1]),))
    found = expect_served("income", make(), simulated, numbers, cluster, served)
    # means 15 and 35 before; 16, 37 and 14, 35 after: 1 and 1, 2 and 0
    assert found["group_mean"] == pytest.approx(1.0)
    weighted = Served((np.array([0, 0, 1, 1, -1]),), np.array([3.0, 1, 1, 3, 5]))
    # weighted: 12.5 and 37.5 before; 14 and 40.5, 11 and 37.5 after
    assert expect_served("income", make(), simulated, numbers, cluster, weighted)["group_mean"] == pytest.approx(1.5)


def test_errors_of_groups_are_means_over_releases_and_records() -> None:
    """Known by hand: over the variance of all values; who has no value, or no group, counts not."""
    numbers = np.array([10.0, 20, 30, 40, np.nan])
    simulated = [np.array([12.0, 20, 30, 44, np.nan]), np.array([8.0, 20, 30, 40, 5])]
    served = Served((np.array([0, 0, 1, 1, -1]),), names=(("town", ("a", "b")),))
    found = expect_served("income", make(gates="{min_rows: 20}"), simulated, numbers, np.arange(5), served)
    # squares 4, 0 | 0, 16 and 4, 0 | 0, 0, over a variance of 125
    assert found["group_errors"] == {"town": {"a": pytest.approx(2 / 125), "b": pytest.approx(4 / 125)}}
    assert found["group_error"] == pytest.approx(4 / 125)
    parted = make(protect="{method: idp-cbls, epsilon: 2, k: 5, partitions: 2}", gates="{min_rows: 40}")
    assert expect_served("income", parted, simulated, numbers, np.arange(5), served) == {}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"audit": ""}, "no groups are declared whose means could be limited"),
        ({"gates": "{group_mean: {town: 5}}"}, "'town' is not a column with do: noise"),
        ({"protect": "{method: idp-cbls, epsilon: 2, k: 5, partitions: 2}"}, "masked in random parts"),
    ],
)
def test_limits_without_a_figure_are_refused(parts: dict[str, str], words: str) -> None:
    gates = "{group_mean: {income: 2}, min_rows: 40}"
    assert words in refusal(lambda: make(**{"gates": gates, **parts}))


def test_check_says_the_limit() -> None:
    """In the column's own unit."""
    words = " ".join(" ".join(describe_plan(make_plan(make()))).split())
    assert "the mean of a group of income expected to differ by at most 2" in words
