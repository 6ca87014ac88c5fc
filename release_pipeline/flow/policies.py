"""Policies and populations as the registry has them: every version that was ever used, with its text and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked, InvalidArgument
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import POLICY
from release_pipeline.policy import Policy
from release_pipeline.policy.canonical import read_canonical
from release_pipeline.policy.load import list_files, parse_policy, read_policy, reader_beside
from release_pipeline.policy.populations import Population, find_population, load_populations
from release_pipeline.policy.rules import find_unproved
from release_pipeline.store.registry import Event, Registry, canonical_json


@dataclass(frozen=True, slots=True)
class NotedPolicy:
    """A policy as its event has it. `text`: its canonical form then, which `hash` is of, whatever its form would be today."""

    name: str
    hash: str
    text: str
    policy: Policy


def record_policy(site: Site, registry: Registry, policy: Policy) -> None:
    """Note the policy with its text, when it is new or another than before: so that it can be read, and approved, for ever."""
    known = [event.content["hash"] for event in _policy_events(registry.events) if event.content["policy"] == policy.policy]
    if known and known[-1] == policy.canonical_hash():
        return
    file = site.policy_file(policy.policy)
    yaml, read = read_policy(file), reader_beside(file)
    files = {name: read(name) for name in list_files(yaml)}
    if parse_policy(yaml, name=policy.policy, read=files.__getitem__) != policy:
        raise Blocked("it is being changed just now.", where=policy.policy, remedy="Try again.")
    registry.add(
        POLICY,
        policy=policy.policy,
        hash=policy.canonical_hash(),
        population=policy.population,
        text=policy.canonical_json(),
        columns=list(policy.columns),
        yaml=yaml,
        **dict[str, Any]({"files": files} if files else {}),
    )


def policy_of(registry: Registry, digest: str) -> Policy:
    """The policy of that hash, as its event has it."""
    for event in _policy_events(registry.events):
        if event.content["hash"] == digest:
            return _read_noted(event).policy
    raise Blocked("the registry does not have the policy that this was made under.", where=digest[:12])


def find_noted(events: Iterable[Event], digest: str) -> NotedPolicy | None:
    """The policy of that hash, with its canonical form then; None where no event has it."""
    return next((_read_noted(event) for event in _policy_events(events) if event.content["hash"] == digest), None)


def list_policies(events: Iterable[Event]) -> list[NotedPolicy]:
    """Every version of every policy that was ever noted, in order."""
    return [_read_noted(event) for event in _policy_events(events)]


def _policy_events(events: Iterable[Event]) -> Iterator[Event]:
    return (event for event in events if event.kind == POLICY)


def _read_noted(event: Event) -> NotedPolicy:
    """The policy of an event, by what its canonical form says and by no rule of today."""
    noted = event.content
    name, digest, text = str(noted["policy"]), str(noted["hash"]), str(noted["text"])
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise Blocked("the hash of the policy in the registry is not that of its text.", where=f"event {event.number}")
    try:
        policy = read_canonical(json.loads(text), noted["columns"])
    except InvalidArgument as error:
        raise Blocked(error.what, where=f"policy {name}, event {event.number}") from None
    if (policy.policy, policy.population) != (name, noted["population"]):
        raise Blocked("the registry calls a policy or its population other than its text does.", where=f"event {event.number}")
    return NotedPolicy(name, digest, text, policy)


def find_unproved_claims(policy: Policy) -> Iterator[str]:
    """Why what a policy of the past claims is not proved any more, a sentence each: it is neither approved nor published."""
    for _, what, remedy in find_unproved(policy):
        yield f"Its policy claims what this version knows not to be proved: {what} {remedy}".rstrip()


@dataclass(frozen=True, slots=True)
class Caps:
    """populations.yaml, read once: what is hashed is what is used."""

    file: Path
    declared: Mapping[str, Population]

    @property
    def text(self) -> str:
        """What it says, as canonical JSON, whatever its comments and order."""
        return canonical_json({name: known.canonical for name, known in self.declared.items()})

    @property
    def hash(self) -> str:
        """The hash of that, which the officer approves."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def of(self, policy: Policy) -> Population:
        """The population whose budget the policy spends."""
        return find_population(self.declared, policy.population, file=self.file)


def read_caps(site: Site) -> Caps:
    """The caps as they are now."""
    return Caps(site.populations_file, load_populations(site.populations_file))
