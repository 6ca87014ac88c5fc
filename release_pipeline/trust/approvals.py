"""The statements that people sign: approvals of policies and populations by the officer, votes on candidates by reviewers, and
remarks on either.

Each is a signature over a hash, recorded as an event. A statement is signed here, with a key on this machine, or it was signed
elsewhere and is imported: `Sign` is either, and the checks and the event are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.ledger.office import find_doubted
from release_pipeline.ledger.policies import Caps, check_lineage, find_unproved_claims, policy_of, read_caps, record_policy
from release_pipeline.ledger.states import (
    APPROVED,
    CANDIDATE,
    MAY_REMARK,
    REJECTED,
    REMARKED,
    RETURNED,
    ReleaseStatus,
    check_move,
    move,
    read_state,
    read_statuses,
    status_of,
)
from release_pipeline.policy import Policy
from release_pipeline.policy.file.about import find_unsaid
from release_pipeline.store.files import check_line, is_same_file, is_whole
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.registry import CLOCK_SLACK, Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import NotSigned, PrivateKey, read_moment
from release_pipeline.trust.members import TRUSTED, Member, Trust, need_trust, read_trust
from release_pipeline.trust.remarks import (
    KIND,
    check_passages,
    check_remarks,
    find_noted,
    list_policy_passages,
    list_release_passages,
)
from release_pipeline.verifier.remarks import Remarks, hash_remarks
from release_pipeline.verifier.succession import VOTE_SLACK

Signed: TypeAlias = Mapping[str, Any]
IMPORTED = ("policy", "populations", "approve", "reject", "return", KIND)  # kinds of statements that are signed elsewhere
NOT_APPROVED = "is not approved by the privacy officer as it is now."  # a page recognizes these sentences by it
_EVENTS = {"approve": APPROVED, "return": RETURNED, "reject": REJECTED}  # by the verdict of the vote
_VOTED = tuple(_EVENTS.values())


@dataclass(frozen=True, slots=True)
class Decision:
    """A recorded decision: its subject, its signer, how many there are and how many are needed. These are approvals of a
    candidate, or votes while they are blind; of remarks `count` is the number of passages."""

    subject: str
    digest: str
    name: str
    count: int = 1
    needed: int = 1
    new: bool = True


def find_approvable(site: Site, path: Path) -> Path:
    """Return the policy file or populations.yaml of this site that a path names, from here or from the site; raises `WrongUsage`
    for others."""
    for file in (path, site.home / path):
        for known in (site.populations_file, *site.policy_files()):
            if is_same_file(file, known):
                return known
    raise WrongUsage(
        "this is not a policy of this site, nor its populations.yaml.",
        where=str(path),
        remedy=f"The site is {site.home}: name policies/NAME.yaml or populations.yaml of it.",
    )


@dataclass(frozen=True, slots=True)
class Sign:
    """A way to sign: `of` returns the signed statement of a kind, subject and hash, or raises `NotSigned`."""

    trust: Trust
    signer: Member
    of: Callable[[str, str, str], Signed]
    imported: bool = False

    def __post_init__(self) -> None:
        self.trust.check_not_revoked(self.signer.key)

    @classmethod
    def here(cls, trust: Trust, key: PrivateKey, why: str = "") -> Sign:
        """Return the way that signs with a key on this machine."""

        def sign(kind: str, subject: str, digest: str) -> Signed:
            return trust.sign(key, kind=kind, subject=subject, digest=digest, why=check_line(why))

        return cls(trust, trust.find(key.public), sign)

    @classmethod
    def elsewhere(cls, trust: Trust, signed: Signed) -> Sign:
        """Return the way that takes a statement signed on another machine: it must be what would be signed here now, and not be
        from the future."""
        statement = signed["statement"]

        def check(kind: str, subject: str, digest: str) -> Signed:
            if (kind, subject) == (statement["kind"], statement["subject"]) and digest != statement["hash"]:
                raise NotSigned(
                    f"what {statement['name']} signed ({statement['hash'][:12]}) is not what it is now ({digest[:12]}).",
                    where=f"{kind} of {subject}",
                    remedy="Find out who changed it, and when; then export it again.",
                )
            trust.check(signed, kind=kind, subject=subject, digest=digest)
            return signed

        member = trust.check(signed, kind=statement["kind"], subject=statement["subject"], digest=statement["hash"])
        if (read_moment(statement["at"]) - datetime.now(UTC)).total_seconds() > CLOCK_SLACK:
            raise NotSigned(
                "it is signed in the future: a clock is wrong, here or there.",
                where=f"{statement['kind']} of {statement['subject']}",
            )
        check_line(statement["why"], where="why")
        return cls(trust, member, check, imported=True)


def approve_policy(site: Site, name: str, *, key: PrivateKey) -> Decision:
    """Approve the policy as it is now, as the officer."""
    with site.open_registry() as registry:
        return _approve_policy(site, registry, name, Sign.here(need_trust(site, registry), key))


def approve_populations(site: Site, *, key: PrivateKey) -> Decision:
    """Approve populations.yaml as it is now, as the officer."""
    with site.open_registry() as registry:
        return _approve_populations(site, registry, Sign.here(need_trust(site, registry), key))


def approve_candidate(site: Site, release: ReleaseId, *, key: PrivateKey, why: str = "") -> Decision:
    """Approve the candidate as it is now, as a reviewer; a second approval by the same person changes nothing."""
    return _vote_here(site, release, "approve", key, why)


def reject_candidate(site: Site, release: ReleaseId, *, key: PrivateKey, why: str) -> Decision:
    """Reject the candidate, as a reviewer, with the reason: it will never be published; a correction is the next revision."""
    return _vote_here(site, release, "reject", key, why)


def return_candidate(site: Site, release: ReleaseId, *, key: PrivateKey, why: str) -> Decision:
    """Return the candidate to its steward, as a reviewer, with the reasons: while that is their last vote it is neither approved
    nor published. The steward answers, or makes a revision; the reviewer may approve it later."""
    return _vote_here(site, release, "return", key, why)


def _vote_here(site: Site, release: ReleaseId, kind: str, key: PrivateKey, why: str) -> Decision:
    _check_reason(release, kind, why)
    with site.open_registry() as registry:
        return _vote(site, registry, release, Sign.here(need_trust(site, registry), key, why), kind, why)


def remark(site: Site, remarks: Remarks, *, key: PrivateKey) -> Decision:
    """Record remarks by a reviewer, the officer or the policy's steward on passages of a candidate, or of a policy, as it is
    now."""
    with site.open_registry() as registry:
        return _note_remarks(site, registry, remarks, Sign.here(need_trust(site, registry), key))


def import_statement(site: Site, signed: Signed, remarks: Any = None) -> Decision:
    """Record what somebody signed elsewhere, as if they had signed it here now; the person who imports it cannot change it.
    `remarks`: the document of a statement of remarks, as it was read from JSON."""
    statement = signed["statement"]
    kind, subject = statement["kind"], statement["subject"]
    if kind not in IMPORTED:
        raise NotSigned(f"a statement of the kind '{kind[:40]}' is not imported.", where=subject[:200])
    if (kind == KIND) != (remarks is not None):
        what = "remarks were signed, and their document is missing." if kind == KIND else "no remarks were signed in it."
        raise WrongUsage(
            what, where=subject[:200], remedy="Give a statement of remarks together with the document that it is of."
        )
    with site.open_registry() as registry:
        sign = Sign.elsewhere(need_trust(site, registry), signed)
        if kind == "policy":
            return _approve_policy(site, registry, subject, sign)
        if kind == "populations":
            return _approve_populations(site, registry, sign)
        if kind == KIND:
            return _note_remarks(site, registry, check_remarks(remarks), sign)
        release = _find_release(registry, subject)
        _check_reason(release, kind, statement["why"])
        return _vote(site, registry, release, sign, kind, statement["why"])


def _find_release(registry: Registry, subject: str) -> ReleaseId:
    for release in read_statuses(registry.events):
        if str(release) == subject:
            return release
    raise NotSigned("the registry has no such release.", where=subject)


def _approve_policy(site: Site, registry: Registry, name: str, sign: Sign) -> Decision:
    policy = site.policy(name)
    check_steward(sign.trust, policy)
    signed = sign.of("policy", policy.policy, policy.canonical_hash())
    check_approvable(policy)
    record_policy(site, registry, policy)
    return _approve_file(registry, sign, signed)


def check_steward(trust: Trust, policy: Policy) -> None:
    """Refuse a policy whose steward is not in the list of trusted keys as one: they could review it under another name."""
    if policy.steward not in {member.name for member in trust.members if member.role == "steward"}:
        raise NotSigned(
            f"its steward {policy.steward} is in no list of trusted keys as one, so nobody keeps them from reviewing.",
            where=policy.policy,
            remedy=f"release-pipeline trust {policy.steward} --role steward --public FILE.pub --key KEY",
        )


def check_approvable(policy: Policy) -> None:
    """Refuse a policy that does not describe its data and columns: the charge follows the approval, and only what was approved
    may be published."""
    unsaid = list(find_unsaid(policy.audience, policy.about, policy.columns))
    if not unsaid:
        return
    file = f"policies/{policy.policy}.yaml"
    raise Blocked(
        f"it does not say what readers must be told. {' '.join(unsaid)}",
        where=file,
        remedy=f"Its steward {policy.steward} adds that: 'release-pipeline check {file} --skeleton' prints what is missing.",
    )


def _approve_populations(site: Site, registry: Registry, sign: Sign) -> Decision:
    caps = read_caps(site)
    check_lineage(caps, list_charges(registry))
    return _approve_file(registry, sign, sign.of("populations", "populations", caps.hash), text=caps.text)


def _vote(site: Site, registry: Registry, release: ReleaseId, sign: Sign, kind: str, why: str) -> Decision:
    """Record a vote on the candidate as it is now, unless it was the person's last one already. A rejection ends the review."""
    status, policy = _reviewed(site, registry, release, sign, _EVENTS[kind])
    digest, name = str(status.candidate_hash), sign.signer.name
    signed = _sign_vote(registry, sign, kind, release, digest)
    payload: dict[str, Any] = {"what": "candidate", "subject": str(release), "hash": digest, "name": name}
    if kind == "reject":
        _check_last_vote(registry, status, sign, signed)
        move(registry, release, REJECTED, **payload, reason=f"rejected by {name}: {why.strip()}", signed=signed)
        return Decision(str(release), digest, name)
    payload["needed"] = policy.review.reviewers
    if kind == "return":
        payload["reason"] = why.strip()
        new = _check_last_vote(registry, status, sign, signed)
    else:  # once more, after a key was replaced
        new = name not in valid_approvers(registry, sign.trust, status, policy.steward)
        if new:
            _check_last_vote(registry, status, sign, signed)
    if new:
        move(registry, release, _EVENTS[kind], **payload, signed=signed)
    status = status_of(registry, release)  # the count reveals no blind vote: it is of people who voted while not all have
    given = status.voters if status.is_blind else valid_approvers(registry, sign.trust, status, policy.steward)
    return Decision(str(release), digest, name, len(given), policy.review.reviewers, new)


