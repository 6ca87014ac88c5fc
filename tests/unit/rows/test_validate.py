"""Judging checks: Great Expectations by the counts of the suite, plain comparison for the rest, and whatever goes wrong fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.rows.checks import Check, families_of
from release_pipeline.rows.validate import compile_suite, judge_suite, load_great_expectations, suite_to_json
from tests.integration.sites import policy_text

pytestmark = pytest.mark.slow  # Great Expectations takes seconds to import
COLUMNS = """
  person: {role: identifier, do: drop}
  came:   {role: confidential, do: drop}
  went:   {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, missing: {fill: 0}, why: known}
  day:    {role: confidential, do: noise, domain: [2020-01-01, 2020-12-31], grid: 1 day, outside: fail, why: known}"""
POLICY = parse_policy(policy_text(columns=COLUMNS, source="{path: x.csv}", releases="once", drop="[]"), name="people.yaml")
HEADER = tuple(sorted(POLICY.declared))
RECORDS = 50
PLAIN = (Check("types", "income", "not_finite", 0, "income: not finite."), Check("roles", "town", "not_released", 0, "roles."))


def count(**counts: int) -> list[Check]:
    """A check for each expectation, and some that have none; those named by their fact found something."""
    suite = [
        Check(one.family, one.column, one.fact, counts.get(one.fact, 0), f"{one.column}: {one.fact} found.")
        for one in compile_suite(POLICY)
    ]
    return [*suite, *(replace(check, count=counts.get(check.fact, 0)) for check in PLAIN)]


def judge(checks: list[Check], policy: Policy = POLICY, columns: tuple[str, ...] = HEADER) -> list[Check]:
    """With so many records, of these columns."""
    return judge_suite(checks, policy, records=RECORDS, columns=columns)


def test_the_suite_is_of_standard_expectations_that_the_library_loads() -> None:
    """Each is one of its own, with arguments that are the policy's; and each is of a family that a release must pass."""
    gx = load_great_expectations()
    written = suite_to_json(POLICY)
    loaded = gx.ExpectationSuite(**written)
    assert [one.expectation_type for one in loaded.expectations] == [one["type"] for one in written["expectations"]]
    assert all(type(one).__module__.startswith("great_expectations.expectations.core") for one in loaded.expectations)
    found = {(one["type"], one["kwargs"].get("column")): one["kwargs"] for one in written["expectations"]}
    income = found["expect_column_values_to_be_between", "income"]
    assert (income["min_value"], income["max_value"]) == (0, 1000)
    day = found["expect_column_values_to_be_between", "day"]
    assert (day["min_value"], day["max_value"]) == ("2020-01-01", "2020-12-31")
    assert ("expect_column_values_to_be_between", "rent") not in found
    assert ("expect_column_values_to_not_be_null", "rent") not in found
    assert found["expect_column_values_to_be_in_set", "town"]["value_set"] == ["north", "south"]
    assert {one.family for one in compile_suite(POLICY)} <= families_of(POLICY).keys()


def test_each_count_fails_its_own_check_and_no_other() -> None:
    """Whatever is counted, in one record or in all."""
    for expected in compile_suite(POLICY):
        if expected.fact in ("columns", "absent", "records_too_few"):
            continue
        for found in (1, RECORDS):
            checks = [
                replace(check, count=found) if (check.family, check.column, check.fact) == expected.key else check
                for check in count()
            ]
            failed = [check for check in judge(checks) if check.failed]
            assert [(check.family, check.column, check.fact) for check in failed] == [expected.key]
            assert failed[0].message == f"{expected.column}: {expected.fact} found."


def test_too_few_records_fail() -> None:
    """By their number, which the library gets."""
    least = next(one.kwargs["min_value"] for one in compile_suite(POLICY) if one.family == "size")
    for records in (least - 1, least):
        judged = judge_suite(count(records_too_few=least - records), POLICY, records=records, columns=HEADER)
        assert [check.family for check in judged if check.failed] == ["size"] * (records < least)


def test_an_expectation_that_raises_fails_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the library could not evaluate has not passed, though every count is 0."""
    gx = load_great_expectations()

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a cell")

    monkeypatch.setattr(gx.expectations.ExpectColumnValuesToBeBetween, "metrics_validate", fail)
    failed = [check for check in judge(count()) if check.failed]
    assert {check.fact for check in failed} == {"outside"}
    assert all("could not be judged" in check.message and "a cell" not in check.message for check in failed)


def test_no_cell_and_no_sentence_reaches_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without a row, and numbers."""
    load_great_expectations()
    import pandas as pd

    frames: list[Any] = []

    class Watched(pd.DataFrame):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            frames.append(self)

    monkeypatch.setattr(pd, "DataFrame", Watched)
    judge(count())
    assert frames
    assert all(len(frame) == 0 for frame in frames)
