"""The chain of events of a registry, and the statements signed in it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from release_pipeline.verifier.documents import (
    HEX,
    NAME,
    RELEASE,
    UTC,
    Fault,
    Json,
    canonical_json,
    find_member,
    get,
    read_json,
    read_moment,
    sha256,
)
from release_pipeline.verifier.remarks import hash_remarks, read_remarks
from release_pipeline.verifier.report import Report
from release_pipeline.verifier.statements import (
    RECOVERY,
    SIGNED_EVENTS,
    VOTES,
    Key,
    Statement,
    check_statement,
    find_officer,
    read_keys,
    verify_keys,
)
from release_pipeline.verifier.succession import SLACK, Revocation, Succession, read_revocation
from release_pipeline.verifier.trees import EVENTS, MOST_SIGNATURES


@dataclass(frozen=True)
class Event:
    """An event of the chain: `release` is POLICY/PARTITION/rN, or empty when it is about none."""

    number: int
    kind: str
    release: str
    content: Mapping[str, Any]
    hash: str
    noted: str = ""


def verify_chain(lines: Iterable[str | bytes]) -> list[Event]:
    """Return the events; raises `Fault`, which names the first that is not a canonical body with its own hash, its number and the
    hash before it."""
    events: list[Event] = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = read_json(line)
            body, digest = get(entry, "body", str), get(entry, "hash", str)
            content = read_json(body)
            kind, previous = get(content, "kind", str), get(content, "previous", str)
            named: Json = content.get("release")
            if sha256(body) != digest or len(entry) != 2 or canonical_json(content) != body:
                raise Fault("its hash is not that of its body")
            if previous != (events[-1].hash if events else "") or get(content, "number", int) != number:
                raise Fault("it does not follow the one before it")
            release = f"{named[0]}/{named[1]}/r{named[2]}" if isinstance(named, list) and len(named) == 3 else ""
            events.append(Event(number, kind, release, get(content, "content", dict), digest, get(content, "noted", str)))
        except Fault as fault:
            raise Fault(f"event {number} was changed, or events before it are missing: {fault.what}") from None
    return events


@dataclass(frozen=True)
class Known:
    """Facts of a whole chain that its events are judged by: keys that no longer count from a moment on, events whose moment the
    officer does not believe, and the latest moment that each event can be from."""

    revoked: Sequence[Revocation] = ()
    doubted: Collection[int] = ()
    moments: Mapping[int, datetime] = field(default_factory=dict[int, datetime])


AT_TARGETS = ("delivering", "delivered", "recalled")
OFFICE_EVENTS = ("trusted", "recovery", "revoked", "clock")
MADE = ("reserved", "secret", "drawn", "candidate", "publishing", "published")  # the steps of a release that is made


class History:
    """The events of a chain, each signed one verified with the list of keys that was trusted when it happened. `known`: revoked
    keys and wrong clocks, from an earlier round; `lost`: releases published with a revoked key."""

    def __init__(self, report: Report, events: list[Event], known: Known | None = None, *, office_alone: bool = False) -> None:
        self.events, self.signed = events, list[tuple[int, Statement]]()
        self.lists: list[tuple[int, str, dict[str, Key]]] = []  # number of the event, hash of the list, keys
        self.policies: dict[str, tuple[int, Any]] = {}
        self.revoked: list[Revocation] = []  # what the events themselves revoke
        self.looked: list[Event] = []  # trials on the data, and statements that files are public
        self.doubted: set[int] = set()
        self.lost: dict[int, str] = {}
        self._report, self.office, self._known = (
            report,
            Succession(rooted=known is not None or not office_alone),
            known or Known(),
        )
        self._listed = ""  # when the last list of keys was signed
        self._copies: set[str] = set()  # statements about lists at a moment that is not believed
        self._published, self._stewards = dict[str, str](), dict[str, str]()
        self._of: dict[tuple[str, str], list[Event]] = {}  # by kind and release: a chain is asked for each of its releases
        self._about: dict[tuple[str, str], dict[int, Statement]] = {}  # the signed statements by kind and subject
        self._caps: dict[str, Any] = {}  # by their hash, once they were asked for
        self._entered: set[int] = set()  # events that follow from what the officer accepted after a restore
        self._looked = 0  # signatures, also those that do not hold
        self._held: dict[str, int] = {}  # policies whose series are held, and the events since which they are held
        self._delivering = set[tuple[str, ...]]()  # packages whose delivery to targets has begun
        self._gone: set[str] = set()  # releases that were lost with the site: no release is made under their names again
        for event in events:
            self._of.setdefault((event.kind, event.release), []).append(event)
            if office_alone and event.kind not in OFFICE_EVENTS:
                continue
            with report.about(f"{EVENTS}: event {event.number} ({event.kind})"):
                self._take(event)

    @property
    def chain(self) -> list[str]:
        """Return the officers who followed each other up to the last."""
        return self.office.chain

    def _take(self, event: Event) -> None:
        if event.release in self._gone and event.kind in MADE:
            raise Fault(f"{event.release} was lost, and a lost release is never made again")
        if event.kind == "policy":
            self._read_policy(event)
        elif event.kind == "lost":
            self._follow_lost(event)
        elif event.kind in ("looked", "public"):
            for name in ("policy", "population"):
                get(event.content, name, NAME)
            self.looked.append(event)
        elif event.kind in ("held", "resumed"):
            self._follow_hold(event)
        elif event.kind in AT_TARGETS:
            self._follow_delivery(event)
        elif event.kind == "reserved":
            charged = self.policies.get(get(event.content, "policy_hash", HEX))
            self._stewards[event.release] = charged[1]["steward"] if charged else ""
            held = self._held.get(event.release.split("/")[0])
            if held is not None and event.number not in self._entered:  # charges that a restore enters were made elsewhere before
                raise Fault(f"it charges {event.release} while its series was held (event {held})")
        elif event.kind in SIGNED_EVENTS and self._looked >= MOST_SIGNATURES:
            raise Fault(f"more than {MOST_SIGNATURES} signatures are too many: this one is not looked at")
        elif event.kind in SIGNED_EVENTS:
            self._looked += 1
            self._follow(event)

    def _follow_hold(self, event: Event) -> None:
        policy, held = get(event.content, "policy", NAME), event.kind == "held"
        if (policy in self._held) == held:
            raise Fault(f"it is noted for a series that was {'held already' if held else 'not held'}")
        if held:
            self._held[policy] = event.number
        else:
            del self._held[policy]

    def _follow_delivery(self, event: Event) -> None:
        """Check that a delivered package was published, and that a recalled one was retracted or superseded before."""
        name, address = get(event.content, "target", NAME), get(event.content, "address", str)
        delivery = (event.release, name, get(event.content, "via", NAME), address)
        if get(event.content, "package_hash", HEX) != self._published.get(event.release):
            raise Fault(f"it tells of another package of {event.release} than was published before it")
        if event.kind == "delivering":
            self._delivering.add(delivery)
        elif delivery not in self._delivering:
            raise Fault(f"it tells of a delivery to {name} that no event before it began")
        elif event.kind == "recalled":
            self._check_recalled(event)

    def _check_recalled(self, event: Event) -> None:
        state = get(event.content, "state", NAME)
        if state not in ("retracted", "superseded") or not self.of(state, event.release):  # up to this event
            raise Fault(f"it tells {event.content['target']} that {event.release} was {state}, and no event before it says so")

    def _follow_lost(self, event: Event) -> None:
        self._gone.add(event.release)
        if event.number not in self._entered:
            raise Fault(f"it tells that {event.release} was lost, and follows from nothing that the officer accepted")

    def _follow(self, event: Event) -> None:
        if event.kind == "restored":
            self._entered |= _list_entered(event)
        if (revocation := self._find_revocation(event)) is not None:
            since = f"{revocation.since:%Y-%m-%d %H:%M} UTC"
            sentence = f"it is signed with a key that counts no more from {since} on, and so counts for nothing"
            self._report("note", f"{EVENTS}: event {event.number} ({event.kind}): {sentence}")
            if event.kind == "published":
                self._published[event.release] = get(event.content, "package_hash", HEX)
                self.lost[event.number] = event.release
            return
        signed = self._verify(event)
        self.signed.append((event.number, signed))
        self._about.setdefault((signed.kind, signed.subject), {})[event.number] = signed
        if event.kind == "trusted":
            self._report.link(self.office)
            self._report.judge_officer(self.chain[-1], f"{EVENTS}: event {event.number} (trusted)")
        elif event.kind == "clock":
            sentence = f"the officer does not believe the moment of event {event.content['event']}: it was noted by a wrong clock"
            self._report("note", f"{EVENTS}: event {event.number} (clock): {sentence}")
        elif event.kind == "revoked":
            revoked = self.revoked[-1]
            sentence = f"the key {revoked.key} counts no more from {revoked.since:%Y-%m-%d %H:%M} UTC on: {signed.why}"
            self._report("note", f"{EVENTS}: event {event.number} (revoked): {sentence}")

    def _find_revocation(self, event: Event) -> Revocation | None:
        """Return the revocation that takes an event back, None without one: its key signed it after the moment, or after the
        revocation was recorded. Named recovery keys stay named, and no officer takes back how the office came to them."""
        succession: Json = event.content.get("succession")
        signers = {_signer(event.content.get("signed"))}
        if event.kind == "recovery" or not self._known.revoked:
            return None
        if event.kind == "trusted" and isinstance(succession, dict):
            handed = find_member(succession, "signed")
            signers = {_signer(each) for each in handed} if isinstance(handed, list) else set[str]()
        for revocation in self._known.revoked:
            over = event.number > revocation.event or self._known.moments[event.number] >= revocation.since
            if revocation.key in signers and over and (revocation.quorum or succession is None):
                return revocation
        return None

    def _read_policy(self, event: Event) -> None:
        text, digest = get(event.content, "text", str), get(event.content, "hash", str)
        if sha256(text) != digest:
            raise Fault("the policy's hash is not that of its text")
        policy = read_json(text)
        named = {name: get(policy, name, NAME) for name in ("policy", "population", "steward")}
        if any(event.content.get(name) != named[name] for name in ("policy", "population")):
            raise Fault("its text is of another policy or population")
        self.policies.setdefault(digest, (event.number, policy))

    def _verify(self, event: Event) -> Statement:
        """Return the signed statement of the event, if it agrees with the event."""
        if event.kind == "recovery":
            return self.office.follow_recovery(event.content)
        officers = {
            "trusted": self._verify_list,
            "revoked": self._verify_revocation,
            "clock": self._verify_clock,
            "restored": self._verify_restored,
        }
        if event.kind in officers:
            return officers[event.kind](event)
        content, kind, subject, keys = event.content, SIGNED_EVENTS[event.kind], event.release, self.office.keys
        if event.kind == "remarked":
            return self._verify_remarks(event)
        if event.kind in ("approved", "rejected", "returned"):
            what, subject, digest = get(content, "what", str), get(content, "subject", str), get(content, "hash", HEX)
            kind = what if event.kind == "approved" and what in ("policy", "populations") else kind if what == "candidate" else ""
            if subject != (event.release or subject) or (kind == "populations" and subject != kind):
                raise Fault("it is noted for something else than what was judged")
        else:
            digest = get(content, "package_hash", HEX) if event.kind == "published" else self._published.get(event.release, "")
        signed = check_statement(content.get("signed"), keys, kind=kind, subject=subject, hash=digest)
        if kind in VOTES and signed.name == self._stewards.get(subject):
            raise Fault(f"'{signed.name}' is the steward of the policy and may not judge the candidate")
        if event.kind == "published":
            self._published[event.release] = digest
        return signed

    def _verify_remarks(self, event: Event) -> Statement:
        """Return the signed statement: of the document that the event has, about its release or, without one, about a policy."""
        document = get(event.content, "document", dict)
        remarks = read_remarks(document)
        if remarks.subject != (event.release or remarks.subject) or (not event.release and RELEASE.fullmatch(remarks.subject)):
            raise Fault("it is noted for something else than what was remarked on")
        wanted = {"kind": "remarks", "subject": remarks.subject, "hash": hash_remarks(document)}
        return check_statement(event.content.get("signed"), self.office.keys, **wanted)

    def _verify_list(self, event: Event) -> Statement:
        content = event.content
        document, digest = {"keys": content.get("keys")}, get(content, "hash", HEX)
        keys = read_keys(document)
        if (sha256(canonical_json(document)), find_officer(keys)) != (digest, content.get("officer")):
            raise Fault("the hash or the officer of the trusted keys is not what it tells")
        signed = verify_keys(content.get("signed"), keys, digest)
        handed = content.get("succession") is not None  # for this chain and one position in it: dates begin again
        if not handed and event.number not in self._known.doubted and signed.at < self._listed:
            raise Fault(f"the list of {signed.at} was put back after that of {self._listed}")
        if (text := canonical_json(content["signed"]["statement"])) in self._copies:
            raise Fault("a list that was signed at a moment that is not believed was put back")
        if handed:
            self._check_registry(event)
            self._note_stale(event)
        self.office.follow_list(content, keys)
        self.revoked += [Revocation(key, since, event.number, signed.signer, quorum=True) for key, since in self.office.revoked]
        if event.number in self._known.doubted:
            self._copies.add(text)
        else:
            self._listed = signed.at
        self.lists.append((event.number, digest, keys))
        return signed

    def _check_registry(self, event: Event) -> None:
        """Check that a succession was signed for this chain, and not for another site's."""
        head = get(event.content.get("succession"), "registry", dict)
        number: int = get(head, "event", int)
        if not 0 <= number < event.number or head != {"event": number, "hash": self.events[number - 1].hash if number else ""}:
            raise Fault("it was signed for another registry than this")

    def _note_stale(self, event: Event) -> None:
        """Note a succession that was signed before the list was changed, and accepted after it: it brings the older list back.
        What was signed since stays valid."""
        head: int = event.content["succession"]["registry"]["event"]
        changed = {number for number, _, _ in self.lists} | {each.event for each in self.revoked}
        changed |= {number for number, signed in self.signed if signed.kind == RECOVERY}
        if later := sorted(number for number in changed if head < number < event.number):
            sentence = "the list of keys, recovery keys or revoked keys were changed after this succession was signed"
            sentence += f", and it brought back the list of before: look who is on it (event {', '.join(map(str, later))})"
            self._report("note", f"{EVENTS}: event {event.number} (trusted): {sentence}")

    def _verify_revocation(self, event: Event) -> Statement:
        document = get(event.content, "document", dict)
        about = {"kind": "revoke", "subject": get(event.content, "key", HEX), "hash": sha256(canonical_json(document))}
        signed = check_statement(event.content.get("signed"), self.office.keys, **about)
        revocation = read_revocation(event.content, event.number, signed.signer)
        if revocation.key != signed.subject or revocation.key == signed.signer:
            raise Fault("it revokes another key than it tells, or the officer's own, which the next officer or a quorum may")
        self.revoked.append(revocation)
        return signed

    def _verify_clock(self, event: Event) -> Statement:
        number: int = get(event.content, "event", int)
        named = self.events[number - 1] if 0 < number < event.number else None
        if named is None or read_moment(named.noted) - read_moment(event.noted) <= SLACK:
            raise Fault("it doubts an event that is none before it, or one that is not dated later than itself")
        wanted = {"kind": "clock", "subject": str(number), "hash": named.hash}
        signed = check_statement(event.content.get("signed"), self.office.keys, **wanted)
        self.doubted.add(number)
        return signed

    def _verify_restored(self, event: Event) -> Statement:
        """Return what the officer accepted: a restored backup, with the charges that came after it."""
        document: Mapping[str, Json] = get(event.content, "document", dict)
        number: int = get(document, "event", int)
        named = self.events[number - 1] if 0 < number < event.number else None
        if named is None or (named.kind, named.hash) != ("restoring", document.get("hash")):
            raise Fault("it accepts a backup that was not put back here")
        wanted = {"kind": "restored", "subject": str(number), "hash": sha256(canonical_json(document))}
        signed = check_statement(event.content.get("signed"), self.office.keys, **wanted)
        self._check_entered(event.number, document)
        sentence = "the officer accepted a backup that was put back, and entered the charges that came after it"
        self._report("note", f"{EVENTS}: event {event.number} (restored): {sentence}")
        return signed

    def _check_entered(self, number: int, document: Mapping[str, Json]) -> None:
        """Check that the charges that follow are those that the officer signed, no fewer and no more; then what is lost."""
        charged: list[Json] = get(document, "charged", list)
        lost: list[Json] = get(document, "lost", list)
        names = [get(entry, "release", str) for entry in charged]
        after = self.events[number : number + len(charged) + len(lost)]
        for place, (name, entry) in enumerate(zip(names, charged)):  # noqa: B905  Python 3.9 has no strict
            event = after[place] if place < len(after) else None
            if event is None or (event.kind, event.release) != ("reserved", name):
                raise Fault(f"the officer signed the charge of {name}, which does not follow, or other charges come before it")
            if wrong := self._compare_entered(entry, event.content):
                raise Fault(f"the charge of {name} in event {event.number} is not what the officer signed: {', '.join(wrong)}")
        told = [(event.kind, event.release, event.content.get("entered")) for event in after[len(charged) :]]
        if told != [("lost", name, name in names) for name in lost]:
            raise Fault("after the charges that the officer signed comes something else than what was signed to be lost")

    def _compare_entered(self, entry: Json, charge: Mapping[str, Any]) -> list[str]:
        """Return the parts of a charge that differ from what was signed."""
        digest = get(entry, "policy_hash", HEX)
        pairs = {
            "its policy, and so k": (digest, charge.get("policy_hash")),
            "its people": (get(entry, "population", str), charge.get("population")),
            "how many records it is of": (get(entry, "records", int), charge.get("records")),
            "its epsilon": (get(entry, "loss", dict), get(charge, "loss", dict)),
        }
        return [words for words, (signed, noted) in pairs.items() if signed != noted]

    def of(self, kind: str, release: str) -> list[Event]:
        """Return the events of a kind of a release."""
        return self._of.get((kind, release), [])

    def last(self, kind: str, subject: str, *, before: int) -> tuple[int, str]:
        """Return the number and hash of the last event before another that has a signed statement of a kind about a subject."""
        hashes = {at: signed.hash for at, signed in self.find(kind, subject).items() if at < before}
        return max(hashes.items(), default=(0, ""))

    def find_caps(self, digest: str) -> Any:
        """Return the caps of that hash, as an event of their approval has them."""
        if digest in self._caps:
            return self._caps[digest]
        for event in self._of.get(("approved", ""), []):
            text = event.content.get("text")
            if isinstance(text, str) and event.content.get("what") == "populations" and sha256(text) == digest:
                return self._caps.setdefault(digest, read_json(text))
        raise Fault("no event tells the caps that the officer approved last before the charge")

    def find(self, kind: str, subject: str, digest: str | None = None) -> dict[int, Statement]:
        """Return the signed statements of a kind about a subject (and a hash), by the number of the event."""
        wanted = self._about.get((kind, subject), {})
        return {number: signed for number, signed in wanted.items() if digest in (None, signed.hash)}


