"""What a policy says of its data as a whole, and of each column."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
import yaml

from release_pipeline.cli import main
from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.about import LICENCES, About, find_unsaid, warn_of_unsaid
from release_pipeline.policy.canonical import read_canonical
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.skeleton import draft_about, draft_unsaid

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


def test_a_policy_with_it_reads_as_it_was() -> None:
    """Whoever changes a word of it needs another approval."""
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
        (
            f"{LEAST}, coverage: {{first: soon, last: 2020}}",
            "must be a year, a quarter, a month, a week or a day, like 2026, 2026-Q1,",
        ),
        (
            LEAST.replace("{email: a@b.org}", "a@b.org"),
            "contact must be a mapping. Say who answers questions, like {email: data@",
        ),
        (
            LEAST.replace("{name: Town}", "Town"),
            "publisher must be a mapping. Say who publishes, like {name: Office of Statistics}.",
        ),
        (f"{LEAST}, coverage: {{places: Alder}}", "places must be a list. List them, like [Alder, Birch]."),
        (f"{LEAST}, coverage: Alder", "coverage must be a mapping. Say which places and time, like {places: [Alder, Birch],"),
        (f"{LEAST}, sampling: ", "sampling is empty. Fill it in."),
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
    """A policy without it is a policy, and no officer can approve it; what is left out of it is told."""
    plans = ["\n".join(describe_plan(make_plan(load(about)))) for about in ("", LEAST)]
    assert "will not be approved: about is missing: say what the data are (title, description)" in plans[0]
    assert "will not be approved: about" not in plans[1]
    assert "People; Creative Commons Attribution 4.0 International; published by Town" in plans[1]
    assert "about says nothing of contributors, coverage, sampling, keywords, intended_use, recipients" in plans[1]
    everything = (
        f"{LEAST}, contributors: [{{name: Ana}}], coverage: {{places: [North]}}, sampling: all, keywords: [a], "
        "intended_use: any, recipients: all"
    )
    assert "about says nothing" not in "\n".join(describe_plan(make_plan(load(everything))))


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
    return policy, list(find_unsaid(policy.about, policy.columns))


def test_an_officer_must_be_able_to_read_what_is_released() -> None:
    """Everything that lacks is told at once: the whole, and the label of each column that is released, and of no other."""
    assert unsaid(", label: Band", ", label: Sex", "", ", label: Income")[1] == []
    [words] = unsaid("", ", label: Sex", "", ", description: What they earn")[1]
    assert words.startswith("2 released columns without a label (band, income): ")
    _, [whole, columns] = unsaid("", "", "", "", about="")
    assert whole.startswith("about is missing: ")
    assert columns.startswith("3 released columns without a label (band, sex, income): ")


def test_codes_without_labels_are_a_warning_and_no_more() -> None:
    """A number may be one: where a unit says so, or where a label tells what it means, nobody is warned."""
    policy, nothing = unsaid(", label: Band", ", label: Sex", ", unit: steps", ", label: Income")
    assert nothing == []
    [words] = [line for line in warn_of_unsaid(policy.about, policy.columns) if "readers look for that" not in line]
    assert words.startswith("entries of sex are numbers and have no labels")
    labelled, _ = unsaid(", label: Band", ", label: Sex, labels: {1: male, 2: female}", ", unit: steps", ", label: Income")
    assert not [line for line in warn_of_unsaid(labelled.about, labelled.columns) if "numbers" in line]


def test_the_skeleton_is_pasted_and_filled() -> None:
    """Empty it is refused, each value by its name; filled it says all that is needed, and nothing is left to print."""
    policy, _ = unsaid("", ", label: Sex", "", ", label: Income", about="")
    lines = list(draft_unsaid(policy))
    assert "#   band: {..., label: }" in lines
    assert not [line for line in lines if "sex" in line]
    text = KINDS % ("", ", label: Sex", "", ", label: Income", "\n".join(lines))
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(text, name="p.yaml")
    told = "\n".join(refused.value.problems)
    assert [key for key in ("title", "description", "licence", "publisher.name", "contact") if f"about.{key}: " not in told] == []
    assert "licence is empty. Name the licence, like CC-BY-4.0" in told
    filled = text.replace("  title:", "  title: People").replace("  description:", "  description: All of them")
    filled = (
        filled.replace("  licence:", "  licence: CC0-1.0")
        .replace("{name: }", "{name: Town}", 1)
        .replace("{email: }", "{email: a@b.org}")
    )
    again = parse_policy(filled.replace("[a, b], why: known", "[a, b], why: known, label: Band"), name="p.yaml")
    assert list(draft_unsaid(again)) == []
    everything = "\n".join(
        line.replace("  # ", "  ", 1) if line.startswith("  # ") and ": " in line else line for line in draft_about()
    )
    assert yaml.safe_load(everything)["about"].keys() == set(About.model_fields)


def test_check_prints_the_skeleton_and_tells_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By exit code 0: such a policy is right, and can run where nobody publishes."""
    file = tmp_path / "people.yaml"
    file.write_text(KINDS % ("", "", "", "", ""), encoding="utf-8")
    assert main(["check", str(file)]) == 0
    assert "will not be approved: about is missing" in capsys.readouterr().out
    assert main(["check", str(file), "--skeleton"]) == 0
    assert "\nabout:\n" in capsys.readouterr().out
    assert main(["check", str(file), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["unsaid"]) == 2
    file.write_text(KINDS % (", label: B", ", label: S", "", ", label: I", f"about: {{{LEAST}}}"), encoding="utf-8")
    assert main(["check", str(file), "--json"]) == 0
    assert "unsaid" not in json.loads(capsys.readouterr().out)
    assert main(["check", str(file), "--skeleton"]) == 0
    assert "nothing is missing" in capsys.readouterr().out


def test_a_change_of_what_readers_are_told_is_told_in_words() -> None:
    """What is new, what is gone, what is another word: by part, of the data and of columns, and nothing that is as it was."""
    plain = load()
    first = load(
        f"{LEAST}, keywords: [a, b], coverage: {{places: [North], first: 2020, last: 2021}}", ", label: Income, unit: euros"
    )
    second = load(
        f"{LEAST.replace('People of a town', 'Everybody')}, coverage: {{places: [North, South], first: 2020, last: 2021}}",
        ", label: Income of a year, question: 'How much?'",
    )
    assert 'readers are told the title: "People", which is new' in list(describe_diff(plain, first))
    assert 'readers are told the contact (email): "a@b.org", which is new' in list(describe_diff(plain, first))
    assert set(describe_diff(first, second)) == {
        'readers are told the description: "Everybody"; it was "People of a town"',
        'readers are told the keywords: nothing any more; it was "a, b"',
        'readers are told the coverage (places): "North, South"; it was "North"',
        'readers of column income are told its label: "Income of a year"; it was "Income"',
        'readers of column income are told its unit: nothing any more; it was "euros"',
        'readers of column income are told its question: "How much?", which is new',
    }
    entries = [
        unsaid(", label: B", f", label: S{labels}", "", ", label: I")[0]
        for labels in (", labels: {1: men, 2: women}", ", labels: {1: man}")
    ]
    assert set(describe_diff(*entries)) == {
        'readers of column sex are told what 1 means: "man"; it was "men"',
        'readers of column sex are told what 2 means: nothing any more; it was "women"',
    }
