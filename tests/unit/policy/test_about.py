"""What a policy says of its data as a whole, and of each column."""

from __future__ import annotations

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.about import find_unsaid
from tests.integration.sites import refusal

TEXT = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-cdf, epsilon: 1, k: 5}
columns:
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 0.5, outside: clamp, why: known%s}
%s
"""
LEAST = "title: People, description: People of a town, licence: CC-BY-4.0, publisher: {name: Town}, contact: {email: a@b.org}"


def load(about: str = "", column: str = "") -> Policy:
    """The policy with this section, and with these words of its column."""
    return parse_policy(TEXT % (column, f"about: {{{about}}}" if about else ""), name="p.yaml")


def faults(about: str) -> str:
    """What is wrong with it."""
    return refusal(lambda: load(about))


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("title: x", "'licence' is missing. Name the licence, like CC-BY-4.0"),
        (LEAST.replace("title", "titel"), "'titel' is not known here. Did you mean 'title'?"),
        (LEAST.replace("CC-BY-4.0", "free"), "'free' is no licence that is known here"),
        (LEAST.replace("CC-BY-4.0", "{name: Ours, url: 'javascript:alert(1)'}"), "must be an address like https://"),
        (LEAST.replace("CC-BY-4.0", "{name: Ours, url: 'https://b.org/\"><script>'}"), "must be an address like https://"),
        (LEAST.replace("{email: a@b.org}", "{name: Desk}"), "needs an email or a url"),
        (LEAST.replace("a@b.org", "'a{b}|^c@b.org'"), "must be an address like data@example.org"),
        (LEAST.replace("title: People", 'title: "Peo\\u202Eple"'), "no characters that are not seen"),
        (f"{LEAST}, coverage: {{first: 2020}}", "needs both first and last, or neither"),
        (f"{LEAST}, coverage: {{first: 2021, last: 2020}}", "ends before it begins"),
        (
            f"{LEAST}, coverage: {{first: soon, last: 2020}}",
            "must be a year, a quarter, a month, a week or a day, like 2026, 2026-Q1,",
        ),
        (f"{LEAST}, contributors: [{{name: Ana, role: boss}}]", "'boss' is not allowed for role"),
        (f"{LEAST}, contributors: [{{name: Ana, orcid: 0000-0002-1825-0098}}]", "an ORCID iD with its check digit"),
    ],
)
def test_what_is_wrong_is_said(about: str, words: str) -> None:
    """With the key that it is about, and what to do."""
    assert words in faults(about)


KINDS = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-cdf, epsilon: 1, k: 5}
columns:
  person: {role: identifier, do: drop}
  age:    {role: quasi, do: drop}
  band:   {role: quasi, do: keep, values: [a, b], why: known%s}
  sex:    {role: quasi, do: keep, values: [1, 2], why: known%s}
  grade:  {role: quasi, do: keep, values: [1, 2], why: known, label: Grade%s}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 0.5, outside: clamp, why: known%s}
%s
"""


def unsaid(*columns: str, about: str = f"about: {{{LEAST}}}") -> tuple[Policy, list[str]]:
    """The policy with these words of its columns, and what it does not say."""
    policy = parse_policy(KINDS % (*columns, about), name="p.yaml")
    return policy, list(find_unsaid("internal", policy.about, policy.columns))


def test_an_officer_must_be_able_to_read_what_is_released() -> None:
    """Everything that lacks is told at once: the whole, and the label of each column that is released, and of no other."""
    assert unsaid(", label: Band", ", label: Sex", "", ", label: Income")[1] == []
    [words] = unsaid("", ", label: Sex", "", ", description: What they earn")[1]
    assert words.startswith("2 released columns without a label (band, income): ")
    _, [whole, columns] = unsaid("", "", "", "", about="")
    assert whole.startswith("about is missing: ")
    assert columns.startswith("3 released columns without a label (band, sex, income): ")
