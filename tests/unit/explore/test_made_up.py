"""A table that is as a steward says: quantiles, heaps, reasons, shares."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.explore.data import make_up
from release_pipeline.policy import parse_policy

SHAPE = """\
shape:
  rows: 20000
  columns:
    income: {at: {0: 20%}, quantiles: {25%: 100, 50%: 250, 90%: 700}, missing: {refused: 5%}}
    town: {shares: {north: 30%}}
"""

TEXT = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-cdf, epsilon: 2}
columns:
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known, codes: {-8: refused}}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}
gates: {min_rows: 1000}
"""


def test_it_is_as_it_is_said() -> None:
    """Every share and quantile within what as many records can show; the rest even; the same table every time."""
    policy = parse_policy(TEXT + SHAPE, name="people.yaml")
    made, warnings = make_up(policy, rows=None)
    income, rent = (made.columns[name].to_numpy() for name in ("income", "rent"))
    towns = np.array(made.columns["town"].to_pylist())
    assert len(income) == 20_000
    assert np.mean(income == 1001) == pytest.approx(0.05, abs=0.0001)
    valued = income[income <= 1000]
    assert np.mean(income == 0) == pytest.approx(0.2, abs=0.005)
    others = np.sort(valued[valued > 0])
    assert [float(np.quantile(others, share)) for share in (0.25, 0.5, 0.9)] == pytest.approx([100, 250, 700], rel=0.03)
    assert others.max() <= 1000
    assert np.mean(towns == "north") == pytest.approx(0.3, abs=0.01)
    assert np.mean(towns == "east") == pytest.approx(0.35, abs=0.01)
    assert np.mean(rent) == pytest.approx(50, abs=1)
    again, _ = make_up(policy, rows=None)
    assert again.columns["income"].equals(made.columns["income"])
    assert any("rent" in warning for warning in warnings)
