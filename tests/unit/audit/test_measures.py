"""The measures that need models, and the groups of released quasi-identifiers: against scikit-learn, pyCANON and by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycanon import anonymity

from release_pipeline.audit.gates import journalist_risk, measure_groups
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.policy import Policy, parse_policy

STREAM = noise_stream(bytes(32), "test")
POLICY = """
policy: people
steward: ana
population: everybody
source: {path: people.csv}
person: each-row
releases: once
protect: {method: laplace, epsilon: 1}
columns:
  town: {role: quasi, do: keep, values: [north, south, east, west], why: known}
  sex: {role: quasi, do: keep, values: [0, 1], why: known}
  ill: {role: confidential, do: keep, values: [flu, cold, none], why: known}
  income: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, why: known}
suppress: {quasi_groups_below: 2, at_most: 100%}
"""


@pytest.fixture(scope="module")
def policy() -> Policy:
    """Two kept quasi-identifiers, a kept confidential column and a masked one."""
    return parse_policy(POLICY, name="people.yaml")


def people(count: int, seed: int) -> pa.Table:
    """A table like one that the policy releases."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "town": rng.choice(["north", "south", "east", "west"], count),
            "sex": rng.integers(0, 2, count),
            "ill": rng.choice(["flu", "cold", "none"], count, p=[0.6, 0.3, 0.1]),
            "income": rng.integers(0, 100, count).astype(np.float64),
        }
    )


@pytest.mark.parametrize("seed", range(5))
def test_groups_equal_pycanons(policy: Policy, seed: int) -> None:
    """k and l of the released table."""
    table = people(60 + 40 * seed, seed)
    found = measure_groups(table, policy)
    assert found is not None
    frame = table.to_pandas()
    frame["ill"] = frame["ill"].astype(object)
    frame["town"] = frame["town"].astype(object)
    quasi = ["town", "sex"]
    assert found.smallest == anonymity.k_anonymity(frame, quasi)
    assert found.diversity == {"ill": anonymity.l_diversity(frame, quasi, ["ill"])}


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.booleans(), st.booleans()), min_size=1, max_size=20),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=20),
)
def test_the_journalist_counts_whom_a_record_can_be_of(
    released: list[tuple[str, str, bool, bool]], others: list[tuple[str, str]]
) -> None:
    """A blank fits everybody: compared with counting one by one."""
    everybody = [(a, b) for a, b, _, _ in released] + others
    rows = [(None if hide_a else a, None if hide_b else b) for a, b, hide_a, hide_b in released]

    def table(pairs: list[tuple[str | None, str | None]]) -> pa.Table:
        return pa.table({name: pa.array([pair[side] for pair in pairs], pa.string()) for side, name in enumerate("pq")})

    fewest = min(
        sum(all(mine is None or mine == theirs for mine, theirs in zip(row, other, strict=True)) for other in everybody)
        for row in rows
    )
    assert journalist_risk(table(rows), table(list(everybody)), table(rows).column_names) == pytest.approx(1 / fewest)