def _sign_vote(registry: Registry, sign: Sign, kind: str, release: ReleaseId, digest: str) -> Signed:
    """Return the signed vote; raises `NotSigned` where it is dated before the candidate: somebody dated it back, as with a key
    that was stolen and revoked since, or a clock was wrong."""
    signed = sign.of(kind, str(release), digest)
    made = next(
        event
        for event in registry.events
        if event.kind == CANDIDATE and event.release == release and event.content["candidate_hash"] == digest
    )
    before = made.moment - read_moment(signed["statement"]["at"])
    if before > VOTE_SLACK and made.number not in find_doubted(registry.events):
        raise NotSigned(
            f"it is dated {signed['statement']['at']}, before there was a candidate to vote on ({made.noted}).",
            where=f"{kind} of {release}",
            remedy="Set the clock of the machine that signs, and sign it again.",
        )
    return signed


def _check_reason(release: ReleaseId, kind: str, why: str) -> None:
    if kind != "approve" and not why.strip():
        what = "a return" if kind == "return" else "a rejection"
        raise WrongUsage(f"{what} needs its reason.", where=str(release), remedy="Add --why 'REASON'.")


def _check_last_vote(registry: Registry, status: ReleaseStatus, sign: Sign, signed: Signed) -> bool:
    """Return whether a vote is new, and not the person's last one again. No one can make a vote the last that a later one
    replaced; of two votes signed in one second, the order is unknown."""
    statement, void = signed["statement"], read_state(registry.events).void
    votes = [
        event.content["signed"]["statement"]
        for event in registry.events
        if event.kind in _VOTED and event.release == status.id and event.number not in void
        if (event.content["hash"], event.content["name"]) == (status.candidate_hash, sign.signer.name)
    ]
    if votes and votes[-1] == statement:
        return False
    if sign.imported and any(read_moment(statement["at"]) <= read_moment(vote["at"]) for vote in votes):
        raise NotSigned(
            f"{statement['name']} voted once more, then or after this was signed, and that is in the registry.",
            where=f"{statement['kind']} of {statement['subject']}",
            remedy="Only their last vote counts. If this is to be it, they sign it again.",
        )
    return True


