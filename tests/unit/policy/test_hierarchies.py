"""Hierarchies as stewards declare them: the labels of every form, what they cover, and what is refused, with words and line."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument, PolicyInvalid, WrongUsage
from release_pipeline.policy import load_policy, parse_policy
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.hierarchies import (
    Dates,
    Intervals,
    Prefixes,
    read_rows,
    rows_of_groups,
)
from release_pipeline.policy.kinds import GeneraliseColumn
from release_pipeline.policy.load import list_files
from release_pipeline.policy.suppression import SuppressClasses
from release_pipeline.privacy.hierarchy import Hierarchy

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


def test_intervals_off_whole_numbers_and_below_zero() -> None:
    """Ends are numbers of the grid, exact; a minus sign does not run into the dash."""
    spec = Intervals.model_validate({"intervals": [5], "domain": [-10, 10], "grid": "0.5", "outside": "clamp"} | {"grid": 1})
    assert spec.label_units([0, 9, 12]) == [("-10", "-10 to -6", "*"), ("-1", "-5 to -1", "*"), ("2", "0-4", "*")]
    from decimal import Decimal

    half = Intervals.model_validate({"intervals": [2], "domain": [0, 4], "grid": Decimal("0.5"), "outside": "clamp"})
    assert half.label_units([3, 4]) == [("1.5", "0-1.5", "*"), ("2", "2-3.5", "*")]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"intervals": [5, 12]}, "level 2 do not consist of whole ones of level 1"),
        ({"intervals": [10, 5]}, "level 2 do not consist of whole ones of level 1"),
        ({"intervals": [[20, 70], [30]]}, "level 2 do not consist of whole ones of level 1"),
        ({"intervals": [[70, 20]]}, "must ascend"),
        ({"intervals": [[0, 20]]}, "numbers of the grid inside the domain"),
        ({"intervals": [[20, 101]]}, "numbers of the grid inside the domain"),
        ({"intervals": [5], "grid": 2}, "not a whole number of grid steps"),
        ({"domain": [5, 5]}, "the domain is empty"),
        ({"domain": [0, 10**8], "intervals": [2]}, "more than 1,000,000 intervals"),
        ({"intervals": [101]}, "takes in the whole domain"),
    ],
)
def test_intervals_that_do_not_nest_are_refused(parts: dict[str, Any], words: str) -> None:
    """In words, whatever the data."""
    with pytest.raises(ValueError, match=words):
        intervals(**parts)


def test_prefixes_keep_the_first_characters() -> None:
    """Zeros in front stay; a category for missing entries stays itself until everything is one."""
    spec = Prefixes.model_validate({"prefixes": [5, 3, 2], "of": "digits"})
    assert spec.labels_of(["01234", "unknown"], "unknown") == [
        ("01234", "012**", "01***", "*"),
        ("unknown", "unknown", "unknown", "*"),
    ]
    assert [spec.covers(entry) for entry in ("01234", "1234", "012345", "0123a", "०१२३४")] == [True, False, False, False, False]
    assert [spec.may_release(label, "unknown") for label in ("012**", "01***", "0****", "*", "unknown", "01234", "0a***")] == [
        True,
        True,
        False,
        True,
        True,
        True,
        False,
    ]


def test_dates_become_periods() -> None:
    """Quarters end in months divisible by three; only days that exist, between the first and the last."""
    content = {"dates": ["day", "month", "quarter", "year", "decade"], "first": "1960-01-01", "last": "2020-12-31"}
    spec = Dates.model_validate(content)
    assert spec.labels_of(["2019-03-31", "2019-04-01"], None) == [
        ("2019-03-31", "2019-03", "2019-Q1", "2019", "2010s", "*"),
        ("2019-04-01", "2019-04", "2019-Q2", "2019", "2010s", "*"),
    ]
    days = ("2019-02-28", "2019-02-29", "1959-12-31", "2021-01-01", "2019-1-1", "20190101", "")
    assert [spec.covers(day) for day in days] == [True, False, False, False, False, False, False]
    labels = ("2019-Q1", "2019-Q5", "1950s", "1960s", "2021", "2020", "*", "2019-02-28")
    assert [spec.may_release(label, None) for label in labels] == [True, False, False, True, False, True, True, True]


def test_only_labels_of_a_level_may_be_released() -> None:
    """Neither other ends, nor another order or grid; mondrian's ranges end anywhere on the grid."""
    ola, free = intervals(intervals=[5, [20, 70]]), intervals()
    labels = ("20-24", "20-69", "70-100", "100", "*", "21-25", "24-20", "20-24.5", "20 to 24", "020-024", "101", "-5", "x")
    assert [ola.may_release(label, None) for label in labels] == [True] * 5 + [False] * 8
    assert [free.may_release(label, None) for label in labels] == [True] * 6 + [False] * 7


