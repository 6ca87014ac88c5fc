"""The votes on a candidate, and who may see which.

They are blind: until as many people have voted as must approve, or one rejected, everybody sees their own vote and how many there
are. It is what commands and pages tell; whoever can read the registry's file can read what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from release_pipeline.errors import Blocked
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.states import Vote, last_votes, status_of
from release_pipeline.store.registry import Registry, ReleaseId


@dataclass(frozen=True, slots=True)
class Votes:
    """All votes on the candidate of a release as it is now: not to be shown to anybody but by `tell_votes`.

    `last`: the last vote of each person, by name; `given`: every vote, in order; `needed`: how many people must approve;
    `are_in`: as many have voted, or one rejected it."""

    release: ReleaseId
    candidate_hash: str
    state: str
    steward: str
    needed: int
    last: tuple[Vote, ...]
    given: tuple[Vote, ...]
    count: int
    are_in: bool


@dataclass(frozen=True, slots=True)
class ToldVotes:
    """What one reader may know of the votes: `own` is theirs, `votes` the last of each person and `given` every one in order,
    both empty while they are blind."""

    release: ReleaseId
    candidate_hash: str
    state: str
    needed: int
    count: int
    are_in: bool
    own: Vote | None
    votes: tuple[Vote, ...]
    given: tuple[Vote, ...]


def read_votes(registry: Registry, release: ReleaseId) -> Votes:
    """The votes on the candidate of a release as it is now; raises `Blocked` where there is no candidate."""
    status = status_of(registry, release)
    if status.candidate_hash is None:
        raise Blocked("it has no candidate, so nobody votes.", where=str(release), remedy="See `release-pipeline status`.")
    policy = policy_of(registry, status.policy_hash)
    given = tuple(vote for vote in status.votes if vote.hash == status.candidate_hash)
    last = tuple(vote for _, vote in sorted(last_votes(given, status.candidate_hash).items()))
    return Votes(
        release,
        status.candidate_hash,
        status.state,
        policy.steward,
        policy.review.reviewers,
        last,
        given,
        len(status.voters),
        not status.is_blind,
    )


def tell_votes(votes: Votes, *, reader: str | None = None) -> ToldVotes:
    """What a reader may see; without one, what everybody may. The steward sees no more than others, and has no own vote."""
    own = next((vote for vote in votes.last if vote.name == reader), None)
    told = (votes.last, votes.given) if votes.are_in else ((), ())
    return ToldVotes(votes.release, votes.candidate_hash, votes.state, votes.needed, votes.count, votes.are_in, own, *told)
