"""What a steward expects across columns: read, refused in words at its place, shown by `check`, in the hash."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.views import plan_to_json
from release_pipeline.stages.checks import EXPECTATIONS, FAMILIES, Facts, check_facts, families_of, notice, refusals

POLICY = """\
policy: people
steward: ana
population: all-people
source: {path: people.csv, release_column: year}
person: {column: person}
releases: ["1"]
protect: {method: k-epsilon, grouping: ola, epsilon: 2, k: 5}
columns:
  person: {role: identifier, do: drop}
  came: {role: confidential, do: drop}
  left: {role: confidential, do: drop}
  tenure: {role: confidential, do: keep, values: [owner, tenant], why: known, missing: {category: owner}}
  rooms: {role: confidential, do: keep, values: [1, 2, 3], why: known}
  born: {role: quasi, do: generalise, hierarchy: {dates: [day, year], first: 1900-01-01, last: 2030-12-31}}
  wage: {role: confidential, do: noise, domain: [0, 5000], grid: 1, outside: clamp, why: top code}
  rent: {role: confidential, do: noise, domain: [0, 5000], grid: 0.01, outside: clamp, why: top code, missing: {fill: 0}}
drop: [remark]
"""
EXPECTED = """\
expect:
  left-after-coming: {compare: [came, <=, left], read_as: dates, at_most: 1%, why: nobody leaves first}
  adds-up: {sum: [rent, came], equals: wage, grid: 0.01, within: 0.05, at_most: 3}
  once-each: {unique: [person, rooms]}
  owners-pay-none: {missing: rent, only_when: {tenure: owner}}
  small-when-cheap: {values: {rooms: [1, 2]}, when: {rent: [0, 0.5]}}
  left-known: {present: left, when: {rooms: 3}}
