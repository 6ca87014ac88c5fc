"""What the vault keeps no longer than its policies say. Noise, charges, candidates and the people's exposure stay known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from release_pipeline.flow.gates import forget_refusal
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PRUNED, Standing, read_standings
from release_pipeline.flow.trust.members import TRUSTED
from release_pipeline.policy import Policy
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.vault import prune_rooms


@dataclass(frozen=True, slots=True)
class Pruned:
    """The rooms of a population that were emptied, or would be."""

    population: str
    releases: tuple[ReleaseId, ...]


def prune(site: Site, *, now: datetime | None = None, dry_run: bool = False) -> list[Pruned]:
    """Empty the rooms of releases that are done with and older than their policy retains, and rewrite the files that held them,
    so that what was removed cannot be read from them any more. A release that is charged and not drawn keeps what a retry needs.
    """
    now = now or datetime.now(UTC)
    done: list[Pruned] = []
    found: set[ReleaseId] = set()
    for file in sorted(site.vault.glob("*.duckdb")):  # every one: a policy's population may have been another
        due: dict[str, ReleaseId] = {}

        def choose(rooms: Sequence[str], due: dict[str, ReleaseId] = due) -> list[str]:
            due |= {standing.id.room: standing.id for standing in _find_due(site, now) if standing.id.room in rooms}
            return [] if dry_run else list(due)

        prune_rooms(file, choose)
        found |= set(due.values())
        if due:
            done.append(Pruned(file.stem, tuple(sorted(due.values()))))
        if not dry_run:
            _note(site, list(due.values()))
    if not dry_run:  # emptied by somebody who was stopped before they could note it
        _note(site, [known.id for known in _find_due(site, now) if known.id not in found])
    return done


def _note(site: Site, releases: Sequence[ReleaseId]) -> None:
    if releases:
        with site.open_registry() as registry:
            for release in releases:
                registry.add(PRUNED, release)
    for release in releases:
        forget_refusal(site, release)


def _find_due(site: Site, now: datetime) -> list[Standing]:
    """The releases whose rooms may go, as they stand at this moment."""
    with site.open_registry(read_only=True) as registry:
        standings = read_standings(registry.events).values()
        trusted = any(event.kind == TRUSTED for event in registry.events)
        hashes = {known.policy_hash for known in standings if trusted and known.charge is not None}
        charged = {digest: policy_of(registry, digest) for digest in hashes}
    policies = {policy.policy: policy for policy in site.read_policies()[0]}  # nothing goes under one that cannot be read
    found: list[Standing] = []
    for known in standings:
        policy = charged.get(known.policy_hash) or policies.get(known.id.policy)  # the officer's word, where there is an officer
        if policy is not None and _is_due(policy, known, now):
            found.append(known)
    return found


def _is_due(policy: Policy, standing: Standing, now: datetime) -> bool:
    """Whether this release was left alone for as long as its policy retains it, and no retry needs what is in its room."""
    undrawn = standing.charge is not None and standing.drawn is None and standing.replaced is None
    unfinished = standing.state in ("drawn", "reserved") and standing.replaced is None
    if policy.retain is None or standing.pruned >= standing.since or undrawn or unfinished:
        return False
    return now - datetime.fromisoformat(standing.since) >= timedelta(days=policy.retain)
