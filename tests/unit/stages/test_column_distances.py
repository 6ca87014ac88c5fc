"""Distances of distributions: what a method did is measured against what it saw, and clamping is shown by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.policy import parse_policy
from release_pipeline.privacy.distributions import ks_distance
from release_pipeline.stages.compared import Compared, read_tables
from release_pipeline.stages.measures.columns import measure_columns

POLICY = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-cdf, epsilon: 2}
columns:
  income: {role: confidential, do: noise, domain: [0, 50], grid: 1, outside: clamp, why: known%s}
gates: {min_rows: 10}
"""


@pytest.mark.parametrize("codes", ["", ", codes: {-8: refused}, missing: keep"])
def test_the_distance_is_to_the_values_that_the_method_saw(codes: str) -> None:
    """Half of the values lie outside of the domain: that is no distance of the method. Reasons for no value count as entries."""
    policy = parse_policy(POLICY % codes, name="people.yaml")
    column = policy.noise_columns["income"]
    came = np.arange(100.0)
    if codes:
        came[:10] = column.reason_points[0]
    read = read_tables({"records": pa.table({"income": came})})
    own = np.arange(100)
    seen = column.coded_grid.snap(came)

    def measure(released: np.ndarray) -> float:
        table = pa.table({"income": released})
        return float(measure_columns(Compared(policy, read, table, own, table))["ks"]["income"])

    assert measure(seen) == 0.0
    moved = np.where(seen == 50, 49, seen)
    assert measure(moved) == pytest.approx(ks_distance(seen, moved))
