"""The chain of one release as people read it: what it was made under, what happened to it, and what became of it, event by event.

Every event of the release stands in it once. Beside these stand the events that it rests on (the policy, what the officer
approved, looks at the data), and those that judge it later (a key that was revoked, the revision that came in its place). Of a
vote it tells no more than that there is one until all are in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.accepted import RESTORED
from release_pipeline.flow.evidence import EVIDENCE, load_evidence
from release_pipeline.flow.exploring.trials import find_looks_before
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.deliveries import DELIVERED, DELIVERING, RECALLED
from release_pipeline.flow.reviewing.page import list_gates
from release_pipeline.flow.reviewing.remarks import find_role, is_told
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import (
    APPROVED,
    BLOCKED,
    CANDIDATE,
    DRAWN,
    FAILED,
    OPENED,
    POLICY,
    PRUNED,
    PUBLISHED,
    PUBLISHING,
    REJECTED,
    REMARKED,
    RETRACTED,
    RETURNED,
    SECRET,
    SERVED,
    SUPERSEDED,
    ReleaseStatus,
    find_void,
    read_statuses,
    status_of,
)
from release_pipeline.flow.trust.approvals import find_last_approval, valid_approvers
from release_pipeline.flow.trust.clocks import CLOCK, find_doubted
from release_pipeline.flow.trust.keys import NotSigned
from release_pipeline.flow.trust.members import Trust, read_trust
from release_pipeline.flow.trust.office import REVOKED
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import format_amount
from release_pipeline.privacy.figures import count_of, format_count
from release_pipeline.store.ledger import LOST, RESERVED
from release_pipeline.store.registry import Event, Registry, ReleaseId

VOTES = (APPROVED, RETURNED, REJECTED)
Facts: TypeAlias = tuple[tuple[str, str], ...]
_Told: TypeAlias = tuple[str, str, Facts, tuple[tuple[int, str], ...]]  # title, by whom, facts, and what it rests on
_POLICY_APPROVED, _CAPS_APPROVED, _BEFORE = "policy approved", "caps approved", "revision before"  # beside kinds of events
_MADE_KEYED = "The records: their hashes are made with the vault's key, so nobody without it can guess them."
_DRAWN_WITH = (
    "The secret that the noise was drawn with: the chain has a check value of it, and it is forgotten once the noise is drawn."
)
_BLIND = "Votes and reviewers' remarks that are not all in: who gave them and what they say is told when they are."
_FILES = "Whether files are still what their hashes say: that is read when somebody verifies it, and not for this page."
_OUTSIDE = "What people did outside of the site: an event says when something was noted, and not when it was decided."
_SIGNED = {  # the kinds of events of a release that are signed, as what, and where their hash stands
    APPROVED: ("approve", "hash"),
    RETURNED: ("return", "hash"),
    REJECTED: ("reject", "hash"),
    REMARKED: ("remarks", "hash"),
    PUBLISHED: ("package", "package_hash"),
    RETRACTED: ("retract", "hash"),
    SUPERSEDED: ("supersede", "hash"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in words. `facts`: what it says, by name; `rests`: the events that it could not be without, with what they are;
    `signature`: whether that counts now, empty where nothing is signed; `warnings`: what somebody should look at; `beside`: it is
    not of this release; `link`: another release that it is about."""

    number: int
    noted: str
    hash: str
    title: str
    by: str = ""
    facts: Facts = ()
    rests: tuple[tuple[int, str], ...] = ()
    signature: str = ""
    warnings: tuple[str, ...] = ()
    beside: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """A release with its entries in the order of the registry. `faults`: what is damaged, missing or counts no more; `unknown`:
    what nobody can tell from it; `steward` and `population` are empty where the chain does not say them."""

    release: ReleaseId
    state: str
    entries: tuple[Entry, ...]
    faults: tuple[str, ...]
    unknown: tuple[str, ...]
    candidate_hash: str
    package_hash: str
    steward: str = ""
    population: str = ""


