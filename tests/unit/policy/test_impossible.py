"""Combinations that cannot occur (`never`): what may be said of them, what of it is hashed, and how it is told."""

from __future__ import annotations

import json

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.canonical import read_canonical
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.families.whole_table import WholeTableFamily
from release_pipeline.policy.options import WholeTableOptions
from release_pipeline.policy.plan import describe_plan, make_plan

HEAD = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: %s
releases: once
columns:
  age: {role: quasi, do: synthesise, domain: [0, 110], grid: 1, outside: clamp, why: years}
  pay: {role: confidential, do: synthesise, domain: [-10, 1000], grid: 0.5, outside: clamp, why: known, missing: keep}
  born: {role: quasi, do: synthesise, domain: [1990-01-01, 2020-12-28], grid: 7 days, outside: clamp, why: known}
  status: {role: quasi, do: synthesise, values: [child, single, married, widowed], codes: {9: refused}}
  sex: {role: quasi, do: synthesise, values: [1, 2]}
  id: {role: identifier, do: drop}
protect:
  method: dp-table
  epsilon: 3
"""
RULES = (
    "{age: {below: 15}, status: [married, widowed]}",
    "{pay: {above: 0.5}, status: child, sex: 1}",
    "{born: {from: 1990-01-01, to: 2000-01-03}, sex: [2]}",
    "{age: {equals: 0}, pay: {above: 0.5}, born: {below: 2000-01-03}}",
)


def read(*rules: str, person: str = "each-row") -> Policy:
    """The policy with these rules."""
    never = "".join(f"    - {rule}\n" for rule in rules)
    return parse_policy(HEAD % person + (f"  never:\n{never}" if rules else ""), name="people.yaml")


def faults_of(*rules: str, person: str = "each-row") -> list[str]:
    """What is wrong with a policy that has these rules, with the line of each."""
    with pytest.raises(PolicyInvalid) as refused:
        read(*rules, person=person)
    return [problem.removeprefix("people.yaml:") for problem in refused.value.problems]


def test_rules_become_entries_and_edges() -> None:
    """By the grid and its points, of dates too; categories by their places; what is left open goes to the end of the domain."""
    design = WholeTableFamily(WholeTableOptions).declare(read(*RULES), 5_000)
    age, born, pay, sex, status = range(5)  # by name
    assert [dict(rule.entries) for rule in design.never] == [
        {age: ((0, 14),), status: ((2, 2), (3, 3))},
        {pay: ((22, 2020),), status: ((0, 0),), sex: ((0, 0),)},
        {born: ((0, 522),), sex: ((1, 1),)},
        {age: ((0, 0),), pay: ((22, 2020),), born: ((0, 521),)},
    ]
    assert [column.edges for column in design.columns] == [(1, 15), (522, 523), (22,), (), ()]
    assert [column.sides for column in design.columns] == [(), (), (), (1, 2), (1, 0, 2, 2)]


def test_the_canonical_form_has_them_only_where_they_are_given() -> None:
    """So that old hashes stay; it is read back as it was, whatever the words were that said it."""
    policy, plain = read(*RULES), read()
    assert "never" not in plain.canonical_json()
    form = policy.canonical_json()
    assert (
        '"never":[{"age":{"below":"15"},"status":["married","widowed"]},{"pay":{"above":"0.5"},"sex":[1],"status":["child"]},'
        in form
    )
    assert '{"born":{"from":"1990-01-01","to":"2000-01-03"},"sex":[2]}' in form
    again = read_canonical(json.loads(form), list(policy.columns))
    assert again.canonical_json() == form
    assert again.protect == policy.protect
    assert read("{age: {below: 15.0}, sex: 1}").canonical_hash() == read("{sex: [1], age: {below: 15}}").canonical_hash()


def test_changes_are_told_in_words() -> None:
    """What cannot occur now, and what no longer is declared not to."""
    assert list(describe_diff(read(), read(*RULES[:2]))) == [
        "combinations that cannot occur: new, age below 15 with status married or widowed",
        "combinations that cannot occur: new, pay above 0.5 with sex 1 with status child",
    ]
    assert list(describe_diff(read(*RULES[:2]), read(RULES[1], RULES[2]))) == [
        "combinations that cannot occur: new, born from 1990-01-01 to 2000-01-03 with sex 2",
        "combinations that cannot occur: no longer, age below 15 with status married or widowed",
    ]
    assert list(describe_diff(read(*RULES[:2]), read(*RULES[1::-1]))) == [
        "combinations that cannot occur: the same in another order"
    ]
    many = [f"{{age: {{equals: {age}}}, pay: {{above: 0}}}}" for age in range(5)]
    many += [f"{{age: {{equals: {age}}}, status: child}}" for age in range(5)]
    assert list(describe_diff(read(), read(*many)))[-1] == "combinations that cannot occur: and 2 more changes"


def test_the_plan_says_what_cannot_occur() -> None:
    plan = " ".join(" ".join(describe_plan(make_plan(read(*RULES[:2]), rows=5_000))).split())
    assert (
        "impossible age below 15 with status married or widowed; pay above 0.5 with sex 1 with status child: no row has it"
        in plan
    )
    assert "impossible" not in " ".join(describe_plan(make_plan(read(), rows=5_000)))


WRONG = [
    ("{agee: {below: 15}, sex: 1}", "18:8: protect.never.0.agee: 'agee' is no column. Did you mean 'age'?"),
    ("{id: 3, sex: 1}", "18:8: protect.never.0.id: 'id' is not made anew: its do is not synthesise."),
    ("{age: {below: 15}}", "18:7: protect.never.0: a rule names two columns or more"),
    ("{}", "18:7: protect.never.0: a rule names two columns or more"),
    ("{age: {below: 15}, status: [maried]}", "'maried' is none of the column's declared values. Did you mean 'married'?"),
    ("{age: {below: 15}, status: [9]}", "'9' is none of the column's declared values. Name declared values; a code is none."),
    ("{age: {below: 15}, status: [a, b]}", "values are not declared: a, b."),
    ("{age: {below: 15}, status: []}", "18:26: protect.never.0.status: status is empty."),
    ("{age: {below: 15}, status: [child, child]}", "holds the same entry twice"),
    ("{age: {below: 0}, sex: 1}", "18:14: protect.never.0.age.below: the domain has no number there."),
    ("{age: {above: 110}, sex: 1}", "18:14: protect.never.0.age.above: the domain has no number there."),
    ("{age: {from: 3, to: 2}, sex: 1}", "protect.never.0.age.from: the domain has no number there."),
    ("{age: {above: 111}, sex: 1}", "protect.never.0.age.above: this is outside the domain. It goes from 0 to 110."),
    ("{born: {equals: 1989-12-31}, sex: 1}", "born.equals: this is outside the domain. It goes from 1990-01-01 to 2020-12-28."),
    ("{pay: {equals: 0.25}, sex: 1}", "protect.never.0.pay.equals: this is off the grid"),
    (
        "{born: {equals: 1990-01-02}, sex: 1}",
        "this is off the grid, so that no value could be there. Name the lower end of the domain",
    ),
    ("{born: {equals: 1990-02-30}, sex: 1}", "it must be a date like 1990-01-31"),
    ("{born: {below: 5}, sex: 1}", "this is no date."),
    ("{age: {below: old}, sex: 1}", "this is no number."),
    ("{age: {below: [1]}, sex: 1}", "must be a number or a date"),
    ("{age: {from: 0, to: 110}, sex: 1}", "18:8: protect.never.0.age: this is every value that the column can hold."),
    ("{age: {below: 15}, sex: [2, 1]}", "protect.never.0.sex: this is every value that the column can hold."),
    ("{age: [3, 4], sex: 1}", "it is a column of numbers, and they are named by a range. Say one of {below: x}"),
    ("{born: 1990-01-01, sex: 1}", "it is a column of dates, and they are named by a range."),
    ("{age: {below: 15}, sex: {above: 1}}", "it is a column of entries, and has no ranges."),
    ("{age: {belw: 15}, sex: 1}", "'belw' is not known here. Did you mean 'below'?"),
    ("{age: {first: 15}, sex: 1}", "Known: below, above, from, to, equals."),
    ("{age: {below: 15, above: 3}, sex: 1}", "a range is one of {below: x}, {above: x}, {from: a, to: b} and {equals: x}"),
    ("{age: {from: 15}, sex: 1}", "a range is one of"),
    ("{age: , sex: 1}", "age is empty."),
    ("5", "protect.never.0: 0 must be a mapping."),
]


@pytest.mark.parametrize(("rule", "words"), WRONG)
def test_what_cannot_be_said_is_told_in_words(rule: str, words: str) -> None:
    [fault] = faults_of(rule)
    assert words in fault


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Faults of one rule alone hide none of others, and none of the columns."""
    rules = [
        RULES[0],
        "{age: {belw: 15}, sex: 1}",
        "{age: {below: 900}, sex: 3}",
        "{id: 1, sex: 1}",
        "{status: [widowed, married], age: {below: 15}}",
    ]
    found = faults_of(*rules)
    assert [fault.split(": ")[1] for fault in found] == [
        "protect.never.1.age.belw",
        "protect.never.2.age.below",
        "protect.never.2.sex",
        "protect.never.3.id",
        "protect.never.4",
    ]
    assert found[-1].endswith("rule 1 says the same. Remove one.")


