"""Kept columns with more combinations than records: `check` says so before anything is suppressed."""

from __future__ import annotations

from release_pipeline.policy.load import parse_policy
from release_pipeline.policy.plan import describe_plan, make_plan
from tests.integration.sites import policy_text


def said(rows: int, **parts: str) -> str:
    """The plan in one line."""
    policy = parse_policy(policy_text(**parts), name="people")
    return " ".join(" ".join(describe_plan(make_plan(policy, rows=rows))).split())


def test_more_combinations_than_records_can_fill_are_told() -> None:
    """Three towns by two sexes in groups of five take thirty records; without suppression nothing is at stake."""
    suppress = "{quasi_groups_below: 5, at_most: 5%}"
    words = "town, sex have 6 combinations of declared values: with 29 records a group has 4.8 on average"
    assert words in said(29, suppress=suppress)
    assert "combinations of declared values" not in said(30, suppress=suppress)
    assert "combinations of declared values" not in said(29)
