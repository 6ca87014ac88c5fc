"""From events to state: what the registry records about each release, series on hold, and noted policies.

    open -> reserved -> drawn -> candidate -> approved | returned | rejected -> publishing -> published -> superseded | retracted

and `blocked`, with a reason, until it gets further. `MOVES` is the one table of what may follow what.

Votes are blind: a candidate stays one until as many people have voted as must approve it, and only then is approved or returned.
So nothing that shows the state of a release reveals an open vote. Whose votes are awaited never depends on their content:
otherwise a change of the list of trusted keys, which everybody sees, would reveal it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from release_pipeline.errors import Blocked, Held, WrongUsage
from release_pipeline.ledger.office import read_office
from release_pipeline.policy.documents import Moment
from release_pipeline.store.files import check_line, check_name
from release_pipeline.store.ledger import LOST, RESERVED, Charge, read_charge
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.verifier.office import Office

OPENED, SECRET, DRAWN, CANDIDATE, BLOCKED = "opened", "secret", "drawn", "candidate", "blocked"
APPROVED, REJECTED, RETURNED = "approved", "rejected", "returned"
REMARKED = "remarked"  # somebody remarked on passages of a candidate or a policy: it changes no state
PUBLISHING, PUBLISHED, RETRACTED, SUPERSEDED = "publishing", "published", "retracted", "superseded"
FAILED, SERVED, PRUNED = "failed", "served", "pruned"
HELD, RESUMED = "held", "resumed"  # from one to the other, nothing of a policy is opened or charged
POLICY = "policy"  # a policy that was seen for the first time, or changed

LOST_WORDS = "it was lost: a backup was put back that knows less of it."

MOVES: dict[str, frozenset[str]] = {  # for each kind of event the states in which it is allowed
    OPENED: frozenset({""}),
    RESERVED: frozenset({"", "open", "blocked"}),
    SECRET: frozenset({"reserved", "blocked"}),
    DRAWN: frozenset({"reserved", "blocked"}),
    CANDIDATE: frozenset({"drawn", "blocked", "candidate", "approved", "returned"}),
    BLOCKED: frozenset({"", "open", "reserved", "drawn", "blocked"}),
    APPROVED: frozenset({"candidate", "returned", "approved", "publishing"}),
    RETURNED: frozenset({"candidate", "returned", "approved", "publishing"}),
    REJECTED: frozenset({"candidate", "returned", "approved", "publishing"}),  # nothing is public before `published` is noted
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
MAY_REMARK = frozenset({"candidate", "returned", "approved", "rejected", "publishing"})  # states in which people may remark
_VERDICTS = {APPROVED: "approve", RETURNED: "return", REJECTED: "reject"}  # the vote that each kind of event records
_DONE = {PUBLISHING: "published", CANDIDATE: "frozen", SECRET: "drawn", RESERVED: "charged"}  # what an event does


@dataclass(frozen=True, slots=True)
class Vote:
    """A reviewer's signed vote on a candidate with this hash, in the event of this number: `approve`, `return` or `reject`.
    `counts`: the person is a reviewer now, and the key was not revoked from an earlier moment, so it is one of the awaited
    votes."""

    number: int
    name: str
    verdict: str
    hash: str
    noted: str
    why: str = ""
    counts: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """One release as the events have it.

    `secret` is the check value of its secret, once that was on the disk; `drawn` the keyed hash of the masked table; `failed` how
    the last run ended, if it broke off without a stated reason; `replaced` the revision that came after it; `code` the kind of
    reason for a block, if it was noted; `moments` when each kind of event last happened, `approved` and `returned` being when the
    votes decided it. `votes`: all counting votes, as noted: the signatures are verified before anything is published;
    `disclosed`: the candidates whose votes may be shown, by hash, and since which event; `decided`: the events by which votes
    moved it, with the new state.
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
    lost: bool = False  # after a restore: more happened to it than the registry has
    replaced: ReleaseId | None = None
    package_hash: str | None = None
    package_signed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    successor: str = ""
    code: str = ""
    moments: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    votes: tuple[Vote, ...] = field(default=(), compare=False)
    disclosed: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)
    decided: tuple[tuple[int, str], ...] = field(default=(), compare=False)

    @property
    def approvers(self) -> list[str]:
        """Return who approved the current candidate, as their last vote. Not to be shown while votes are blind."""
        return sorted(name for name, vote in last_votes(self.votes, self.candidate_hash).items() if vote.verdict == "approve")

    @property
    def returners(self) -> list[str]:
        """Return whose last vote returned the current candidate. Not to be shown while votes are blind."""
        return sorted(name for name, vote in last_votes(self.votes, self.candidate_hash).items() if vote.verdict == "return")

    @property
    def voters(self) -> list[str]:
        """Return who voted on the current candidate, in any way: this may always be shown."""
        return sorted(_list_voters(self.votes, self.candidate_hash))

    @property
    def is_blind(self) -> bool:
        """Return whether there is a candidate with votes outstanding, so that votes are shown only to their voters."""
        return self.candidate_hash is not None and self.candidate_hash not in self.disclosed


