"""Approvals: of policies and populations by the officer, of candidates by reviewers. Signatures over hashes, noted as events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.files import is_same_file
from release_pipeline.flow.policies import Caps, find_unproved_claims, policy_of, read_caps, record_policy
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import APPROVED, REJECTED, ReleaseStatus, check_move, move, status_of
from release_pipeline.flow.sums import is_whole
from release_pipeline.flow.texts import check_line
from release_pipeline.flow.trust.keys import NotSigned, PrivateKey
from release_pipeline.flow.trust.members import Trust, need_trust, read_trust
from release_pipeline.policy import Policy
from release_pipeline.store.registry import Event, Registry, ReleaseId


@dataclass(frozen=True, slots=True)
class Decision:
    """An approval that was noted: of what, by whom, and how many there are of how many."""

    subject: str
    digest: str
    name: str
    count: int = 1
    needed: int = 1
    new: bool = True


def find_approvable(site: Site, path: Path) -> Path:
    """The policy file or populations.yaml of this site that a path names, from here or from the site; no other is signed."""
    for file in (path, site.home / path):
        for known in (site.populations_file, *site.policy_files()):
            if is_same_file(file, known):
                return known
    raise WrongUsage(
        "this is not a policy of this site, nor its populations.yaml.",
        where=str(path),
        remedy=f"The site is {site.home}: name policies/NAME.yaml or populations.yaml of it.",
    )


def approve_policy(site: Site, name: str, *, key: PrivateKey) -> Decision:
    """The officer approves the policy as it is now."""
    policy = site.policy(name)
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        if policy.steward not in {member.name for member in trust.members if member.role == "steward"}:
            raise NotSigned(
                f"its steward {policy.steward} is in no list of trusted keys as one, so nobody keeps them from reviewing.",
                where=policy.policy,
                remedy=f"release-pipeline trust {policy.steward} --role steward --public FILE.pub --key KEY",
            )
        record_policy(site, registry, policy)
        return _approve_file(registry, trust, key, what="policy", subject=policy.policy, digest=policy.canonical_hash())


def approve_populations(site: Site, *, key: PrivateKey) -> Decision:
    """The officer approves populations.yaml as it is now."""
    with site.open_registry() as registry:
        trust = need_trust(site, registry)
        caps = read_caps(site)
        payload = {"subject": "populations", "digest": caps.hash, "text": caps.text}
        return _approve_file(registry, trust, key, what="populations", **payload)


def approve_candidate(site: Site, release: ReleaseId, *, key: PrivateKey, why: str = "") -> Decision:
    """A reviewer approves the candidate as it is now. Once is enough of one person."""
    with site.open_registry() as registry:
        trust, status, policy = _reviewed(site, registry, release, key, APPROVED)
        digest, needed = str(status.candidate_hash), policy.review.reviewers
        signed = trust.sign(key, kind="approve", subject=str(release), digest=digest, why=check_line(why))
        name, before = signed["statement"]["name"], valid_approvers(registry, trust, status, policy.steward)
        new = name not in before  # once more, after a key was replaced
        if new:
            payload = {"what": "candidate", "subject": str(release), "hash": digest, "name": name, "needed": needed}
            move(registry, release, APPROVED, **payload, signed=signed)
        return Decision(str(release), digest, name, len(before) + new, needed, new)


def reject_candidate(site: Site, release: ReleaseId, *, key: PrivateKey, why: str) -> Decision:
    """A reviewer rejects the candidate, with the reason: it will never be published; a correction is the next revision."""
    if not why.strip():
        raise WrongUsage("a rejection needs its reason.", where=str(release), remedy="Add --why 'REASON'.")
    with site.open_registry() as registry:
        trust, status, _ = _reviewed(site, registry, release, key, REJECTED)
        digest = str(status.candidate_hash)
        signed = trust.sign(key, kind="reject", subject=str(release), digest=digest, why=check_line(why))
        name = signed["statement"]["name"]
        reason = f"rejected by {name}: {why.strip()}"
        payload = {"what": "candidate", "subject": str(release), "hash": digest, "name": name, "reason": reason}
        move(registry, release, REJECTED, **payload, signed=signed)
        return Decision(str(release), digest, name)


def check_may_run(site: Site, registry: Registry, policy: Policy, caps: Caps) -> None:
    """Refuse a run under a policy, or under caps, that are not what the officer approved last. A site that never had an officer
    may run; what it makes can never be published."""
    trust = read_trust(site, registry)
    if trust is None:
        return
    for what, subject, digest, file in (
        ("policy", policy.policy, policy.canonical_hash(), f"policies/{policy.policy}.yaml"),
        ("populations", "populations", caps.hash, "populations.yaml"),
    ):
        if find_approval(registry, trust, what=what, subject=subject, digest=digest) is None:
            raise Blocked(
                f"{file} is not approved by the privacy officer as it is now.",
                where=str(site.home / file),
                remedy=f"{trust.officer.name} reads it and runs: release-pipeline approve {file} --key KEY.",
            )


def find_approval(
    registry: Registry, trust: Trust, *, what: str, subject: str, digest: str, before: int | None = None
) -> Event | None:
    """The event by which somebody who may approved this last, `before` an event if one is named; None when the last approval of
    the subject was of something else, for what was approved once and then replaced counts no more."""
    for event in reversed(registry.events[: None if before is None else before - 1]):
        payload = event.content
        if event.kind == APPROVED and (payload["what"], payload["subject"]) == (what, subject):
            try:
                trust.check(payload["signed"], kind=what, subject=subject, digest=payload["hash"])
            except NotSigned:
                continue
            return event if payload["hash"] == digest else None
    return None


def valid_approvers(registry: Registry, trust: Trust, status: ReleaseStatus, steward: str) -> list[str]:
    """Who approved this very candidate, with a signature that holds, is trusted now, and is not the steward."""
    found: set[str] = set()
    for event in registry.events:
        payload = event.content
        if event.kind == APPROVED and event.release == status.id and payload["hash"] == status.candidate_hash:
            try:
                member = trust.check(payload["signed"], kind="approve", subject=str(status.id), digest=payload["hash"])
            except NotSigned:  # by somebody who is off the list since
                continue
            found |= {member.name} - {steward}
    return sorted(found)


def _approve_file(
    registry: Registry, trust: Trust, key: PrivateKey, *, what: str, subject: str, digest: str, text: str = ""
) -> Decision:
    signed = trust.sign(key, kind=what, subject=subject, digest=digest)
    name = signed["statement"]["name"]
    if find_approval(registry, trust, what=what, subject=subject, digest=digest) is None:
        registry.add(APPROVED, what=what, subject=subject, hash=digest, name=name, signed=signed, text=text)
    return Decision(subject, digest, name)


def _reviewed(
    site: Site, registry: Registry, release: ReleaseId, key: PrivateKey, kind: str
) -> tuple[Trust, ReleaseStatus, Policy]:
    """What a reviewer judges, when there is something whole to judge and they may."""
    trust = need_trust(site, registry)
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
    member = trust.find(key.public)
    if member.name == policy.steward:
        raise NotSigned(f"{member.name} is the steward of the policy, and no steward reviews.", where=str(release))
    return trust, status, policy
