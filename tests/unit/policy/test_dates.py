"""Masked columns of dates in a policy: what may be written, what is stored, and what is said of it."""

from __future__ import annotations

import pytest

from release_pipeline.policy import Policy, parse_policy
from tests.integration.sites import refusal

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


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("grid: 1 day", "grid: 1", "the domain has dates, and the grid is no amount of time"),
        ("[2000-01-01, 2019-12-31]", "[0, 10]", "the grid is an amount of time, and the domain is no pair of dates"),
        ("[2000-01-01, 2019-12-31]", "[2000-02-30, 2019-12-31]", "it must be a date like 1990-01-31"),
        ("[2000-01-01, 2019-12-31]", "[2000-01-01T10:00, 2019-12-31]", "it is not at the beginning of a day"),
        ("grid: 1 day", "grid: 1 month", "the grid is no amount of time"),
        ("atoms: [2000-01-01]", "atoms: [1999-12-31]", "an atom lies outside the domain"),
        ("missing: keep", "missing: {fill: 0}", "columns.came.missing: it must be a date"),
        ("above: 2020-07-01", "equals: a", "'left' is a column of dates. Say above: DATE."),
        ("{method: dp-cdf, epsilon: 2, k: 5}", "{method: dp-um, epsilon: 2, k: 5, clamp: no}", "to where no calendar is"),
        (
            "audit:",
            "derive: {came: {limit: old, top: 5}}\ndrop: [old]\naudit:",
            "derived as numbers, and declared as a column of dates",
        ),
    ],
)
def test_what_cannot_be_is_told(old: str, new: str, words: str) -> None:
    """With its place, whatever else is in the file."""
    assert words in refusal(lambda: policy(**{old: new}))
