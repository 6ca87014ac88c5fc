"""Which texts may be categories."""

from __future__ import annotations

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import parse_policy
from tests.integration.sites import PARTS, policy_text


def policy_with(values: str) -> str:
    """The small policy with these categories of a column."""
    return policy_text(columns=PARTS["columns"].replace("[north, south, east]", values))


@pytest.mark.parametrize("values", ['[north, ""]', "[north, '']", '[north, south], missing: {category: ""}'])
def test_an_empty_text_is_no_category(values: str) -> None:
    """A released blank cell is empty in CSV too: whoever reads that could not tell the two."""
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(policy_with(values), name="people.yaml")
    assert "in CSV nobody can tell it from a blank cell" in refused.value.in_full
