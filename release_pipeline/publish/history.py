"""The chain of one release as people read it: every event of it once, and what the officer approved before its charge.

Until all votes are in, only the existence of a vote is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from release_pipeline.ledger.office import find_doubted
from release_pipeline.ledger.states import APPROVED, REMARKED, RETURNED, ReleaseStatus, read_state, read_statuses
from release_pipeline.store.ledger import RESERVED
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import find_last_approval
from release_pipeline.trust.keys import NotSigned
from release_pipeline.trust.members import Trust, read_trust
from release_pipeline.trust.remarks import find_role, is_visible

Facts: TypeAlias = tuple[tuple[str, str], ...]
_TITLES = {
    "opened": "It was opened",
    "reserved": "Its loss was charged, before anything random",
    "secret": "Its secret was made, and lay on the disk",
    "drawn": "Its noise was drawn, once and for all",
    "candidate": "The candidate was frozen",
    "approved": "A reviewer approved it",
    "returned": "A reviewer returned it to its steward",
    "rejected": "A reviewer rejected it, for good",
    "remarked": "Somebody remarked on passages of it",
    "publishing": "Its publication was begun",
    "published": "It was published",
    "superseded": "Its readers were referred to a later revision",
    "retracted": "It was retracted",
    "delivering": "Its delivery to a target was begun",
    "delivered": "It was delivered to a target",
    "recalled": "A target was told that it was superseded or retracted",
    "blocked": "It was blocked",
    "failed": "A run of it broke off",
    "served": "A run of it ended well",
    "pruned": "Its tables were removed from the vault, as its policy says",
    "lost": "It was lost with the site",
}
_LABELS = {  # labels of an event's values by their keys
    "why": "reason",
    "reason": "reason",
    "population": "charged to",
    "records": "records",
    "spent": "spent after it",
    "source": "keyed hash of the records",
    "check": "check value of the secret",
    "masked": "keyed hash of the masked table",
    "policy_hash": "hash of the policy",
    "candidate_hash": "hash of the candidate",
    "package_hash": "hash of the package",
    "hash": "hash of what was signed",
    "successor": "later revision",
    "target": "target",
    "address": "address",
    "where": "where people find it",
}
_SIGNED = {  # events with a signature, and the subject that was signed
    "approved": "approve",
    "returned": "return",
    "rejected": "reject",
    "remarked": "remarks",
    "published": "package",
    "superseded": "supersede",
    "retracted": "retract",
}
_DOUBTED = ("Its moment is not to be believed: the officer said so.",)
_HIDDEN: Facts = (("told", "when all votes are in"),)
_OTHER_POLICY = ("It is of another text of the policy than the one that was charged.",)
_VOID = ("It counts for nothing: its key was revoked from before, or whoever gave it is no reviewer any more.",)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as people read it. `facts`: its values by label; `signature`: that it holds now, empty where nothing is signed;
    `warnings`: what somebody should check."""

    number: int
    noted: str
    hash: str
    title: str
    by: str = ""
    facts: Facts = ()
    signature: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """A release with its entries in the order of the registry. `faults`: why no signature can be judged, or what was not
    approved."""

    release: ReleaseId
    state: str
    entries: tuple[Entry, ...]
    faults: tuple[str, ...]
    candidate_hash: str
    package_hash: str


def tell_history(site: Site, release: ReleaseId, *, reader: str | None = None) -> History:
    """Return the chain of a release of the site as it is now, for a reader, who sees their own open votes."""
    with site.open_registry(read_only=True) as registry:
        events, faults = registry.events, ()
        status = read_statuses(events).get(release, ReleaseStatus(release))
        try:
            trust = read_trust(site, registry)
        except NotSigned as error:
            trust, faults = None, (f"No signature can be judged: {error.what}",)
        mine = [event for event in events if event.release == release]
        entries = [_describe(event, events, trust, status, reader) for event in mine]
        charge = next((event for event in mine if event.kind == RESERVED), None)
        if trust is not None and charge is not None:
            approvals = dict(_list_approvals(registry, trust, charge))
            entries += [entry for entry in approvals.values() if entry is not None]
            faults = tuple(
                f"{name} had no approval that counts when it was charged." for name, entry in approvals.items() if entry is None
            )
    doubted, void = find_doubted(events), read_state(events).void
    shown: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: entry.number):
        is_void = entry.number in void and entry.facts != _HIDDEN  # else it would reveal which vote it is
        shown.append(replace(entry, warnings=entry.warnings + _DOUBTED * (entry.number in doubted) + _VOID * is_void))
    return History(release, status.state, tuple(shown), faults, status.candidate_hash or "", status.package_hash or "")


