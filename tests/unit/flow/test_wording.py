"""What the public reads by a policy: for every family of methods, in sentences of the catalogue."""

from __future__ import annotations

from typing import get_args

import pytest

from release_pipeline.claims.suite import list_suite
from release_pipeline.flow.publication import wording
from release_pipeline.policy import Policy
from release_pipeline.privacy.catalogue import METHODS, Family
from release_pipeline.report.families import FAMILIES

SUITE = list_suite()


@pytest.mark.parametrize(
    "table",
    [value for value in vars(wording).values() if isinstance(value, dict) and "columns" in value] + [FAMILIES],
    ids=lambda table: next(iter(table.values())).__name__,
)
def test_every_family_has_its_words(table: dict[str, object]) -> None:
    """None is left out, so that none is taken for another."""
    assert set(table) == set(get_args(Family)) == {spec.family for spec in METHODS.values()}


@pytest.mark.parametrize("policy", SUITE.values(), ids=SUITE)
def test_every_policy_can_be_told(policy: Policy) -> None:
    """Its neighbours, its k, what is left out, and how to use its release: in sentences without places."""
    uses = list(wording.list_uses(policy))
    texts = [wording.describe_neighbours(policy), wording.describe_k(policy), wording.describe_suppression(policy), *uses]
    assert len(uses) >= 4
    assert all(text and "{" not in text for text in texts)
    assert ("compares no two tables" in wording.describe_neighbours(policy)) == (not policy.claim.definition.composes)