def test_rules_together_leave_something() -> None:
    """Of records without a value too: these meet no rule."""
    halves = [
        "{age: {below: 15}, sex: 1}",
        "{age: {above: 14}, sex: 1}",
        "{age: {below: 15}, sex: 2}",
        "{age: {above: 14}, sex: 2}",
    ]
    read(*halves[:3])
    assert "together the rules leave nothing that age, sex could hold" in faults_of(*halves)[0]
    read(*(rule.replace("age", "pay") for rule in halves))
    many = [f"{{age: {{equals: {2 * age}}}, status: child}}" for age in range(1, 8)]
    assert "the rules put 'age' into 15 parts, and each must be counted by itself: 12 at the most" in faults_of(*many)[0]
    assert "there are 101 rules: 100 at the most" in faults_of(*["{age: {below: 15}, sex: 1}"] * 101)[0]


@pytest.mark.parametrize("method", ["dp-cdf, k: 3", "laplace", "dp-mdav, k: 5, order: hilbert", "idp-ls, k: 5"])
def test_other_methods_make_no_rows(method: str) -> None:
    text = HEAD % "each-row" + f"  never: [{RULES[0]}]\n"
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(text.replace("dp-table", method.replace(", ", "\n  ")), name="people.yaml")
    assert "'never' is not for this method: it is for rows that are made anew, with dp-table" in str(refused.value.problems)


def test_never_is_a_list() -> None:
    with pytest.raises(PolicyInvalid, match="1 error"):
        parse_policy(HEAD % "each-row" + "  never: 5\n", name="people.yaml")
