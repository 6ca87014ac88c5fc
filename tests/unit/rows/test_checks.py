"""What the counts of a source are told as."""

from __future__ import annotations

import re

import pytest

from release_pipeline.policy import parse_policy
from release_pipeline.rows.checks import (
    Facts,
    check_facts,
    check_release_column,
    check_roles,
    count_least_records,
    notice,
    refusals,
    round_up,
)

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
EVERYTHING = """\
policy: people
steward: ana
population: folk
source: {path: people.csv, release_column: year}
person: {column: person}
releases: ["a", "b"]
protect: {method: dp-um, epsilon: 4, k: 20}
columns:
  person: {role: identifier, do: drop}
  income: {role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: fail, why: known}
  rent: {role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
  town: {role: quasi, do: keep, values: [north, south], why: known}
derive:
  town: {merge: rent, into: {north: ["1"], south: ["2"]}}
gates: {min_rows: 1000}
"""


@pytest.mark.parametrize(("beyond", "told"), [(3, "0.01%"), (8, "0.01%"), (19_999, "25.00%")])
def test_what_is_clamped_is_told_to_the_next_ten_and_never_as_nothing(beyond: int, told: str) -> None:
    """Three records of 80,000 are no 0.00%."""
    facts = Facts(80_000, {"income": {"above": beyond}}, {"income": "number"})
    noticed = notice(facts, parse_policy(TEXT, name="people.yaml"))
    assert noticed == [
        f"column income: up to {round_up(beyond):,} records outside the declared domain, clamped to it ({told} of all)."
    ]


def test_of_a_small_table_no_more_than_all_are_clamped() -> None:
    """The next ten of 13 records is 20, of 15 in all."""
    facts = Facts(15, {"income": {"above": 13}}, {"income": "number"})
    [noticed] = notice(facts, parse_policy(TEXT, name="people.yaml"))
    assert "up to 15 records" in noticed


@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_no_message_has_an_exact_count_of_records(count: int) -> None:
    """Domains, types, missing values, persons, categories and what a hierarchy does not cover: to the next ten."""
    policy = parse_policy(EVERYTHING, name="people.yaml")
    every = dict.fromkeys(("below", "above", "missing", "not_a_number", "not_finite", "undeclared", "uncovered"), count)
    every |= {"uncovered_entries": count, "different": count, "without_person": count, "too_often": count}
    kinds = {"person": "text", "income": "number", "rent": "number", "town": "text"}
    facts = Facts(1_111, dict.fromkeys(kinds, every), kinds, unread={"town": {"income": count}})
    releases = check_release_column({"missing": count}, policy)
    told = [*refusals([*check_facts(facts, policy), *releases]), *notice(facts, policy)]
    assert len(told) >= 11
    for message in told:
        counts = {int(number) for number in re.findall(r"(?<![\w.])\d+(?![\w.%])", message.replace(",", ""))}
        assert counts <= {10, 20, 1, 1_111}, message  # 1: the records that a person may have


def test_the_fewest_records_are_two_clusters() -> None:
    """Whatever the policy asks for beside that."""
    assert count_least_records(parse_policy(TEXT.replace("gates: {min_rows: 1000}\n", ""), name="people")) == 40
    assert count_least_records(parse_policy(TEXT, name="people")) == 1000


def test_only_released_columns_go_on() -> None:
    """Another would be in the vault after validation."""
    checks = check_roles(["rent", "person"], parse_policy(EVERYTHING, name="people.yaml"))
    assert [check.count for check in checks] == [0, 1]
    assert refusals(checks) == ["column person: goes on without being released."]