@given(st.dates(date(1960, 1, 1), date(2020, 12, 31)), st.dates(date(1960, 1, 1), date(2020, 12, 31)))
def test_dates_are_monotone(one: date, two: date) -> None:
    """Two days that share a label share all coarser ones."""
    spec = Dates.model_validate(
        {"dates": ["day", "month", "quarter", "year", "decade"], "first": "1960-01-01", "last": "2020-12-31"}
    )
    first, second = spec.labels_of([one.isoformat(), two.isoformat()], None)
    same = [a == b for a, b in zip(first, second, strict=True)]
    assert same == sorted(same)
    assert all(spec.may_release(label, None) for label in first)


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
            assert spec.may_release(label, None)


def test_groups_and_csv_say_the_same() -> None:
    """Nested labels, plain values, a top that is there already; CSV with commas or semicolons."""
    rows = [["a", "vowel", "*"], ["e", "vowel", "*"], ["b", "other", "*"]]
    assert rows_of_groups({"vowel": ["a", "e"], "other": ["b"]}) == rows
    assert rows_of_groups({"*": {"vowel": ["a", "e"], "other": ["b"]}}) == rows
    assert rows_of_groups([1, 2]) == [["1", "*"], ["2", "*"]]
    assert read_rows("level0,level1,level2\na,vowel,*\ne,vowel,*\nb,other,*\n") == rows
    assert read_rows("level0;level1;level2\r\na;vowel;*\r\ne;vowel;*\r\nb;other;*\r\n") == rows
    assert read_rows('level0,level1\n"a,b",*\n') == [["a,b", "*"]]


@pytest.mark.parametrize(
    "groups", [{"a": {"b": ["x"]}, "c": ["y"]}, {"a": []}, {}, {"a": "x"}, {"a": [["x"]]}, "x", {"a": [None]}]
)
def test_groups_that_are_none_are_refused(groups: Any) -> None:
    """Uneven depth, nothing in them, or something else than lists."""
    with pytest.raises(InvalidArgument):
        rows_of_groups(groups)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "level1,level0\n1,2\n", "level0,level0\n"])
def test_csv_needs_its_header(text: str) -> None:
    """Else the first value would be lost in silence."""
    with pytest.raises(InvalidArgument, match="header level0,level1"):
        read_rows(text)


def column_of(hierarchy: object, **options: object) -> GeneraliseColumn:
    """A column with that hierarchy."""
    return GeneraliseColumn.model_validate({"do": "generalise", "role": "quasi", "hierarchy": hierarchy, **options})


