"""Hierarchies as stewards declare them: the labels of every form, what they cover, and what is refused, with words and line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from release_pipeline.policy import parse_policy
from release_pipeline.policy.hierarchies import Dates, Intervals
from tests.integration.sites import refusal

POLICY = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: k-epsilon, grouping: ola, k: 4, epsilon: 1}
columns:
  sex: {role: quasi, do: generalise, hierarchy: {groups: [f, m]}}
  age: {role: quasi, do: generalise, hierarchy: {intervals: [5, 10], domain: [0, 99], grid: 1, outside: fail}, why: human}
  zip: {role: quasi, do: generalise, hierarchy: {prefixes: [5, 2], of: digits}}
  pay: {role: quasi, do: noise, domain: [0, 100], grid: 1, outside: fail, why: known}
  ill: {role: confidential, do: keep, values: [yes, no], why: needed}
suppress: {grouping_at_most: 5%, confidence: 99%, at_most: 7%}
"""


def intervals(**parts: Any) -> Intervals:
    return Intervals.model_validate({"domain": [0, 100], "grid": 1, "outside": "fail", **parts})


def test_intervals_of_one_width_and_between_numbers() -> None:
    """From the domain's lower end on, the last one cut short; a list names where intervals begin."""
    spec = intervals(intervals=[5, 10, [20, 70]])
    assert spec.label_units([0, 4, 19, 20, 99, 100]) == [
        ("0", "0-4", "0-9", "0-19", "*"),
        ("4", "0-4", "0-9", "0-19", "*"),
        ("19", "15-19", "10-19", "0-19", "*"),
        ("20", "20-24", "20-29", "20-69", "*"),
        ("99", "95-99", "90-99", "70-100", "*"),
        ("100", "100", "100", "70-100", "*"),
    ]
    assert spec.levels == 5
    assert spec.level_words == ("by 1", "by 5", "by 10", "3 intervals", "*")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"intervals": [5, 12]}, "level 2 do not consist of whole ones of level 1"),
        ({"intervals": [[70, 20]]}, "must ascend"),
        ({"intervals": [[0, 20]]}, "numbers of the grid inside the domain"),
        ({"intervals": [5], "grid": 2}, "not a whole number of grid steps"),
        ({"domain": [0, 10**8], "intervals": [2]}, "more than 1,000,000 intervals"),
        ({"intervals": [101]}, "takes in the whole domain"),
    ],
)
def test_intervals_that_do_not_nest_are_refused(parts: dict[str, Any], words: str) -> None:
    """In words, whatever the data."""
    with pytest.raises(ValueError, match=words):
        intervals(**parts)


def test_dates_become_periods() -> None:
    """Quarters end in months divisible by three; only days that exist, between the first and the last."""
    content = {"dates": ["day", "month", "quarter", "year", "decade"], "first": "1960-01-01", "last": "2020-12-31"}
    spec = Dates.model_validate(content)
    assert spec.labels_of(["2019-03-31", "2019-04-01"]) == [
        ("2019-03-31", "2019-03", "2019-Q1", "2019", "2010s", "*"),
        ("2019-04-01", "2019-04", "2019-Q2", "2019", "2010s", "*"),
    ]
    days = ("2019-02-28", "2019-02-29", "1959-12-31", "2021-01-01", "2019-1-1", "20190101", "")
    assert [spec.covers(day) for day in days] == [True, False, False, False, False, False, False]
    labels = ("2019-Q1", "2019-Q5", "1950s", "1960s", "2021", "2020", "*", "2019-02-28")
    assert [spec.may_release(label) for label in labels] == [True, False, False, True, False, True, True, True]


@given(st.lists(st.integers(2, 9), min_size=1, max_size=4), st.integers(1, 300), st.data())
def test_intervals_are_monotone_and_tell_where_a_number_lies(factors: list[int], width: int, data: Any) -> None:
    """Labels of any nested widths make a hierarchy, and both ends of a label hold the number."""
    widths = [1]
    for factor in factors:
        widths.append(widths[-1] * factor)
    spec = intervals(intervals=[part for part in widths[1:] if part <= width] or None, domain=[0, width])
    units = sorted(set(data.draw(st.lists(st.integers(0, width), min_size=1, max_size=30))))
    rows = spec.label_units(units)
    Hierarchy.of(rows)
    for unit, row in zip(units, rows, strict=True):
        for label in row[:-1]:
            ends = [int(end) for end in label.split("-")]
            assert ends[0] <= unit <= ends[-1]
            assert spec.may_release(label)


