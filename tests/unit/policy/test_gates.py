"""Limits on the released table alone, and what models are to predict: read, refused in words, told by `check`, in the hash."""

from __future__ import annotations

from decimal import Decimal

import pytest

from release_pipeline.audit.gates import Gate
from release_pipeline.errors import PolicyInvalid
from release_pipeline.masking.simulation import judge_linkage
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.plans.plan import describe_plan, make_plan
from release_pipeline.rows.checks import Facts, check_facts, refusals

POLICY = """\
policy: people
steward: ana
population: all-people
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-um, epsilon: 2, k: 5}
columns:
  site: {role: quasi, do: keep, values: [1, 2, 3], why: known sites}
  ill: {role: confidential, do: keep, values: [flu, cold], why: needed}
  income: {role: confidential, do: noise, domain: [0, 5000], grid: 1, outside: clamp, why: top code}
  age: {role: quasi, do: noise, domain: [0, 100], grid: 1, outside: clamp, why: by construction}
"""


def load(more: str = "", **changes: str) -> Policy:
    """The policy with lines added, and parts of its text replaced."""
    text = POLICY
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return parse_policy(text + more, name="people.yaml")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("gates: {anonymity_k: 1}\n", "gates.anonymity_k"),
        ("gates: {l_diversity: {site: 2}}\n", "'site' is not a released column with role: confidential."),
        ("gates: {l_diversity: {income: 2}}\n", "'income' gets noise, so that different values of it say nothing."),
        ("gates: {l_diversity: {ill: 3}}\n", "'ill' has 2 declared values, so that no group can have so many."),
        ("gates: {clamped_at_most: 0.05}\n", "'0.05': must be a percentage from 0% to 100%, like 5%."),
        (
            "gates: {clamped_at_most: {ill: 5%}}\n",
            "gates.clamped_at_most.ill: 'ill' is not a column with outside: clamp. Remove it.",
        ),
        ("audit: {predict: {income: {abve: 5}}}\n", "Did you mean 'above'"),
        ("audit: {groups: [income]}\n", "'income' is not a column with do: keep or generalise. Remove it."),
        ("audit: {predict: {income: {equals: 5}}}\n", "'income' is a column of numbers. Say above: NUMBER."),
        ("audit: {predict: {income: {above: 5000}}}\n", "it is outside the column's domain"),
        ("audit: {predict: {ill: {above: 5}}}\n", "'ill' is a column of entries. Say equals: ENTRY."),
        ("audit: {predict: {ill: {equals: measles}}}\n", "it is none of the column's declared values."),
        ("audit: {predict: {other: {above: 5}}}\n", "'other' is not a released column with do: noise or keep."),
        ("audit: {predict: {income: {}}}\n", "a target has either 'above' with a number or 'equals' with an entry"),
        ("audit: {forecast: {}}\n", "'forecast'"),
    ],
)
def test_what_is_wrong_with_them_is_said_in_words(more: str, words: str) -> None:
    """One problem, with its place in the file and what to do."""
    with pytest.raises(PolicyInvalid) as caught:
        load(more)
    assert words in caught.value.in_full
    assert "people.yaml:13" in caught.value.in_full


@pytest.mark.parametrize(
    ("gates", "limits", "words"),
    [
        ("", {"income": "0.01", "age": "0.01"}, "at most 1% of records clamped in income, age"),
        ("clamped_at_most: 2.5%", {"income": "0.025", "age": "0.025"}, "at most 2.5% of records clamped in income, age"),
        ("clamped_at_most: 0%", {"income": "0", "age": "0"}, "at most 0% of records clamped in income, age"),
        (
            "clamped_at_most: {age: 40%}",
            {"income": "0.01", "age": "0.4"},
            "at most 1% of records clamped in income; at most 40% of records clamped in age",
        ),
    ],
)
def test_how_many_records_may_be_clamped(gates: str, limits: dict[str, str], words: str) -> None:
    """One share for all columns with outside: clamp or one for each that is named; 1% where nothing is said."""
    policy = load(f"gates: {{{gates}}}\n")
    assert policy.clamped_at_most == {name: Decimal(limit) for name, limit in limits.items()}
    assert words in " ".join("\n".join(describe_plan(make_plan(policy))).split())
    assert (policy.canonical_hash() == load().canonical_hash()) == (gates == "")
    assert ("clamped_at_most" in policy.canonical_json()) == (gates != "")


def test_clamping_is_judged_on_counts() -> None:
    """At the limit passed, one more not, for noise and for intervals, with column, counts and remedy; outside: fail as ever."""
    text = POLICY.replace(
        "protect: {method: dp-um, epsilon: 2, k: 5}", "protect: {method: k-epsilon, grouping: ola, k: 5, epsilon: 1}"
    )
    for kept in ("site: {role: quasi, do: keep, values: [1, 2, 3], why: known sites}", "{role: quasi, do: noise"):
        assert kept in text
    years = (
        "years: {role: quasi, do: generalise, hierarchy: {intervals: [5, 10], domain: [0, 99], grid: 1, outside: clamp}, why: a}"
    )
    text = text.replace("site: {role: quasi, do: keep, values: [1, 2, 3], why: known sites}", years)
    text = text.replace("age: {role: quasi, do: noise", "age: {role: confidential, do: noise").replace(
        "[0, 100], grid: 1, outside: clamp", "[0, 100], grid: 1, outside: fail"
    )
    policy = parse_policy(text + "suppress: {at_most: 5%}\ngates: {clamped_at_most: {income: 1.5%}}\n", name="people.yaml")
    assert policy.clamped_at_most == {"years": Decimal("0.01"), "income": Decimal("0.015")}

    def found(**outside: int) -> list[str]:
        counts = {
            name: {
                "missing": 0,
                "not_a_number": 0,
                "not_finite": 0,
                "below": 1,
                "above": outside.get(name, 1) - 1,
                "different": 9,
            }
            for name in ("years", "income", "age")
        }
        counts["age"]["below"] = 0
        counts["ill"] = {"missing": 0, "undeclared": 0, "different": 2}
        return refusals(check_facts(Facts(1000, counts, dict.fromkeys(counts, "number")), policy))

    assert found(years=10, income=15, age=1) == []
    [years_told, income_told, age_told] = found(years=11, income=16, age=2)
    assert years_told.startswith(
        "column years: up to 20 of 1,000 records outside the declared domain (up to 10 below, up to 10 above), and at most 1%"
    )
    assert income_told.startswith(
        "column income: up to 20 of 1,000 records outside the declared domain (up to 10 below, up to 20 above), and at most 1.5%"
    )
    assert "clamped_at_most" in years_told
    assert age_told.startswith(
        "column age: up to 10 records outside the declared domain (none below, up to 10 above), and outside is fail. "
    )
    assert "widen the domain" in age_told


def test_linkage_that_was_not_simulated_does_not_pass() -> None:
    """Nobody knows whether it keeps the limit."""
    [gate] = judge_linkage(load("gates: {linkage: 10%}\n"), None)
    assert not gate.passed


@pytest.mark.parametrize(
    ("value", "at_least", "passed"), [(1, False, True), (3, False, False), (1, True, False), (3, True, True)]
)
def test_a_gate_has_one_right_side(value: float, at_least: bool, passed: bool) -> None:
    """Of a limit of 2: at it a figure passes either way, beside it one way, and without a figure never."""
    assert Gate("a figure", value, 2, at_least).passed == passed
    assert Gate("a figure", 2, 2, at_least).passed
    assert not Gate("a figure", float("nan"), 2, at_least).passed
