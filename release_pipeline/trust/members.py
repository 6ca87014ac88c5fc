"""The list of people whose signatures count: trusted-keys.yaml, signed by the privacy officer, whose fingerprint site.yaml pins.

    keys:
      olga: {role: officer, key: "ssh-ed25519 AAAA..."}
      ben:  {role: reviewer, key: "ssh-ed25519 AAAA..."}

Every version is an event of the registry too, so that later one can see who was trusted when, and that a pin was removed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.ledger.office import find_doubted, read_office, write_officers
from release_pipeline.policy.documents import Plain
from release_pipeline.policy.loading.load import read_text
from release_pipeline.policy.values.text import read_yaml
from release_pipeline.store.files import PUBLIC, write_text
from release_pipeline.store.registry import Event, Registry, canonical_json
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import NotSigned, PrivateKey, PublicKey, check_person, check_signature, write_statement
from release_pipeline.verifier.office import Office
from release_pipeline.verifier.statements import MAY_SIGN, ROLES

TRUSTED = "trusted"
Revoked: TypeAlias = Sequence[tuple[str, datetime]]  # keys, and the moment from which on they no longer count
FILE, SIGNATURE = "trusted-keys.yaml", "trusted-keys.sig"  # of the site
KEYS, KEYS_SIGNATURE = "trusted-keys.json", "trusted-keys.sig"  # of packages and dossiers, so that verifying needs no YAML


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody whose key is in the list."""

    name: str
    role: str
    key: PublicKey


@dataclass(frozen=True, slots=True)
class Trust:
    """The list of trusted keys as the officer signed it. `revoked`: fingerprints of keys that may no longer sign; `officers`: how
    the officer came to the office, for strangers, if by a succession; `office`: the proof of that in the registry."""

    members: tuple[Member, ...]
    signed: Mapping[str, Any]
    revoked: frozenset[str] = frozenset()
    officers: str = field(default="", compare=False)
    office: Office | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """Return the canonical JSON that is signed."""
        return canonical_list(self.members)

    @property
    def officer(self) -> Member:
        """Return the one officer."""
        return next(member for member in self.members if member.role == "officer")

    def find(self, key: PublicKey) -> Member:
        """Return the member with this key."""
        for member in self.members:
            if member.key == key:
                return member
        raise NotSigned("this key is not in the list of trusted keys.", where=FILE, remedy="The officer adds it.")

    def sign(
        self, key: PrivateKey, *, kind: str, subject: str, digest: str, why: str = "", at: str | None = None
    ) -> dict[str, Any]:
        """Return a statement signed by somebody who may make it."""
        member = self.check_may_sign(key, kind=kind, subject=subject)
        return key.sign(kind=kind, subject=subject, digest=digest, name=member.name, why=why, at=at)

    def check_may_sign(self, key: PrivateKey, *, kind: str, subject: str) -> Member:
        """Return the person with this key, if they may sign that."""
        member = self.find(key.public)
        self.check_not_revoked(key.public)
        self._check_role(member, kind, subject)
        return member

    def check_not_revoked(self, key: PublicKey) -> None:
        """Refuse to sign with a key that was revoked."""
        if key.fingerprint in self.revoked:
            raise NotSigned("this key was revoked.", where=FILE, remedy="Make a new one; the officer puts it on the list.")

    def check_event(self, event: Event, *, kind: str, subject: str, digest: str) -> Member:
        """Return the person who signed an event, if that still counts, also an officer of the past while they held the office."""
        signed, signer = event.content["signed"], event.content["signed"]["statement"]["signer"]
        if self.office is not None and self.office.is_taken_back(event.number, signer):
            raise NotSigned("it is signed with a key that was revoked from a moment before it.", where=f"{kind} of {subject}")
        officer = self._officer_at(event.number)
        if officer is None or officer.key.fingerprint != signer:
            return self.check(signed, kind=kind, subject=subject, digest=digest)
        check_signature(signed, officer.key, kind=kind, subject=subject, digest=digest)
        self._check_role(officer, kind, subject)
        return officer

    def _officer_at(self, number: int) -> Member | None:
        """Return the officer at the time of an event, where the registry proves the office; else None."""
        lists = [keys for at, keys in (self.office.lists if self.office else ()) if at < number]
        officers = [key for key in lists[-1].values() if key.role == "officer"] if lists else []
        return Member(officers[0].name, "officer", PublicKey.of(officers[0].public)) if officers else None

    def check(self, signed: Any, *, kind: str, subject: str, digest: str) -> Member:
        """Return the person who signed this, if the signature is valid and they may."""
        try:
            fingerprint = signed["statement"]["signer"]
        except (KeyError, TypeError):
            fingerprint = ""
        for member in self.members:
            if member.key.fingerprint == fingerprint:
                statement = check_signature(signed, member.key, kind=kind, subject=subject, digest=digest)
                if statement["name"] != member.name:
                    raise NotSigned("the signature is in another name than its key's.", where=f"{kind} of {subject}")
                self._check_role(member, kind, subject)
                return member
        raise NotSigned("it is signed with a key that is not in the list of trusted keys.", where=f"{kind} of {subject}")

    def _check_role(self, member: Member, kind: str, subject: str) -> None:
        if member.role not in MAY_SIGN[kind]:
            raise NotSigned(
                f"{member.name} has the role {member.role}, and this needs {' or '.join(MAY_SIGN[kind])}.",
                where=f"{kind} of {subject}",
            )