def list_open_votes(events: Sequence[Event]) -> list[str]:
    """Return the releases that have, among these events, a vote or a reviewer's remark that must still stay secret."""
    statuses = read_statuses(events)
    mine = [(event, event.release) for event in events if event.release is not None]
    return list(dict.fromkeys(str(release) for event, release in mine if _is_hidden(events, event, statuses[release])))


def _is_hidden(events: Sequence[Event], event: Event, status: ReleaseStatus) -> bool:
    """Return whether an event of a release is a vote or a reviewer's remark that stays secret while votes are blind."""
    if event.kind in (APPROVED, RETURNED):
        return not is_visible("reviewer", event.content["hash"], status)
    if event.kind == REMARKED:
        return not is_visible(find_role(events, event), event.content["document"]["hash"], status)
    return False


def _list_approvals(registry: Registry, trust: Trust, charge: Event) -> Iterator[tuple[str, Entry | None]]:
    """Yield what the officer had approved when the release was charged, by name; None where there is no approval."""
    policy = "" if charge.release is None else charge.release.policy
    for what, subject, name in (("policy", policy, "The policy"), ("populations", "populations", "The caps")):
        event = find_last_approval(registry, trust, what=what, subject=subject, before=charge.number)
        if event is None:
            yield name, None
            continue
        entry = replace(_judge(_view(event), event, trust, what, subject), title=f"{name}: approved by the officer")
        is_other = what == "policy" and event.content["hash"] != charge.content["policy_hash"]
        yield name, replace(entry, warnings=entry.warnings + _OTHER_POLICY * is_other)


def _describe(event: Event, events: Sequence[Event], trust: Trust | None, status: ReleaseStatus, reader: str | None) -> Entry:
    """Return the entry of an event of the release; of a secret vote it only shows that there is one."""
    entry = _view(event)
    is_own = reader is not None and event.content.get("name") == reader
    if not is_own and _is_hidden(events, event, status):
        title = "A reviewer remarked on it" if event.kind == REMARKED else "A reviewer voted"
        return replace(entry, title=title, by="", facts=_HIDDEN)
    if trust is None or event.kind not in _SIGNED:
        return entry
    return _judge(entry, event, trust, _SIGNED[event.kind], str(event.release))


def _view(event: Event) -> Entry:
    """Return the entry of an event's content."""
    content = event.content
    signed = content.get("signed")
    by = signed["statement"]["name"] if signed else content.get("by", "")
    facts = [(label, str(content[key])) for key, label in _LABELS.items() if content.get(key)]
    facts += [("reason", signed["statement"]["why"])] if signed and signed["statement"]["why"] else []
    title = _TITLES.get(event.kind, event.kind)
    return Entry(event.number, event.noted, event.hash, title, by, tuple(dict.fromkeys(facts)))


def _judge(entry: Entry, event: Event, trust: Trust, kind: str, subject: str) -> Entry:
    """Return the entry with a note on whether its signature holds now: over a statement of this kind, this subject and the
    event's hash."""
    if not event.content.get("signed"):
        return entry
    statement = event.content["signed"]["statement"]
    digest = event.content["package_hash" if event.kind == "published" else "hash"]
    try:
        member = trust.check_event(event, kind=kind, subject=subject, digest=digest)
    except NotSigned as error:
        return replace(entry, warnings=(*entry.warnings, f"By the list of trusted keys as it is now: {error.what}"))
    return replace(entry, signature=f"The signature holds: {member.name}, {member.role}, key {statement['signer'][:16]}.")
