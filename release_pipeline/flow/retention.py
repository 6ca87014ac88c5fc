"""What the vault keeps no longer than its policies say. Noise, charges, candidates and the people's exposure stay known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PRUNED, Standing, read_standings
from release_pipeline.policy import Policy
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.vault import prune_rooms


@dataclass(frozen=True, slots=True)
class Pruned:
    """The rooms of a population that were emptied, or would be."""

    population: str
    releases: tuple[ReleaseId, ...]


def prune(site: Site, *, now: datetime | None = None, dry_run: bool = False) -> list[Pruned]:
    """Empty the rooms of finished releases that are older than their policy's `retain`, and rewrite the files that held them, so
    that what was removed cannot be read from them any more. A release that is charged and not drawn keeps what a retry needs."""
    now = now or datetime.now(UTC)
    with site.open_registry(read_only=True) as registry:
        standings = read_standings(registry.events)
    due: dict[str, list[Standing]] = {}
    for policy in site.read_policies()[0]:  # nothing is removed under a policy that cannot be read
        for standing in standings.values():
            if standing.id.policy == policy.policy and _is_due(policy, standing, now):
                population = standing.charge.population if standing.charge else policy.population
                due.setdefault(population, []).append(standing)
    done: list[Pruned] = []
    for population, old in sorted(due.items()):
        if not dry_run:
            prune_rooms(site.vault, population, [standing.id.room for standing in old])
            with site.open_registry() as registry:
                for standing in old:
                    registry.add(PRUNED, standing.id)
            for standing in old:
                (site.vault / "refused" / f"{str(standing.id).replace('/', '~')}.json").unlink(missing_ok=True)
        done.append(Pruned(population, tuple(standing.id for standing in old)))
    return done


def _is_due(policy: Policy, standing: Standing, now: datetime) -> bool:
    """Whether this release is finished, one way or the other, and was left alone for as long as its policy retains it."""
    undrawn = standing.charge is not None and standing.drawn is None and standing.replaced is None
    finished = standing.state in ("candidate", "blocked") or standing.replaced is not None
    if policy.retain is None or standing.pruned or undrawn or not finished:
        return False
    return now - datetime.fromisoformat(standing.since) >= timedelta(days=policy.retain)