def read_trust(site: Site, registry: Registry) -> Trust | None:
    """Return the list of trusted keys, verified against the pinned officer; None for a site that never had one.

    Raises `NotSigned` when a site that had one has lost its pin, or its files are not the registry's last list.
    """
    trust = last_trust(site, registry)
    if trust is not None and (_read_members(site) != trust.members or _read_signature(site) != trust.signed):
        raise NotSigned(
            "the list and its signature are not the last that the registry knows of.",
            where=str(site.home / FILE),
            remedy="Put the right ones back; the officer's next `trust` writes them again.",
        )
    return trust


def last_trust(site: Site, registry: Registry) -> Trust | None:
    """Return the last list of the registry, if the pinned officer signed it."""
    known, officer = [event for event in registry.events if event.kind == TRUSTED], site.officer
    if not known and officer is None:
        return None
    if officer is None:
        raise NotSigned("the site had a privacy officer, and no longer names one.", where=str(site.home / "site.yaml"))
    if not known:
        raise NotSigned(
            "the site names a privacy officer who has signed no list.", where=str(site.home), remedy="`trust` begins one."
        )
    office = read_office(registry.events)
    if office is None:
        trust, chain = _read_list(known[-1].content), ()
    else:
        trust, chain = _read_last(registry, office), office.chain
    if office is None and _moment(known[-1].content) < max(_moment(event.content) for event in known):
        raise NotSigned("an older list than the last was put back.", where=FILE, remedy="Restore the registry as it was last.")
    if officer not in (trust.officer.key.fingerprint, *chain):
        raise NotSigned("the officer in the list is not the one that the site names.", where=str(site.home / "site.yaml"))
    trust.check(trust.signed, kind="trusted-keys", subject="trusted-keys", digest=_digest(trust.text))
    return trust


def _read_list(content: Mapping[str, Any]) -> Trust:
    """Return the list of an event."""
    return Trust(read_members(content["keys"]), content["signed"])


def read_members(keys: Mapping[str, Any]) -> tuple[Member, ...]:
    """Return the members in the keys of a document."""
    return tuple(Member(name, entry["role"], PublicKey.parse(entry["key"])) for name, entry in sorted(keys.items()))


