"""Keys that no longer count from a date on, with their public list; events of a wrong clock; and successions of officers.

Within a site the chain shows what came before and after; the moment in a statement depends only on the holder of the key. A
stranger with a package has no chain, so the list names each valid signature of a revoked key, by hash; no other one counts.

One officer follows another if the old one signs the new one, or if enough holders of recovery keys do:

    hand-over  the old officer proposes the new one, and signs
    recover    anyone proposes, and the holders sign, each at home
    accept     the new officer signs that they are it, and records it

A proposal is a file that goes from person to person. They sign the list of keys under the new officer, the fingerprint of
the officer before, the keys that are revoked with it, and the last event of the registry: so it is good for one site, and for
one change. The holders are above the officer: other recovery keys need enough of them too, so that a thief of the officer's
key cannot shut them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from release_pipeline.errors import WrongUsage
from release_pipeline.ledger.office import (
    ACCEPT,
    CLOCK,
    OFFICE,
    OFFICERS,
    RECOVER,
    RECOVERY,
    REVOKE,
    REVOKED,
    SUCCESSION,
    find_doubted,
    is_ahead,
    list_links,
    read_office,
    write_officers,
)
from release_pipeline.ledger.states import PUBLISHED, RETRACTED, SUPERSEDED
from release_pipeline.store.files import PUBLIC, check_line, make_folder, write_text
from release_pipeline.store.registry import Event, Registry, canonical_json, hash_of_json
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import NotSigned, PrivateKey, PublicKey, check_person
from release_pipeline.trust.members import (
    TRUSTED,
    Member,
    Trust,
    canonical_list,
    check_officer,
    last_trust,
    need_trust,
    note_list,
    read_members,
    write_list,
)
from release_pipeline.verifier.documents import Fault, read_json
from release_pipeline.verifier.office import Office
from release_pipeline.verifier.revocations import REVOKED_FORMAT
from release_pipeline.verifier.statements import HOLDER
from release_pipeline.verifier.succession import MOST_HOLDERS

REVOKED_FILE = "revoked.json"  # of releases/


def revoke(site: Site, name: str, *, since: datetime, why: str, key: PrivateKey) -> str:
    """Revoke a key, as the officer, by its fingerprint or by the name that it has or last had in the list; returns the
    fingerprint. With the same date again, this only writes the public list."""
    if not why.strip():
        raise WrongUsage("a revocation needs its reason.", where=name, remedy="Add --why 'REASON'.")
    if since > datetime.now(UTC):
        raise WrongUsage("a key is revoked from a moment that has come.", where=f"{since:%Y-%m-%d %H:%M}")
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        fingerprint = _find_key(registry, name)
        if fingerprint == trust.officer.key.fingerprint:
            raise WrongUsage(
                "this is the officer's own key.",
                where=name,
                remedy="The next officer revokes it (`officer hand-over`), or who holds recovery keys (`officer recover`).",
            )
        if (fingerprint, since) not in _list_standing(registry, trust):
            note_revocation(site, registry, trust, fingerprint, since=since, why=check_line(why), key=key)
        write_public(site, registry.events)
    return fingerprint


def note_revocation(
    site: Site, registry: Registry, trust: Trust, fingerprint: str, *, since: datetime, why: str, key: PrivateKey
) -> None:
    """Sign the list of revoked keys with one more, and record it."""
    events = registry.events
    before = [
        entry for entry in _list_entries(events, trust) if (entry["key"], entry["from"]) != (fingerprint, since.isoformat())
    ]
    entry = {
        "key": fingerprint,
        "name": _last_name(events, fingerprint),
        "from": since.isoformat(timespec="seconds"),
        "why": why,
        "stands": _list_what_stands(events, fingerprint, since),
    }
    officers = list(trust.office.chain) if trust.office else [trust.officer.key.fingerprint]
    number = sum(event.kind == REVOKED for event in events) + 1
    document = {"format": REVOKED_FORMAT, "number": number, "officers": officers, "revoked": [*before, entry]}
    digest = hash_of_json(document)
    signed = key.sign(kind=REVOKE, subject=fingerprint, digest=digest, name=trust.officer.name, why=why)
    registry.add(REVOKED, key=fingerprint, document=document, signed=signed)
    last_trust(site, registry)  # verifies everything, so that only a valid list is written


def write_public(site: Site, events: Sequence[Event]) -> None:
    """Write the public files of the office, next to the packages: the revoked keys, and who followed whom."""
    for name, text in list_public(events).items():
        make_folder(site.releases, mode=0o755)
        write_text(site.releases / name, text, mode=PUBLIC)


def list_public(events: Sequence[Event]) -> dict[str, str]:
    """Return the texts of these files by name; none where there was only one officer and no key was revoked."""
    texts = {REVOKED_FILE: revoked_text(events) or "", OFFICERS: write_officers(events, read_office(events))}
    return {name: text for name, text in texts.items() if text}


def revoked_text(events: Sequence[Event]) -> str | None:
    """Return the public list of revoked keys; None where no key was revoked."""
    office = read_office(events)
    standing = [] if office is None else [each for each in office.revoked if not each.quorum]
    if office is None or not standing:
        return None
    event = events[max(each.event for each in standing) - 1]
    upto = event.content["document"]["officers"][-1]
    links = list_links(events[: event.number], office, upto=upto if len(event.content["document"]["officers"]) > 1 else None)
    signed, document = event.content["signed"], event.content["document"]
    return canonical_json({"document": document, "signed": signed, "officers": links}) + "\n"


def repair_clock(site: Site, *, key: PrivateKey) -> list[Event]:
    """Declare, as the officer, the moment of every event that is dated later than now wrong; returns these events."""
    seconds = datetime.now(UTC).timestamp()
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        doubted = find_doubted(registry.events)
        ahead = [event for event in registry.events if event.number not in doubted and is_ahead(event, seconds)]
        for event in ahead:
            signed = key.sign(kind=CLOCK, subject=str(event.number), digest=event.hash, name=trust.officer.name)
            registry.add(CLOCK, event=event.number, signed=signed)
    return ahead


def _find_key(registry: Registry, name: str) -> str:
    lists: list[Mapping[str, Any]] = [event.content["keys"] for event in registry.events if event.kind == TRUSTED]
    known = {PublicKey.parse(entry["key"]).fingerprint for keys in lists for entry in keys.values()}
    named = [PublicKey.parse(keys[name]["key"]).fingerprint for keys in lists if name in keys]
    if name not in known and not named:
        raise WrongUsage("no list of trusted keys ever had this name or fingerprint.", where=name)
    return name if name in known else named[-1]


def _last_name(events: Sequence[Event], fingerprint: str) -> str:
    for event in reversed(events):
        for name, entry in event.content["keys"].items() if event.kind == TRUSTED else ():
            if PublicKey.parse(entry["key"]).fingerprint == fingerprint:
                return name
    return ""


def _list_standing(registry: Registry, trust: Trust) -> set[tuple[str, datetime]]:
    return {(each.key, each.since) for each in (trust.office.revoked if trust.office else ()) if not each.quorum}


def _list_entries(events: Sequence[Event], trust: Trust) -> list[Mapping[str, Any]]:
    """Return the entries that the valid revocations have added to the list."""
    standing = [each for each in (trust.office.revoked if trust.office else ()) if not each.quorum]
    return [events[each.event - 1].content["document"]["revoked"][-1] for each in sorted(standing, key=lambda each: each.event)]


def _list_what_stands(events: Sequence[Event], fingerprint: str, since: datetime) -> list[list[str]]:
    """Return kind, subject and hash of what the key signed for the public before the moment, by the order of events."""
    office = read_office(events, revoked=((fingerprint, since),))
    standing: list[list[str]] = []
    for event in events if office else ():
        if event.kind in (TRUSTED, PUBLISHED, RETRACTED, SUPERSEDED):
            statement = event.content["signed"]["statement"]
            taken = office is None or office.is_taken_back(event.number, statement["signer"])
            named = [statement["kind"], statement["subject"], statement["hash"]]
            if statement["signer"] == fingerprint and not taken and named not in standing:
                standing.append(named)
    return standing


PROPOSAL = "release-pipeline/succession/1"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal to sign, and the signatures it has already: for a change of the officer, or of the recovery keys."""

    subject: str
    document: Mapping[str, Any]
    signed: tuple[Mapping[str, Any], ...] = ()

    @property
    def digest(self) -> str:
        """Return the hash that is signed."""
        return hash_of_json(self.document)

    @property
    def text(self) -> str:
        """Return the proposal as the text of a file."""
        return (
            canonical_json({"format": PROPOSAL, "subject": self.subject, "document": self.document, "signed": self.signed}) + "\n"
        )