def _list_entered(event: Event) -> set[int]:
    """Return the numbers of the charges and losses that were recorded right after the event that accepts them: as many as it
    names."""
    named = [find_member(find_member(event.content, "document"), name) for name in ("charged", "lost")]
    count = sum(len(part) for part in named if isinstance(part, list))
    return set(range(event.number + 1, event.number + 1 + count))


def _signer(signed: Json) -> str:
    signer = find_member(find_member(signed, "statement"), "signer")
    return signer if isinstance(signer, str) else ""


def _latest_moments(events: Sequence[Event], doubted: Collection[int]) -> dict[int, datetime]:
    """Return the latest moment that each event can be from: a clock that was set back does not make it earlier, and a moment that
    is not believed counts as that of the next event."""
    moments, last, waiting = dict[int, datetime](), datetime.min.replace(tzinfo=UTC), list[int]()
    for event in events:
        if event.number in doubted:
            waiting.append(event.number)
            continue
        last = max(last, read_moment(event.noted))
        moments.update(dict.fromkeys((*waiting, event.number), last))
        waiting.clear()
    return moments | dict.fromkeys(waiting, datetime.max.replace(tzinfo=UTC))


def read_history(report: Report, events: list[Event]) -> History:
    """Return the events, judged after it is known from when to when each key counts."""
    extra = list(report.revocations.entries.values()) if report.revocations else []
    extra += [Revocation(key, since, sys.maxsize, "", quorum=True) for key, since in report.taken.items()]
    if not extra and not has_office(events):
        return History(report, events)
    known = find_known(events)
    known = Known([*known.revoked, *extra], known.doubted, known.moments)
    report.link(History(Report(None), events, known, office_alone=True).office)
    return History(report, events, known)


