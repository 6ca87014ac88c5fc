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
class ToldVotes:
    """What one reader may know of the votes on the candidate of a release as it is now: how many people have voted (`count`), and
    how many must approve (`needed`). `own` is their last, `votes` the last of each person and `given` every one in order, both
    empty until all `are_in`."""

    count: int
    needed: int
    are_in: bool
    own: Vote | None
    votes: tuple[Vote, ...]
    given: tuple[Vote, ...]


def tell_votes(registry: Registry, release: ReleaseId, *, reader: str | None = None) -> ToldVotes:
    """What a reader may see; without one, what everybody may. The steward sees no more than others, and has no own vote. Raises
    `Blocked` where there is no candidate."""
    status = status_of(registry, release)
    if status.candidate_hash is None:
        raise Blocked("it has no candidate, so nobody votes.", where=str(release), remedy="See `release-pipeline status`.")
    given = tuple(vote for vote in status.votes if vote.hash == status.candidate_hash)
    last = last_votes(given, status.candidate_hash)
    told = ((), ()) if status.is_blind else (tuple(last[name] for name in sorted(last)), given)
    needed, own = policy_of(registry, status.policy_hash).review.reviewers, None if reader is None else last.get(reader)
    return ToldVotes(len(status.voters), needed, not status.is_blind, own, *told)