def parse_proposal(text: str, *, where: str) -> Proposal:
    """Return the proposal in a file."""
    try:
        content = read_json(text)
        if (
            content["format"] != PROPOSAL
            or content["subject"] not in (OFFICE, RECOVERY)
            or not isinstance(content["document"], dict)
        ):
            raise ValueError
        return Proposal(content["subject"], content["document"], tuple(content["signed"]))
    except (Fault, KeyError, TypeError, ValueError):
        raise WrongUsage("this is no proposal of an officer or of recovery keys.", where=where) from None


def describe_proposal(proposal: Proposal) -> list[str]:
    """Return what somebody signs with it, in sentences, from the document only."""
    document = proposal.document
    try:
        entries = {name: (entry["role"], PublicKey.parse(entry["key"])) for name, entry in sorted(document["keys"].items())}
        people = [f"  {name}: {role}, fingerprint {key.fingerprint}" for name, (role, key) in entries.items()]
        if proposal.subject == RECOVERY:
            return [f"{document['threshold']} of these keys can replace the privacy officer:", *people]
        [officer] = [f"{name}, fingerprint {key.fingerprint}" for name, (role, key) in entries.items() if role == "officer"]
        revoked = [f"The key {each['key']} is revoked, from {each['from']} on." for each in document["revoked"]]
        before = f"The privacy officer is {officer}, after {document['from']}."
        return [before, *revoked, "From then on these are trusted:", *people]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise WrongUsage("this is no proposal of an officer or of recovery keys.") from None


