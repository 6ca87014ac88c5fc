"""Masked columns of dates in a policy: what may be written, what is stored, and what is said of it."""

from __future__ import annotations

import json

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.canonical import read_canonical
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.plan import describe_plan, make_plan

TEXT = """
policy: stays
steward: ana
population: folk
source: {path: stays.csv}
person: each-row
releases: once
protect: {method: dp-cdf, epsilon: 2, k: 5}
columns:
  came: {role: confidential, do: noise, domain: [2000-01-01, 2019-12-31], grid: 1 day, outside: clamp, why: known,
         codes: {9999-12-31: open, "-8": refused}, missing: keep, atoms: [2000-01-01]}
  left: {role: confidential, do: noise, domain: [2020-01-01, 2021-01-01], grid: 15 minutes, outside: clamp, why: known}
  town: {role: quasi, do: keep, values: [north, south], why: needed}
expect:
  in-order: {compare: [came, <=, left], read_as: dates, at_most: 20}
audit: {predict: {left: {above: 2020-07-01}}}
gates: {min_rows: 1000}
"""


def policy(**changes: str) -> Policy:
    """The policy, each key replaced by its value."""
    text = TEXT
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return parse_policy(text, name="stays.yaml")


def test_dates_are_whole_numbers_within_a_policy() -> None:
    """From the first of the domain on."""
    came, left = policy().noise_columns.values()
    assert (came.exact_grid.width, came.exact_atoms, came.exact_centre) == (7304, (0,), 3652)
    assert (left.exact_grid.width, float(left.exact_grid.step)) == (366 * 24 * 4, 15.0)
    assert came.domain_texts == ("2000-01-01", "2019-12-31")
    assert (came.grid_text, left.grid_text) == ("1 day", "15 minutes")
    assert policy().audit.predict["left"].above == 182 * 24 * 60


def test_the_canonical_form_has_all_of_it() -> None:
    """And is read back; an approved policy without dates has no word of them."""
    made = policy()
    assert read_canonical(json.loads(made.canonical_json()), list(made.columns)) == made
    assert '"dated":{"first":"2000-01-01","unit":"day"}' in made.canonical_json()
    changed = policy(**{"2000-01-01, 2019-12-31": "1999-01-01, 2018-12-31", "atoms: [2000-01-01]": "atoms: [1999-01-01]"})
    assert changed.canonical_hash() != made.canonical_hash()


def test_nobody_reads_numbers_of_days() -> None:
    """In the plan, and in what a change is told as."""
    said = "\n".join(describe_plan(make_plan(policy())))
    for words in (
        "domain 2000-01-01 to 2019-12-31 by 1 day",
        "cells are finest at 2009-12-31; a cell of its own for 2000-01-01",
        "left after 2020-07-01T00:00:00",
    ):
        assert words in " ".join(said.split())
    assert "7304" not in said
    assert "7,304" not in said
    later = policy(**{"2000-01-01, 2019-12-31": "2000-01-01, 2020-12-31", "above: 2020-07-01": "above: 2020-08-01"})
    assert set(describe_diff(policy(), later)) == {
        "columns.came.domain: [2000-01-01, 2019-12-31] -> [2000-01-01, 2020-12-31]",
        "audit.predict.left.above: 2020-07-01T00:00:00 -> 2020-08-01T00:00:00",
    }
    um = policy(
        **{
            "{method: dp-cdf, epsilon: 2, k: 5}": "{method: dp-um, epsilon: 2, k: 5}",
            'codes: {9999-12-31: open, "-8": refused}, missing: keep, ': "missing: {fill: 2010-01-01}, ",
        }
    )
    said = " ".join("\n".join(describe_plan(make_plan(um))).split())
    assert "1,461 days (20.0% of the domain)" in said
    assert um.noise_columns["came"].fill == 3653


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("grid: 1 day", "grid: 1", "the domain has dates, and the grid is no amount of time"),
        ("grid: 1 day, ", "", "'grid' is missing. Write the step as an amount of time"),
        ("[2000-01-01, 2019-12-31]", "[0, 10]", "the grid is an amount of time, and the domain is no pair of dates"),
        ("[2000-01-01, 2019-12-31]", "[2000-02-30, 2019-12-31]", "it must be a date like 1990-01-31"),
        ("[2000-01-01, 2019-12-31]", "[2019-12-31, 2000-01-01]", "the domain is empty"),
        ("[2000-01-01, 2019-12-31]", "[2000-01-01T10:00, 2019-12-31]", "it is not at the beginning of a day"),
        ("grid: 1 day", "grid: 9 days", "not a whole number of grid steps wide"),
        ("grid: 1 day", "grid: 1 month", "the grid is no amount of time"),
        ("grid: 1 day", "grid: 1 day, dated: {first: 2000-01-01, unit: day}", "'dated' is not known here"),
        (
            "grid: 15 minutes",
            "grid: 15 minutes, clock: 1",
            "Known: label, description, unit, question, codes, do, role, domain, grid, outside, why, missing, atoms",
        ),
        ("atoms: [2000-01-01]", "atoms: [1999-12-31]", "an atom lies outside the domain"),
        ("atoms: [2000-01-01]", "atoms: [0]", "it must be a date"),
        ("missing: keep", "missing: {fill: 0}", "columns.came.missing: it must be a date"),
        ("above: 2020-07-01", "above: 10", "audit.predict.left.above: it must be a date"),
        ("above: 2020-07-01", "equals: a", "'left' is a column of dates. Say above: DATE."),
        (
            "role: confidential, do: noise, domain: [2020",
            "role: weight, do: noise, domain: [2020",
            "a weight is a number, and no date",
        ),
        ("{method: dp-cdf, epsilon: 2, k: 5}", "{method: dp-um, epsilon: 2, k: 5, clamp: no}", "to where no calendar is"),
        ("compare: [came, <=, left], read_as: dates", "compare: [came, <=, left]", "'came' is not a column of numbers"),
        (
            "expect:",
            "derive: {came: {limit: old, top: 5}}\ndrop: [old]\nexpect:",
            "derived as numbers, and declared as a column of dates",
        ),
    ],
)
def test_what_cannot_be_is_told(old: str, new: str, words: str) -> None:
    """With its place, whatever else is in the file."""
    with pytest.raises(PolicyInvalid) as refused:
        policy(**{old: new})
    assert any(words in str(problem) for problem in refused.value.problems), refused.value.problems
