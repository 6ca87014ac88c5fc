"""What a site states for its papers, in a policy."""

from __future__ import annotations

import re

import pytest

from release_pipeline.pages.escaping import TEMPLATES
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.about import Assessment
from tests.integration.sites import refusal
from tests.unit.policy.test_about import TEXT


def load(assessment: str = "") -> Policy:
    """The policy with this part."""
    return parse_policy(TEXT % ("", f"assessment: {{{assessment}}}" if assessment else ""), name="p.yaml")


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
    assert words in refusal(lambda: load(assessment))


def test_the_papers_quote_every_part_of_it() -> None:
    """Each in one template at least, and none that the policy does not know."""
    text = "".join(file.read_text(encoding="utf-8") for file in (TEMPLATES / "papers").iterdir())
    assert set(re.findall(r'say\.stated\("(\w+)"\)', text)) == set(Assessment.model_fields)