def hand_over(site: Site, name: str, public: PublicKey, *, key: PrivateKey) -> Proposal:
    """Propose a successor, as the officer, and sign: nothing is changed until that person accepts."""
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        proposal = _propose(registry, trust, check_person(name), public, ())
    signed = key.sign(kind=SUCCESSION, subject=OFFICE, digest=proposal.digest, name=trust.officer.name)
    return Proposal(OFFICE, proposal.document, (signed,))


def recover(site: Site, name: str, public: PublicKey, *, stolen: datetime | None = None) -> Proposal:
    """Return a proposal for the holders of recovery keys. `stolen`: since when somebody else may have had the officer's key. That
    key, and those of officers who followed, are revoked from then on, and the list is the last valid one without them."""
    with site.open_registry(read_only=True) as registry:
        trust = last_trust(site, registry)
        if trust is None or trust.office is None or not trust.office.threshold:
            raise NotSigned(
                "no recovery keys were named, so nobody can replace an officer who does not sign.",
                where=str(site.home),
                remedy="While the officer's key is there: `release-pipeline officer recovery --help`.",
            )
        revoked = tuple((each, stolen) for each in _list_suspects(trust.office, stolen)) if stolen else ()
        office = read_office(registry.events, revoked=revoked)
        if office is None or not office.lists:
            raise WrongUsage("before that moment there was no officer.", remedy="Name a later one.")
        content = registry.events[office.lists[-1][0] - 1].content
        standing = Trust(read_members(content["keys"]), content["signed"], trust.revoked, office=trust.office)
        return _propose(registry, standing, check_person(name), public, revoked)


