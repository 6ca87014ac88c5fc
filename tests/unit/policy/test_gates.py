"""Limits on the released table alone, and what models are to predict: read, refused in words, told by `check`, in the hash."""

from __future__ import annotations

from decimal import Decimal

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.words import not_covered_words
from release_pipeline.stages.checks import Facts, check_facts, refusals

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
ALL = "gates: {anonymity_k: 5, l_diversity: {ill: 2}}\n"
ASKED = "audit: {predict: {income: {above: 1000}, ill: {equals: flu}}}\n"


def load(more: str = "", **changes: str) -> Policy:
    """The policy with lines added, and parts of its text replaced."""
    text = POLICY
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return parse_policy(text + more, name="people.yaml")


def test_limits_on_groups_are_read_and_told() -> None:
    """What `check` says of them, in words."""
    policy = load(ALL + ASKED)
    assert policy.gates.of_groups == {
        "anonymity_k": (),
        "l_diversity": ("ill",),
    }
    content = "\n".join(describe_plan(make_plan(policy)))
    for words in (
        "groups of released quasi-identifiers of at least 5",
        "at least 2 different values of ill in each group",
        "models learn to predict: income above 1000; ill equal to 'flu'",
    ):
        assert words in " ".join(content.split())


def test_a_policy_with_one_of_these_parts_is_another() -> None:
    """And one whose parts are empty is the same."""
    plain = load()
    hashes = {
        load(more).canonical_hash()
        for more in (
            "",
            ALL,
            ASKED,
            "gates: {anonymity_k: 5}\n",
            "audit: {predict: {ill: {equals: cold}}}\n",
        )
    }
    assert len(hashes) == 5
    assert load("audit: {groups: []}\n").canonical_hash() == plain.canonical_hash()
    assert load("audit: {groups: [ill]}\n").canonical_hash() != plain.canonical_hash()
    assert "who is served worst: means and errors by ill" in " ".join(describe_plan(make_plan(load("audit: {groups: [ill]}\n"))))
    assert load("audit: {}\n").canonical_hash() == load("audit: {predict: {}}\n").canonical_hash() == plain.canonical_hash()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("gates: {anonymity_k: 1}\n", "gates.anonymity_k"),
        ("gates: {l_diversity: {site: 2}}\n", "'site' is not a released column with role: confidential."),
        ("gates: {l_diversity: {income: 2}}\n", "'income' gets noise, so that different values of it say nothing."),
        ("gates: {l_diversity: {ill: 3}}\n", "'ill' has 2 declared values, so that no group can have so many."),
        ("gates: {clamped_at_most: 0.05}\n", "'0.05': must be a percentage from 0% to 100%, like 5%."),
        ("gates: {clamped_at_most: {age: 101%}}\n", "gates.clamped_at_most.age: '101%': must be a percentage"),
        (
            "gates: {clamped_at_most: {ill: 5%}}\n",
            "gates.clamped_at_most.ill: 'ill' is not a column with outside: clamp. Remove it.",
        ),
        ("gates: {clamped_at_most: {nobody: 5%}}\n", "'nobody' is not a column with outside: clamp. Remove it."),
        ("gates: {clamped_at_most: [5%]}\n", "must be a percentage"),
        ("audit: {predict: {income: {abve: 5}}}\n", "Did you mean 'above'"),
        ("audit: {groups: [income]}\n", "'income' is not a column with do: keep or generalise. Remove it."),
        ("audit: {groups: [nobody]}\n", "'nobody' is not a column with do: keep or generalise. Remove it."),
        ("audit: {groups: [ill, ill]}\n", "audit.groups"),
        ("audit: {predict: {income: {equals: 5}}}\n", "'income' is a column of numbers. Say above: NUMBER."),
        ("audit: {predict: {income: {above: 5000}}}\n", "it is outside the column's domain"),
        ("audit: {predict: {ill: {above: 5}}}\n", "'ill' is a column of entries. Say equals: ENTRY."),
        ("audit: {predict: {ill: {equals: measles}}}\n", "it is none of the column's declared values."),
        ("audit: {predict: {other: {above: 5}}}\n", "'other' is not a released column with do: noise or keep."),
        ("audit: {predict: {income: {}}}\n", "a target has either 'above' with a number or 'equals' with an entry"),
        ("audit: {predict: {income: {above: 5, equals: 6}}}\n", "a target has either 'above'"),
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


