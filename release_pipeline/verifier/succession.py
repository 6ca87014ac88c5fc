"""The succession of officers, and the keys that it revoked, as officers.json has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from release_pipeline.verifier.documents import HEX, TIME, Fault, Json, canonical_json, get, read_moment, sha256
from release_pipeline.verifier.statements import (
    HOLDER,
    RECOVER,
    RECOVERY,
    Key,
    Statement,
    check_statement,
    find_officer,
    read_entries,
    read_keys,
    verify_keys,
)

OFFICE = "officer"  # the subject of a succession
MOST_HOLDERS = 50
SLACK = timedelta(seconds=60)  # by which the clocks of two machines may differ
VOTE_SLACK = timedelta(minutes=10)  # a clock this slow does not date a vote back: `approve` refuses by this number, too


@dataclass(frozen=True)
class Revocation:
    """A key that no longer counts from a moment on: the event that revoked it, its signer, and whether holders of recovery keys
    revoked it (`quorum`). `stands`: kind, subject and hash of what it signed before for the public; None where that was not
    listed."""

    key: str
    since: datetime
    event: int
    signer: str
    quorum: bool = False
    stands: frozenset[tuple[str, str, str]] | None = None


class Succession:
    """The officer and how they came to the office, by the events that it follows. `chain`: the fingerprints of those who followed
    each other by valid successions; `left`: when each left; `taken`: keys that successions revoked; `rooted`: whether a quorum
    must have named the officer before as the one it replaces."""

    def __init__(self, *, rooted: bool = True) -> None:
        self.keys: dict[str, Key] = {}
        self.chain: list[str] = []
        self.left: dict[str, datetime] = {}
        self.taken: dict[str, datetime] = {}
        self.revoked: list[tuple[str, datetime]] = []  # by the last succession that is followed
        self._rooted, self._was = rooted, set[str]()
        self.holders: dict[str, Key] = {}
        self.threshold = self.number = 0
        self._named = ""  # the hash of the recovery keys

    def follow_list(self, content: Mapping[str, Any], keys: dict[str, Key]) -> None:
        """Follow a list of keys that its officer signed; raises `Fault` where its succession is invalid. An officer whom no
        succession brought begins another chain, which a person must know."""
        officer, succession = find_officer(keys), content.get("succession")
        if succession is not None:
            self._check_succession(succession, content, keys)
            if self.chain:
                self.left[self.chain[-1]] = read_moment(succession["accepted"]["statement"]["at"])
            self.chain.append(officer)
        elif self.chain[-1:] != [officer]:
            self.chain, self.left, self.taken = [officer], {}, {}
        self._was.add(officer)
        self.keys, self.revoked = keys, [] if succession is None else _list_revoked(succession)
        for key, since in self.revoked:
            self.taken[key] = min(since, self.taken.get(key, since))

    def _check_succession(self, succession: Any, content: Mapping[str, Any], keys: dict[str, Key]) -> None:
        """Check that the officer before signed the office over, or enough holders of recovery keys did."""
        officer, before = find_officer(keys), find_officer(self.keys) if self.keys else ""
        signed = get(succession, "signed", list)
        names = ("from", "registry", "revoked", RECOVERY)
        document = {name: succession.get(name) for name in names}
        wanted = {"subject": OFFICE, "hash": sha256(canonical_json({**document, "keys": content.get("keys")}))}
        if len(succession) != len(names) + 2 or not 0 < len(signed) <= MOST_HOLDERS:
            raise Fault("it has other parts than a succession")
        if document[RECOVERY] != self._named:
            raise Fault("it was signed where other recovery keys were named, or none")
        if officer in self._was:
            raise Fault("its officer held the office before: a key that gave it away never gets it back")
        check_statement(succession.get("accepted"), keys, kind="accept-office", **wanted)
        recovered = get(get(signed[0], "statement", dict), "kind", str) == RECOVER
        if document["from"] != before and (self._rooted or not recovered):
            raise Fault("it names another officer than the one before it: a succession between them is missing")
        if recovered:
            self._check_quorum(signed, **wanted)
        elif len(signed) > 1 or document["revoked"] != []:
            raise Fault("more than one signed it over, or it revokes something, which only recovery keys may")
        else:
            check_statement(signed[0], self.keys, kind="succession", **wanted)

    def _check_quorum(self, signed: Json, **wanted: str) -> None:
        """Check that enough holders of recovery keys signed; each counts once."""
        if not isinstance(signed, list) or len(signed) > MOST_HOLDERS:
            raise Fault("there is no list of what the holders of recovery keys signed")
        people = {check_statement(each, self.holders, kind=RECOVER, **wanted).signer for each in signed}
        if not 0 < self.threshold <= len(people):
            raise Fault(f"{len(people)} of the recovery keys signed it, and {self.threshold or 'none was named and some'} must")

    def follow_recovery(self, content: Mapping[str, Any]) -> Statement:
        """Return the statement by which the officer named recovery keys; once there are some, enough of them must agree to
        others."""
        document = {name: content.get(name) for name in ("keys", "number", "threshold")}
        digest, threshold = sha256(canonical_json(document)), get(content, "threshold", int)
        signed = check_statement(content.get("signed"), self.keys, kind="recovery", subject="recovery", hash=digest)
        holders = read_entries(get(content, "keys", dict), (HOLDER,))
        if not 0 < threshold <= len(holders) <= MOST_HOLDERS or get(content, "number", int) != self.number + 1:
            raise Fault("its threshold is none of so many keys, or it does not follow the recovery keys before it")
        if self.threshold:
            self._check_quorum(content.get("quorum"), subject="recovery", hash=digest)
        self.holders, self.threshold, self.number = holders, threshold, self.number + 1
        self._named = digest
        return signed


def _list_revoked(succession: Any) -> list[tuple[str, datetime]]:
    return [(get(each, "key", HEX), read_moment(get(each, "from", TIME))) for each in get(succession, "revoked", list)]


def read_revocation(content: Mapping[str, Any], number: int, signer: str) -> Revocation:
    """Return the last entry of a list of revoked keys: the one that its event adds."""
    entries = get(get(content, "document", dict), "revoked", list)
    return read_entry(entries[-1] if entries else None, number, signer)


def read_entry(entry: Any, number: int, signer: str) -> Revocation:
    known = frozenset(_read_standing(each) for each in get(entry, "stands", list))
    return Revocation(get(entry, "key", HEX), read_moment(get(entry, "from", TIME)), number, signer, stands=known)


def _read_standing(each: Json) -> tuple[str, str, str]:
    """Return the kind, subject and hash of something that stays valid although its key was revoked."""
    if not isinstance(each, list) or len(each) != 3 or not all(isinstance(part, str) for part in each):
        raise Fault("what stands of a revoked key is no list of kinds, subjects and hashes")
    kind, subject, digest = (str(part) for part in each)
    return kind, subject, digest


def read_officers(document: Any) -> Succession:
    """Return the office by an officers.json: the first list of keys, and everything by which officers followed each other."""
    office, links = Succession(), get(document, "officers", list)
    if not 0 < len(links) <= 1000:
        raise Fault("there is no officer in it, or more than any office had")
    for link in links:
        kind, content = get(link, "kind", str), get(link, "content", dict)
        if kind == "recovery":
            office.follow_recovery(content)
        elif kind == "trusted" and (not office.chain or content.get("succession") is not None):
            document = {"keys": content.get("keys")}
            keys = read_keys(document)
            verify_keys(content.get("signed"), keys, sha256(canonical_json(document)))
            office.follow_list(content, keys)
        else:
            raise Fault("there is something in it that makes nobody officer")
    return office
