"""A policy whose text somebody edits who has not the site's account: what is wrong in it, where, what it would do, and its file.

Such a text names only files below its folder. Otherwise whoever edits could read any file of the site's account, as a list of
values.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from release_pipeline.errors import Blocked, PolicyInvalid, ReleasePipelineError, WrongUsage
from release_pipeline.flow.files import PUBLIC, write_text
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.targets import read_targets
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import read_state
from release_pipeline.flow.status.check import Check, describe_check, plan_policy
from release_pipeline.flow.trust.approvals import find_last_approval
from release_pipeline.flow.trust.members import Trust
from release_pipeline.policy import Policy
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.load import parse_policy, read_policy, reader_beside
from release_pipeline.policy.skeleton import draft_unsaid
from release_pipeline.policy.text import read_yaml
from release_pipeline.policy.typed import Plain
from release_pipeline.store.registry import Event, Registry

MOST_BYTES = 512 * 1024
_WIDE = 1_000_000  # a line is a paragraph: pages break them


class ChangedMeanwhile(Blocked):
    """The file is not what the person began with."""


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


def check_text(text: str) -> str:
    """The text with plain ends of lines; refused where no policy could be so."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise WrongUsage(
            f"a policy that is edited here has at most {MOST_BYTES // 1024} KB.",
            where="the policy",
            remedy="Put long lists and hierarchies into files beside it.",
        )
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise WrongUsage(
            "this is no text: it holds characters that cannot be written.", where="the policy", remedy="Remove them."
        )
    return text


def read_file(site: Site, name: str) -> tuple[str, str]:
    """The text of a policy's file, and the hash by which a change is known; both empty where there is none."""
    file = site.policy_file(name)
    if not os.path.lexists(file):
        return "", ""
    text = read_policy(file)
    return text, hash_text(text)


def hash_text(text: str) -> str:
    """What tells a text from others."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def examine_text(site: Site, name: str, text: str, *, steward: str = "") -> Examined:
    """What `check` says of the text as the policy of that name. `steward`: who must answer for it, if anybody edits it. Touches
    no data."""
    file = f"policies/{name}.yaml"
    try:
        policy = parse_policy(text, name=file, read=reader_beside(site.policy_file(name)))
    except PolicyInvalid as error:
        found = [fault for fault in error.faults if isinstance(fault, Fault)]
        return Examined(tuple(found or [Fault(file, None, None, "", error.what, error.remedy)]))
    faults = tuple(_find_faults(text, policy, file, name, steward))
    return Examined(faults) if faults else _plan(site, policy)


def find_steward(site: Site, name: str, events: Iterable[Event]) -> str:
    """Who answers for the policy of that name: as its file says, else as the registry has it last; empty where nobody does."""
    try:
        value: Plain = read_yaml(read_file(site, name)[0]).value
    except ReleasePipelineError:
        value = None
    said = value.get("steward") if isinstance(value, dict) else None
    if isinstance(said, str) and said:
        return said
    noted = [event.content for event in read_state(events).policies.get(name, ())]
    if not noted:
        return ""
    value = read_yaml(str(noted[-1].get("yaml", ""))).value
    said = cast("dict[str, Plain]", value).get("steward") if isinstance(value, dict) else None
    return said if isinstance(said, str) else ""


def find_since(registry: Registry, trust: Trust | None, name: str, policy: Policy | None) -> Since | None:
    """What of the policy of that name was approved last, and how `policy` differs from that; None where nothing was."""
    event = None if trust is None else find_last_approval(registry, trust, what="policy", subject=name)
    if event is None:
        return None
    is_same = policy is not None and policy.canonical_hash() == event.content["hash"]
    lines = () if policy is None or is_same else tuple(describe_diff(policy_of(registry, event.content["hash"]), policy))
    return Since(str(event.content["name"]), event.noted, is_same, lines)


def save_text(site: Site, name: str, text: str, *, began: str) -> str:
    """The text is the policy's file, whole or as it was before; gives its hash. `began`: that of what the person began with;
    refused where the file is another by now."""
    file = site.policy_file(name)
    with site.changing_desk():
        if read_file(site, name)[1] != began:
            raise ChangedMeanwhile(
                "it was changed by somebody else after you began. Nothing was written.",
                where=_name(file),
                remedy="Look at what it is now, below; what you save then takes its place.",
            )
        # a new one is for the operator's account to read, too
        write_text(file, text, mode=None if began else PUBLIC)
    return hash_text(text)


def _find_faults(text: str, policy: Policy, file: str, name: str, steward: str) -> Iterable[Fault]:
    document = read_yaml(text)
    if policy.policy != name:
        place = document.place_of(("policy",))
        words = f"the policy calls itself '{policy.policy}', and this page is of '{name}'."
        yield Fault(file, place.line, place.column, "policy", words, f"Write policy: {name}, or begin a new one.")
    if steward and policy.steward != steward:
        place = document.place_of(("steward",))
        words = f"its steward is {policy.steward}, and you are {steward}."
        remedy = "Only its steward edits it here; the operator hands it over, in its file."
        yield Fault(file, place.line, place.column, "steward", words, remedy)


def _plan(site: Site, policy: Policy) -> Examined:
    lines: list[str] = []
    trouble = ""
    try:
        read_targets(site)  # a package that could go nowhere is no plan
        lines += describe_check(_check(site, policy), width=_WIDE)
    except ReleasePipelineError as error:
        trouble = error.in_full.replace(f"{site.home}/", "")
    return Examined((), policy, tuple(lines), tuple(draft_unsaid(policy)), trouble)


def _check(site: Site, policy: Policy) -> Check:
    return plan_policy(policy, rows=None, home=site.home if site.populations_file.is_file() else None)


def _name(file: Path) -> str:
    return f"policies/{file.name}"
