"""What the counts of a source are told as."""

from __future__ import annotations

import pytest

from release_pipeline.policy import parse_policy
from release_pipeline.stages.checks import Facts, notice

TEXT = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-um, epsilon: 4, k: 20}
columns:
  income: {role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
gates: {min_rows: 1000}
"""


@pytest.mark.parametrize(("beyond", "told"), [(3, "less than 0.01%"), (8, "0.01%"), (20_000, "25.00%")])
def test_what_is_clamped_is_never_told_as_nothing(beyond: int, told: str) -> None:
    """Three records of 80,000 are no 0.00%."""
    facts = Facts(80_000, {"income": {"above": beyond}}, {"income": "number"})
    noticed = notice(facts, parse_policy(TEXT, name="people.yaml"))
    assert [one.words for one in noticed] == [
        f"column income: {beyond:,} records outside the declared domain, clamped to it: {told} of all."
    ]