"""


def load(more: str = EXPECTED) -> Policy:
    """The policy with lines added."""
    return parse_policy(POLICY + more, name="people.yaml")


def refuse(rule: str) -> str:
    """What is wrong with a policy that expects this; one thing alone."""
    with pytest.raises(PolicyInvalid) as refused:
        load(f"expect:\n  rule: {rule}\n")
    [problem] = refused.value.problems
    place, _, words = problem.partition(": ")
    assert place.startswith("people.yaml:19:")
    return words


def test_rules_are_told_by_check_in_words() -> None:
    """With what may break them and why; and which dropped columns are read for them."""
    words = " ".join("\n".join(describe_plan(make_plan(load()))).split())
    for sentence in (
        "expect left-after-coming: came <= left, as dates; at most 1% of records may break it (nobody leaves first)",
        "adds-up: rent + came = wage on the grid 0.01, within 0.05; at most 3 records may break it",
        "once-each: no two records have the same person and rooms",
        "owners-pay-none: rent missing only when tenure is owner",
        "small-when-cheap: rooms one of 1 or 2 when rent is 0 or 0.5",
        "left-known: left present when rooms is 3",
        "came confidential drop read for the rules, never released",
    ):
        assert sentence in words
    assert "expect " not in " ".join(describe_plan(make_plan(load(""))))
    assert "came confidential drop never released" in " ".join(" ".join(describe_plan(make_plan(load("")))).split())


def test_scripts_get_the_rules() -> None:
    """`check --json` has each, and leaves the key out where there is none."""
    shown = plan_to_json(make_plan(load()))["expectations"]
    assert [rule["name"] for rule in shown] == list(load().expect)
    assert shown[0] == {
        "name": "left-after-coming",
        "rule": "came <= left, as dates",
        "columns": ["came", "left"],
        "at_most": "1%",
        "why": "nobody leaves first",
    }
    assert shown[1]["at_most"] == "3"
    assert "expectations" not in plan_to_json(make_plan(load("")))


def test_a_policy_with_rules_is_another_one() -> None:
    """Every part of a rule counts, but not what it does not say."""
    plain = load("")
    assert "expect" not in json.loads(plain.canonical_json())
    assert load("expect: {}\n").canonical_hash() == plain.canonical_hash()
    changed = [
        EXPECTED,
        EXPECTED.replace("<=", "<"),
        EXPECTED.replace("1%", "2%"),
        EXPECTED.replace("at_most: 3", "at_most: 4"),
        EXPECTED.replace("0.05", "0.06"),
        EXPECTED.replace("only_when", "when"),
        EXPECTED.replace("[1, 2]", "[1]"),
        EXPECTED.replace("once-each", "once"),
    ]
    assert len({plain.canonical_hash(), *(load(more).canonical_hash() for more in changed)}) == len(changed) + 1
    rule = json.loads(load().canonical_json())["expect"]["left-known"]
    assert rule == {"present": "left", "when": {"rooms": [3]}, "at_most": 0}
    assert load(EXPECTED.replace("rooms: 3}", "rooms: [3]}")).canonical_hash() == load().canonical_hash()


def test_change_of_a_rule_is_told_in_words() -> None:
    """`diff` names it."""
    assert "expect.adds-up.at_most: 3 -> 4" in list(describe_diff(load(), load(EXPECTED.replace("at_most: 3", "at_most: 4"))))
    assert any(line.startswith("expect: nothing -> ") for line in describe_diff(load(""), load()))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (
            "{compare: [came, <, lefd]}",
            "expect.rule.compare.2: 'lefd' is not declared under columns. Did you mean 'left'?",
        ),
        (
            "{unique: [person, remark]}",
            "expect.rule.unique.1: 'remark' is under drop, and what is there is not read. "
            "Declare it under columns instead, with its role and do: drop.",
        ),
        (
            "{unique: [person, year]}",
            "expect.rule.unique.1: 'year' is the release column, which is the same in all records of a release. "
            "Name another one.",
        ),
        (
            "{compare: [tenure, <, left]}",
            "expect.rule.compare.0: 'tenure' is not a column of numbers, as it is declared. Name another one, or change read_as.",
        ),
        (
            "{compare: [rent, <, born], read_as: dates}",
            "expect.rule.compare.0: 'rent' is not a column of dates, as it is declared. Name another one, or change read_as.",
        ),
        (
            "{sum: [rent, wage], equals: born, grid: 1}",
            "expect.rule.equals: 'born' is not a column of numbers, as it is declared. Name another one.",
        ),
        (
            "{sum: [rent, wage], equals: came, grid: 1, within: 0.5}",
            "expect.rule: 'within' must be a whole number of steps of its grid.",
        ),
        ("{sum: [rent, wage], equals: came}", "expect.rule.grid: 'grid' is missing. Declare the step"),
        (
            "{sum: [rent, wage], equals: rent, grid: 1}",
            "expect.rule.equals: a column is compared with itself. Name different columns.",
        ),
        ("{compare: [came, <=, came]}", "expect.rule.compare: a column is compared with itself. Name different columns."),
        (
            "{missing: wage, when: {tenure: owner}}",
            "expect.rule.missing: 'wage' is never missing: its own rule is missing: fail. "
            "Remove the expectation, or declare what stands for a missing value.",
        ),
        (
            "{missing: rent, when: {person: p1}}",
            "expect.rule.when.person: 'person' is an identifier, and a rule about its entries would tell of single people. "
            "Name a column with another role.",
        ),
        (
            "{values: {person: p1}, when: {rooms: 1}}",
            "expect.rule.values.person: 'person' is an identifier, and a rule about its entries would tell of single people. "
            "Name a column with another role.",
        ),
        (
            "{missing: rent, when: {tenure: landlord}}",
            "expect.rule.when.tenure: 'landlord' is not an entry that 'tenure' declares. List entries that it may have.",
        ),
        (
            "{missing: rent, when: {born: 1899-12-31}}",
            "expect.rule.when.born: '1899-12-31' is not an entry that 'born' declares. List entries that it may have.",
        ),
        (
            "{values: {rooms: [1, 4]}, when: {rent: 0}}",
            "expect.rule.values.rooms: '4' is not an entry that 'rooms' declares. List entries that it may have.",
        ),
        (
            "{missing: left, when: {rent: none}}",
            "expect.rule.when.rent: 'rent' is a column of numbers, and 'none' is none. List numbers.",
        ),
        (
            "{missing: rent}",
            "expect.rule: either 'when' or 'only_when' says of which records, like when: {COLUMN: ENTRY}.",
        ),
        (
            "{missing: rent, present: rent, when: {rooms: 1}}",
            "expect.rule: one of missing, present and values says what is expected.",
        ),
        (
            "{missing: rent, when: {rooms: 1, tenure: owner}}",
            "expect.rule: values, when and only_when name one column each.",
        ),
        (
            "{compair: [came, <, left]}",
            "expect.rule: must say what is expected, with one of compare, sum, unique, missing, present, values.",
        ),
        (
            "{compare: [came, <, left], readas: dates}",
            "expect.rule.readas: 'readas' is not known here. Did you mean 'read_as'?",
        ),
        ("{unique: [rooms], within: 1}", "expect.rule.within: 'within' is not known here. Known: at_most, why, unique."),
        ("{unique: [rooms], at_most: 100%}", "expect.rule.at_most: '100%': would let every record break it."),
        ("{unique: [rooms], at_most: -1}", "expect.rule.at_most: '-1' is too small. The least allowed is 0."),
        ("{unique: [rooms], at_most: 0.5}", "expect.rule.at_most: '0.5': must be a percentage from 0% to 100%, like 5%."),
        ("{compare: [came, above, left]}", "expect.rule.compare.1: 'above' is not allowed for compare. Allowed: '<' or '<='."),
        ("[came, <, left]", "expect.rule: rule must be a mapping."),
    ],
)
def test_what_is_wrong_with_a_rule_is_told_at_its_place(rule: str, problem: str) -> None:
    """Unknown columns, wrong kinds, rules that cannot be broken or would point at single people."""
    shown = refuse(rule)
    assert shown == problem or (problem.endswith("step") and shown.startswith(problem))


def test_a_wrong_rule_does_not_hide_another() -> None:
    """Both are shown, with the name that is none."""
    with pytest.raises(PolicyInvalid) as refused:
        load("expect:\n  Rule 1: {unique: [rooms]}\n  a: {sum: [rent], equals: wage}\n  b: {unique: [nowhere]}\n")
    shown = " ".join(refused.value.problems)
    assert all(words in shown for words in ("'Rule 1' is not a name", "expect.a", "'nowhere' is not declared"))
    with pytest.raises(PolicyInvalid) as refused:
        load("expect: [1]\n")
    assert refused.value.problems[0].startswith("people.yaml:18:1: expect: expect must be a mapping")


def test_counts_are_judged_against_what_is_allowed() -> None:
    """A sentence with the rule's name, columns and counts, and no entry of the policy; what is allowed is a warning."""
    policy = load()
    kinds = dict.fromkeys(policy.columns, "text") | {"born": "DATE"}

    def judge(**broken: int) -> tuple[list[str], list[str]]:
        facts = Facts(
            250, {name: dict.fromkeys(COUNTS, 0) for name in kinds}, kinds, {n.replace("_", "-"): c for n, c in broken.items()}
        )
        own = [check for check in check_facts(facts, policy) if check.family == EXPECTATIONS]
        assert len(own) == len(broken)
        return refusals(own), [words for words in notice(facts, policy) if words.startswith("expectation")]

    assert judge(left_after_coming=0, adds_up=0) == ([], [])
    assert judge(left_after_coming=2, adds_up=3) == (
        [],
        [
            "expectation left-after-coming: up to 10 records break it, and at most 1% of records may (columns came, left).",
            "expectation adds-up: up to 10 records break it, and at most 3 records may (columns rent, came, wage).",
        ],
    )
    assert judge(left_after_coming=3, adds_up=4, small_when_cheap=1) == (
        [
            "expectation left-after-coming: up to 10 records break it, and at most 1% of records may (columns came, left).",
            "expectation adds-up: up to 10 records break it, and at most 3 records may (columns rent, came, wage).",
            "expectation small-when-cheap: up to 10 records break it, and none may (columns rooms, rent).",
        ],
        [],
    )


