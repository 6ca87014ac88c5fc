"""The plan: what the claim says, what it covers, and how large the noise can be before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms import MaskedColumn, mask_column
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.plans.plan import describe_claim, describe_plan, make_plan

INCOME = "income: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, why: known}"
RENT = "rent: {role: confidential, do: noise, domain: [-5, 5], grid: 0.1, outside: clamp, why: known}"
SITE = "site: {role: quasi, do: keep, values: [1, 2], why: known}"


def policy_of(
    method: str = "idp-cbls",
    k: int | None = 5,
    *columns: str,
    epsilon: object = 2,
    options: str = "",
    records: int = 1,
    rows: str = "",
) -> Policy:
    """A small policy with these columns (default: income alone)."""
    lines = [
        "policy: people\nsteward: ana\npopulation: people\nsource: {path: people.csv}\nreleases: once",
        f"person: {{column: id, records_per_release: {records}}}",
        f"protect: {{method: {method}, epsilon: {epsilon}{f', k: {k}' if k else ''}{options}}}",
        "columns:\n  id: {role: identifier, do: drop}",
        *(f"  {column}" for column in columns or [INCOME]),
        rows,
    ]
    return parse_policy("\n".join(lines), name="p.yaml")


def one_column(method: str, k: int | None, *, width: int, epsilon: object, scope: str) -> Policy:
    """A policy with one noise column of so many grid steps."""
    column = f"income: {{role: confidential, do: noise, domain: [0, {width}], grid: 1, outside: clamp, why: known}}"
    return policy_of(method, k, column, epsilon=epsilon, options=f", scope: {scope}")


def mask(policy: Policy, values: Sequence[int]) -> MaskedColumn:
    """What these values get under the policy's only noise column."""
    [(name, column)] = policy.noise_columns.items()
    return mask_column(
        np.array(values, dtype=np.int64),
        domain=column.domain,
        grid=column.grid,
        method=policy.protect.method,
        epsilon=policy.column_epsilon[name],
        k=policy.protect.k,
        scope=policy.protect.scope,
        secret=bytes(32),
    )


def largest_noise(masked: MaskedColumn) -> float:
    """The largest mean |Z| / size over the clusters, E|Z| = 1 / sinh(1/t), in grid steps; scale 0 has none."""
    noisy = masked.scale > 0
    return float(np.max(1 / np.sinh(1 / masked.scale[noisy]) / masked.size[noisy], initial=0.0))


def planned_noise(policy: Policy, rows: int) -> float:
    [column] = make_plan(policy, rows=rows).columns
    assert column.noise is not None
    return column.noise


@pytest.mark.parametrize(
    ("policy", "claim"),
    [
        (
            policy_of(),
            "epsilon 2 in all (all for the column income), iDP, for the list of values of each masked column; "
            "whole table: not bounded",
        ),
        (
            policy_of("dp-um", 5, INCOME, RENT, epsilon="0.1"),
            "epsilon 0.1 in all (0.05 for each of 2 columns), DP, for the list of values of each masked "
            "column; whole table: not bounded",
        ),
        (
            policy_of("idp-ls", 5, INCOME, RENT, options=", weights: {rent: 3}"),
            "epsilon 2 in all (income 0.5, rent 1.5), iDP, for the list of values of each masked column; "
            "whole table: not bounded",
        ),
        (
            policy_of(options=", scope: centroid"),
            "epsilon 2 in all (all for the column income), iDP, for each centroid separately; whole table: not bounded",
        ),
        (
            policy_of("laplace", None),
            "epsilon 2 in all (all for the column income), DP, for the list of values of each masked column; "
            "whole table: covered with the same epsilon",
        ),
        (
            policy_of("laplace", None, INCOME, RENT, SITE, records=3),
            "epsilon 6 in all (1 for each of 2 columns; times 3 records per person), DP, for the list of "
            "values of each masked column; "
            "whole table: not bounded",
        ),
        (
            policy_of("dp-um", 5, INCOME, RENT, epsilon="0.000000003", records=10000),
            "epsilon 0.00003 in all (income 0.000000002, rent 0.000000001; times 10000 records per person), DP, "
            "for the list of values of each masked column; whole table: not bounded",
        ),
    ],
    ids=["one-column", "even", "weights", "centroid", "laplace", "records", "odd-nano"],
)
def test_a_claim_says_what_its_epsilon_is_of(policy: Policy, claim: str) -> None:
    """Total, split, definition and scope, and what is known of the whole table: never a number alone."""
    assert describe_claim(policy) == claim


