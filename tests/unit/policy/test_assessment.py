"""What a site states for its papers, in a policy."""

from __future__ import annotations

import json
import re

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.assessment import Assessment
from release_pipeline.policy.canonical import read_canonical
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.report.escaping import TEMPLATES
from tests.unit.policy.test_about import TEXT


def load(assessment: str = "") -> Policy:
    """The policy with this part."""
    return parse_policy(TEXT % ("", f"assessment: {{{assessment}}}" if assessment else ""), name="p.yaml")


def test_a_policy_with_it_reads_as_it_was() -> None:
    """Whoever changes a word of it needs another approval."""
    plain = load()
    assert "assessment" not in plain.canonical_json()
    policy = load('purpose: "To\n\n   learn", residual_risk: Small')
    assert policy.assessment is not None
    assert policy.assessment.purpose == "To learn"
    again = read_canonical(json.loads(policy.canonical_json()), list(policy.columns))
    assert again.assessment == policy.assessment
    assert again.canonical_hash() == policy.canonical_hash() != plain.canonical_hash()
    assert load("purpose: To learn, residual_risk: Smaller").canonical_hash() != policy.canonical_hash()


def test_the_plan_says_what_is_stated_and_what_the_papers_will_lack() -> None:
    """And nothing of it where a policy has no such part."""
    words = "\n".join(describe_plan(make_plan(load("purpose: To learn"))))
    assert "states purpose; the papers will say 'not stated' of lawful_basis, necessity" in words
    assert "assessment" not in "\n".join(describe_plan(make_plan(load())))
    full = "\n".join(describe_plan(make_plan(load(", ".join(f"{name}: x" for name in Assessment.model_fields)))))
    assert "states purpose, lawful_basis" in full
    assert "not stated" not in full


def test_a_change_is_told_word_for_word() -> None:
    """To who approves it."""
    told = list(describe_diff(load("decision: Publish"), load("decision: Wait")))
    assert any("decision" in line and "Publish" in line and "Wait" in line for line in told)


@pytest.mark.parametrize(
    ("assessment", "words"),
    [
        ("purpsoe: x", "Did you mean 'purpose'?"),
        ('purpose: ""', "purpose"),
        ('purpose: "a\\u202Eb"', "no characters that are not seen"),
        ("purpose: [x]", "purpose"),
    ],
)
def test_what_is_wrong_is_told(assessment: str, words: str) -> None:
    """With what was meant."""
    with pytest.raises(PolicyInvalid) as refused:
        load(assessment)
    assert words in "\n".join(refused.value.problems)


def test_the_papers_quote_every_part_of_it() -> None:
    """Each in one template at least, and none that the policy does not know."""
    text = "".join(file.read_text(encoding="utf-8") for file in (TEMPLATES / "papers").iterdir())
    assert set(re.findall(r'say\.stated\("(\w+)"\)', text)) == set(Assessment.model_fields)
