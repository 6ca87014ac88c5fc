"""Combinations that cannot occur (`never`): what may be said of them, what of it is hashed, and how it is told."""

from __future__ import annotations

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.families.whole_table import WholeTableFamily
from release_pipeline.policy.file.options import WholeTableOptions

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


WRONG = [
    ("{agee: {below: 15}, sex: 1}", "18:8: protect.never.0.agee: 'agee' is no column. Did you mean 'age'?"),
    ("{id: 3, sex: 1}", "18:8: protect.never.0.id: 'id' is not made anew: its do is not synthesise."),
    ("{age: {below: 15}}", "18:7: protect.never.0: a rule names two columns or more"),
    ("{age: {below: 15}, status: [maried]}", "'maried' is none of the column's declared values. Did you mean 'married'?"),
    ("{age: {below: 15}, status: [a, b]}", "values are not declared: a, b."),
    ("{age: {below: 0}, sex: 1}", "18:14: protect.never.0.age.below: the domain has no number there."),
    ("{age: {from: 3, to: 2}, sex: 1}", "protect.never.0.age.from: the domain has no number there."),
    ("{born: {equals: 1989-12-31}, sex: 1}", "born.equals: this is outside the domain. It goes from 1990-01-01 to 2020-12-28."),
    ("{pay: {equals: 0.25}, sex: 1}", "protect.never.0.pay.equals: this is off the grid"),
    ("{age: {below: old}, sex: 1}", "this is no number."),
    ("{age: {from: 0, to: 110}, sex: 1}", "18:8: protect.never.0.age: this is every value that the column can hold."),
    ("{age: {below: 15}, sex: [2, 1]}", "protect.never.0.sex: this is every value that the column can hold."),
    ("{age: [3, 4], sex: 1}", "it is a column of numbers, and they are named by a range. Say one of {below: x}"),
    ("{age: {below: 15}, sex: {above: 1}}", "it is a column of entries, and has no ranges."),
    ("{age: {first: 15}, sex: 1}", "Known: below, above, from, to, equals."),
    ("{age: {below: 15, above: 3}, sex: 1}", "a range is one of {below: x}, {above: x}, {from: a, to: b} and {equals: x}"),
]


@pytest.mark.parametrize(("rule", "words"), WRONG)
def test_what_cannot_be_said_is_told_in_words(rule: str, words: str) -> None:
    [fault] = faults_of(rule)
    assert words in fault