def _list_suspects(office: Office, stolen: datetime) -> list[str]:
    """Return the officers at a moment and after it."""
    officers = [next(key.fingerprint for key in keys.values() if key.role == "officer") for _, keys in office.lists]
    then = max((index for index, (number, _) in enumerate(office.lists) if office.moment(number) < stolen), default=0)
    return list(dict.fromkeys(officers[then:]))


def _propose(registry: Registry, trust: Trust, name: str, public: PublicKey, revoked: Sequence[tuple[str, datetime]]) -> Proposal:
    """Return the list with the new officer in the place of the old."""
    others = tuple(member for member in trust.members if member.role != "officer" and member.name != name)
    former = {event.content["officer"] for event in registry.events if event.kind == TRUSTED}
    holders = {each.fingerprint for each in trust.office.holders.values()} if trust.office else set[str]()
    if public.fingerprint in former | trust.revoked | holders:
        raise WrongUsage(
            "this key was an officer's before, was revoked, or is a recovery key.", where=name, remedy="They make a new one."
        )
    if any(member.key == public for member in others):
        raise WrongUsage("this key is somebody else's already; one key, one person.", where=name)
    members = (*others, Member(name, "officer", public))
    last = registry.events[-1]
    document = {
        "from": trust.officer.key.fingerprint,
        "recovery": _hash_recovery(registry),
        "registry": {"event": last.number, "hash": last.hash},
        "revoked": [{"key": key, "from": moment.isoformat(timespec="seconds")} for key, moment in revoked],
        "keys": read_json(canonical_list(members))["keys"],
    }
    return Proposal(OFFICE, document)


def _hash_recovery(registry: Registry) -> str:
    """Return the hash of the recovery keys, so that a new officer signs for them too; empty where there are none."""
    named = [event.content for event in registry.events if event.kind == RECOVERY]
    document = {name: named[-1][name] for name in ("keys", "number", "threshold")} if named else None
    return "" if document is None else hash_of_json(document)


def sign_proposal(proposal: Proposal, name: str, *, key: PrivateKey) -> dict[str, Any]:
    """Return the statement of somebody who holds a recovery key; no site is needed for it."""
    return key.sign(kind=RECOVER, subject=proposal.subject, digest=proposal.digest, name=check_person(name))


def accept(site: Site, proposal: Proposal, statements: Sequence[Mapping[str, Any]], *, key: PrivateKey) -> Trust:
    """Accept the office, as the new officer, and record it with all that proves it; nothing is recorded if any part fails."""
    if proposal.subject != OFFICE:
        raise WrongUsage("this proposal is of recovery keys.", remedy="`release-pipeline officer recovery --help`")
    members = read_members(proposal.document["keys"])
    officer = next(member for member in members if member.role == "officer")
    if officer.key != key.public:
        raise NotSigned("this is not the key of the officer in the proposal.", where=officer.name)
    with site.open_registry() as registry:
        before = last_trust(site, registry)
        _check_fresh(registry, proposal)
        accepted = key.sign(kind=ACCEPT, subject=OFFICE, digest=proposal.digest, name=officer.name)
        rest = {name: part for name, part in proposal.document.items() if name != "keys"}
        succession = {**rest, "signed": [*proposal.signed, *statements], "accepted": accepted}
        note_list(registry, members, key, revoked=_read_revoked(proposal), succession=succession)
        trust = last_trust(site, registry)  # verifies everything, so that only a valid list is written
        if trust is None or trust.officer != officer or before == trust:
            raise NotSigned("the list was changed since this was proposed, or it does not count.", where=officer.name)
        for each, since in _read_revoked(proposal):
            note_revocation(site, registry, trust, each, since=since, why=f"revoked with the office of {officer.name}", key=key)
        trust = _retire(site, registry, last_trust(site, registry) or trust, proposal.document["from"], key=key)
        write_public(site, registry.events)
    write_list(site, trust)
    return trust


def _read_revoked(proposal: Proposal) -> tuple[tuple[str, datetime], ...]:
    """Return the keys that it takes back, and from when on."""
    return tuple((each["key"], datetime.fromisoformat(each["from"])) for each in proposal.document["revoked"])


