"""What the registry's events say of each release: its state, its charge, its secret, its noise, its candidate, its publication.

    open -> reserved -> drawn -> candidate -> approved | rejected -> publishing -> published -> superseded | retracted

and `blocked`, with a reason, until it gets further. `MOVES` is the one table of what may follow what.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from release_pipeline.errors import Blocked
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.office import read_office
from release_pipeline.store.ledger import LOST, RESERVED, Charge, read_charge
from release_pipeline.store.registry import Event, Registry, ReleaseId

OPENED, SECRET, DRAWN, CANDIDATE, BLOCKED = "opened", "secret", "drawn", "candidate", "blocked"
APPROVED, REJECTED = "approved", "rejected"
PUBLISHING, PUBLISHED, RETRACTED, SUPERSEDED = "publishing", "published", "retracted", "superseded"
FAILED, SERVED, PRUNED = "failed", "served", "pruned"
SERIES = "series"  # random parts of one table began to be published
POLICY = "policy"  # a policy that was seen for the first time, or changed

LOST_WORDS = "it was lost: a backup was put back that knows less of it."

MOVES: dict[str, frozenset[str]] = {  # a kind of event, and the states that it may come in
    OPENED: frozenset({""}),
    RESERVED: frozenset({"", "open", "blocked"}),
    SECRET: frozenset({"reserved", "blocked"}),
    DRAWN: frozenset({"reserved", "blocked"}),
    CANDIDATE: frozenset({"drawn", "blocked", "candidate", "approved"}),
    BLOCKED: frozenset({"", "open", "reserved", "drawn", "blocked"}),
    APPROVED: frozenset({"candidate", "approved", "publishing"}),
    REJECTED: frozenset({"candidate", "approved", "publishing"}),  # nothing is public before `published` is noted
    PUBLISHING: frozenset({"approved", "publishing"}),
    PUBLISHED: frozenset({"publishing"}),
    RETRACTED: frozenset({"published", "superseded"}),
    SUPERSEDED: frozenset({"published"}),
}
OUT = frozenset({"publishing", "published", "retracted", "superseded"})  # the package exists, or is about to
_STATE = {
    OPENED: "open",
    RESERVED: "reserved",
    DRAWN: "drawn",
    CANDIDATE: "candidate",
    BLOCKED: "blocked",
    REJECTED: "rejected",
    LOST: "blocked",
    **{state: state for state in OUT},
}
_DONE = {PUBLISHING: "published", CANDIDATE: "frozen", SECRET: "drawn", RESERVED: "charged"}  # what an event does, in words


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """One release as the events have it.

    `secret` is the check value of its secret, once that was on the disk; `drawn` the keyed hash of the masked table; `failed` how
    the last run ended, if it broke off without a reason of ours; `replaced` the revision that came after it; `approvals` who
    approved which candidate hash, as noted: whether the signatures hold is verified before anything is published. `code` is the
    kind of the reason of a block, where it was noted; `moments` when each kind of event last happened, `approved` being when
    enough had.
    """

    id: ReleaseId
    state: str = "open"
    reason: str = ""
    since: str = ""
    why: str = ""
    policy_hash: str = ""
    charge: Charge | None = None
    secret: str | None = None
    drawn: str | None = None
    candidate_hash: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failed: str = ""
    pruned: str = ""
    lost: bool = False  # after a restore: more of it happened than the registry has
    replaced: ReleaseId | None = None
    approvals: Mapping[str, str] = field(default_factory=dict[str, str])
    package_hash: str | None = None
    package_signed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    successor: str = ""
    code: str = ""
    moments: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    @property
    def approvers(self) -> list[str]:
        """Who approved the candidate as it is now."""
        return sorted(name for name, digest in self.approvals.items() if digest == self.candidate_hash)


@dataclass(frozen=True, slots=True)
class _Read:
    """Some events, and what they say of each release."""

    events: tuple[Event, ...] = ()
    void: frozenset[int] = frozenset()
    found: Mapping[ReleaseId, ReleaseStatus] = field(default_factory=dict[ReleaseId, ReleaseStatus])


_read = _Read()  # the events that were read last: a registry goes on where it was, and is asked often


def read_statuses(events: Iterable[Event]) -> dict[ReleaseId, ReleaseStatus]:
    """Every release that something happened to."""
    global _read
    events, before = tuple(events), _read
    known, void = len(before.events), find_void(events)
    same = known <= len(events) and all(map(operator.is_, before.events, events))
    if not same or any(number <= known for number in void ^ before.void):  # other events than those, or some count no more
        before, known = _Read(), 0
    found = dict(before.found)
    drafts: dict[ReleaseId, dict[str, Any]] = {}
    for event in events[known:]:
        if event.release is not None and event.number not in void:
            _draft(event, event.release, drafts, found)
    for release, draft in drafts.items():
        found[release] = ReleaseStatus(**draft)
    _read = _Read(events, void, found)
    return dict(found)


def find_void(events: Sequence[Event]) -> frozenset[int]:
    """The numbers of rejections that count for nothing: they were signed with a key that was revoked from a moment before. Else a
    thief of a reviewer's key could end every release that waits, and each costs a charge. An approval is judged where it is
    counted, when a release is published."""
    rejected = [event for event in events if event.kind == REJECTED]
    office = read_office(events) if rejected else None
    if office is None or not office.revoked:
        return frozenset()
    signers = {event.number: event.content["signed"]["statement"]["signer"] for event in rejected}
    return frozenset(number for number, signer in signers.items() if office.is_taken_back(number, signer))


def _draft(
    event: Event, release: ReleaseId, drafts: dict[ReleaseId, dict[str, Any]], found: Mapping[ReleaseId, ReleaseStatus]
) -> None:
    """Put into the drafts what an event says."""
    mine, payload = _begin_draft(release, drafts, found), event.content
    if event.kind in _STATE:
        moments = {**mine["moments"], BLOCKED if event.kind == LOST else event.kind: event.noted}
        if event.kind == CANDIDATE:  # another one than was approved
            moments.pop(APPROVED, None)
        mine.update(state=_STATE[event.kind], reason="", code="", since=event.noted, failed="", moments=moments)
    match event.kind:
        case "opened":
            mine.update(why=payload["why"])
            if release.revision > 1:
                earlier = ReleaseId(release.policy, release.release, release.revision - 1)
                _begin_draft(earlier, drafts, found).update(replaced=release)
        case "reserved":
            mine.update(charge=read_charge(event), policy_hash=payload["policy_hash"], pruned="")
        case "secret":
            mine.update(secret=payload["check"])
        case "drawn":
            mine.update(drawn=payload["masked"])
        case "candidate":
            mine.update(candidate_hash=payload["candidate_hash"], facts=payload["facts"], policy_hash=payload["policy_hash"])
        case "blocked" | "rejected" | "retracted":
            mine.update(reason=payload["reason"], code=payload.get("code", ""))
        case "approved":
            mine.update(approvals={**mine["approvals"], payload["name"]: payload["hash"]})
            given = [digest for digest in mine["approvals"].values() if digest == mine["candidate_hash"]]
            if len(given) >= payload["needed"] and mine["state"] == "candidate":
                mine.update(state="approved", since=event.noted, moments={**mine["moments"], APPROVED: event.noted})
        case "published":
            mine.update(package_hash=payload["package_hash"], package_signed=payload["signed"])
        case "superseded":
            mine.update(successor=payload["successor"])
        case "failed" if not payload.get("told_elsewhere"):
            mine.update(failed=payload["reason"])
        case "served":
            mine.update(failed="")
        case "lost":
            mine.update(lost=True, reason=payload["reason"])
        case "pruned":
            mine.update(pruned=event.noted, moments={**mine["moments"], PRUNED: event.noted})
        case _:
            pass


def _begin_draft(
    release: ReleaseId, drafts: dict[ReleaseId, dict[str, Any]], found: Mapping[ReleaseId, ReleaseStatus]
) -> dict[str, Any]:
    """The fields of a release to be changed: a frozen status a thousand times anew takes seconds."""
    if release not in drafts:
        status = found.get(release, ReleaseStatus(release))
        drafts[release] = {part.name: getattr(status, part.name) for part in dataclasses.fields(status)}
    return drafts[release]


def move(registry: Registry, release: ReleaseId, kind: str, **content: Any) -> Event:
    """Add an event of a release, if it may follow what the release is in; raises `Blocked` otherwise."""
    check_move(registry, release, kind)
    return registry.add(kind, release, **content)


def check_move(registry: Registry, release: ReleaseId, kind: str) -> None:
    """Raise `Blocked` when an event of this kind may not come now."""
    status = read_statuses(registry.events).get(release)
    if status is not None and status.lost:
        raise Blocked(
            LOST_WORDS,
            where=str(release),
            remedy=f"Only {release.next} can replace it, with a fresh charge.",
        )
    state = "" if status is None else status.state
    if state not in MOVES[kind]:
        raise Blocked(f"it is {state or 'not opened'}, and cannot be {_DONE.get(kind, kind)}.", where=str(release))


def status_of(registry: Registry, release: ReleaseId) -> ReleaseStatus:
    """One release, whether or not anything happened to it."""
    return read_statuses(registry.events).get(release, ReleaseStatus(release))


def list_statuses(site: Site) -> dict[ReleaseId, ReleaseStatus]:
    """Every release of a site that something happened to, as of now."""
    with site.open_registry(read_only=True) as registry:
        return read_statuses(registry.events)


def latest_revision(statuses: Iterable[ReleaseId], policy: str, release: str) -> ReleaseId:
    """The revision that a run works at: the last that was opened, or the first."""
    mine = [known.revision for known in statuses if (known.policy, known.release) == (policy, release)]
    return ReleaseId(policy, release, max(mine, default=1))
