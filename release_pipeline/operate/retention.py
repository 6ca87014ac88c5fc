"""Removes from the vault what policies no longer retain. Charges, candidates and people's exposure stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from release_pipeline.ledger.policies import policy_of
from release_pipeline.ledger.states import PRUNED, ReleaseStatus, read_statuses
from release_pipeline.pipeline.gates import forget_refusal
from release_pipeline.policy import Policy
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.vault_files import prune_workspaces
from release_pipeline.trust.members import TRUSTED


@dataclass(frozen=True, slots=True)
class Pruned:
    """The releases of a population whose tables were removed, or would be."""

    population: str
    releases: tuple[ReleaseId, ...]


def prune(site: Site, *, now: datetime | None = None, dry_run: bool = False) -> list[Pruned]:
    """Remove the tables of finished releases older than their policy retains, and rewrite the files that held them, so that they
    cannot be read there. A release that is charged and not drawn keeps what a retry needs. Returns what was removed."""
    now = now or datetime.now(UTC)
    done: list[Pruned] = []
    emptied: set[ReleaseId] = set()
    for file in sorted(site.vault.glob("*.duckdb")):  # every one: a policy's population may have been another
        due: dict[str, ReleaseId] = {}

        def choose(workspaces: Sequence[str], due: dict[str, ReleaseId] = due) -> list[str]:
            due |= {status.id.workspace: status.id for status in _find_due(site, now) if status.id.workspace in workspaces}
            return [] if dry_run else list(due)

        prune_workspaces(file, choose)
        emptied |= set(due.values())
        if due:
            done.append(Pruned(file.stem, tuple(sorted(due.values()))))
        if not dry_run:
            _note(site, list(due.values()))
    if not dry_run:  # emptied by a process that was stopped before it could record that
        _note(site, [known.id for known in _find_due(site, now) if known.id not in emptied])
    return done


def _note(site: Site, releases: Sequence[ReleaseId]) -> None:
    if releases:
        with site.open_registry() as registry:
            for release in releases:
                registry.add(PRUNED, release)
    for release in releases:
        forget_refusal(site, release)


def _find_due(site: Site, now: datetime) -> list[ReleaseStatus]:
    """Return the releases whose tables may be removed now. The policy that a release was charged under sets how long they stay;
    at a site without an officer, the policy as its file is now."""
    with site.open_registry(read_only=True) as registry:
        statuses = read_statuses(registry.events).values()
        trusted = any(event.kind == TRUSTED for event in registry.events)
        hashes = {known.policy_hash for known in statuses if trusted and known.charge is not None}
        charged = {digest: policy_of(registry, digest) for digest in hashes}
    policies = {policy.policy: policy for policy in site.read_policies()[0]}  # one that cannot be read removes nothing
    governing = ((known, charged.get(known.policy_hash) or policies.get(known.id.policy)) for known in statuses)
    return [known for known, policy in governing if policy is not None and _is_due(policy, known, now)]


def _is_due(policy: Policy, status: ReleaseStatus, now: datetime) -> bool:
    """Return whether nothing happened to this release for as long as its policy retains it, and no retry needs its tables."""
    undrawn = status.charge is not None and status.drawn is None and status.replaced is None
    unfinished = status.state in ("drawn", "reserved") and status.replaced is None
    if policy.retain is None or status.pruned >= status.since or undrawn or unfinished:
        return False
    return now - datetime.fromisoformat(status.since) >= timedelta(days=policy.retain)