def tell_history(site: Site, release: ReleaseId, *, reader: str | None = None) -> History:
    """The chain of a release of the site as it is now, for a reader, who sees their own open votes."""
    with site.open_registry(read_only=True) as registry:
        faults: list[str] = []
        try:
            trust = read_trust(site, registry)
            faults += ["The site has no list of trusted keys, so no signature can be judged."] * (trust is None)
        except NotSigned as error:
            trust = None
            faults.append(f"No signature can be judged: {error.what}")
        told = _Teller(site, registry, trust, release, reader)
        entries = tuple(sorted(told.list_entries(), key=lambda entry: entry.number))
        faults += told.list_faults()
        policy = told.policy
        return History(
            release,
            told.status.state,
            entries,
            tuple(faults),
            tuple(told.list_unknown()),
            told.status.candidate_hash or "",
            told.status.package_hash or "",
            "" if policy is None else policy.steward,
            "" if told.status.charge is None else told.status.charge.population,
        )


def list_open_votes(events: Sequence[Event]) -> list[str]:
    """The releases of which these events have a vote, or a remark of a reviewer, that is to be told to nobody yet."""
    statuses, found = read_statuses(events), dict[str, None]()
    for event in events:
        if event.release is not None and _is_hidden(events, event, statuses[event.release]):
            found[str(event.release)] = None
    return list(found)


def _is_hidden(events: Sequence[Event], event: Event, status: ReleaseStatus) -> bool:
    """Whether an event of a release is a vote, or a reviewer's remark, that is not told while votes are blind."""
    if event.kind in (APPROVED, RETURNED):
        return not is_told("reviewer", event.content["hash"], status)
    if event.kind == REMARKED:
        return not is_told(find_role(events, event), event.content["document"]["hash"], status)
    return False


