"""The keys of a site and their lives: when each was listed, replaced, taken off or revoked, by whom; and the office.

It is read from the chain alone, list by list. Whether a list counts is what `read_office` says, where more happened to the office
than that one officer changed the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.clocks import find_doubted
from release_pipeline.flow.trust.keys import NotSigned, PublicKey
from release_pipeline.flow.trust.members import TRUSTED, Member, read_members, read_trust
from release_pipeline.flow.trust.office import RECOVERY, REVOKED, read_office
from release_pipeline.store.registry import Event
from release_pipeline.verify import Office

LISTED, REPLACED, TAKEN_OFF, REVOKED_SINCE = "listed", "replaced", "taken off", "revoked"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a key: in which event, when that was noted, what, and who signed it. `since`: of a revocation,
    from when on the key counts no more."""

    event: int
    noted: str
    what: str
    by: str
    words: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True)
class KeyLife:
    """A key that a list of the site once had, under the name and role that it had last. `state`: what it is now."""

    name: str
    role: str
    fingerprint: str
    kind: str
    state: str
    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the office or of the recovery keys."""

    event: int
    noted: str
    words: str
    by: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Roster:
    """The keys of a site. `officer`: who it is now; `listed`: the event of the last list, which `by` signed; `steps`: how the
    office was handed on; `holders`: who holds recovery keys, with their fingerprints, and `threshold` how many of them can
    replace the officer; `faults`: what does not hold."""

    officer: str
    pinned: str
    listed: int
    noted: str
    by: str
    keys: tuple[KeyLife, ...]
    steps: tuple[Step, ...]
    holders: Mapping[str, str]
    threshold: int
    faults: tuple[str, ...]


def read_roster(site: Site) -> Roster | None:
    """The keys of a site as its chain has them; None for a site that never had a list."""
    with site.open_registry(read_only=True) as registry:
        events = registry.events
        lists = [event for event in events if event.kind == TRUSTED]
        if not lists:
            return None
        faults: list[str] = []
        try:
            read_trust(site, registry)
        except NotSigned as error:
            faults.append(error.in_full)
    office = read_office(events)
    faults += () if office is None else office.faults
    standing = None if office is None else {number for number, _ in office.lists}
    counting = lists if standing is None else [event for event in lists if event.number in standing]
    last = (counting or lists)[-1]
    officer = next(member for member in read_members(last.content["keys"]) if member.role == "officer")
    return Roster(
        officer.name,
        site.officer or "",
        last.number,
        last.noted,
        _signer(last),
        tuple(_list_lives(events, counting, office)),
        tuple(_list_steps(events, office)),
        {} if office is None else {name: PublicKey.of(key.public).fingerprint for name, key in office.holders.items()},
        0 if office is None else office.threshold,
        tuple(faults),
    )


@dataclass(slots=True)
class _Draft:
    member: Member
    state: str = LISTED
    moments: list[Moment] = field(default_factory=list[Moment])


def _list_lives(events: Sequence[Event], lists: Sequence[Event], office: Office | None) -> Iterator[KeyLife]:
    """Each key once, in the order in which they came; the last list says who is trusted now."""
    drafts: dict[str, _Draft] = {}
    before: dict[str, Member] = {}
    doubted = find_doubted(events)
    for event in lists:
        now = {member.key.fingerprint: member for member in read_members(event.content["keys"])}
        names = {member.name: fingerprint for fingerprint, member in now.items()}
        for fingerprint, member in now.items():
            known = before.get(fingerprint)
            if known == member:
                continue
            draft = drafts.setdefault(fingerprint, _Draft(member))
            draft.member, draft.state = member, LISTED
            words = f"as {member.name}, {member.role}" + ("" if known is None else f"; before as {known.name}, {known.role}")
            draft.moments.append(_moment(event, LISTED, words, doubted))
        for fingerprint, member in before.items():
            if fingerprint not in now:
                draft, new = drafts[fingerprint], names.get(member.name)
                draft.state = TAKEN_OFF if new is None else REPLACED
                draft.moments.append(_moment(event, draft.state, "" if new is None else f"by the key {new[:16]}", doubted))
        before = now
    _add_revocations(events, drafts, office)
    for fingerprint, draft in drafts.items():
        kind = "in a FIDO token" if draft.member.key.text.startswith("sk-") else "in a file"
        moments = tuple(sorted(draft.moments, key=lambda moment: moment.event))
        yield KeyLife(draft.member.name, draft.member.role, fingerprint, kind, draft.state, moments)


def _add_revocations(events: Sequence[Event], drafts: Mapping[str, _Draft], office: Office | None) -> None:
    """What was revoked and stands: in an event of its own, or with a succession."""
    for each in () if office is None else office.revoked:
        draft = drafts.get(each.key)
        if draft is None:
            continue
        event = events[each.event - 1]
        since = each.since.isoformat(timespec="seconds")
        why = str(event.content["document"]["revoked"][-1]["why"]) if event.kind == REVOKED else "with the office"
        draft.state = REVOKED_SINCE
        draft.moments.append(replace(_moment(event, REVOKED_SINCE, why, frozenset()), since=since))


def _list_steps(events: Sequence[Event], office: Office | None) -> Iterator[Step]:
    """How the office began and was handed on, and which recovery keys were named when."""
    links = None if office is None else set(office.links)
    begun = False
    for event in events:
        counts = links is None or event.number in links
        content = event.content
        if event.kind == TRUSTED and "succession" in content:
            by = ", ".join(str(signed["statement"]["name"]) for signed in content["succession"]["signed"])
            officer = next(name for name, entry in content["keys"].items() if entry["role"] == "officer")
            yield Step(event.number, event.noted, f"The office went to {officer}", by, counts)
        elif event.kind == TRUSTED and not begun:
            begun = True
            officer = next(name for name, entry in content["keys"].items() if entry["role"] == "officer")
            yield Step(event.number, event.noted, f"{officer} began the list, as the officer", _signer(event), counts)
        elif event.kind == RECOVERY:
            names = ", ".join(sorted(content["keys"]))
            words = f"{content['threshold']} of these can replace the officer: {names}"
            yield Step(event.number, event.noted, words, _signer(event), counts)


def _moment(event: Event, what: str, words: str, doubted: frozenset[int]) -> Moment:
    unsure = "; its moment is not to be believed" if event.number in doubted else ""
    return Moment(event.number, event.noted, what, _signer(event), f"{words}{unsure}".removeprefix("; "))


def _signer(event: Event) -> str:
    signed: Any = event.content.get("signed")
    return str(signed["statement"]["name"]) if signed else ""