def last_votes(votes: Iterable[Vote], digest: str | None) -> dict[str, Vote]:
    """Return the last vote of each person on the candidate with this hash."""
    return {vote.name: vote for vote in votes if vote.hash == digest}


def _list_voters(votes: Iterable[Vote], digest: str | None) -> set[str]:
    """Return who gave an awaited vote on the candidate with this hash: any of their votes, not only the last, because which of
    them counts for nothing depends on their content."""
    return {vote.name for vote in votes if vote.hash == digest and vote.counts}


@dataclass(frozen=True, slots=True)
class Hold:
    """That the series of a policy is held: since when, by whom, and why."""

    policy: Annotated[str, "whose series"]
    since: Annotated[Moment, "when `hold` was given"]
    by: Annotated[str, "by whom, as they said"]
    why: Annotated[str, "the reason that they gave"]

    @property
    def description(self) -> str:
        """Return a sentence on who holds it, since when and why."""
        return f"the series is held since {self.since[:10]} by {self.by}: {self.why}"


@dataclass(frozen=True, slots=True)
class SiteState:
    """The state from some events: every release that something happened to, every series on hold by its policy, and by policy
    name the events that noted a policy. `void`: the votes that count for nothing; `gone`: those that are not awaited."""

    events: tuple[Event, ...] = ()
    void: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    releases: Mapping[ReleaseId, ReleaseStatus] = field(default_factory=dict[ReleaseId, ReleaseStatus])
    holds: Mapping[str, Hold] = field(default_factory=dict[str, Hold])
    policies: Mapping[str, tuple[Event, ...]] = field(default_factory=dict[str, tuple[Event, ...]])


_read = SiteState()  # the last events that were read: a registry continues from there, and is asked often


def read_statuses(events: Iterable[Event]) -> dict[ReleaseId, ReleaseStatus]:
    """Return the status of every release that something happened to."""
    return dict(read_state(events).releases)


def read_state(events: Iterable[Event]) -> SiteState:
    """Return the state after these events; continues from the last that were read."""
    global _read
    events, before = tuple(events), _read
    known, (void, gone) = len(before.events), _judge_votes(events)
    same = known <= len(events) and all(map(operator.is_, before.events, events))
    changed = (void ^ before.void) | (gone ^ before.gone)
    if not same or any(number <= known for number in changed):  # different events, or some no longer count
        before, known = SiteState(), 0
    releases, holds, policies = dict(before.releases), dict(before.holds), dict(before.policies)
    drafts: dict[ReleaseId, dict[str, Any]] = {}
    for event in events[known:]:
        if event.release is not None and event.number not in void:
            _draft(event, event.release, drafts, releases, counts=event.number not in gone)
        elif event.kind == HELD:
            holds[event.content["policy"]] = Hold(event.content["policy"], event.noted, event.content["by"], event.content["why"])
        elif event.kind == RESUMED:
            holds.pop(event.content["policy"], None)
        elif event.kind == POLICY:
            policies[event.content["policy"]] = (*policies.get(event.content["policy"], ()), event)
    for release, draft in drafts.items():
        releases[release] = ReleaseStatus(**draft)
    _read = SiteState(events, void, gone, releases, holds, policies)
    return _read


