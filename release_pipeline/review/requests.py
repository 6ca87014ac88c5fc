"""Requests that wait for the privacy officer: policies, and the caps of populations.yaml, that are not approved as they are
now.

Each has all that changed since the approval that still counts, and whether it may be approved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.ledger.exposure import warn_of_same_people
from release_pipeline.ledger.policies import (
    Caps,
    check_lineage,
    find_noted,
    list_heirs,
    list_populations,
    open_population,
    read_caps,
)
from release_pipeline.pipeline.check import check_policy, describe_check
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import read_policy
from release_pipeline.policy.plans.diff import describe_diff
from release_pipeline.policy.plans.plan import describe_claim
from release_pipeline.policy.values.formats import say_unit
from release_pipeline.signer.bundles import list_changes
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.registry import Event, Registry
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import check_approvable, check_steward, find_last_approval
from release_pipeline.trust.members import Trust, need_trust

POLICY, POPULATIONS = "policy", "populations"
_LEDGER = "ledger  "  # the beginning of the lines of `check` about the ledger


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why something cannot be approved as it is: what is wrong, where, what to do, and the details one by one."""

    what: str
    where: str
    remedy: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """The last approval that still counts: its event, who gave it, when, and the approved hash."""

    event: int
    name: str
    noted: str
    hash: str


@dataclass(frozen=True, slots=True)
class Request:
    """A policy or the caps as they are now. `hash` is empty if the file cannot be read, and
    `refusal` says why; `last`: the last approval of the subject that counts."""

    what: str
    subject: str
    hash: str
    last: Approval | None
    refusal: Refusal | None = None
    steward: str = ""
    claim: str = ""

    @property
    def is_approved(self) -> bool:
        """Return whether it is approved as it is now."""
        return self.last is not None and self.last.hash == self.hash


@dataclass(frozen=True, slots=True)
class Change:
    """The change of an approval. `sentences`: for the officer; `exact`: path by path over the canonical forms, all of it;
    `whole`: the canonical form as it is now, in lines; `check`: the output of `check` on a policy; `room`: the ledger then;
    `elsewhere`: other populations where the same people may be charged, which do not count here; `text`: the file, with its
    comments, which is not signed."""

    request: Request
    sentences: tuple[str, ...]
    exact: tuple[str, ...]
    whole: str
    check: tuple[str, ...] = ()
    room: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    text: str = ""


def list_requests(site: Site) -> list[Request]:
    """Return every policy of the site and the caps, whether they wait or are approved."""
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        policies = [_request_policy(site, registry, trust, file.stem)[0] for file in site.policy_files()]
        return [*policies, _request_caps(site, registry, trust)[0]]


def read_policy_request(site: Site, name: str) -> Change:
    """Return what an approval of a policy would change."""
    file = site.policy_file(name)
    text_before = _read_file(file)
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        request, policy = _request_policy(site, registry, trust, name)
        if policy is None:
            return Change(request, (), (), "")
        last = find_last_approval(registry, trust, what=POLICY, subject=name)
        sentences, before = _describe_policy_change(registry, last, policy)
    elsewhere = tuple(warn_of_same_people(site, policy, by_vault=False))
    whole = json.loads(policy.canonical_json())
    check, room = _say_check(site, policy)
    text = _read_file(file)
    text = text if text == text_before else ""  # else somebody wrote it meanwhile, and it may differ from what was read
    exact = tuple(list_changes(before, whole))
    return Change(request, sentences, exact, _write(whole), check, room, elsewhere, text)


def read_caps_request(site: Site) -> Change:
    """Return what an approval of the caps would change."""
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        request, caps = _request_caps(site, registry, trust)
        last = find_last_approval(registry, trust, what=POPULATIONS, subject=POPULATIONS)
        charges = list_charges(registry)
    if caps is None:
        return Change(request, (), (), "")
    before: dict[str, Any] = json.loads(last.content["text"] if last is not None else "{}")
    whole = json.loads(caps.text)
    sentences = tuple(_describe_caps_change(before, caps)) if last is not None else ()
    room = tuple(_describe_accounts(caps, charges))
    return Change(request, sentences, tuple(list_changes(before, whole, named=True)), _write(whole), room=room)