def has_office(events: Iterable[Any]) -> bool:
    """Return whether more happened to the office than that one officer changed the list of keys."""
    return any(event.kind in OFFICE_EVENTS and (event.kind != "trusted" or "succession" in event.content) for event in events)


Head = tuple[int, str, str]  # number and hash of an event, and when it was recorded
HEAD_FORMAT = "release-pipeline/head/1"


def read_head(content: bytes) -> Head:
    """Return the content of `head export`: the last event of a registry, for somebody outside to keep."""
    head = read_json(content)
    if get(head, "format", str) != HEAD_FORMAT or get(head, "event", int) < 1:
        raise Fault("it is not what `head export` writes")
    return head["event"], get(head, "hash", str), get(head, "noted", str)


def find_known(events: list[Event]) -> Known:
    """Return the known facts of a chain, in rounds: first what holders of recovery keys revoked, then what the remaining officers
    did, later ones before earlier ones."""
    quiet = Report(None)
    first = History(quiet, events, office_alone=True)
    moments = _latest_moments(events, first.doubted)
    quorum = [revocation for revocation in first.revoked if revocation.quorum]
    second = History(quiet, events, Known(quorum, first.doubted, moments), office_alone=True)
    standing = list[Revocation]()
    for revocation in reversed([each for each in second.revoked if not each.quorum]):
        if not any(over.key == revocation.signer and moments[revocation.event] >= over.since for over in standing):
            standing.append(revocation)
    return Known([*quorum, *reversed(standing)], first.doubted, moments)