COUNTS = ("missing", "not_a_number", "not_finite", "below", "above", "different", "most_frequent", "undeclared", "uncovered")
COUNTS += ("uncovered_entries", "too_often", "persons")


def test_the_family_is_asked_for_where_there_are_rules() -> None:
    """Eight families, and one more that cannot be left out then."""
    assert list(families_of(load(""))) == list(FAMILIES)
    assert list(families_of(load())) == [*FAMILIES, EXPECTATIONS]


def test_the_example_of_the_documentation_is_a_policy() -> None:
    """What docs/policy.md shows is accepted as it stands there."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("\n```yaml\nexpect:\n")
    lines = list(takewhile(lambda line: line.startswith("  "), rest.splitlines()))
    assert len(lines) > 5
    names = ["left", "came", "tax", "income", "wages", "benefits", "visit", "rent", "tenure", "status", "age_group"]
    dropped = "".join(f"  {name}: {{role: confidential, do: drop}}\n" for name in names if name not in ("left", "came", "rent"))
    text = "".join(line for line in POLICY.splitlines(keepends=True) if not line.startswith("  tenure:"))
    text = text.replace("drop: [remark]\n", f"{dropped}drop: [remark]\nexpect:\n") + "\n".join(lines)
    policy = parse_policy(text, name="people.yaml")
    assert len(policy.expect) == len(lines)