def _read_last(registry: Registry, office: Office) -> Trust:
    """Return the last list that is valid; raises `NotSigned` unless everything by which its officer came to the office is
    valid."""
    if office.faults or not office.lists:
        raise NotSigned(
            f"the registry does not prove who the officer is: {next(iter(office.faults), 'no list stands')}.",
            where=FILE,
            remedy="`verify` of the site says more.",
        )
    trust = _read_list(registry.events[office.lists[-1][0] - 1].content)
    revoked = frozenset(each.key for each in office.revoked)
    return dataclasses.replace(trust, revoked=revoked, officers=write_officers(registry.events, office), office=office)


def need_trust(site: Site, registry: Registry) -> Trust:
    """Return the list of trusted keys, verified; raises `NotSigned` for a site that never had one."""
    trust = read_trust(site, registry)
    if trust is None:
        raise NotSigned(
            "the site has no list of trusted keys.",
            where=str(site.home),
            remedy="The privacy officer begins one: `release-pipeline trust --help`.",
        )
    return trust


def trust_key(site: Site, name: str, role: str, public: PublicKey, *, key: PrivateKey) -> Trust:
    """Add somebody to the list, or change their role or key. The first is the officer, whom site.yaml then pins."""
    if role not in ROLES:
        raise WrongUsage(f"'{role}' is not a role.", remedy=f"There are: {', '.join(ROLES)}.")
    member = Member(check_person(name), role, public)
    with site.open_registry() as registry:
        begun = any(event.kind == TRUSTED for event in registry.events)
        if not begun and site.officer in (None, key.public.fingerprint):
            if role != "officer" or key.public != public:
                raise WrongUsage("the first in the list is the privacy officer, with their own key.", where=name)
            if site.officer is None:
                _pin(site, public.fingerprint)
            trust = note_list(registry, (member,), key)
        else:
            trust = last_trust(site, registry)
            assert trust is not None  # noqa: S101  for the type checker: it was begun
            trust = note_list(registry, _with(trust, member, key), key)
    write_list(site, trust)
    return trust


def _with(trust: Trust, member: Member, key: PrivateKey) -> tuple[Member, ...]:
    """Return the members with this one added or changed."""
    check_officer(trust, key)
    if member.name == trust.officer.name and member != trust.officer:
        raise WrongUsage("the officer's own entry cannot be changed like this.", where=member.name)
    if member.role == "officer" and member != trust.officer:
        raise WrongUsage(f"{trust.officer.name} is the officer; there is one.", where=member.name)
    others = tuple(known for known in trust.members if known.name != member.name)
    _check_usable(trust, member)
    if any(known.key == member.key for known in others):
        raise WrongUsage("this key is somebody else's already; one key, one person.", where=member.name)
    return (*others, member)


def _check_usable(trust: Trust, member: Member) -> None:
    """Refuse a key that was revoked, or that recovers the office: it would be in daily use, where keys are stolen."""
    if member.key.fingerprint in trust.revoked and member not in trust.members:
        raise WrongUsage("this key was revoked.", where=member.name, remedy="They make a new one.")
    if trust.office is not None and member.key.fingerprint in {key.fingerprint for key in trust.office.holders.values()}:
        raise WrongUsage("this is a recovery key, which signs nothing else.", where=member.name, remedy="They make another one.")


def distrust(site: Site, name: str, *, key: PrivateKey) -> Trust:
    """Take a person off the list: what they signed before no longer counts, except in what is published."""
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        check_officer(trust, key)
        if name == trust.officer.name:
            raise WrongUsage("this is the officer, whom the site is pinned to and who signs the list.", where=name)
        if name not in {known.name for known in trust.members}:
            raise WrongUsage("there is nobody of that name in the list.", where=name)
        trust = note_list(registry, tuple(known for known in trust.members if known.name != name), key)
    write_list(site, trust)
    return trust


def check_officer(trust: Trust, key: PrivateKey) -> None:
    """Refuse anyone but the officer."""
    if key.public != trust.officer.key:
        raise NotSigned("only the officer's key may change the list.", where=FILE)


