"""What a policy says of its data as a whole, and of each column."""

from __future__ import annotations

import json
from datetime import date

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.about import LICENCES
from release_pipeline.policy.canonical import read_canonical
from release_pipeline.policy.plan import describe_plan, make_plan

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
    with pytest.raises(PolicyInvalid) as refused:
        load(about)
    return "\n".join(refused.value.problems)


def test_a_policy_without_it_keeps_its_hash_and_one_with_it_reads_as_it_was() -> None:
    """What was approved before stays approved; and whoever changes a word of it needs another approval."""
    plain = load()
    assert "about" not in plain.canonical_json()
    assert load(column=", unit: dollars").canonical_hash() != plain.canonical_hash()
    policy = load(
        f"{LEAST}, coverage: {{places: [North], first: 2020, last: 2021-Q3}}, keywords: [b, a], "
        "contributors: [{name: Ana, role: creator, orcid: 0000-0002-1825-0097}]",
        ", description: All of it, question: 'How much?', unit: dollars",
    )
    again = read_canonical(json.loads(policy.canonical_json()), list(policy.columns))
    for one in (policy, again):
        assert one.about == policy.about
        assert one.noise_columns["income"].question == "How much?"
        assert one.about is not None
        assert one.about.coverage is not None
        assert one.about.coverage.days == (date(2020, 1, 1), date(2021, 9, 30))
        assert one.about.licence.address == LICENCES["CC-BY-4.0"][1]
    assert again.canonical_hash() == policy.canonical_hash()


def test_lines_of_the_file_are_one_paragraph() -> None:
    """As YAML folds them, or not."""
    spread = LEAST.replace("People of a town", '"People\n\n   of a  town"')
    policy = load(spread)
    assert policy.about is not None
    assert policy.about.description == "People of a town"


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("title: x", "'licence' is missing. Name the licence, like CC-BY-4.0"),
        (LEAST.replace("title", "titel"), "'titel' is not known here. Did you mean 'title'?"),
        (LEAST.replace("CC-BY-4.0", "free"), "'free' is no licence that is known here"),
        (LEAST.replace("CC-BY-4.0", "{name: Ours, url: 'javascript:alert(1)'}"), "must be an address like https://"),
        (LEAST.replace("CC-BY-4.0", "{name: Ours, url: 'https://a@b.org/x'}"), "must be an address like https://"),
        (LEAST.replace("CC-BY-4.0", "{name: Ours, url: 'https://b.org/\"><script>'}"), "must be an address like https://"),
        (LEAST.replace("CC-BY-4.0", "{name: CC-BY-4.0, url: 'https://b.org'}"), "leave the url out"),
        (LEAST.replace("CC-BY-4.0", "{name: Ours, url: 'HTTPS://b.org'}"), "must be an address like https://"),
        (LEAST.replace("{email: a@b.org}", "{name: Desk}"), "needs an email or a url"),
        (LEAST.replace("a@b.org", "'a{b}|^c@b.org'"), "must be an address like data@example.org"),
        (LEAST.replace("a@b.org", "a b"), "must be an address like data@example.org"),
        (LEAST.replace("title: People", 'title: "Peo\\u202Eple"'), "no characters that are not seen"),
        (f"{LEAST}, coverage: {{first: 2020}}", "needs both first and last, or neither"),
        (f"{LEAST}, coverage: {{first: 2021, last: 2020}}", "ends before it begins"),
        (f"{LEAST}, coverage: {{first: soon, last: 2020}}", "must be a year, a month or a day"),
        (f"{LEAST}, coverage: {{}}", "needs places, or first and last"),
        (f"{LEAST}, contributors: [{{name: Ana, role: boss}}]", "'boss' is not allowed for role"),
        (f"{LEAST}, contributors: [{{name: Ana, orcid: 0000-0002-1825-0098}}]", "an ORCID iD with its check digit"),
        (f"{LEAST}, keywords: [a, a]", "holds the same entry twice"),
    ],
)
def test_what_is_wrong_is_said(about: str, words: str) -> None:
    """With the key that it is about, and what to do."""
    assert words in faults(about)


def test_check_tells_it_and_warns_of_what_is_not_said() -> None:
    """A package without it has nothing that catalogues could read."""
    plans = ["\n".join(describe_plan(make_plan(load(about)))) for about in ("", LEAST)]
    assert "about is missing: a package will have no title, licence, publisher and contact" in plans[0]
    assert "People; Creative Commons Attribution 4.0 International; published by Town" in plans[1]
    assert "about says nothing of contributors, coverage, sampling, keywords, intended_use, recipients" in plans[1]
    everything = (
        f"{LEAST}, contributors: [{{name: Ana}}], coverage: {{places: [North]}}, sampling: all, keywords: [a], "
        "intended_use: any, recipients: all"
    )
    assert "about says nothing" not in "\n".join(describe_plan(make_plan(load(everything))))
