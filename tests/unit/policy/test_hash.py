"""The hash of a policy is made once, and nothing that has other parts is taken for it."""

from __future__ import annotations

import copy
import pickle
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


def test_the_hash_is_made_once(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    write = Policy.canonical_json
    monkeypatch.setattr(Policy, "canonical_json", lambda self: made.append("") or write(self))
    assert policy.canonical_hash() == policy.canonical_hash() == read_policy().canonical_hash()
    assert len(made) == 2  # of two policies


def test_a_known_hash_changes_nothing(policy: Policy) -> None:
    """Neither what the policy is equal to, nor its text."""
    fresh, text = read_policy(), policy.canonical_json()
    digest = policy.canonical_hash()
    assert policy == fresh
    assert fresh == policy
    assert policy.canonical_json() == text
    assert policy.model_dump() == fresh.model_dump()
    for same in (copy.copy(policy), copy.deepcopy(policy), policy.model_copy(), pickle.loads(pickle.dumps(policy))):  # noqa: S301
        assert same == policy
        assert same.canonical_hash() == digest


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_with_other_parts_has_another_hash(policy: Policy, deep: bool) -> None:
    digest = policy.canonical_hash()
    other = policy.model_copy(update={"steward": "berta"}, deep=deep)
    assert other.canonical_hash() != digest
    assert other.model_copy(update={"steward": policy.steward}, deep=deep).canonical_hash() == digest