def _note_remarks(site: Site, registry: Registry, remarks: Remarks, sign: Sign) -> Decision:
    """Record remarks on a candidate or policy as it is now, by somebody who may, on existing passages; the same ones only
    once."""
    digest, member = hash_remarks(remarks.document), sign.signer
    signed = sign.of(KIND, remarks.subject, digest)
    if remarks.is_of_release:
        release = _find_release(registry, remarks.subject)
        status = status_of(registry, release)
        if status.state not in MAY_REMARK or status.lost:
            raise Blocked(f"it is {status.state}, and nothing is remarked on that.", where=remarks.subject)
        now, policy = str(status.candidate_hash), policy_of(registry, status.policy_hash)
    else:
        release, policy = None, site.policy(remarks.subject)
        now = policy.canonical_hash()
    if member.role == "steward" and member.name != policy.steward:
        raise NotSigned(f"{member.name} is not the steward of this policy.", where=remarks.subject)
    if remarks.hash != now:
        raise NotSigned(
            f"the remarks are on what it was ({remarks.hash[:12]}), and now it is {now[:12]}.",
            where=remarks.subject,
            remedy="Look at it as it is now, and remark on that.",
        )
    check_passages(remarks, list_policy_passages(policy) if release is None else list_release_passages(site, release, now))
    new = find_noted(registry, signed["statement"]) is None
    if new:
        payload = {"subject": remarks.subject, "hash": digest, "name": member.name, "document": remarks.document}
        registry.add(REMARKED, release, **payload, signed=signed)
    return Decision(remarks.subject, digest, member.name, len(remarks.entries), 0, new)