def _check_fresh(registry: Registry, proposal: Proposal) -> None:
    """Refuse a proposal from before keys were changed: it would bring back people who were taken off the list since. Changes that
    the proposal takes back do not count: otherwise a thief of the officer's key could keep the holders from ever replacing it."""
    document = proposal.document
    office = read_office(registry.events, revoked=_read_revoked(proposal))
    if office is None:  # there are only lists of one officer
        changed = {event.number for event in registry.events if event.kind == TRUSTED}
    else:
        noted = {each.event for each in office.revoked if each.event <= len(registry.events)}
        noted -= {each.event for each in office.revoked if each.event in noted and office.is_taken_back(each.event, each.signer)}
        changed = {number for number, _ in office.lists} | set(office.links) | noted
    if later := sorted(number for number in changed if number > document["registry"]["event"]):
        raise NotSigned(
            "since this was proposed the list of keys, the recovery keys or the revoked keys were changed, and it would undo "
            f"that (event {', '.join(map(str, later))}).",
            where=proposal.subject,
            remedy="Make a new proposal, and have it signed again. Nothing was changed.",
        )


def _retire(site: Site, registry: Registry, trust: Trust, former: str, *, key: PrivateKey) -> Trust:
    """Revoke the former officer's key from just after the hand-over: all that it signed before stays valid, by hash. In the chain
    it could not sign any more. But a stranger has no chain, and anyone who has the key can put any date on a package."""
    if trust.office is None or former in {each.key for each in trust.office.revoked}:
        return trust
    since = max(trust.office.moment(event.number) for event in registry.events) + timedelta(seconds=1)
    why = f"the office went to {trust.officer.name}"
    note_revocation(site, registry, trust, former, since=since.replace(microsecond=0), why=why, key=key)
    return last_trust(site, registry) or trust


def propose_recovery(site: Site, threshold: int, holders: Mapping[str, PublicKey]) -> Proposal:
    """Return a proposal of recovery keys."""
    with site.open_registry(read_only=True) as registry:
        return _propose_recovery(registry, need_trust(site, registry), threshold, holders)


def _propose_recovery(registry: Registry, trust: Trust, threshold: int, holders: Mapping[str, PublicKey]) -> Proposal:
    if not 0 < threshold <= len(holders) <= MOST_HOLDERS or len(set(holders.values())) < len(holders):
        raise WrongUsage(
            f"{threshold} of {len(holders)} keys cannot be asked for, or one stands there twice.",
            remedy=f"Name at most {MOST_HOLDERS} keys of different people, and how many of them are enough.",
        )
    if shared := [member.name for member in trust.members if member.key in holders.values()]:
        raise WrongUsage(
            f"{', '.join(shared)}: a recovery key signs nothing else, or whoever steals the one has the other.",
            remedy="They make a key for this alone, and keep it where the other is not.",
        )
    number = sum(event.kind == RECOVERY for event in registry.events) + 1
    keys = {check_person(name): {"role": HOLDER, "key": public.text} for name, public in holders.items()}
    return Proposal(RECOVERY, {"keys": keys, "number": number, "threshold": threshold})


def name_recovery(
    site: Site, threshold: int, holders: Mapping[str, PublicKey], statements: Sequence[Mapping[str, Any]], *, key: PrivateKey
) -> Proposal:
    """Name the recovery keys, as the officer; where there are some already, enough of them must have signed the new ones."""
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        proposal = _propose_recovery(registry, trust, threshold, holders)
        signed = key.sign(kind=RECOVERY, subject=RECOVERY, digest=proposal.digest, name=trust.officer.name)
        quorum = {"quorum": list(statements)} if statements else {}
        content: dict[str, Any] = {**proposal.document, "signed": signed, **quorum}
        registry.add(RECOVERY, None, **content)
        last_trust(site, registry)  # refused, and not written, where enough of the keys before did not sign
        write_public(site, registry.events)
    return proposal