def test_what_can_be_listed_is_listed_whole() -> None:
    """Every value of the domain, and the category for missing ones; codes are too many."""
    rows = column_of(intervals(intervals=[50], domain=[0, 99]), missing={"category": "unknown"}).list_rows()
    assert rows is not None
    assert len(rows) == 101
    assert rows[-1] == ("unknown", "unknown", "*")
    assert column_of({"prefixes": [5], "of": "digits"}).list_rows() is None
    days = column_of({"dates": ["day"], "first": "2000-01-01", "last": "2000-12-31"}).list_rows()
    assert days is not None
    assert len(days) == 366
    assert days[-1] == ((date(2000, 1, 1) + timedelta(days=365)).isoformat(), "*")
    assert column_of({"rows": [["a", "*"]]}, missing={"category": "a"}).list_rows() == [("a", "*")]
    assert column_of({"rows": [["a", "*"]]}, codes={"-8": "refused"}).list_rows() == [("a", "*"), ("refused", "*")]


def faults_of(text: str) -> str:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(text, name="p.yaml")
    return "\n".join(refused.value.problems)


def test_the_policy_is_valid() -> None:
    """As it stands above: what is refused below is the fault of one change."""
    policy = parse_policy(POLICY, name="p.yaml")
    assert list(policy.generalised_columns) == ["sex", "age", "zip"]
    assert (policy.definition, policy.protect.scope, policy.groups_below) == ("k-epsilon", "class", 4)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("groups: [f, m]", "groups: [f, f]", "p.yaml:9:50: columns.sex.hierarchy.groups: the value 'f' stands in the hierarchy"),
        ("groups: [f, m]", "group: [f, m]", "Did you mean 'groups'?"),
        ("groups: [f, m]", "groups: {a: [f], b: {c: [m]}}", "some groups are nested deeper"),
        ("groups: [f, m]", "groups: [f, m], csv: x.csv", "csv and groups both list the values"),
        ("groups: [f, m]", "csv: x.csv", "there is no folder to look for this file in (x.csv)"),
        ("{groups: [f, m]}", "{}", "'rows' is missing"),
        ("intervals: [5, 10]", "intervals: [5, 12]", "do not consist of whole ones"),
        ("intervals: [5, 10], ", "", "ola needs the intervals"),
        ("domain: [0, 99], ", "", "'domain' is missing"),
        (", why: human", "", "'why' is missing: where does the domain come from?"),
        ("[5, 2], of: digits", "[2, 5], of: digits", "must go down"),
        ("[5, 2], of: digits", "[5, 2], of: numbers", "Allowed: 'digits', 'letters' or 'digits-and-letters'"),
        ("of: digits}", "of: digits}, missing: {category: 12***}", "reads like one of the hierarchy's labels"),
        ("[f, m]}", "[f, m]}, missing: {category: x}", "not among the hierarchy's values"),
        (
            "grid: 1, outside: fail}, why: human",
            "grid: 1, outside: fail}, why: human, missing: {category: 12}",
            "reads like a number",
        ),
        ("k: 4", "k: 1", "'1' is too small"),
        ("grouping: ola, ", "", "Say ola (one level for all records) or mondrian"),
        ("grouping: ola", "grouping: ola, scope: column", "'scope' is not known here"),
        ("grouping: ola", "grouping: ola, consistency: none", "'consistency' is not known here"),
        (
            "grouping_at_most: 5%, confidence: 99%, at_most: 7%",
            "grouping_at_most: 100%, at_most: 100%",
            "would let everybody be dropped",
        ),
        ("groups: [f, m]", "groups: [f, null]", "one is empty"),
        ("groups: [f, m]", 'groups: [f, "m\\u0000"]', "cannot be printed"),
        ("groups: [f, m]", "rows: [[f, '*'], [{a: 1}, '*']]", "texts or numbers"),
        ("groups: [f, m]", f"groups: [f, {'m' * 201}]", "more than 200 characters"),
        ("grouping: ola", "grouping: mondrian, metric: entropy", "mondrian cuts by width and chooses by no metric"),
        ("grouping: ola", "grouping: mondrian", "mondrian cuts numbers where the data ask for it"),
        ("grouping: ola", "grouping: mondrian", "mondrian cuts only where both parts are large enough, and drops nobody"),
        ("grouping: ola", "grouping: ola, metric: precision", "Allowed: 'categorical-precision'"),
        ("epsilon: 1", "epsilon: 1, weights: {ill: 2}", "'ill' is not a column with do: noise"),
        ("method: k-epsilon, grouping: ola", "method: dp-um", "dp-um works on single columns and generalises none"),
        ("method: k-epsilon, grouping: ola", "method: dp-um", "quasi_groups_below is missing: dp-um suppresses small groups"),
        ("person: each-row", "person: {column: id, records_per_release: 2}", "k of them may be fewer than k people"),
        ("role: confidential, do: keep", "role: quasi, do: keep", "k-epsilon releases no quasi-identifier as it is"),
        ("role: quasi, do: generalise", "role: confidential, do: generalise", "Allowed: 'quasi'"),
        ("confidence: 99%", "confidence: 100%", "the confidence must lie between"),
        ("confidence: 99%", "confidence_at_most: 2%", "confidence_at_most limits what confidence suppresses"),
        ("grouping_at_most: 5%", "grouping_at_most: 8%", "grouping_at_most is above at_most"),
        (
            "{grouping_at_most: 5%, confidence: 99%, at_most: 7%}",
            "{quasi_groups_below: 5, at_most: 7%}",
            "have k records already",
        ),
        ("{grouping_at_most: 5%, confidence: 99%, at_most: 7%}", "{at_most: 7%, confidense: 99%}", "Did you mean 'confidence'?"),
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