@pytest.mark.parametrize("outside", ["clamp", "fail"])
@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("{method: dp-cdf, epsilon: 2}", "; if these are codes for no answer, declare them: codes: {CODE: reason}."),
        (
            "{method: dp-um, epsilon: 2, k: 5}",  # every record has a number there
            "; if these are codes for no answer, use dp-cdf and declare them: codes: {CODE: reason}.",
        ),
    ],
)
def test_numbers_outside_the_domain_may_be_codes(method: str, words: str, outside: str) -> None:
    """The refusal names that way out too, by the method; a column that can have no codes has no such way."""
    noise = f"do: noise, domain: [0, 5000], grid: 1, outside: {outside}"
    changes = {"{method: dp-um, epsilon: 2, k: 5}": method, "do: noise, domain: [0, 5000], grid: 1, outside: clamp": noise}
    policy = load(**changes)
    found = dict.fromkeys(("missing", "not_a_number", "not_finite", "undeclared", "above", "below"), 0) | {"different": 2}
    counts = dict.fromkeys(policy.columns, found) | {"income": found | {"below": 400}}
    kinds = dict.fromkeys(policy.columns, "number")
    [told] = refusals(check_facts(Facts(1000, counts, kinds), policy))
    assert told.startswith("column income: up to 400 ")
    assert told.endswith(words)
    assert "widen the domain by what is known of the variable" in told.lower()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("gates: {min_rows: }\n", "13:9: gates.min_rows: min_rows is empty. Say how many records a release must have at least"),
        ("gates: {min_rows: 100, ks: }\n", "gates.ks: ks is empty. "),
        ("gates: {min_rows: 100, singling_out: null}\n", "gates.singling_out: singling_out is empty. Fill it in."),
        ("retain: \n", "13:1: retain: retain is empty. Fill it in."),
        ("shape: ~\n", "13:1: shape: shape is empty. "),
        ("publish: {not_before: }\n", "publish.not_before: not_before is empty. "),
    ],
)
def test_a_key_that_may_be_left_out_is_not_left_empty(more: str, words: str) -> None:
    """Whoever wrote the key meant to say something: once, as of every other part."""
    with pytest.raises(PolicyInvalid) as caught:
        load(more)
    [told] = caught.value.problems
    assert words in told
    assert load("gates: {}\n").gates.min_rows is None


def test_check_says_which_end_limits_on_attacks_are_on() -> None:
    """Once, and where there are such limits alone."""

    def told(gates: str) -> str:
        policy = load(gates, **{"{method: dp-um, epsilon: 2, k: 5}": "{method: mdav, k: 5}"})
        return " ".join("\n".join(describe_plan(make_plan(policy))).split())

    limited = told("gates: {min_rows: 100, singling_out: 2%, inference: 5%}\n")
    assert limited.count("limits on attacks are on the upper end of a 95% interval") == 1
    assert "upper end" not in told("gates: {min_rows: 100}\n")


@pytest.mark.parametrize("protect", ["{method: dp-um, epsilon: 2, k: 5}", "{method: dp-cdf, epsilon: 2}", "{method: mdav, k: 5}"])
def test_a_limit_on_linkage_is_for_every_method(protect: str) -> None:
    """`check` says that it is judged on simulated releases, and what passing it tells; without it the hash is what it was."""
    policy = load("gates: {linkage: 10%}\n", **{"{method: dp-um, epsilon: 2, k: 5}": protect})
    assert policy.gates.linkage == Decimal("0.1")
    content = " ".join("\n".join(describe_plan(make_plan(policy))).split())
    assert "someone who knows all released columns finds at most 10% of the rows, on simulated releases" in content
    told = " ".join(not_covered_words(policy))
    assert "someone who knows all released columns finds at most 10% of the rows" in told
    assert "No bound follows: the release itself may link more." in told
    assert "linkage" not in load().canonical_json()


def test_a_limit_on_linkage_is_a_percentage() -> None:
    with pytest.raises(PolicyInvalid) as caught:
        load("gates: {linkage: 0.1}\n")
    assert "gates.linkage: '0.1': must be a percentage" in "".join(caught.value.problems)