def check_may_run(site: Site, registry: Registry, policy: Policy, caps: Caps) -> None:
    """Refuse a run under a policy, or under caps, that are not what the officer approved last. A site that never had an officer
    may run, but its releases can never be published."""
    trust = read_trust(site, registry)
    if trust is not None:
        check_approved(site, registry, trust, policy, caps)


def check_approved(site: Site, registry: Registry, trust: Trust, policy: Policy, caps: Caps) -> None:
    """Refuse a policy or caps that the officer did not approve last, by a list of trusted keys that was read before."""
    for what, subject, digest, file in (
        ("policy", policy.policy, policy.canonical_hash(), f"policies/{policy.policy}.yaml"),
        ("populations", "populations", caps.hash, "populations.yaml"),
    ):
        if find_approval(registry, trust, what=what, subject=subject, digest=digest) is None:
            raise Blocked(
                f"{file} {NOT_APPROVED}",
                where=str(site.home / file),
                remedy=f"{trust.officer.name} reads it and runs: release-pipeline approve {file} --key KEY.",
            )


def find_approval(
    registry: Registry, trust: Trust, *, what: str, subject: str, digest: str, before: int | None = None
) -> Event | None:
    """Return the event of the last approval of the subject, `before` an event if one is named, if it was of this hash. None if it
    was of another: a replaced approval no longer counts."""
    last = find_last_approval(registry, trust, what=what, subject=subject, before=before)
    return last if last is not None and last.content["hash"] == digest else None


def find_last_approval(registry: Registry, trust: Trust, *, what: str, subject: str, before: int | None = None) -> Event | None:
    """Return the event of the last approval of the subject that still counts, `before` an event if one is named; None without
    one."""
    for event in reversed(registry.events[: None if before is None else before - 1]):
        payload = event.content
        if event.kind == APPROVED and (payload["what"], payload["subject"]) == (what, subject):
            try:
                trust.check_event(event, kind=what, subject=subject, digest=payload["hash"])
            except NotSigned:
                continue
            return event
    return None


