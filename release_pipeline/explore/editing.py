"""A policy's file for the desk: its faults, what it would do, who answers for it, and what was approved of it.

It names only files below its folder. Otherwise whoever writes it could read any file of the site's account, as a list of values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from release_pipeline.errors import PolicyInvalid, ReleasePipelineError
from release_pipeline.ledger.policies import policy_of
from release_pipeline.ledger.states import read_state
from release_pipeline.pipeline.check import describe_check, plan_policy
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Fault, Plain
from release_pipeline.policy.loading.load import parse_policy, read_policy, reader_beside
from release_pipeline.policy.plans.diff import describe_diff
from release_pipeline.policy.plans.skeleton import draft_unsaid
from release_pipeline.policy.values.text import read_yaml
from release_pipeline.store.registry import Event, Registry
from release_pipeline.store.site import Site
from release_pipeline.targets.settings import read_targets
from release_pipeline.trust.approvals import find_last_approval
from release_pipeline.trust.members import Trust

_WIDE = 1_000_000  # a line is a paragraph: pages break them


@dataclass(frozen=True, slots=True)
class Examined:
    """What `check` says of a text: its faults, or without any the policy, its plan in lines, and what it must still say of its
    data. `trouble`: what is wrong with the site, or with so large numbers, that ended the plan."""

    faults: tuple[Fault, ...]
    policy: Policy | None = None
    lines: tuple[str, ...] = ()
    skeleton: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Since:
    """What was approved last and still counts: by whom and when; and what is another since then, in words."""

    by: str
    at: str
    is_same: bool
    lines: tuple[str, ...]


def read_file(site: Site, name: str) -> str:
    """The text of a policy's file; empty where there is none."""
    file = site.policy_file(name)
    return read_policy(file) if os.path.lexists(file) else ""


def examine_text(site: Site, name: str, text: str) -> Examined:
    """What `check` says of the text as the policy of that name. Touches no data."""
    file = f"policies/{name}.yaml"
    try:
        policy = parse_policy(text, name=file, read=reader_beside(site.policy_file(name)))
    except PolicyInvalid as error:
        found = [fault for fault in error.faults if isinstance(fault, Fault)]
        return Examined(tuple(found or [Fault(file, None, None, "", error.what, error.remedy)]))
    if policy.policy != name:
        place = read_yaml(text).place_of(("policy",))
        words = f"the policy calls itself '{policy.policy}', and its file is {name}.yaml."
        return Examined((Fault(file, place.line, place.column, "policy", words, f"Write policy: {name}."),))
    return _plan(site, policy)


def find_steward(site: Site, name: str, events: Iterable[Event]) -> str:
    """The steward of the policy of that name: by its file, else by the registry's last version; empty where there is none."""
    try:
        value: Plain = read_yaml(read_file(site, name)).value
    except ReleasePipelineError:
        value = None
    steward = value.get("steward") if isinstance(value, dict) else None
    if isinstance(steward, str) and steward:
        return steward
    noted = [event.content for event in read_state(events).policies.get(name, ())]
    if not noted:
        return ""
    value = read_yaml(str(noted[-1].get("yaml", ""))).value
    steward = cast("dict[str, Plain]", value).get("steward") if isinstance(value, dict) else None
    return steward if isinstance(steward, str) else ""


def find_since(registry: Registry, trust: Trust | None, name: str, policy: Policy | None) -> Since | None:
    """What of the policy of that name was approved last, and how `policy` differs from that; None where nothing was."""
    event = None if trust is None else find_last_approval(registry, trust, what="policy", subject=name)
    if event is None:
        return None
    is_same = policy is not None and policy.canonical_hash() == event.content["hash"]
    lines = () if policy is None or is_same else tuple(describe_diff(policy_of(registry, event.content["hash"]), policy))
    return Since(str(event.content["name"]), event.noted, is_same, lines)


def _plan(site: Site, policy: Policy) -> Examined:
    lines: list[str] = []
    trouble = ""
    try:
        read_targets(site)  # a package that could go nowhere is no plan
        home = site.home if site.populations_file.is_file() else None
        lines += describe_check(plan_policy(policy, rows=None, home=home), width=_WIDE)
    except ReleasePipelineError as error:
        trouble = error.in_full.replace(f"{site.home}/", "")
    return Examined((), policy, tuple(lines), tuple(draft_unsaid(policy)), trouble)
