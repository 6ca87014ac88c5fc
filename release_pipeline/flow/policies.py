"""Policies and populations as the registry has them: every version that was ever used, with its text and its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import POLICY
from release_pipeline.policy import Policy
from release_pipeline.policy.load import list_files, parse_policy, read_text, reader_beside
from release_pipeline.policy.populations import Population, find_population, load_populations
from release_pipeline.store.registry import Registry, canonical_json


def note_policy(site: Site, registry: Registry, policy: Policy) -> None:
    """Note the policy with its text, when it is new or another than before: so that it can be read, and approved, for ever."""
    seen = [event.content for event in registry.events if event.kind == POLICY]
    known = [told["hash"] for told in seen if told["policy"] == policy.policy]
    if known and known[-1] == policy.canonical_hash():
        return
    file = site.policy_file(policy.policy)
    yaml, read = read_text(file), reader_beside(file)
    files = {name: read(name) for name in list_files(yaml)}
    if parse_policy(yaml, name=policy.policy, read=files.__getitem__) != policy:
        raise Blocked("it is being changed just now.", where=policy.policy, remedy="Try again.")
    registry.add(
        POLICY,
        policy=policy.policy,
        hash=policy.canonical_hash(),
        population=policy.population,
        text=policy.canonical_json(),
        yaml=yaml,
        **dict[str, Any]({"files": files} if files else {}),
    )


def policy_of(registry: Registry, digest: str) -> Policy:
    """The policy of that hash, as its event has it."""
    for event in registry.events:
        if event.kind == POLICY and event.content["hash"] == digest:
            files: Mapping[str, str] = event.content.get("files", {})
            policy = parse_policy(event.content["yaml"], name=event.content["policy"], read=files.__getitem__)
            if policy.canonical_hash() == digest:
                return policy
    raise Blocked("the registry does not have the policy that this was made under.", where=digest[:12])


@dataclass(frozen=True, slots=True)
class Caps:
    """populations.yaml, read once: what is hashed is what is used."""

    file: Path
    declared: Mapping[str, Population]

    @property
    def text(self) -> str:
        """What it says, as canonical JSON, whatever its comments and order."""
        return canonical_json({name: known.model_dump(mode="json", exclude_none=True) for name, known in self.declared.items()})

    @property
    def hash(self) -> str:
        """The hash of that, which the officer approves."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def of(self, policy: Policy) -> Population:
        """The population whose budget the policy spends."""
        return find_population(dict(self.declared), policy.population, file=self.file)


def read_caps(site: Site) -> Caps:
    """The caps as they are now."""
    return Caps(site.populations_file, load_populations(site.populations_file))