def valid_approvers(registry: Registry, trust: Trust, status: ReleaseStatus, steward: str) -> list[str]:
    """Return the names of people who approved this very candidate with a valid signature, are trusted now, did not return it
    after that, and are not the steward. A person with several names, by their keys, has one name in it."""
    people = _find_people(registry)
    names: dict[str, str] = {}
    for event in registry.events:
        payload = event.content
        if event.kind == APPROVED and event.release == status.id and payload["hash"] == status.candidate_hash:
            try:
                member = trust.check_event(event, kind="approve", subject=str(status.id), digest=payload["hash"])
            except NotSigned:  # by somebody who is off the list since, or with a key that was revoked from before
                continue
            if not _is_steward(registry, member, steward):
                names.setdefault(people[member.name], member.name)
    return sorted({*names.values()} - {*status.returners})


def _find_people(registry: Registry) -> dict[str, str]:
    """Return, for each name that voted, the first name of that person: two names that voted with one key are one person's. A list
    that once had somebody's key under a wrong name does not join two people."""
    first: dict[str, str] = {}
    owner: dict[str, str] = {}
    for event in registry.events:
        if event.kind not in _VOTED or event.release is None:
            continue
        statement = event.content["signed"]["statement"]
        mine = first.setdefault(statement["name"], statement["name"])
        before = owner.setdefault(statement["signer"], mine)
        if before != mine:
            first = {name: before if person == mine else person for name, person in first.items()}
            owner = {key: before if person == mine else person for key, person in owner.items()}
    return first


def _is_steward(registry: Registry, member: Member, steward: str) -> bool:
    """Return whether somebody is the steward, by their name, or by their key, which a list once had under the steward's name."""
    if member.name == steward:
        return True
    lists = (event.content["keys"] for event in registry.events if event.kind == TRUSTED)
    return any(keys.get(steward, {}).get("key") == member.key.text for keys in lists)


def _approve_file(registry: Registry, sign: Sign, signed: Signed, *, text: str = "") -> Decision:
    statement = signed["statement"]
    what, subject, digest = statement["kind"], statement["subject"], statement["hash"]
    new = find_approval(registry, sign.trust, what=what, subject=subject, digest=digest) is None
    if new:
        if sign.imported:
            _check_not_replayed(registry, signed)
        registry.add(APPROVED, what=what, subject=subject, hash=digest, name=sign.signer.name, signed=signed, text=text)
    return Decision(subject, digest, sign.signer.name, new=new)


def _check_not_replayed(registry: Registry, signed: Signed) -> None:
    """Refuse an approval that another one came after, so that it cannot be revived by putting the old file back."""
    statement, now = signed["statement"], datetime.now(UTC)
    for event in registry.events:
        payload = event.content
        if event.kind == APPROVED and (payload["what"], payload["subject"]) == (statement["kind"], statement["subject"]):
            earlier = payload["signed"]["statement"]
            if (
                earlier == statement or read_moment(statement["at"]) < read_moment(earlier["at"]) <= now
            ):  # none is of a clock that was wrong
                raise NotSigned(
                    f"something else was approved after this was signed, in event {event.number} or since.",
                    where=f"{statement['kind']} of {statement['subject']}",
                    remedy="Export it again, and have it signed again.",
                )


def _reviewed(site: Site, registry: Registry, release: ReleaseId, sign: Sign, kind: str) -> tuple[ReleaseStatus, Policy]:
    """Return the status and policy of the candidate that a reviewer judges; raises an error unless it is whole and they may judge
    it."""
    status = status_of(registry, release)
    check_move(registry, release, kind)
    if status.replaced is not None:
        raise Blocked(f"it was given up for {status.replaced}.", where=str(release), remedy="Review that one.")
    folder = site.candidate(str(release))
    if not is_whole(folder, status.candidate_hash):
        raise Blocked(
            "the candidate's folder is not what was frozen.", where=str(release), remedy=f"Find out who changed {folder}."
        )
    policy = policy_of(registry, status.policy_hash)
    if kind == APPROVED and (unproved := list(find_unproved_claims(policy))):
        remedy = "Nothing was signed. Correct the policy, and make a revision."
        raise Blocked(" ".join(unproved), where=str(release), remedy=remedy)
    if _is_steward(registry, sign.signer, policy.steward):
        name = sign.signer.name
        also = "" if name == policy.steward else f", whose key was that of {policy.steward},"
        raise NotSigned(f"{name}{also} is the steward of the policy, and no steward reviews.", where=str(release))
    return status, policy