class _Teller:
    """Tells the events of one release. `_last`: of each kind the last event of it so far, for what later ones rest on."""

    def __init__(self, site: Site, registry: Registry, trust: Trust | None, release: ReleaseId, reader: str | None) -> None:
        self._site, self._registry, self._trust = site, registry, trust
        self._release, self._reader = release, reader
        self._events = registry.events
        self.status = status_of(registry, release)
        self._void, self._doubted = find_void(self._events), find_doubted(self._events)
        self._charge = next((each for each in self._events if (each.kind, each.release) == (RESERVED, release)), None)
        self._last: dict[str, Event] = {}
        self._faults: list[str] = []
        self.policy = self._read_policy()

    def _read_policy(self) -> Policy | None:
        if not self.status.policy_hash:
            return None
        try:
            return policy_of(self._registry, self.status.policy_hash)
        except ReleasePipelineError as error:
            self._faults.append(f"The policy that it was made under cannot be read: {error.what}")
            return None

    def list_entries(self) -> Iterator[Entry]:
        """Everything that there is to tell, not in order."""
        beside = list(self._list_before())
        yield from beside
        for event in self._events:
            if event.release == self._release:
                yield self._tell(event)
                self._last[event.kind] = event
        yield from self._list_later()

    def list_faults(self) -> Iterator[str]:
        """What is damaged or missing, as far as a look without reading every byte can tell."""
        yield from self._faults
        status, name = self.status, str(self._release)
        if status.lost:
            yield "It was lost with the site: a backup was put back that knows less of it."
        if status.candidate_hash is not None and not (self._site.candidate(name) / EVIDENCE).exists():
            yield "The candidate's folder is not in the vault, or has no evidence in it."
        if status.package_hash is not None and not self._site.package(name).is_dir():
            yield "The package is not in the site's releases."
        if status.state in ("approved", "published", "superseded", "retracted") and self._trust is not None and self.policy:
            count = len(valid_approvers(self._registry, self._trust, status, self.policy.steward))
            if count < self.policy.review.reviewers:
                waits = " Until others approve it, it is not published."
                then = waits if status.state == "approved" else " It was published by the list of then."
                yield f"{count} of {self.policy.review.reviewers} approvals count by the list of trusted keys of now.{then}"

    def list_unknown(self) -> Iterator[str]:
        """What this chain does not tell."""
        yield _FILES
        if self._charge is not None:
            yield from (_DRAWN_WITH, _MADE_KEYED)
        if self.status.is_blind and any(_is_hidden(self._events, each, self.status) for each in self._mine()):
            yield _BLIND
        yield _OUTSIDE

    def _mine(self) -> Iterator[Event]:
        return (event for event in self._events if event.release == self._release)

    # --- What it rests on -----------------------------------------------------------------------------------------------------

    def _list_before(self) -> Iterator[Entry]:
        """The policy as it was noted, what the officer approved, and looks, before the charge."""
        charge = self._charge
        if self._release.revision > 1:
            before = ReleaseId(self._release.policy, self._release.release, self._release.revision - 1)
            earlier = [event for event in self._events if event.release == before]
            self._last[_BEFORE] = earlier[-1] if earlier else self._events[0]
        if charge is None:
            return
        digest, number = str(charge.content["policy_hash"]), charge.number
        noted = [
            event
            for event in self._events[: number - 1]
            if event.kind == POLICY and (event.content["hash"], event.content["policy"]) == (digest, self._release.policy)
        ]
        if noted:
            self._last[POLICY] = noted[-1]
            yield self._tell_policy(noted[-1])
        else:
            self._faults.append("No event before the charge has the policy that it was charged under.")
        yield from self._list_approval("policy", self._release.policy, digest, number)
        yield from self._list_approval("populations", "populations", "", number)
        yield from self._list_looks()

    def _list_approval(self, what: str, subject: str, digest: str, before: int) -> Iterator[Entry]:
        last = None
        if self._trust is not None:
            last = find_last_approval(self._registry, self._trust, what=what, subject=subject, before=before)
        if last is None or (digest and last.content["hash"] != digest):
            given = [
                event
                for event in self._events[: before - 1]
                if event.kind == APPROVED and (event.content["what"], event.content["subject"]) == (what, subject)
                if not digest or event.content["hash"] == digest
            ]
            last = given[-1] if given else None
        name = "The policy" if what == "policy" else "The caps of populations.yaml"
        if last is None:
            self._faults.append(
                f"{name} had no approval when it was charged: the site had no officer then, or its chain is damaged."
            )
            return
        self._last[_POLICY_APPROVED if what == "policy" else _CAPS_APPROVED] = last
        kind, signed = self._judge(last, what, subject, last.content["hash"])
        rests = self._rest((POLICY, "the policy")) if what == "policy" else ()
        yield Entry(
            last.number,
            last.noted,
            last.hash,
            f"{name} {'was' if what == 'policy' else 'were'} approved by the officer",
            by=last.content["name"],
            facts=(("hash approved", last.content["hash"]),),
            rests=rests,
            signature=signed,
            warnings=kind + self._doubt(last),
            beside=True,
        )

    def _list_looks(self) -> Iterator[Entry]:
        for look in find_looks_before(self._events, self._release):
            event = self._events[look.number - 1]
            facts = (("what", look.words),)
            is_run = look.on == "run"
            title = "A run read the data and released nothing" if is_run else "Somebody looked at the data before the charge"
            yield Entry(event.number, event.noted, event.hash, title, by=look.by, facts=facts, beside=True)

    def _tell_policy(self, event: Event) -> Entry:
        facts: list[tuple[str, str]] = [
            ("hash of the policy", event.content["hash"]),
            ("population", event.content["population"]),
        ]
        if self.policy is not None:
            facts += [("source", self.policy.source.words), ("steward", self.policy.steward)]
        title = "The policy was noted, which names source, method and steward"
        return Entry(event.number, event.noted, event.hash, title, facts=tuple(facts), warnings=self._doubt(event), beside=True)

    # --- What judges it later -------------------------------------------------------------------------------------------------

    def _list_later(self) -> Iterator[Entry]:
        """What happened elsewhere and concerns it: keys that were revoked, clocks, a revision in its place, a restore."""
        mine = {event.number: event for event in self._events if event.release == self._release}
        hidden = {number for number, event in mine.items() if self._hides(event)}
        signers: dict[str, list[int]] = {}
        judged = [
            *(event for number, event in mine.items() if number not in hidden),
            *map(self._last.get, (_POLICY_APPROVED, _CAPS_APPROVED)),
        ]
        for event in judged:
            if event is not None and event.content.get("signed"):
                signers.setdefault(event.content["signed"]["statement"]["signer"], []).append(event.number)
        known = {*mine, *(event.number for event in self._last.values())}
        for event in self._events:
            if event.kind == REVOKED and event.content["key"] in signers:
                yield self._tell_revoked(event, signers[event.content["key"]])
            elif event.kind == CLOCK and event.content["event"] in known:
                title = f"The officer said that the moment of event {event.content['event']} is not to be believed"
                signer = str(event.content["signed"]["statement"]["name"])
                rests = ((int(event.content["event"]), "what it is about"),)
                yield Entry(event.number, event.noted, event.hash, title, by=signer, rests=rests, beside=True)
            elif event.kind == RESTORED and str(self._release) in event.content["document"]["lost"]:
                title = "A backup was put back that knows less of it, and the officer entered what was charged"
                signer = str(event.content["signed"]["statement"]["name"])
                yield Entry(event.number, event.noted, event.hash, title, by=signer, beside=True)
            elif event.kind == OPENED and event.release == self._release.next:
                title = "The revision after it was opened, in its place"
                facts = (("reason", str(event.content["why"])),)
                yield Entry(event.number, event.noted, event.hash, title, facts=facts, beside=True, link=str(event.release))

    def _tell_revoked(self, event: Event, numbers: Sequence[int]) -> Entry:
        entry, signed = event.content["document"]["revoked"][-1], event.content["signed"]["statement"]
        taken = [number for number in numbers if self._is_taken_back(number, event.content["key"])]
        since = f"{str(entry['from'])[:19].replace('T', ' ')} UTC on"
        facts = (("key", str(event.content["key"])), ("counts no more from", since), ("reason", str(entry["why"])))
        words = (
            f"What it signed in {_name_events(taken)} counts no more." if taken else "What it signed here was before that moment."
        )
        title = f"A key of {entry['name'] or 'somebody'} was revoked"
        return Entry(
            event.number,
            event.noted,
            event.hash,
            title,
            by=str(signed["name"]),
            facts=facts,
            rests=tuple((number, "what it signed") for number in numbers),
            warnings=(words,) if taken else (),
            signature="" if taken else words,
            beside=True,
        )

    def _is_taken_back(self, number: int, signer: str) -> bool:
        office = None if self._trust is None else self._trust.office
        return office is not None and office.is_taken_back(number, signer)

    # --- What happened to it --------------------------------------------------------------------------------------------------

    def _hides(self, event: Event) -> bool:
        own = bool(self._reader) and event.content.get("name") == self._reader
        return not own and _is_hidden(self._events, event, self.status)

    def _tell(self, event: Event) -> Entry:
        """One event of the release."""
        if self._hides(event):
            title = "A reviewer remarked on it" if event.kind == REMARKED else "A reviewer voted"
            note = (("told", "when all votes are in"),)
            return Entry(event.number, event.noted, event.hash, title, facts=note, rests=self._rest((CANDIDATE, "the candidate")))
        title, by, facts, rests = self._tell_kind(event.kind, event.content)
        warnings, signature = list[str](), ""
        if event.kind in _SIGNED:
            kind, place = _SIGNED[event.kind]
            found, signature = self._judge(event, kind, str(self._release), event.content[place])
            warnings += found
        if event.number in self._void:
            warnings.append("It counts for nothing: its key was revoked from before, or whoever gave it is no reviewer any more.")
        link = str(event.content.get("successor", ""))
        warnings += self._doubt(event)
        return Entry(event.number, event.noted, event.hash, title, by, facts, rests, signature, tuple(warnings), link=link)

    def _judge(self, event: Event, kind: str, subject: str, digest: str) -> tuple[tuple[str, ...], str]:
        """What is wrong with a signature now, and that it holds: one of the two is empty."""
        if self._trust is None or not event.content.get("signed"):
            return (), ""
        signer = event.content["signed"]["statement"]["signer"]
        try:
            member = self._trust.check_event(event, kind=kind, subject=subject, digest=digest)
        except NotSigned as error:
            return (f"By the list of trusted keys as it is now: {error.what}",), ""
        return (), f"The signature holds: {member.name}, {member.role}, key {signer[:16]}."

    def _doubt(self, event: Event) -> tuple[str, ...]:
        return ("Its moment is not to be believed: the officer said so.",) if event.number in self._doubted else ()

    def _rest(self, *wanted: tuple[str, str]) -> tuple[tuple[int, str], ...]:
        """The last events of these kinds, with what they are; none where there is none."""
        return tuple((self._last[kind].number, words) for kind, words in wanted if kind in self._last)

    def _tell_kind(self, kind: str, content: Mapping[str, Any]) -> _Told:
        match kind:
            case "opened":
                return self._opened(content)
            case "reserved":
                return self._reserved(content)
            case "secret":
                facts = (("check value of the secret", str(content["check"])),)
                return "Its secret was made, and lay on the disk", "", facts, self._rest((RESERVED, "the charge"))
            case "drawn":
                facts = (("keyed hash of the masked table", str(content["masked"])),)
                rests = self._rest((SECRET, "the secret"), (RESERVED, "the charge"))
                return "Its noise was drawn, once and for all", "", facts, rests
            case "candidate":
                return self._candidate(content)
            case "approved" | "returned" | "rejected":
                return self._vote(kind, content)
            case "remarked":
                return self._remarked(content)
            case "publishing":
                return self._publishing(content)
            case "published":
                return self._published(content)
            case "superseded" | "retracted":
                return self._withdrawn(kind, content)
            case "delivering" | "delivered" | "recalled":
                return self._delivery(kind, content)
            case _:
                return self._tell_other(kind, content)

    def _tell_other(self, kind: str, content: Mapping[str, Any]) -> _Told:
        """What happened to it in the house."""
        titles = {
            BLOCKED: "It was blocked",
            FAILED: "A run of it broke off",
            SERVED: "A run of it ended well",
            PRUNED: "Its tables were removed from the vault, as its policy says",
            LOST: "It was lost with the site",
        }
        if kind in titles:
            return titles[kind], "", tuple(_name_if_said("reason", content.get("reason"))), ()
        return "Something that this page has no words for", "", (("kind", kind),), ()

    def _opened(self, content: Mapping[str, Any]) -> _Told:
        title = "It was opened" if self._release.revision == 1 else "This revision was opened"
        return title, "", (("reason", str(content["why"])),), self._rest((_BEFORE, "the revision before it"))

    def _reserved(self, content: Mapping[str, Any]) -> _Told:
        account = f"{content['spent']} of {content['cap']} ({content['unit']})"
        facts: list[tuple[str, str]] = [
            ("charged to", content["population"]),
            ("account after it", account),
            ("records", format_count(content["records"])),
            ("keyed hash of the records", content["source"]),
            ("hash of the policy", content["policy_hash"]),
        ]
        if self.status.charge is not None and self.policy is not None:
            facts.insert(1, ("charged", _describe_loss(self.status, content["unit"])))
        facts += _name_if_said("counts with what was charged to", ", ".join(content.get("carries", ())))
        rests = self._rest(
            (OPENED, "the opening"),
            (POLICY, "the policy"),
            (_POLICY_APPROVED, "its approval"),
            (_CAPS_APPROVED, "the approval of the caps"),
        )
        return "Its loss was charged, before anything random", "", tuple(facts), rests

    def _candidate(self, content: Mapping[str, Any]) -> _Told:
        facts: list[tuple[str, str]] = [("hash of the candidate", content["candidate_hash"])]
        known: Mapping[str, Any] = content["facts"]
        facts += _name_if_said("claim", known.get("claim"))
        if "rows_in" in known and "rows_out" in known:
            facts.append(("rows", f"{format_count(known['rows_out'])} of {count_of(known['rows_in'], 'record')}"))
        if content["candidate_hash"] == self.status.candidate_hash:
            facts += self._list_gates()
        return "The candidate was frozen", "", tuple(facts), self._rest((DRAWN, "the noise"), (RESERVED, "the charge"))

    def _list_gates(self) -> list[tuple[str, str]]:
        folder = self._site.candidate(str(self._release))
        try:
            evidence = load_evidence(folder) if (folder / EVIDENCE).exists() else None
        except (ReleasePipelineError, OSError, ValueError):
            self._faults.append("The evidence of the candidate cannot be read.")
            evidence = None
        if evidence is None:
            return []
        judged = [] if self.policy is None else list(list_gates(self.policy, evidence))
        checks = ("checks of the data", f"{sum(evidence.checks_passed.values())} passed")
        return [("gates", f"{sum(gate.passed for gate in judged)} of {len(judged)} passed"), checks] if judged else [checks]

    def _vote(self, kind: str, content: Mapping[str, Any]) -> _Told:
        deeds = {APPROVED: "approved it", RETURNED: "returned it to its steward", REJECTED: "rejected it, for good"}
        why = str(content["signed"]["statement"]["why"])
        facts = (("hash of the candidate", str(content["hash"])), *((("reason", why),) if why else ()))
        return f"A reviewer {deeds[kind]}", str(content["name"]), facts, self._rest((CANDIDATE, "the candidate"))

    def _remarked(self, content: Mapping[str, Any]) -> _Told:
        document = content["document"]
        facts = (("remarks", str(len(document["remarks"]))), ("hash of the candidate", str(document["hash"])))
        return "Somebody remarked on passages of it", str(content["name"]), facts, self._rest((CANDIDATE, "the candidate"))

    def _publishing(self, content: Mapping[str, Any]) -> _Told:
        facts = (("hash of the candidate", str(content["candidate_hash"])),)
        rests = self._rest((CANDIDATE, "the candidate"), (APPROVED, "the last approval"))
        return "Its publication was begun: the head of the chain that its package names", str(content["by"]), facts, rests

    def _published(self, content: Mapping[str, Any]) -> _Told:
        facts = (("hash of the package", str(content["package_hash"])),)
        rests = self._rest((PUBLISHING, "the intent"), (CANDIDATE, "the candidate"), (APPROVED, "the last approval"))
        return "It was published", str(content["signed"]["statement"]["name"]), facts, rests

    def _withdrawn(self, kind: str, content: Mapping[str, Any]) -> _Told:
        title = "It was retracted" if kind == RETRACTED else "Its readers were referred to a later revision"
        facts = [*_name_if_said("reason", content.get("reason")), *_name_if_said("revision", content.get("successor"))]
        facts.append(("hash of the package", str(content["hash"])))
        rests = self._rest((PUBLISHED, "the publication"), (DELIVERED, "a delivery"))
        return title, str(content["signed"]["statement"]["name"]), tuple(facts), rests

    def _delivery(self, kind: str, content: Mapping[str, Any]) -> _Told:
        facts = [("target", f"{content['target']} ({content['address']})"), ("hash of the package", str(content["package_hash"]))]
        facts += _name_if_said("where people find it", content.get("where"))
        facts += _name_if_said("files put", ", ".join(content.get("put", ())))
        facts += _name_if_said("files removed", ", ".join(content.get("removed", ())))
        facts += _name_if_said("what could not be done there", content.get("undone"))
        if kind == RECALLED:
            state = str(content["state"])
            return f"A target was told that it was {state}", "", tuple(facts), self._rest((state, f"that it was {state}"))
        if kind == DELIVERED:
            rests = self._rest((DELIVERING, "the beginning of it"), (PUBLISHED, "the publication"))
            return "It was delivered to a target", "", tuple(facts), rests
        return "Its delivery to a target was begun", "", tuple(facts), self._rest((PUBLISHED, "the publication"))


def _describe_loss(status: ReleaseStatus, unit: str) -> str:
    """What was charged, in the cap's unit of then."""
    charge = status.charge
    if charge is None:
        return ""
    if unit == "releases":
        return "1"
    _, definition, scope = unit.split(", ")
    return f"{format_amount(charge.loss.of(definition.lower(), scope))} ({unit})"


def _name_if_said(name: str, text: Any) -> list[tuple[str, str]]:
    return [(name, str(text))] if text else []


def _name_events(numbers: Sequence[int]) -> str:
    return f"event{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
