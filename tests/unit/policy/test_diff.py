"""The change of a policy in plain words: everything that changes, and nothing that does not."""

from __future__ import annotations

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.plans.diff import describe_diff

TEXT = """\
policy: rand-hie
steward: ana
population: rand-hie-participants
source: {path: data/randhie.csv, release_column: year}
person: {column: zper, records_per_release: 1}
releases: ["1", "2", "3", "4", "5"]
protect: {method: idp-cbls, epsilon: 2, k: 25, scope: column, consistency: isotonic}
# What every column is
columns:
  zper:    {role: identifier, do: drop}
  site:    {role: quasi, do: keep, values: [1, 2, 3, 4, 5, 6], why: six known sites}
  female:  {role: quasi, do: keep, values: [0, 1], why: needed}
  income:  {role: confidential, do: noise, domain: [0, 50000], grid: 1, outside: clamp, missing: fail, why: survey top code}
  mhi:     {role: confidential, do: noise, domain: [0, 100], grid: 0.1, outside: fail, missing: fail, why: score}
  mdvis:   {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, missing: fail, why: visits}
  outpdol: {role: confidential, do: noise, domain: [0, 5000], grid: 0.01, outside: clamp, missing: fail, why: plan maximum}
drop: [plan, coins]
suppress: {quasi_groups_below: 5, at_most: 5%}
gates: {min_rows: 1000, expected_error: {income: 0.2, mhi: 0.2, mdvis: 0.6, outpdol: 0.8}}
review: {reviewers: 2}
publish: {formats: [parquet, csv]}
retain: 90 days
"""


def changed(*replacements: tuple[str, str]) -> Policy:
    """The policy with some of its text replaced."""
    text = TEXT
    for old, new in replacements:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    return parse_policy(text, name="p.yaml")


OLD = changed()


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("at_most: 5%", "at_most: 50%", "suppress.at_most: 0.05 -> 0.5"),
        ("reviewers: 2", "reviewers: 1", "review.reviewers: 2 -> 1"),
        ("min_rows: 1000", "min_rows: 1000, differencing_below: 5", "gates.differencing_below: nothing -> 5"),
        ("mhi: 0.2", "mhi: 0.9", "gates.expected_error.mhi: 0.2 -> 0.9"),
        ("k: 25", "k: 25, clamp: no", "protect.clamp: yes -> no"),
        ("domain: [0, 50000]", "domain: [0, 90000]", "columns.income.domain: [0, 50000] -> [0, 90000]"),
        ("[parquet, csv]", "[csv]", "publish.formats: [parquet, csv] -> [csv]"),
        ("retain: 90 days", "", "retain: 90 -> nothing"),
        ("records_per_release: 1}\n", "records_per_release: 1}   # same\n", ""),
    ],
)
def test_every_other_change_is_a_line(old: str, new: str, line: str) -> None:
    """Its path in the file, what it was and what it is."""
    lines = list(describe_diff(OLD, changed((old, new))))
    assert (line in lines) if line else lines == []


def test_nothing_changes_silently() -> None:
    """Whatever alters the hash gives at least one line."""
    for old, new in (("[0, 5000]", "[0, 5001]"), ("six known sites", "sites"), ("grid: 0.01", "grid: 0.02"), ("year}", "wave}")):
        new_policy = changed((old, new))
        assert new_policy.canonical_hash() != OLD.canonical_hash()
        assert list(describe_diff(OLD, new_policy))