def note_list(
    registry: Registry, members: tuple[Member, ...], key: PrivateKey, *, revoked: Revoked = (), **content: Any
) -> Trust:
    """Sign the list and record it. The files follow, and the next `trust` writes them again if that is stopped. `revoked`: keys
    that the list takes back, from these moments on."""
    text = canonical_list(members)
    officer = next(member.name for member in members if member.role == "officer")
    signed = key.sign(kind="trusted-keys", subject="trusted-keys", digest=_digest(text), name=officer)
    check_clock(registry, signed, revoked)
    keys = json.loads(text)["keys"]
    registry.add(TRUSTED, hash=_digest(text), officer=key.public.fingerprint, keys=keys, signed=signed, **content)
    return Trust(tuple(sorted(members, key=lambda member: member.name)), signed)


def check_clock(registry: Registry, signed: Any, revoked: Revoked) -> None:
    """Refuse a list that is dated before another valid one, as an old list would be that was put back."""
    doubted = find_doubted(registry.events)
    lists = [event for event in registry.events if event.kind == TRUSTED and event.number not in doubted]
    if (office := read_office(registry.events, revoked=revoked)) is not None:
        standing = {number for number, _ in office.lists}
        lists = [event for event in lists if event.number in standing]
    if any(_moment({"signed": signed}) < _moment(event.content) for event in lists):
        raise Blocked(
            "the clock is behind the last list of trusted keys.",
            where=FILE,
            remedy="Set the clock, then try again; if it was wrong before, `release-pipeline officer repair-clock`. "
            "If a thief of the officer's key dated that list, `release-pipeline officer recover --stolen-from`.",
        )


def _moment(content: Mapping[str, Any]) -> str:
    """Return the moment when a list was signed: texts of one form, which sort as the moments do."""
    return content["signed"]["statement"]["at"]


def write_list(site: Site, trust: Trust) -> None:
    """Write the files of a list that was recorded."""
    lines = [f'  {member.name}: {{role: {member.role}, key: "{member.key.text}"}}' for member in trust.members]
    write_text(site.home / SIGNATURE, write_statement(trust.signed), mode=PUBLIC)
    write_text(
        site.home / FILE, "\n".join(["# Signed: change it with `release-pipeline trust`.", "keys:", *lines]) + "\n", mode=PUBLIC
    )


def _read_signature(site: Site) -> Any:
    try:
        return json.loads(read_text(site.home / SIGNATURE))
    except ValueError:
        raise NotSigned("the signature cannot be read.", where=str(site.home / SIGNATURE)) from None


def _read_members(site: Site) -> tuple[Member, ...]:
    file = site.home / FILE
    document = read_yaml(read_text(file))
    content: Plain = document.value
    listed = content.get("keys") if isinstance(content, dict) else None
    if document.problems or not isinstance(listed, dict):
        raise NotSigned("this is not a list of trusted keys.", where=str(file))
    members: list[Member] = []
    for name, entry in listed.items():
        if not isinstance(entry, dict) or set(entry) != {"role", "key"} or (role := entry["role"]) not in ROLES:
            raise NotSigned(f"the entry of {name} is not of the form {{role: ..., key: ...}}.", where=str(file))
        members.append(Member(check_person(name), role, PublicKey.parse(str(entry["key"]), where=str(file))))
    if [member.role for member in members].count("officer") != 1 or len({member.key for member in members}) != len(members):
        raise NotSigned("there must be one officer, and every key once.", where=str(file))
    return tuple(sorted(members, key=lambda member: member.name))


def _pin(site: Site, fingerprint: str) -> None:
    file = site.home / "site.yaml"
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    write_text(file, before.rstrip("\n") + "\n" * bool(before) + f"officer: {fingerprint}\n")


def canonical_list(members: tuple[Member, ...]) -> str:
    """Return the canonical JSON that is signed."""
    return canonical_json({"keys": {member.name: {"role": member.role, "key": member.key.text} for member in members}})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
