"""Other ways to protect the columns of a policy: which there are, what they change, and how a file has them afterwards."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from release_pipeline.policy import parse_policy
from release_pipeline.policy.loading.load import refuse_files
from release_pipeline.policy.plans.settings import Axes, Setting, apply, list_settings
from release_pipeline.policy.values.text import read_yaml

POLICIES = Path(__file__).resolve().parents[3] / "policies"

TEXT = """\
# who may see what
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once

# what it costs
protect:
  method: dp-cdf   # counts
  epsilon: 2
  weights: {income: 3}

# what every column is
columns:
  town:   {role: quasi, do: keep, values: [north, south], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: "known, all"}
  rent:
    role: confidential
    do: noise   # masked
    domain: [0, 100]
    grid: 0.5
    outside: clamp
    why: known
    atoms: [0]
suppress: {quasi_groups_below: 5, at_most: 5%}
gates: {min_rows: 20000}
"""


def settings_of(text: str = TEXT, axes: Axes | None = None) -> list[Setting]:
    """Those of a policy."""
    return list(list_settings(read_yaml(text).value, parse_policy(text, name="people.yaml"), axes or Axes()))


def test_the_own_setting_comes_first_and_each_comes_once() -> None:
    """Epsilon from a quarter to four times that of the policy, for the methods that are usual; sizes where there are clusters."""
    found = settings_of()
    assert found[0].protect == {"method": "dp-cdf", "epsilon": 2, "weights": {"income": 3}}
    words = [setting.summary for setting in found]
    assert len(set(words)) == len(words)
    assert {setting.method for setting in found} == {"laplace", "dp-um", "idp-ls", "idp-cbls", "dp-cdf", "dp-table"}
    assert [setting.protect["epsilon"] for setting in found if setting.method == "laplace"] == [
        *(Decimal(epsilon) for epsilon in ("0.5", "1", "2", "4", "8")),
    ]
    assert {setting.protect.get("k") for setting in found if setting.method == "idp-ls"} == {3, 10, 30, 100}
    assert {setting.protect.get("k") for setting in found if setting.method in ("laplace", "dp-cdf", "dp-table")} == {None}


def test_a_setting_is_what_a_file_with_it_would_be() -> None:
    """The policy that is tried is that of the text with its line in the place of `protect`, where nothing else changes."""
    for setting in settings_of()[::5]:
        changed = apply(TEXT, setting, name="people.yaml", read=refuse_files)
        assert changed.policy.protect.method == setting.method, setting.summary
        text = TEXT.replace(TEXT[TEXT.index("protect:") : TEXT.index("\n# what every column is")], setting.block + "\n")
        if not changed.changes:
            assert parse_policy(text, name="people.yaml").canonical_hash() == changed.policy.canonical_hash(), setting.summary
