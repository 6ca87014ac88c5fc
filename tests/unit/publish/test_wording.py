"""What the public reads by a policy: for every family of methods, in sentences of the catalogue."""

from __future__ import annotations

import pytest

from experiments.claims import list_suite
from release_pipeline.policy import Policy
from release_pipeline.publish import wording

SUITE = list_suite()


@pytest.mark.parametrize("policy", SUITE.values(), ids=SUITE)
def test_every_policy_can_be_told(policy: Policy) -> None:
    """Its neighbours, its k, what is left out, and how to use its release: in sentences without places."""
    uses = list(wording.list_uses(policy))
    texts = [wording.describe_neighbours(policy), wording.describe_k(policy), wording.describe_suppression(policy), *uses]
    assert len(uses) >= 4
    assert all(text and "{" not in text for text in texts)
    assert ("compares no two tables" in wording.describe_neighbours(policy)) == (not policy.claim.definition.composes)