def _judge_votes(events: Sequence[Event]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the numbers of the votes that count for nothing, and of the approvals and returns that are not awaited, because
    their voter is no longer a reviewer, or their key was revoked from an earlier moment. The latter do not depend on the content
    of any vote.

    Rejections and returns count for nothing if they were signed with a key that was revoked from an earlier moment: otherwise a
    thief of a reviewer's key could end or stop every release that waits, and each costs a charge. The same holds for approvals
    that would lift a return, and for returns by somebody who is no longer a reviewer, because nobody could lift these. Any other
    approval is judged when it is counted, on publication.
    """
    votes = [event for event in events if event.release is not None and event.kind in (APPROVED, RETURNED)]
    rejected = [event for event in events if event.kind == REJECTED]
    if not votes and not rejected:
        return frozenset(), frozenset()
    returned = {(event.release, event.content["name"]) for event in votes if event.kind == RETURNED}
    office = read_office(events)
    revoked = set[int]()
    if office is not None and office.revoked:
        signers = {event.number: event.content["signed"]["statement"]["signer"] for event in (*votes, *rejected)}
        revoked = {number for number, signer in signers.items() if office.is_taken_back(number, signer)}
    reviewers = _list_reviewers(events, office)
    left = set[int]()
    if reviewers is not None:
        left = {event.number for event in votes if event.content["name"] not in reviewers}
    void = {event.number for event in rejected if event.number in revoked}
    for event in votes:
        if event.kind == RETURNED:
            ends = event.number in revoked or event.number in left
        else:
            ends = event.number in revoked and (event.release, event.content["name"]) in returned
        if ends:
            void.add(event.number)
    return frozenset(void), frozenset(event.number for event in votes if event.number in revoked or event.number in left)


def _list_reviewers(events: Sequence[Event], office: Office | None) -> frozenset[str] | None:
    """Return the reviewers in the last valid list of trusted keys; None if there is no list."""
    if office is not None and office.lists:
        return frozenset(name for name, key in office.lists[-1][1].items() if key.role == "reviewer")
    last = next((event for event in reversed(events) if event.kind == "trusted"), None)
    return None if last is None else frozenset(n for n, key in last.content["keys"].items() if key["role"] == "reviewer")


def _draft(
    event: Event,
    release: ReleaseId,
    drafts: dict[ReleaseId, dict[str, Any]],
    releases: Mapping[ReleaseId, ReleaseStatus],
    *,
    counts: bool = True,
) -> None:
    """Update the drafts with the content of an event."""
    mine, payload = _begin_draft(release, drafts, releases), event.content
    disclosed_before = mine["disclosed"]
    if event.kind in _STATE:
        moments = {**mine["moments"], BLOCKED if event.kind == LOST else event.kind: event.noted}
        if event.kind == CANDIDATE:  # a different candidate from the approved one
            moments.pop(APPROVED, None)
            moments.pop(RETURNED, None)
        mine.update(state=_STATE[event.kind], reason="", code="", since=event.noted, failed="", moments=moments)
    match event.kind:
        case "opened":
            mine.update(why=payload["why"])
            if release.revision > 1:
                earlier = ReleaseId(release.policy, release.release, release.revision - 1)
                _begin_draft(earlier, drafts, releases).update(replaced=release)
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
            if event.kind == REJECTED:
                disclosed = {str(payload.get("hash", mine["candidate_hash"])): event.number, **mine["disclosed"]}
                decided = (*mine["decided"], (event.number, REJECTED))
                mine.update(votes=(*mine["votes"], _read_vote(event, counts=counts)), disclosed=disclosed, decided=decided)
        case "approved" | "returned":
            _take_vote(event, mine, counts=counts)
        case "publishing":  # it was approved then, even if reviewers have left since
            mine.update(disclosed={str(mine["candidate_hash"]): event.number, **mine["disclosed"]})
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
    if mine["disclosed"] is not disclosed_before:
        _tell_given_up(event, release, drafts, releases)


def _tell_given_up(
    event: Event, release: ReleaseId, drafts: dict[ReleaseId, dict[str, Any]], releases: Mapping[ReleaseId, ReleaseStatus]
) -> None:
    """Note in the drafts that votes on candidates given up before this one are shown together with its own. Not earlier:
    otherwise anyone who may make a revision could open votes by making one."""
    for revision in range(release.revision - 1, 0, -1):
        given_up = _begin_draft(ReleaseId(release.policy, release.release, revision), drafts, releases)
        if given_up["candidate_hash"] is not None:
            given_up.update(disclosed={given_up["candidate_hash"]: event.number, **given_up["disclosed"]})


def _read_vote(event: Event, *, counts: bool) -> Vote:
    """Return the vote in an event; its reason is the signed text."""
    payload = event.content
    why = str(payload["signed"]["statement"]["why"])
    return Vote(event.number, str(payload["name"]), _VERDICTS[event.kind], str(payload["hash"]), event.noted, why, counts)


def _take_vote(event: Event, mine: dict[str, Any], *, counts: bool) -> None:
    """Add an approval or a return to the draft. Once as many people have voted as must approve, the candidate is returned while
    the last vote of anybody returns it, and approved when enough approve it; then every later vote is shown at once."""
    payload, digest = event.content, mine["candidate_hash"]
    mine["votes"] = (*mine["votes"], _read_vote(event, counts=counts))
    before = mine["state"]
    votes = last_votes(mine["votes"], digest)
    returned = sorted((vote for vote in votes.values() if vote.verdict == "return"), key=lambda vote: vote.number)
    enough = sum(vote.verdict == "approve" for vote in votes.values()) >= payload["needed"]
    if digest not in mine["disclosed"] and len(_list_voters(mine["votes"], digest)) >= payload["needed"]:
        mine["disclosed"] = {**mine["disclosed"], digest: event.number}
    are_in = digest in mine["disclosed"]
    if before not in ("candidate", "returned", "approved") and (before, event.kind) != ("publishing", RETURNED):
        return
    state = "returned" if returned and are_in else "approved" if enough and are_in and not returned else "candidate"
    reason = "; ".join(f"returned by {vote.name}: {vote.why}" for vote in returned) if state == "returned" else ""
    mine.update(state=state, reason=reason)
    if state != before:
        moments = {**mine["moments"], **({state: event.noted} if state != "candidate" else {})}
        mine.update(since=event.noted, moments=moments, decided=(*mine["decided"], (event.number, state)))


def _begin_draft(
    release: ReleaseId, drafts: dict[ReleaseId, dict[str, Any]], releases: Mapping[ReleaseId, ReleaseStatus]
) -> dict[str, Any]:
    """Return the mutable fields of a release: making a frozen status thousands of times takes seconds."""
    if release not in drafts:
        status = releases.get(release, ReleaseStatus(release))
        drafts[release] = {part.name: getattr(status, part.name) for part in dataclasses.fields(status)}
    return drafts[release]


def move(registry: Registry, release: ReleaseId, kind: str, **content: Any) -> Event:
    """Add an event of a release and return it, if it may follow the release's state; raises `Blocked` otherwise."""
    check_move(registry, release, kind)
    return registry.add(kind, release, **content)


def check_move(registry: Registry, release: ReleaseId, kind: str) -> None:
    """Raise `Blocked` if an event of this kind is not allowed now."""
    status = read_statuses(registry.events).get(release)
    if status is not None and status.lost:
        raise Blocked(
            LOST_WORDS,
            where=str(release),
            remedy=f"Only {release.next} can replace it, with a fresh charge.",
        )
    state = "" if status is None or not status.since else status.state  # a run that broke off before it was opened is no state
    if state not in MOVES[kind]:
        raise Blocked(f"it is {state or 'not opened'}, and cannot be {_DONE.get(kind, kind)}.", where=str(release))


def status_of(registry: Registry, release: ReleaseId) -> ReleaseStatus:
    """Return the status of one release, even if nothing has happened to it."""
    return read_statuses(registry.events).get(release, ReleaseStatus(release))


def list_statuses(site: Site) -> dict[ReleaseId, ReleaseStatus]:
    """Return the current status of every release of a site that something happened to."""
    with site.open_registry(read_only=True) as registry:
        return read_statuses(registry.events)


def latest_revision(statuses: Iterable[ReleaseId], policy: str, release: str) -> ReleaseId:
    """Return the revision that a run works on: the last that was opened, or the first."""
    mine = [known.revision for known in statuses if (known.policy, known.release) == (policy, release)]
    return ReleaseId(policy, release, max(mine, default=1))


# Series on hold: from `held` to `resumed` nothing of the policy is opened or charged, for anyone.
#
# Both are events of the registry, with who and why. Nobody signs them: holding spends nothing, and resuming only allows what
# policy, caps and approvals allow anyway. Releases that were charged before go on to their candidates, and are reviewed and
# published as usual.


def find_hold(events: Iterable[Event], policy: str) -> Hold | None:
    """Return the hold of a policy's series; None if it is not held."""
    return read_state(events).holds.get(policy)


def read_hold(site: Site, policy: str) -> Hold | None:
    """Return the current hold of a policy's series at a site; None if it is not held."""
    with site.open_registry(read_only=True) as registry:
        return find_hold(registry.events, policy)


def describe_hold(hold: Hold) -> str:
    """Return a sentence on who holds a series, since when and why, and what ends the hold."""
    return f"{hold.description.rstrip('.')}; nothing is opened or charged until `release-pipeline resume {hold.policy}`"


def check_not_held(registry: Registry, release: ReleaseId) -> None:
    """Refuse to open or charge a release of a series on hold; call it in the transaction that would do so."""
    if (hold := find_hold(registry.events, release.policy)) is not None:
        raise Held(
            f"{hold.description.rstrip('.')}. Nothing is opened or charged meanwhile.",
            where=str(release),
            remedy=f"`release-pipeline resume {release.policy} --why REASON` lets it go on.",
        )


def hold_series(site: Site, policy: str, *, why: str, by: str) -> Hold:
    """Hold the series of a policy, and return the hold. The policy's file may be broken: that is a reason to hold."""
    why, by = _check(why, by)
    with site.open_registry() as registry:
        _check_known(site, registry, policy)
        if (hold := find_hold(registry.events, policy)) is not None:
            raise WrongUsage(
                f"{hold.description.rstrip('.')}.", where=policy, remedy=f"It stays so until `release-pipeline resume {policy}`."
            )
        event = registry.add(HELD, policy=policy, why=why, by=by)
        return Hold(policy, event.noted, by, why)


def resume_series(site: Site, policy: str, *, why: str, by: str) -> Hold:
    """End the hold of a policy's series, and return it."""
    why, by = _check(why, by)
    with site.open_registry() as registry:
        hold = find_hold(registry.events, policy)
        if hold is None:
            _check_known(site, registry, policy)
            raise WrongUsage("the series is not held.", where=policy, remedy="`release-pipeline status` says which are.")
        registry.add(RESUMED, policy=policy, why=why, by=by)
        return hold


def _check(why: str, by: str) -> tuple[str, str]:
    """Return the reason and the name; refused unless both are there and can be printed."""
    if not (why := check_line(why)):
        raise WrongUsage("it needs its reason.", where="--why", remedy="It stays in the registry.")
    return why, check_name(by, remedy="Name who holds or resumes.")


def _check_known(site: Site, registry: Registry, policy: str) -> None:
    """Refuse a name that is not, and never was, a policy of the site."""
    names = [file.stem for file in site.policy_files()]
    if policy not in names and policy not in read_state(registry.events).policies:
        known = ", ".join(names) or "none"
        raise WrongUsage(f"this site has no policy '{policy}'.", where=str(site.home / "policies"), remedy=f"There are: {known}.")
