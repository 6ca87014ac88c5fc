"""Policies as the registry has them: noted with all that is needed to read them for ever."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.errors import Blocked
from release_pipeline.ledger.policies import list_policies, policy_of, record_policy
from release_pipeline.policy import Policy
from tests.integration.sites import TinySite, make_site


@pytest.fixture
def noted(tmp_path: Path) -> tuple[TinySite, Policy]:
    """A site whose policy is noted, and the policy. Its columns are not in the order of their names."""
    tiny = make_site(tmp_path / "site")
    policy = tiny.site.policy("people")
    with tiny.site.open_registry() as registry:
        record_policy(tiny.site, registry, policy)
    return tiny, policy


def test_a_noted_policy_is_read_with_its_columns_in_order(noted: tuple[TinySite, Policy]) -> None:
    """The event names them, for keys of the canonical form are sorted; the file may say what it likes by then."""
    tiny, policy = noted
    tiny.write_policy(policy="people", protect="{}")
    with tiny.site.open_registry(read_only=True) as registry:
        found = policy_of(registry, policy.canonical_hash())
        [known] = list_policies(registry.events)
        [event] = [event for event in registry.events if event.kind == "policy"]
    assert found == policy == known.policy
    assert list(found.columns) == list(policy.columns) == event.content["columns"] != sorted(policy.columns)
    assert (known.name, known.hash, known.text) == ("people", policy.canonical_hash(), policy.canonical_json())


@pytest.mark.parametrize("text", ["{}", "[]", '{"policy": "people"}'])
def test_what_is_no_policy_is_blocked(tmp_path: Path, text: str) -> None:
    """In words, with the event, and so is a text that the hash is not of."""
    tiny = make_site(tmp_path / "site")
    digest = hashlib.sha256(text.encode()).hexdigest()
    payload: dict[str, Any] = {"policy": "people", "population": "folk", "yaml": "", "columns": [], "text": text}
    with tiny.site.open_registry() as registry:
        registry.add("policy", **payload, hash=digest)
        with pytest.raises(Blocked, match="policy people, event 2: this is not the canonical form"):
            policy_of(registry, digest)
        registry.add("policy", **payload, hash="0" * 64)
        with pytest.raises(Blocked, match="event 3: the hash of the policy in the registry is not that of its text"):
            policy_of(registry, "0" * 64)