@pytest.mark.parametrize("epsilon", ["0.1", "2", "1000"])
@pytest.mark.parametrize(("method", "k"), [("laplace", None), ("dp-um", 7)])
@pytest.mark.parametrize(("column", "width", "step"), [(INCOME, 100, 1.0), (RENT, 100, 0.1)], ids=["whole", "tenths"])
def test_dp_noise_is_the_mean_of_the_discrete_laplace(
    method: str, k: int | None, epsilon: str, column: str, width: int, step: float
) -> None:
    """Mean |Z| summed from the law itself, for the scale ceil(W / eps), in the column's unit and over k records."""
    policy = policy_of(method, k, column, epsilon=epsilon)
    t = math.ceil(round(width / float(epsilon), 9))
    weights = [math.exp(-z / t) for z in range(1, 60 * t)]
    mean = 2 * math.fsum(z * weight for z, weight in enumerate(weights, start=1)) / (1 + 2 * math.fsum(weights))
    [planned] = make_plan(policy).columns
    assert planned.noise == pytest.approx(mean * step / (k or 1), rel=1e-9)
    assert planned.share == pytest.approx(mean / (k or 1) / width, rel=1e-9)
    assert not planned.worst_case
    assert set(mask(policy, range(20)).scale) == {t}


IDP = [("idp-ls", 1), ("idp-ls", 2), ("idp-ls", 5), ("idp-cbls", 3), ("idp-cbls", 4), ("idp-cbls", 6)]


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[Policy, list[int]]:
    """A policy with one column, and at least two clusters of values on its grid, many of them at the ends and equal."""
    method, k = draw(st.sampled_from(IDP))
    width = draw(st.sampled_from([1, 2, 7, 1000, 10**6]))
    policy = one_column(
        method,
        k,
        width=width,
        epsilon=draw(st.sampled_from(["0.3", "1", "2.7", "40"])),
        scope=draw(st.sampled_from(["centroid", "column"])),
    )
    value = st.one_of(st.sampled_from([0, width, width // 2]), st.integers(0, width))
    return policy, draw(st.lists(value, min_size=2 * k, max_size=8 * k))


def worst_table(method: str, k: int, clusters: int, width: int, share: float) -> list[int]:
    """Clusters whose moves are as large as can be: one has `share` of the domain's width, the others the rest evenly.

    idp-cbls: half of a cluster at its lower end and half at its upper end. idp-ls: each cluster starts where the last one ended
    and jumps up at once, so that both its ups and its downs are as large as its part of the domain.
    """
    parts = [share] + [(1 - share) / max(clusters - 1, 1)] * (clusters - 1)
    ends = [round(width * sum(parts[:j])) for j in range(clusters)] + [width]
    table = list[int]()
    for lo, hi in pairwise(ends):
        low = 2 if method == "idp-cbls" and k > 3 else k // 2 + k % 2
        table += [lo] * low + [hi] * (k - low)
    return table


@pytest.mark.parametrize(("method", "k"), IDP)
@pytest.mark.parametrize("scope", ["centroid", "column"])
@pytest.mark.parametrize(("width", "epsilon"), [(1, "3"), (10**9, "1")])
def test_adversarial_tables_stay_at_or_under_the_plan(method: str, k: int, scope: str, width: int, epsilon: str) -> None:
    """Tables made to need much noise never get more than was planned, also where a scale is only a grid step or two."""
    policy = one_column(method, k, width=width, epsilon=epsilon, scope=scope)
    for clusters in (1, 2, 10, 200):
        for share in (0.0, 0.1, 1 / 3, 0.5, 1.0):
            values = worst_table(method, k, clusters, width, share)
            found, planned = largest_noise(mask(policy, values)), planned_noise(policy, len(values))
            assert found <= planned * (1 + 1e-12), f"{clusters} clusters, share {share:g}: {found} above {planned}"


@pytest.mark.slow
@given(small_tables())
def test_a_centroid_claim_never_costs_a_list_more_than_it_says(table: tuple[Policy, list[int]]) -> None:
    """Scope centroid: the joint loss of the list stays under the public bound that the plan names."""
    policy, values = table
    if policy.protect.scope == "column":
        return
    words = " ".join(" ".join(describe_plan(make_plan(policy, rows=len(values)))).split())
    bound = float(words.partition("column lists: at most ")[2].split()[0])
    assert mask(policy, values).loss["column"] <= bound
