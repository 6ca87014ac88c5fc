"""Judging checks: Great Expectations by the counts of the suite, plain comparison for the rest, and whatever goes wrong fails."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.stages.checks import FAMILIES, Check, families_of
from release_pipeline.stages.suite import compile_suite, suite_to_json
from release_pipeline.stages.validate import judge_suite, list_verdicts, load_great_expectations
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


def test_no_check_is_judged_twice() -> None:
    """The library has the word on those of the suite, and on no other; every one passes where nothing was counted."""
    judged = judge(count())
    keys = {one.key for one in compile_suite(POLICY)}
    assert all((check.passed is True) == ((check.family, check.column, check.fact) in keys) for check in judged)
    assert not any(check.failed for check in judged)


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


def test_the_library_and_the_counts_agree() -> None:
    """On random counts the suite fails a check exactly where something was counted."""
    numbers = random.Random(5)  # noqa: S311
    for _ in range(5):
        checks = [
            check if check.family in ("schema", "size") else replace(check, count=numbers.choice([0, 0, 0, 1, 7, RECORDS]))
            for check in count()
        ]
        assert [check.failed for check in judge(checks)] == [check.count > 0 for check in checks]


def test_too_few_records_fail() -> None:
    """By their number, which the library gets."""
    least = next(one.kwargs["min_value"] for one in compile_suite(POLICY) if one.family == "size")
    for records in (least - 1, least):
        judged = judge_suite(count(records_too_few=least - records), POLICY, records=records, columns=HEADER)
        assert [check.family for check in judged if check.failed] == ["size"] * (records < least)


def test_columns_that_are_absent_or_undeclared_fail() -> None:
    """By the names in the header."""
    more = [*count(), Check("schema", "shoes", "columns", 1, "column shoes: not declared.")]
    failed = [check for check in judge(more, columns=(*HEADER, "shoes")) if check.failed]
    assert {(check.family, check.fact) for check in failed} == {("schema", "columns")}
    less = [replace(check, count=1) if (check.column, check.fact) == ("town", "absent") else check for check in count()]
    failed = [check for check in judge(less, columns=tuple(set(HEADER) - {"town"})) if check.failed]
    assert {(check.column, check.fact) for check in failed} == {("", "columns"), ("town", "absent")}


def test_plain_checks_stay_plain() -> None:
    """What the library has no expectation for must not occur."""
    assert [check.fact for check in judge(count(not_finite=1)) if check.failed] == ["not_finite"]


def test_what_nothing_was_counted_for_fails() -> None:
    """An expectation without its check, where nothing else says why."""
    checks = [check for check in count() if check.fact != "too_often"]
    assert [(check.fact, check.message) for check in judge(checks) if check.failed] == [
        ("too_often", "expect_column_values_to_be_unique of too_often was not judged.")
    ]


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


def test_verdicts_by_family() -> None:
    """In their order; a family without a check has not passed, and says so."""
    verdicts = list_verdicts([Check(family, "x", "fact", 0, "found.") for family in FAMILIES if family != "roles"])
    assert [verdict.family for verdict in verdicts] == list(FAMILIES)
    assert [verdict.family for verdict in verdicts if not verdict.passed] == ["roles"]
    assert {verdict.family: verdict for verdict in verdicts}["roles"].messages == ("nothing of the family roles was checked.",)
    [size] = list_verdicts([Check("size", "", "fact", 0, "", passed=False)], ["size"])
    assert (size.passed, size.messages) == (False, ("the family size could not be judged.",))
    assert not any(verdict.passed for verdict in list_verdicts([]))


def test_nothing_deprecated_of_the_library_is_used() -> None:
    """A later version of it will not take away what the judge rests on."""
    load_great_expectations()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        judge(count())


def test_the_library_is_loaded_once_late_and_quietly() -> None:
    """Importing the judge does not; loading takes nothing out of what is loaded, warns of nothing, and asks no network."""
    program = """\
import os, socket, sys, warnings
def refuse(*_):
    raise SystemExit("it asked the network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
warnings.simplefilter("error")
from release_pipeline.stages import validate
assert "great_expectations" not in sys.modules
before = dict(sys.modules)
gx = validate.load_great_expectations()
assert gx is validate.load_great_expectations() is sys.modules["great_expectations"]
assert all(sys.modules.get(name) is module for name, module in before.items())
assert os.environ["GX_ANALYTICS_ENABLED"] == "false" and "SPARK_HOME" not in os.environ
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
