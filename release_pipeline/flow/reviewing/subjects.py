"""What people remark and vote on, and what everybody may know of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from release_pipeline import verify
from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.opening import find_release
from release_pipeline.flow.reviewing.remarks import (
    Remark,
    Remarks,
    check_remarks,
    list_policy_passages,
    list_release_passages,
    tell_remarks,
)
from release_pipeline.flow.reviewing.votes import ToldVotes, tell_votes
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import Vote, list_statuses
from release_pipeline.flow.trust.approvals import find_approvable
from release_pipeline.flow.trust.members import need_trust
from release_pipeline.store.registry import ReleaseId

DEEDS = {"approve": "approved", "return": "returned", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A candidate or a policy as it is now, with its passages and what these are called; of a candidate its release."""

    name: str
    hash: str
    passages: Mapping[str, str]
    release: ReleaseId | None = None

    def remark_on(self, entries: Iterable[tuple[str, str]]) -> Remarks:
        """Remarks on passages of it; raises `WrongUsage` where they have not the form that remarks have."""
        return check_remarks(verify.Remarks(self.name, self.hash, tuple(entries)).document)


def find_subject(site: Site, target: str) -> Subject:
    """The candidate or the policy of the site that somebody names: POLICY/RELEASE, or policies/NAME.yaml."""
    if Path(target).suffix == ".yaml":
        file = find_approvable(site, Path(target))
        if file == site.populations_file:
            raise WrongUsage("nobody remarks on populations.yaml.", where=target, remedy="Name a candidate or a policy.")
        policy = site.policy(file.stem)
        return Subject(policy.policy, policy.canonical_hash(), list_policy_passages(policy))
    release = find_release(site, target)
    status = list_statuses(site)[release]
    if status.candidate_hash is None:
        raise Blocked(f"it is {status.state}, and has no candidate.", where=str(release), remedy="See `release-pipeline status`.")
    passages = list_release_passages(site, release, status.candidate_hash)
    return Subject(str(release), status.candidate_hash, passages, release)


def describe_review(site: Site, target: str) -> Iterator[str]:
    """The votes on a candidate as far as everybody may know them, and the remarks on it or on a policy, in lines."""
    subject = find_subject(site, target)
    with site.open_registry(read_only=True) as registry:
        remarks = tell_remarks(registry, need_trust(site, registry), subject.name)
        votes = None if subject.release is None else tell_votes(registry, subject.release)
    yield f"{subject.name}  hash {subject.hash[:12]}"
    if votes is not None:
        yield from describe_votes(votes)
    for one in remarks:
        yield from describe_remark(one, subject)
    if not remarks:
        yield "no remarks that everybody may see"
    yield f"passages: {', '.join(name for name in subject.passages if name) or 'none'}"


def describe_votes(votes: ToldVotes) -> Iterator[str]:
    """The votes in lines; as long as they are blind how many there are."""
    hidden = "" if votes.are_in else "; they are told when all are in"
    yield f"{votes.count} of {votes.needed} votes are in{hidden}"
    yield from (describe_vote(vote) for vote in votes.given)


def describe_vote(vote: Vote) -> str:
    """One vote in a line."""
    return f"{vote.noted}  {vote.name} {DEEDS[vote.verdict]} it" + (f": {vote.why}" if vote.why else "")


def describe_remark(remark: Remark, subject: Subject) -> Iterator[str]:
    """One remark in lines."""
    title = subject.passages.get(remark.passage, "")
    where = f"{remark.passage}{f' ({title})' if title else ''}" if remark.passage else "the whole"
    older = "" if remark.about == subject.hash else f", as it was before ({remark.about[:12]})"
    yield f"{remark.noted}  {remark.name} ({remark.role}) on {where}{older}:"
    yield from (f"    {line}" for line in remark.text.split("\n"))
