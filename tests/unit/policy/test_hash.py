"""The hash of a policy is made once, and nothing that has other parts is taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.policy import Policy, parse_policy

POLICIES = Path(__file__).resolve().parents[3] / "policies"


def read_policy() -> Policy:
    """The demo's, each time another object: what is loaded from an unchanged file is the same one."""
    return parse_policy((POLICIES / "rand-hie.yaml").read_text(encoding="utf-8"), name="rand-hie.yaml")


@pytest.fixture
def policy() -> Policy:
    """One of them."""
    return read_policy()


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_with_other_parts_has_another_hash(policy: Policy, deep: bool) -> None:
    digest = policy.canonical_hash()
    other = policy.model_copy(update={"steward": "berta"}, deep=deep)
    assert other.canonical_hash() != digest
    assert other.model_copy(update={"steward": policy.steward}, deep=deep).canonical_hash() == digest