def test_what_k_epsilon_needs_is_told_without_it() -> None:
    """No class without generalised columns, no claim without noise."""
    assert "no column has do: generalise, so there are no classes" in faults_of(without("sex", "age", "zip"))
    assert "no column has do: noise" in faults_of(without("pay"))
    other = without("sex", "age", "zip", "ill").replace("method: k-epsilon, grouping: ola", "method: dp-um")
    other = other.replace("suppress: {grouping_at_most: 5%, confidence: 99%, at_most: 7%}", "gates: {relative_error: {pay: 1}}")
    assert "relative errors are expected within the classes of k-epsilon" in faults_of(other)


def test_mondrian_has_no_place_for_a_missing_number() -> None:
    """It would be cut as the least of them."""
    text = (
        POLICY.replace("grouping: ola", "grouping: mondrian")
        .replace("intervals: [5, 10], domain", "domain")
        .replace("grouping_at_most: 5%, ", "")
    )
    parse_policy(text, name="p.yaml")
    assert "a missing one has no place among them" in faults_of(
        text.replace("why: human", "why: human, missing: {category: none}")
    )


def test_a_hierarchy_that_changes_is_told_value_by_value() -> None:
    """What moves, comes and goes; of many the first few."""
    old = parse_policy(POLICY.replace("groups: [f, m]", "groups: {a: [x, y], b: [z]}"), name="p.yaml")
    new = parse_policy(POLICY.replace("groups: [f, m]", "groups: {a: [x], b: [y, w]}"), name="p.yaml")
    assert list(describe_diff(old, new)) == [
        "column sex: w is new, under b > *",
        "column sex: z is gone",
        "column sex: y moves from a > * to b > *",
    ]
    many = parse_policy(POLICY.replace("groups: [f, m]", f"groups: {[f'v{i}' for i in range(40)]}"), name="p.yaml")
    assert list(describe_diff(new, many))[-1].startswith("column sex: and ")


def test_a_label_of_two_meanings_is_refused_where_both_could_meet() -> None:
    """Local recoding puts levels side by side; one level for all records does not."""
    text = POLICY.replace("groups: [f, m]", "groups: {f: [f, m], d: [d]}")
    parse_policy(text, name="p.yaml")
    numbers = "intervals: [5, 10], domain"
    assert "'f' stands for different values on two levels" in faults_of(
        text.replace("grouping: ola", "grouping: mondrian").replace(numbers, "domain").replace("grouping_at_most: 5%, ", "")
    )


