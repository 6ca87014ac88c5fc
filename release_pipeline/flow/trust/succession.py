"""How one officer follows another: the old one signs the new one, or enough of those who hold recovery keys do.

    hand-over  the old officer proposes the new one, and signs      recover  anybody proposes, and the holders sign, each at home
                                     accept: the new officer signs that they are it, and notes it

A proposal is a file that goes from person to person. What is signed is the list of keys under the new officer, the fingerprint of
the officer before, the keys that are revoked with it, and the last event of the registry: so it is good for one site, and for one
change. Those who hold recovery keys stand above the officer: other recovery keys need enough of them too, so that a thief of the
officer's key cannot shut them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.keys import NotSigned, PrivateKey, PublicKey, check_person
from release_pipeline.flow.trust.members import (
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
from release_pipeline.flow.trust.office import ACCEPT, OFFICE, RECOVER, RECOVERY, SUCCESSION, read_office
from release_pipeline.flow.trust.revocation import note_revocation, write_public
from release_pipeline.store.registry import Registry, canonical_json, hash_of_json
from release_pipeline.verify import HOLDER, MOST_HOLDERS, Fault, Office, read_json

PROPOSAL = "release-pipeline/succession/1"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is to be signed, and by whom it was already: of a change of the officer, or of the recovery keys."""

    subject: str
    document: Mapping[str, Any]
    signed: tuple[Mapping[str, Any], ...] = ()

    @property
    def digest(self) -> str:
        """What signatures are over."""
        return hash_of_json(self.document)

    @property
    def text(self) -> str:
        """It as a file."""
        return (
            canonical_json({"format": PROPOSAL, "subject": self.subject, "document": self.document, "signed": self.signed}) + "\n"
        )


def parse_proposal(text: str, *, where: str) -> Proposal:
    """The proposal in a file."""
    try:
        said = read_json(text)
        if said["format"] != PROPOSAL or said["subject"] not in (OFFICE, RECOVERY) or not isinstance(said["document"], dict):
            raise ValueError
        return Proposal(said["subject"], said["document"], tuple(said["signed"]))
    except (Fault, KeyError, TypeError, ValueError):
        raise WrongUsage("this is no proposal of an officer or of recovery keys.", where=where) from None


def describe_proposal(proposal: Proposal) -> list[str]:
    """What somebody signs with it, in words, from the document alone."""
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
    """The officer proposes who follows, and signs it: nothing is changed until that person accepts."""
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        proposal = _propose(registry, trust, check_person(name), public, ())
    signed = key.sign(kind=SUCCESSION, subject=OFFICE, digest=proposal.digest, name=trust.officer.name)
    return Proposal(OFFICE, proposal.document, (signed,))


def recover(site: Site, name: str, public: PublicKey, *, stolen: datetime | None = None) -> Proposal:
    """A proposal for those who hold recovery keys. `stolen`: since when somebody else may have had the officer's key: it, and
    whatever officer followed it since, is revoked from then on, and the list is the last that stands without them."""
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
    """Who was the officer at a moment or came to it later."""
    officers = [next(key.fingerprint for key in keys.values() if key.role == "officer") for _, keys in office.lists]
    then = max((place for place, (number, _) in enumerate(office.lists) if office.moment(number) < stolen), default=0)
    return list(dict.fromkeys(officers[then:]))


def _propose(registry: Registry, trust: Trust, name: str, public: PublicKey, revoked: Sequence[tuple[str, datetime]]) -> Proposal:
    """The list with the new officer in the place of the old."""
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
    """The hash of the recovery keys, so that who accepts the office signs for them too; empty where there are none."""
    named = [event.content for event in registry.events if event.kind == RECOVERY]
    document = {name: named[-1][name] for name in ("keys", "number", "threshold")} if named else None
    return "" if document is None else hash_of_json(document)


def sign_proposal(proposal: Proposal, name: str, *, key: PrivateKey) -> dict[str, Any]:
    """The statement of somebody who holds a recovery key; no site is needed for it."""
    return key.sign(kind=RECOVER, subject=proposal.subject, digest=proposal.digest, name=check_person(name))


def accept(site: Site, proposal: Proposal, statements: Sequence[Mapping[str, Any]], *, key: PrivateKey) -> Trust:
    """The new officer signs that they are it, and it is noted, with all that makes it so; refused as a whole otherwise."""
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
        rest = {name: said for name, said in proposal.document.items() if name != "keys"}
        succession = {**rest, "signed": [*proposal.signed, *statements], "accepted": accepted}
        note_list(registry, members, key, revoked=_read_revoked(proposal), succession=succession)
        trust = last_trust(site, registry)  # everything is verified; what does not hold is not written
        if trust is None or trust.officer != officer or before == trust:
            raise NotSigned("the list was changed since this was proposed, or it does not count.", where=officer.name)
        for each, since in _read_revoked(proposal):
            note_revocation(site, registry, trust, each, since=since, why=f"revoked with the office of {officer.name}", key=key)
        trust = _retire(site, registry, last_trust(site, registry) or trust, proposal.document["from"], key=key)
        write_public(site, registry.events)
    write_list(site, trust)
    return trust


def _read_revoked(proposal: Proposal) -> tuple[tuple[str, datetime], ...]:
    """The keys that it takes back, and from when on."""
    return tuple((each["key"], datetime.fromisoformat(each["from"])) for each in proposal.document["revoked"])


def _check_fresh(registry: Registry, proposal: Proposal) -> None:
    """Refuse what was proposed before keys were changed: it would bring back who was taken off the list since. What the proposal
    itself takes back changes nothing: else a thief of the officer's key could keep the holders from ever replacing it."""
    document = proposal.document
    office = read_office(registry.events, revoked=_read_revoked(proposal))
    if office is None:  # nothing but lists of one officer
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
    """Revoke the key of the officer before, from just after the hand-over: all that it signed stands, by hash. In the chain it
    could sign nothing more; but a stranger has no chain, and a key that is kept or found can put any date on a package."""
    if trust.office is None or former in {each.key for each in trust.office.revoked}:
        return trust
    since = max(trust.office.moment(event.number) for event in registry.events) + timedelta(seconds=1)
    why = f"the office went to {trust.officer.name}"
    note_revocation(site, registry, trust, former, since=since.replace(microsecond=0), why=why, key=key)
    return last_trust(site, registry) or trust


def propose_recovery(site: Site, threshold: int, holders: Mapping[str, PublicKey]) -> Proposal:
    """Recovery keys, as they are to be signed."""
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
    """The officer names the recovery keys; where there are some already, enough of them must have signed the new ones."""
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
