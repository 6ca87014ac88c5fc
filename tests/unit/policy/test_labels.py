"""Labels of columns and values, and what files of Stata and SPSS can hold of a policy."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.published import DISCRETE, SurveyFormat, list_columns
from release_pipeline.policy.loading.load import read_canonical
from tests.integration.sites import refusal

SEX = "sex: {role: quasi, do: keep, values: [2, 1], why: needed%s}"
INCOME = "income: {role: confidential, do: noise, domain: [0, 1000], grid: 0.5, outside: clamp, why: known%s}"


def text_of(*columns: str, formats: str = "parquet, csv", more: str = "") -> str:
    """A policy with these columns, as its steward writes it."""
    return f"""\
policy: people
steward: ana
population: folk
source: {{path: people.csv}}
person: each-row
releases: once
protect: {{method: dp-cdf, epsilon: 1, k: 5}}
columns:
{"".join(f"  {column}{chr(10)}" for column in columns)}\
publish: {{formats: [{formats}]}}
{more}"""


def load(*columns: str, formats: str = "parquet, csv", more: str = "") -> Policy:
    """The policy with these columns."""
    return parse_policy(text_of(*columns, formats=formats, more=more), name="p.yaml")


def faults(*columns: str, formats: str = "parquet, csv") -> str:
    """What is wrong with it."""
    return refusal(lambda: load(*columns, formats=formats))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (SEX % ", labels: {1: male, 3: other}", "there is a label of 3, which no released record may have."),
        (SEX % ", labels: {-8: refused}, codes: {-8: refused}", "there is a label of -8, which no released record may have."),
        (SEX % ", labels: {1: person, 2: person}", "two values have the label 'person', so that readers"),
        (SEX % ', label: "\\u202eback"', "characters that are not seen"),
        ("sex: {role: quasi, do: drop, label: Sex}", "label"),
    ],
)
def test_a_label_of_nothing_or_without_form_is_refused(column: str, words: str) -> None:
    """With the line, and before any data are read."""
    found = faults(column, INCOME % "")
    assert words in found
    assert found.startswith("p.yaml:9:")


def reasons(column: str, form: SurveyFormat, more: str = "") -> dict[str, str]:
    """What stands in a file for the reasons of a column."""
    policy = load(column, *([] if column.startswith("income") else [INCOME % ""]), more=more)
    for one in (policy, read_canonical(json.loads(policy.canonical_json()), list(policy.columns))):
        found = list_columns(one.columns, one.suppress, form)[0]
    assert found.reasons == list_columns(policy.columns, policy.suppress, form)[0].reasons
    return dict(found.reasons)


@pytest.mark.parametrize("form", ["dta", "sav"])
def test_no_code_is_a_value(form: SurveyFormat) -> None:
    """For domains on both sides of zero and codes anywhere; of SPSS neither one within the range of codes."""
    for low, high in ((-100, 100), (-30, -10), (Decimal("0.5"), 40), (10, 10**6)):
        for codes in ("-8: a", "-8: a, 5: b", "-8: a, 5: b, 7: c, -200: d, 2e6: e", "-15: a, 20: b, 99: c, 100000: d"):
            column = (INCOME % f", codes: {{{codes}}}, missing: keep").replace("[0, 1000]", f"[{low}, {high}]")
            placed = reasons(column, form)
            assert len(set(placed.values())) == len(placed)
            if form == "sav":
                numbers = sorted(map(int, placed.values()))
                assert not any(low <= number <= high for number in numbers)
                assert len(placed) <= DISCRETE or numbers[-1] < low


LONG = "x" * 33
BAD = {
    "alone": ((INCOME % "",), "dta", "Add csv or parquet"),
    "long name": (((INCOME % "").replace("income", LONG),), "csv, dta", "it has more than 32 letters."),
    "space": (('"house income"' + (INCOME % "").removeprefix("income"),), "csv, dta", "it has other signs than letters"),
    "word": (((INCOME % "").replace("income", "double"),), "csv, dta", "it is a word of its commands."),
    "case": (
        ("town: {role: quasi, do: keep, values: [a], codes: {b: c}, why: x}", (INCOME % "").replace("income", "Town_Missing")),
        "csv, sav",
        "differs from 'town_missing' in upper and lower case alone.",
    ),
    "label": ((INCOME % f", label: {'x' * 81}",), "csv, dta", "its label has more than 80 letters."),
    "value label": ((SEX % f", labels: {{1: {'x' * 121}}}", INCOME % ""), "csv, sav", "has more than 120 bytes."),
    "texts": (
        ("town: {role: quasi, do: keep, values: [a], why: x, labels: {a: Alder}}", INCOME % ""),
        "csv, dta",
        "it labels whole numbers alone.",
    ),
    "no room": (
        ((INCOME % ", codes: {.a: left}").replace("[0, 1000]", "[-9007199254740992, 0]").replace("0.5", "2097152"),),
        "csv, sav",
        "it leaves no room for codes of its reasons",
    ),
    "letters": (
        (INCOME % f", codes: {{{', '.join(f'-{i}: r{i}' for i in range(1, 28))}}}",),
        "csv, dta",
        "more reasons for no value than there are letters, 26.",
    ),
    "cell": (
        (f"town: {{role: quasi, do: keep, values: [{'x' * 2046}], why: x}}", INCOME % ""),
        "csv, dta",
        "a value has more than 2,045 bytes.",
    ),
    "end": (('town: {role: quasi, do: keep, values: ["a "], why: x}', INCOME % ""), "csv, sav", "a value ends with a space"),
    "double": (((SEX % "").replace("[2, 1]", f"[1, {2**53 + 1}]"), INCOME % ""), "csv, sav", "beyond 2^53"),
    "32 bits": (
        ((SEX % f", labels: {{{2**31}: x}}").replace("[2, 1]", f"[1, {2**31}]"), INCOME % ""),
        "csv, dta",
        "the label of a value beyond 32 bits.",
    ),
}


@pytest.mark.parametrize("way", BAD)
def test_what_a_format_cannot_hold_is_refused_with_a_way_out(way: str) -> None:
    """Nothing is cut or renamed; without that format the policy is a good one."""
    columns, formats, words = BAD[way]
    found = faults(*columns, formats=formats)
    assert words in found
    assert len(found.splitlines()) <= 3
    load(*columns, formats="csv")
