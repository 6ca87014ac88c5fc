"""When pure epsilon is told to have less error than a claim by rho: as it was measured, method by method."""

from __future__ import annotations

import pytest

from release_pipeline.policy import parse_policy
from release_pipeline.policy.plans.plan import describe_plan, make_plan


def said_of(method: str, columns: int, epsilon: str) -> str:
    """What a check says of so many equal columns by rho."""
    column = "{role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}"
    listed = "".join(f"  c{at}: {column}\n" for at in range(columns))
    text = (
        "policy: people\nsteward: ana\npopulation: folk\nsource: {path: people.csv}\nperson: each-row\nreleases: once\n"
        f"protect: {{method: {method}, k: 5, epsilon: {epsilon}, definition: zcdp, delta: 0.000001}}\n"
        f"columns:\n{listed}gates: {{min_rows: 30000}}\n"
    )
    return " ".join(describe_plan(make_plan(parse_policy(text, name="people.yaml")), width=10_000))


@pytest.mark.parametrize("epsilon", ["1", "3"])
@pytest.mark.parametrize(
    ("method", "columns", "told"),
    [("dp-cdf", 1, True), ("dp-cdf", 3, False), ("dp-cdf", 9, False), ("dp-um", 9, True), ("dp-um", 16, False)],
)
def test_rho_is_advised_against_where_it_has_more_error(method: str, columns: int, epsilon: str, told: bool) -> None:
    """Counts by value gain by rho from three columns on, sums from some fifteen on."""
    assert ("rho pays with many columns" in said_of(method, columns, epsilon)) is told
