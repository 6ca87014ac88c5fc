"""The chain of one release as people read it: every event of it once, the events that it rests on, and those that judge it later.

`KINDS` says of each kind of event what it is called, what it says, and what it could not be without. A vote is only said to exist
until all are in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.accepted import RESTORED
from release_pipeline.flow.evidence import EVIDENCE
from release_pipeline.flow.exploring.trials import find_looks_before
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.deliveries import RECALLED
from release_pipeline.flow.reviewing.remarks import find_role, is_told
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import (
    APPROVED,
    OPENED,
    POLICY,
    REMARKED,
    RETURNED,
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
from release_pipeline.privacy.figures import format_count
from release_pipeline.store.ledger import RESERVED
from release_pipeline.store.registry import Event, Registry, ReleaseId

Facts: TypeAlias = tuple[tuple[str, str], ...]
_POLICY_APPROVED, _CAPS_APPROVED, _BEFORE = "policy approved", "caps approved", "revision before"  # beside kinds of events
_UNKNOWN = (
    "Whether files are still what their hashes say: that is read when somebody verifies it, and not for this page.",
    "What people did outside of the site: an event says when something was noted, and not when it was decided.",
)
_KEYED = (
    "The secret that the noise was drawn with: the chain has a check value of it, and it is forgotten once the noise is drawn.",
    "The records: their hashes are made with the vault's key, so nobody without it can guess them.",
)
_BLIND = "Votes and reviewers' remarks that are not all in: who gave them and what they say is told when they are."


@dataclass(frozen=True, slots=True)
class Kind:
    """How a kind of event is described. `facts`: labels, and where the event's content has the text. `rests`: kinds of the events
    that it could not be without. `by`: where the content names who did it. `signed`: as what, and where the content has the
    hash."""

    title: str
    facts: Facts = ()
    rests: tuple[str, ...] = ()
    by: str = ""
    signed: tuple[str, str] | None = None


_REASON, _SIGNER = ("reason", "reason"), "signed.statement.name"
_PACKAGE = ("hash of the package", "package_hash")
_VOTED: Facts = (("hash of the candidate", "hash"), ("reason", "signed.statement.why"))
_TARGET: Facts = (("target", "target"), ("address", "address"), _PACKAGE)
_WITHDRAWN: Facts = (_REASON, ("revision", "successor"), ("hash of the package", "hash"))

KINDS = {
    "opened": Kind("It was opened", (("reason", "why"),), (_BEFORE,)),
    "reserved": Kind(
        "Its loss was charged, before anything random",
        (
            ("charged to", "population"),
            ("records", "records"),
            ("keyed hash of the records", "source"),
            ("hash of the policy", "policy_hash"),
            ("counts with what was charged to", "carries"),
        ),
        ("opened", "policy", _POLICY_APPROVED, _CAPS_APPROVED),
    ),
    "secret": Kind("Its secret was made, and lay on the disk", (("check value of the secret", "check"),), ("reserved",)),
    "drawn": Kind(
        "Its noise was drawn, once and for all", (("keyed hash of the masked table", "masked"),), ("secret", "reserved")
    ),
    "candidate": Kind(
        "The candidate was frozen",
        (
            ("hash of the candidate", "candidate_hash"),
            ("claim", "facts.claim"),
            ("rows", "facts.rows_out"),
            ("of records", "facts.rows_in"),
        ),
        ("drawn", "reserved"),
    ),
    "approved": Kind("A reviewer approved it", _VOTED, ("candidate",), "name", ("approve", "hash")),
    "returned": Kind("A reviewer returned it to its steward", _VOTED, ("candidate",), "name", ("return", "hash")),
    "rejected": Kind("A reviewer rejected it, for good", _VOTED, ("candidate",), "name", ("reject", "hash")),
    "remarked": Kind(
        "Somebody remarked on passages of it",
        (("hash of the candidate", "document.hash"),),
        ("candidate",),
        "name",
        ("remarks", "hash"),
    ),
    "publishing": Kind(
        "Its publication was begun: the head of the chain that its package names",
        (("hash of the candidate", "candidate_hash"),),
        ("candidate", "approved"),
        "by",
    ),
    "published": Kind(
        "It was published", (_PACKAGE,), ("publishing", "candidate", "approved"), _SIGNER, ("package", "package_hash")
    ),
    "superseded": Kind(
        "Its readers were referred to a later revision", _WITHDRAWN, ("published", "delivered"), _SIGNER, ("supersede", "hash")
    ),
    "retracted": Kind("It was retracted", _WITHDRAWN, ("published", "delivered"), _SIGNER, ("retract", "hash")),
    "delivering": Kind("Its delivery to a target was begun", _TARGET, ("published",)),
    "delivered": Kind(
        "It was delivered to a target",
        (*_TARGET, ("where people find it", "where"), ("files put", "put"), ("files removed", "removed")),
        ("delivering", "published"),
    ),
    "recalled": Kind(
        "A target was told that it was superseded or retracted",
        (*_TARGET, ("state", "state"), ("what could not be done there", "undone")),
    ),
    "blocked": Kind("It was blocked", (_REASON,)),
    "failed": Kind("A run of it broke off", (_REASON,)),
    "served": Kind("A run of it ended well"),
    "pruned": Kind("Its tables were removed from the vault, as its policy says"),
    "lost": Kind("It was lost with the site", (_REASON,)),
    "policy": Kind(
        "The policy was noted, which names source, method and steward",
        (("hash of the policy", "hash"), ("population", "population")),
    ),
}

_NAMES = {  # of what an event rests on
    _BEFORE: "the revision before it",
    "opened": "the opening",
    "policy": "the policy",
    _POLICY_APPROVED: "its approval",
    _CAPS_APPROVED: "the approval of the caps",
    "reserved": "the charge",
    "secret": "the secret",
    "drawn": "the noise",
    "candidate": "the candidate",
    "approved": "the last approval",
    "publishing": "the intent",
    "published": "the publication",
    "delivering": "the beginning of it",
    "delivered": "a delivery",
    "superseded": "that it was superseded",
    "retracted": "that it was retracted",
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
        chain = _Chain(site, registry, trust, release, reader)
        entries = tuple(sorted(chain.list_entries(), key=lambda entry: entry.number))
        status, policy = chain.status, chain.policy
        return History(
            release,
            status.state,
            entries,
            (*faults, *chain.list_faults()),
            tuple(chain.list_unknown()),
            status.candidate_hash or "",
            status.package_hash or "",
            "" if policy is None else policy.steward,
            "" if status.charge is None else status.charge.population,
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


class _Chain:
    """The events of one release in words. `_last`: of each kind the last event so far, which later ones rest on."""

    def __init__(self, site: Site, registry: Registry, trust: Trust | None, release: ReleaseId, reader: str | None) -> None:
        self._site, self._registry, self._trust = site, registry, trust
        self._release, self._reader = release, reader
        self._events = registry.events
        self._mine = [event for event in self._events if event.release == release]
        self.status = status_of(registry, release)
        self._void, self._doubted = find_void(self._events), find_doubted(self._events)
        self._charge = next((event for event in self._mine if event.kind == RESERVED), None)
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
        yield from self._list_before()
        for event in self._mine:
            yield self._describe(event)
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
        yield from _UNKNOWN
        yield from _KEYED if self._charge is not None else ()
        if self.status.is_blind and any(_is_hidden(self._events, event, self.status) for event in self._mine):
            yield _BLIND

    def _list_before(self) -> Iterator[Entry]:
        """What the charge rests on: the policy as it was noted, what the officer approved, looks."""
        charge, mine = self._charge, self._release
        if mine.revision > 1:
            before = ReleaseId(mine.policy, mine.release, mine.revision - 1)
            earlier = [event for event in self._events if event.release == before]
            self._last[_BEFORE] = earlier[-1] if earlier else self._events[0]
        if charge is None:
            return
        digest = str(charge.content["policy_hash"])
        before_it = self._events[: charge.number - 1]
        noted = [event for event in before_it if event.kind == POLICY and event.content["policy"] == mine.policy]
        noted = [event for event in noted if event.content["hash"] == digest]
        if noted:
            self._last[POLICY] = noted[-1]
            yield replace(self._describe(noted[-1]), beside=True)
        else:
            self._faults.append("No event before the charge has the policy that it was charged under.")
        yield from self._list_approval("policy", mine.policy, digest, before_it)
        yield from self._list_approval("populations", "populations", "", before_it)
        for look in find_looks_before(self._events, mine):
            title = "A run read the data and released nothing" if look.on == "run" else "Somebody looked at the data"
            yield self._beside(self._events[look.number - 1], title, look.by, (("what", look.words),))

    def _list_approval(self, what: str, subject: str, digest: str, before: Sequence[Event]) -> Iterator[Entry]:
        """What the officer approved before the charge: what counts now, or else what was given."""
        last = None
        if self._trust is not None:
            last = find_last_approval(self._registry, self._trust, what=what, subject=subject, before=len(before) + 1)
        if last is None or (digest and last.content["hash"] != digest):
            given = [event for event in before if event.kind == APPROVED and event.content["subject"] == subject]
            given = [
                event
                for event in given
                if event.content["what"] == what and event.content["hash"] == (digest or event.content["hash"])
            ]
            last = given[-1] if given else None
        name = "The policy" if what == "policy" else "The caps of populations.yaml"
        if last is None:
            self._faults.append(
                f"{name} had no approval when it was charged: the site had no officer then, or its chain is damaged."
            )
            return
        self._last[_POLICY_APPROVED if what == "policy" else _CAPS_APPROVED] = last
        warnings, signature = self._judge(last, what, subject, last.content["hash"])
        facts = (("hash approved", str(last.content["hash"])),)
        entry = self._beside(last, f"{name}: approved by the officer", last.content["name"], facts)
        rests = self._find_rests(POLICY) if what == "policy" else ()
        yield replace(entry, rests=rests, signature=signature, warnings=warnings + entry.warnings)

    def _list_later(self) -> Iterator[Entry]:
        """What happened elsewhere and concerns it: keys that were revoked, clocks, a revision in its place, a restore."""
        told = [event for event in self._mine if not self._hides(event)]
        told += [event for kind in (_POLICY_APPROVED, _CAPS_APPROVED) if (event := self._last.get(kind)) is not None]
        signers: dict[str, list[int]] = {}
        for event in told:
            if event.content.get("signed"):
                signers.setdefault(event.content["signed"]["statement"]["signer"], []).append(event.number)
        known = {event.number for event in (*self._mine, *self._last.values())}
        for event in self._events:
            content = event.content
            signer = str(_find(content, _SIGNER))
            if event.kind == REVOKED and content["key"] in signers:
                yield self._describe_revoked(event, signers[content["key"]], signer)
            elif event.kind == CLOCK and content["event"] in known:
                title = f"The officer said that the moment of event {content['event']} is not to be believed"
                yield replace(self._beside(event, title, signer), rests=((int(content["event"]), "what it is about"),))
            elif event.kind == RESTORED and str(self._release) in content["document"]["lost"]:
                title = "A backup was put back that knows less of it, and the officer entered what was charged"
                yield self._beside(event, title, signer)
            elif event.kind == OPENED and event.release == self._release.next:
                entry = self._beside(event, "The revision after it was opened, in its place", facts=(("reason", content["why"]),))
                yield replace(entry, link=str(event.release))

    def _describe_revoked(self, event: Event, numbers: Sequence[int], signer: str) -> Entry:
        key, entry = str(event.content["key"]), event.content["document"]["revoked"][-1]
        office = None if self._trust is None else self._trust.office
        taken = [str(number) for number in numbers if office is not None and office.is_taken_back(number, key)]
        since = f"{str(entry['from'])[:19].replace('T', ' ')} UTC on"
        facts = (("key", key), ("counts no more from", since), ("reason", str(entry["why"])))
        several = f"event{'s' * (len(taken) > 1)} {', '.join(taken)}"
        words = f"What it signed in {several} counts no more." if taken else "What it signed here was before that moment."
        return replace(
            self._beside(event, f"A key of {entry['name'] or 'somebody'} was revoked", signer, facts),
            rests=tuple((number, "what it signed") for number in numbers),
            warnings=(words,) if taken else (),
            signature="" if taken else words,
        )

    def _beside(self, event: Event, title: str, by: str = "", facts: Facts = ()) -> Entry:
        """An event that is not of this release."""
        return Entry(event.number, event.noted, event.hash, title, by, facts, warnings=self._doubt(event), beside=True)

    def _hides(self, event: Event) -> bool:
        is_own = bool(self._reader) and event.content.get("name") == self._reader
        return not is_own and _is_hidden(self._events, event, self.status)

    def _describe(self, event: Event) -> Entry:
        """One event of the release, or the policy that it was charged under."""
        kind = KINDS.get(event.kind, Kind("Something that this page has no words for"))
        facts = tuple(self._list_facts(event, kind)) if event.kind in KINDS else (("kind", event.kind),)
        by, signed = str(_find(event.content, kind.by)), kind.signed
        if self._hides(event):
            title = "A reviewer remarked on it" if event.kind == REMARKED else "A reviewer voted"
            kind, facts, by, signed = replace(kind, title=title), (("told", "when all votes are in"),), "", None
        warnings, signature = (), ""
        if signed is not None:
            warnings, signature = self._judge(event, signed[0], str(self._release), event.content[signed[1]])
        if event.number in self._void:
            warnings += ("It counts for nothing: its key was revoked from before, or whoever gave it is no reviewer any more.",)
        rests = self._find_rests(event.content["state"]) if event.kind == RECALLED else self._find_rests(*kind.rests)
        link, warnings = str(event.content.get("successor", "")), warnings + self._doubt(event)
        return Entry(event.number, event.noted, event.hash, kind.title, by, facts, rests, signature, warnings, link=link)

    def _list_facts(self, event: Event, kind: Kind) -> Iterator[tuple[str, str]]:
        """What an event says, without what it leaves empty."""
        content = event.content
        for label, path in kind.facts:
            value = _find(content, path)
            if value not in ("", None, (), []):
                yield label, _format(value)
        if event.kind == RESERVED:
            yield "account after it", f"{content['spent']} of {content['cap']} ({content['unit']})"
            if self.status.charge is not None and self.policy is not None:
                yield "charged", _describe_loss(self.status, content["unit"])
        if event.kind == POLICY and self.policy is not None:
            yield from (("source", self.policy.source.words), ("steward", self.policy.steward))

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

    def _find_rests(self, *kinds: str) -> tuple[tuple[int, str], ...]:
        """The last events of these kinds, with what they are; none where there is none."""
        return tuple((self._last[kind].number, _NAMES[kind]) for kind in kinds if kind in self._last)


def _find(content: Any, path: str) -> Any:
    """What the content of an event has under keys with dots between them; empty where it has nothing."""
    for key in path.split(".") if path else [""]:
        content = content.get(key, "") if content else ""
    return content


def _format(value: Any) -> str:
    """A value of an event for a person: numbers with separators, several texts in a row."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, cast("list[Any]", value)))
    return format_count(value) if isinstance(value, int) else str(value)


def _describe_loss(status: ReleaseStatus, unit: str) -> str:
    """What was charged, in the cap's unit of then."""
    assert status.charge is not None  # noqa: S101  for the type checker
    if unit == "releases":
        return "1"
    _, definition, scope = unit.split(", ")
    return f"{format_amount(status.charge.loss.of(definition.lower(), scope))} ({unit})"