def faults_of(text: str) -> str:
    return refusal(lambda: parse_policy(text, name="p.yaml"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("groups: [f, m]", "groups: [f, f]", "p.yaml:9:50: columns.sex.hierarchy.groups: the value 'f' stands in the hierarchy"),
        ("groups: [f, m]", "groups: {a: [f], b: {c: [m]}}", "some groups are nested deeper"),
        ("intervals: [5, 10], ", "", "ola needs the intervals"),
        ("[5, 2], of: digits", "[2, 5], of: digits", "must go down"),
        ("of: digits}", "of: digits}, missing: {category: 12***}", "reads like one of the hierarchy's labels"),
        (
            "grid: 1, outside: fail}, why: human",
            "grid: 1, outside: fail}, why: human, missing: {category: 12}",
            "reads like a number",
        ),
        ("grouping: ola, ", "", "Say ola (one level for all records) or mondrian"),
        (
            "grouping_at_most: 5%, confidence: 99%, at_most: 7%",
            "grouping_at_most: 100%, at_most: 100%",
            "would let everybody be dropped",
        ),
        ("groups: [f, m]", 'groups: [f, "m\\u0000"]', "cannot be printed"),
        ("groups: [f, m]", "rows: [[f, '*'], [{a: 1}, '*']]", "texts or numbers"),
        ("grouping: ola", "grouping: mondrian, metric: entropy", "mondrian cuts by width and chooses by no metric"),
        ("grouping: ola", "grouping: mondrian", "mondrian cuts numbers where the data ask for it"),
        ("grouping: ola", "grouping: mondrian", "mondrian cuts only where both parts are large enough, and drops nobody"),
        ("method: k-epsilon, grouping: ola", "method: dp-um", "dp-um works on single columns and generalises none"),
        ("method: k-epsilon, grouping: ola", "method: dp-um", "quasi_groups_below is missing: dp-um suppresses small groups"),
        ("person: each-row", "person: {column: id, records_per_release: 2}", "k of them may be fewer than k people"),
        ("role: confidential, do: keep", "role: quasi, do: keep", "k-epsilon releases no quasi-identifier as it is"),
        ("confidence: 99%", "confidence: 100%", "the confidence must lie between"),
        ("confidence: 99%", "confidence_at_most: 2%", "confidence_at_most limits what confidence suppresses"),
        ("grouping_at_most: 5%", "grouping_at_most: 8%", "grouping_at_most is above at_most"),
        (
            "{grouping_at_most: 5%, confidence: 99%, at_most: 7%}",
            "{quasi_groups_below: 5, at_most: 7%}",
            "have k records already",
        ),
        ("suppress:", "gates: {relative_error: {ill: 1}}\nsuppress:", "'ill' is not a column with do: noise"),
    ],
)
def test_every_contradiction_is_told(old: str, new: str, words: str) -> None:
    """One change to the policy above, and the sentence that a steward reads."""
    assert old in POLICY
    assert words in faults_of(POLICY.replace(old, new, 1))


def without(*names: str) -> str:
    """The policy without some of its columns."""
    left_out = tuple(f"  {name}:" for name in names)
    return "".join(line for line in POLICY.splitlines(keepends=True) if not line.startswith(left_out))


def test_a_label_of_two_meanings_is_refused_where_both_could_meet() -> None:
    """Local recoding puts levels side by side; one level for all records does not."""
    text = POLICY.replace("groups: [f, m]", "groups: {f: [f, m], d: [d]}")
    parse_policy(text, name="p.yaml")
    numbers = "intervals: [5, 10], domain"
    assert "'f' stands for different values on two levels" in faults_of(
        text.replace("grouping: ola", "grouping: mondrian").replace(numbers, "domain").replace("grouping_at_most: 5%, ", "")
    )


def test_a_lattice_too_large_to_search_is_refused() -> None:
    """With how many combinations there are, before any data are read."""
    codes = "{role: quasi, do: generalise, hierarchy: {prefixes: [9, 8, 7, 6, 5, 4, 3, 2, 1], of: digits}}"
    many = "".join(f"  z{i}: {codes}\n" for i in range(7))
    assert "combinations of levels, and ola goes through 1,000,000 at the most" in faults_of(
        POLICY.replace("  pay:", f"{many}  pay:")
    )