def _read_file(file: Path) -> str:
    """Return the text of a file; empty where it cannot be read, which the parser reports."""
    try:
        return read_policy(file)
    except ReleasePipelineError:
        return ""


def _request_policy(site: Site, registry: Registry, trust: Trust, name: str) -> tuple[Request, Policy | None]:
    last = _read_approval(find_last_approval(registry, trust, what=POLICY, subject=name))
    try:
        policy = site.policy(name)
    except ReleasePipelineError as error:
        return Request(POLICY, name, "", last, _read_refusal(error)), None
    refusal = None
    try:
        check_steward(trust, policy)
        check_approvable(policy)
    except ReleasePipelineError as error:
        refusal = _read_refusal(error)
    return Request(POLICY, name, policy.canonical_hash(), last, refusal, policy.steward, describe_claim(policy)), policy


def _request_caps(site: Site, registry: Registry, trust: Trust) -> tuple[Request, Caps | None]:
    last = _read_approval(find_last_approval(registry, trust, what=POPULATIONS, subject=POPULATIONS))
    try:
        caps = read_caps(site)
    except ReleasePipelineError as error:
        return Request(POPULATIONS, POPULATIONS, "", last, _read_refusal(error)), None
    refusal = None
    try:
        check_lineage(caps, list_charges(registry))
    except ReleasePipelineError as error:
        refusal = _read_refusal(error)
    return Request(POPULATIONS, POPULATIONS, caps.hash, last, refusal), caps


def _read_approval(event: Event | None) -> Approval | None:
    return None if event is None else Approval(event.number, event.content["name"], event.noted, event.content["hash"])


def _read_refusal(error: ReleasePipelineError) -> Refusal:
    details = tuple(map(str, getattr(error, "problems", ()))) or error.details
    return Refusal(error.what, error.where, error.remedy, details)


def _describe_policy_change(registry: Registry, last: Event | None, policy: Policy) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the change in sentences, and the canonical form that was approved last; nothing where nothing was."""
    if last is None:
        return (), {}
    old = find_noted(registry.events, last.content["hash"])
    return ((), {}) if old is None else (tuple(describe_diff(old.policy, policy)), json.loads(old.text))


def _describe_caps_change(before: dict[str, Any], caps: Caps) -> Iterator[str]:
    """Yield a sentence for each population that is added, removed or changed."""
    now = {name: population.canonical for name, population in caps.declared.items()}
    for name in sorted({*before, *now}):
        if name not in now:
            yield f"'{name}' is not declared any more."
        elif name not in before:
            origin = caps.declared[name].ancestors
            yield f"'{name}' is new" + (f", and carries what was charged to {', '.join(origin)}." if origin else ".")
        elif before[name] != now[name]:
            yield f"'{name}' changes."


def _describe_accounts(caps: Caps, charges: Sequence[Charge]) -> Iterator[str]:
    """Yield a sentence for each cap: what is spent of it after an approval."""
    for name in list_populations(caps, charges):
        account, heirs = open_population(caps, name, charges), list_heirs(caps, name, charges)
        closed = f"; carried on by {', '.join(heirs)}, so nothing is charged to it any more" if heirs else ""
        over = "" if account.admits() else ": over the cap, so nothing more is charged"
        yield f"{name}: {account.spent} of {account.limit} ({say_unit(account.unit)}) is spent{over}{closed}"


def _say_check(site: Site, policy: Policy) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines of `check`, and those about the ledger; or the error that stops it, which would stop a run too."""
    try:
        lines = tuple(describe_check(check_policy(site.policy_file(policy.policy), rows=None, home=site.home)))
    except ReleasePipelineError as error:
        return (f"check stops here: {error.in_full}",), ()
    return lines, tuple(line.removeprefix(_LEDGER).strip() for line in lines if line.startswith(_LEDGER))


def _write(whole: Any) -> str:
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False)
