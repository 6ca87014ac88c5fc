"""What the demo's policies do to its data, without a release."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pytest

from release_pipeline.flow.demo import find_demo_data, find_demo_policy
from release_pipeline.policy import load_policy
from release_pipeline.policy.suppression import Suppress
from release_pipeline.stages.suppress import suppress_table


@pytest.mark.parametrize("wave", [1, 5])
def test_suppression_acts_on_large_families(wave: int) -> None:
    """Some cells are blank, which are few enough; every group of site, sex and family size that is left is large enough."""
    policy = load_policy(find_demo_policy("rand-hie-dp"))
    quasi = policy.released_quasi
    assert quasi == ["site", "female", "num"]
    read = pyarrow.csv.read_csv(find_demo_data())
    table = read.filter(pa.compute.equal(read.column("year"), wave)).select(quasi)
    rule = policy.suppress
    assert isinstance(rule, Suppress)
    done = suppress_table(table, quasi, below=policy.groups_below)
    assert done.cells > 0
    assert 0 < done.share <= rule.at_most
    assert done.anonymity is not None
    assert done.anonymity >= policy.groups_below
