"""Texts that a spreadsheet takes for formulas."""

from __future__ import annotations

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.published import find_formulas, is_formula
from tests.integration.sites import refusal

POLICY = """\
policy: people
steward: ines
population: people
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-um, epsilon: 1, k: 5}
columns:
  income: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, missing: fail, why: w}
  region: {role: quasi, do: keep, values: [VALUES], why: w}
drop: []
gates: {min_rows: 100}
"""


def read(values: str, publish: str = "") -> Policy:
    """The policy with these values."""
    return parse_policy(POLICY.replace("VALUES", values) + (f"publish: {publish}\n" if publish else ""), name="p.yaml")


def faults_of(text: str) -> str:
    """Everything that is wrong with a policy."""
    return refusal(lambda: parse_policy(text, name="p.yaml"))


@pytest.mark.parametrize("text", ["=1", "+a", "-a", "@a", "\ta", "\ra", "  =1", "\uff1d1", "\uff0b1", "=", "-1+1", "+49 30"])
def test_a_spreadsheet_takes_it_for_a_formula(text: str) -> None:
    """By its first character, spaces aside."""
    assert is_formula(text)


@pytest.mark.parametrize("end", [";", "\t", "\n", "\r", "\u2028", "; ", ';"', ";\u00a0"])
def test_so_it_does_after_what_may_end_a_cell(end: str) -> None:
    """Where the list separator is a semicolon, our cell is two; a number stays a number there, and what is between no formula."""
    assert is_formula(f"x{end}=HYPERLINK(1)")
    assert not is_formula(f"x{end}-8{end}y=1" if end.strip() else f"x{end}y")


@pytest.mark.parametrize("unseen", ["\u00a0", "\u2003", "\u200b", "\ufeff", "\u3000", "\u00ad", "\u202e", "\x00", " \u00a0 "])
def test_so_it_does_after_what_is_not_seen(unseen: str) -> None:
    """No-break and wide spaces, marks of order and of direction."""
    assert is_formula(f"{unseen}=1+1")
    assert not is_formula(f"{unseen}a=1")


@pytest.mark.parametrize(
    "text",
    ["a=1", "-8", "+5", "-1.5e3", "-.5", "-", "--", "", "north-east", "'=1", "1-2", "a, b; c", "1,-8", "a, -, b", "Male, +65"],
)
def test_it_is_none(text: str) -> None:
    """A number with its sign says the same computed; so does a dash."""
    assert not is_formula(text)


@pytest.mark.parametrize("values", ['north, "=cmd()"', '"@sum(A1)", north', 'north, "+49"x"'.replace('"x"', ' x"')])
def test_a_csv_may_not_have_one(values: str) -> None:
    """Refused, with the ways out; without a CSV it is accepted."""
    faults = faults_of(POLICY.replace("VALUES", values))
    assert "for a formula when it opens data.csv" in faults
    kept = read(values, "{formats: [parquet]}")
    assert list(find_formulas(kept.columns)) == ["region"]