def test_the_order_of_columns_is_part_of_the_hash() -> None:
    """It decides between equally good classes; of columns that are not generalised it does not matter."""
    lines = POLICY.splitlines(keepends=True)
    sex, age, zip_, pay, ill = (
        next(line for line in lines if line.startswith(f"  {name}:")) for name in ("sex", "age", "zip", "pay", "ill")
    )
    content = parse_policy(POLICY, name="p.yaml")
    other = parse_policy(POLICY.replace(sex + age, age + sex), name="p.yaml")
    same = parse_policy(POLICY.replace(pay + ill, ill + pay).replace(zip_, "").replace(ill, ill + zip_), name="p.yaml")
    assert content.canonical_hash() != other.canonical_hash()
    assert content.canonical_hash() == same.canonical_hash()
    assert list(describe_diff(content, other)) == ["protect.order: [sex, age, zip] -> [age, sex, zip]"]


def test_a_limit_on_all_suppression_alone_is_enough() -> None:
    """No class may stay too small then, and nobody is dropped for standing out."""
    policy = parse_policy(POLICY.replace("{grouping_at_most: 5%, confidence: 99%, at_most: 7%}", "{at_most: 7%}"), name="p.yaml")
    assert isinstance(policy.suppress, SuppressClasses)
    assert (policy.suppress.grouping_at_most, policy.suppress.confidence) == (0, None)


def test_mondrian_needs_a_label_for_everybody() -> None:
    """It begins with one class; ola can do without."""
    text = POLICY.replace("groups: [f, m]", "rows: [[f, f1], [m, m1]]")
    parse_policy(text, name="p.yaml")
    assert "the last level must be one label" in faults_of(text.replace("grouping: ola", "grouping: mondrian"))


def test_a_lattice_too_large_to_search_is_refused() -> None:
    """With how many combinations there are, before any data are read."""
    codes = "{role: quasi, do: generalise, hierarchy: {prefixes: [9, 8, 7, 6, 5, 4, 3, 2, 1], of: digits}}"
    many = "".join(f"  z{i}: {codes}\n" for i in range(7))
    assert "combinations of levels, and ola goes through 1,000,000 at the most" in faults_of(
        POLICY.replace("  pay:", f"{many}  pay:")
    )


def test_files_are_looked_for_beside_the_policy(tmp_path: Path) -> None:
    """From its own folder on; rows in the hash, the name of the file not; what is wrong in it is told with the policy's line."""
    text = POLICY.replace("groups: [f, m]", "csv: lists/sex.csv")
    (tmp_path / "lists").mkdir()
    file = tmp_path / "people.yaml"
    file.write_text(text)
    (tmp_path / "lists" / "sex.csv").write_text("level0,level1\nf,*\nm,*\n")
    assert load_policy(file).canonical_hash() == parse_policy(POLICY, name="p.yaml").canonical_hash()
    assert list_files(text) == ["lists/sex.csv"]
    (tmp_path / "lists" / "sex.csv").write_text("level0,level1,level2\nf,a,x\nm,a,y\n")
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(file)
    assert "people.yaml:9:50: columns.sex.hierarchy.csv: the levels are not monotone" in refused.value.problems[0]


def test_a_folder_or_nothing_in_the_place_of_a_file(tmp_path: Path) -> None:
    """Each in words, none as a traceback."""
    file = tmp_path / "people.yaml"
    (tmp_path / "lists.csv").mkdir()
    for name, words in (
        (".", "this is no name of a list"),
        ("lists.csv", "this is a directory"),
        ("none.csv", "there is no such file"),
    ):
        file.write_text(POLICY.replace("groups: [f, m]", f"csv: {name}"))
        with pytest.raises(PolicyInvalid) as refused:
            load_policy(file)
        assert words in "\n".join(refused.value.problems)
    with pytest.raises(WrongUsage):
        load_policy(tmp_path)
