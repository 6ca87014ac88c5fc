"""mdav promises k of the released table: suppression leaves of a cluster k records or more, or none."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import PolicyInvalid
from release_pipeline.masking import find_strategy
from release_pipeline.masking.centroids import CentroidStrategy
from release_pipeline.policy import parse_policy
from release_pipeline.rows.columns import AnyTable, load_table, read_tables
from tests.integration.sites import policy_text

K, BELOW = 3, 2
COLUMNS = """
  town: {role: quasi, do: keep, values: [north, south, east, west], why: needed}
  sex: {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: fail, why: known}"""


MDAV = parse_policy(
    policy_text(
        columns=COLUMNS,
        protect=f"{{method: mdav, k: {K}}}",
        suppress=f"{{quasi_groups_below: {BELOW}, at_most: 100%}}",
        person="each-row",
        drop="[person, remark, name]",
    ),
    name="people",
)
STRATEGY = find_strategy(MDAV)
assert isinstance(STRATEGY, CentroidStrategy)
TOWNS = ["north", "south", "east", "west"]
PEOPLE = st.lists(st.tuples(st.sampled_from(TOWNS), st.sampled_from([0, 1])), min_size=K, max_size=24)


def mask(people: list[tuple[str, int]]) -> pa.Table:
    """A masked table of clusters of three to five records in a row."""
    clusters = [min(place // K, len(people) // K - 1) for place in range(len(people))]
    towns, sexes = zip(*people, strict=True)
    return pa.table({"town": towns, "sex": pa.array(sexes, pa.int64()), "income": clusters, "rent": [7] * len(people)})


def count_clusters(table: AnyTable) -> Counter[int]:
    """How many records each cluster has."""
    return Counter(table.column("income").to_pylist())


@given(PEOPLE)
def test_no_cluster_is_left_with_fewer_than_k(people: list[tuple[str, int]]) -> None:
    """Nor any small group; what is counted is what is gone; and nothing more goes than has to."""
    masked = mask(people)
    done = STRATEGY.suppress(read_tables({}), masked)
    assert all(size >= K for size in count_clusters(done.table).values())
    groups = Counter(zip(*(done.table.column(name).to_pylist() for name in ("town", "sex")), strict=True))
    assert all(size >= BELOW for size in groups.values())
    assert done.anonymity == (min(groups.values()) if groups else None)
    assert done.dropped == masked.num_rows - done.table.num_rows
    assert done.dropped <= round(done.share * masked.num_rows) <= masked.num_rows
    by_groups = CentroidStrategy.suppress_groups(STRATEGY, masked)
    if all(size >= K for size in count_clusters(by_groups.table).values()):
        assert load_table(by_groups.table) == load_table(done.table)


def test_a_cluster_that_becomes_small_goes_whole() -> None:
    """One record that is dropped for its kept values takes the two others of its cluster of three with it."""
    masked = mask([("north", 0)] * 5 + [("west", 1)] + [("north", 0)] * 3)
    done = STRATEGY.suppress(read_tables({}), masked)
    assert (done.dropped, done.share) == (3, pytest.approx(3 / 9))
    assert count_clusters(done.table) == {0: 3, 2: 3}


def test_a_table_may_lose_everybody() -> None:
    """Then nothing may be released."""
    done = STRATEGY.suppress(read_tables({}), mask([("north", 0), ("west", 1), ("east", 0)]))
    assert (done.table.num_rows, done.dropped, done.share) == (0, 3, 1.0)
    assert done.obstacle


def test_random_parts_drop_nothing() -> None:
    """Their clusters are made after budget is spent, so what would be dropped with them could not be judged before."""
    text = policy_text(
        columns=COLUMNS,
        protect=f"{{method: mdav, k: {K}, partitions: 2}}",
        suppress=f"{{quasi_groups_below: {BELOW}, at_most: 100%}}",
        person="each-row",
        drop="[person, remark, name]",
    )
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(text, name="people")
    assert "mdav drops whole clusters, and those of random parts are not known before budget is spent" in refused.value.in_full
