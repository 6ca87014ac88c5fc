"""From the approved candidate to the public package: verified from scratch, written whole, once.

Boundaries: the intent is an event, with the moment and the head of the chain that the package will name; the package is built
inside the vault; after one more look it is noted as published, with its hash and signature; it takes its place. Stopped before it
was noted, nothing is public, and a rerun begins anew; stopped after that, a rerun puts what was built into its place.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.admission import open_account
from release_pipeline.flow.evidence import load_evidence
from release_pipeline.flow.facts import note_facts, read_facts
from release_pipeline.flow.policies import policy_of, read_caps
from release_pipeline.flow.publication.package import build_package, place_package
from release_pipeline.flow.publication.public_view import build_view
from release_pipeline.flow.publication.published import package_is_whole
from release_pipeline.flow.release import StageResult
from release_pipeline.flow.secret_files import PLAIN, Probe
from release_pipeline.flow.series import forget_series
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PUBLISHED, PUBLISHING, Standing, check_move, move, read_standings, standing_of
from release_pipeline.flow.sums import is_whole
from release_pipeline.flow.tables import read_table
from release_pipeline.flow.trust.approvals import find_approval, valid_approvers
from release_pipeline.flow.trust.keys import PrivateKey, read_key, read_passphrase
from release_pipeline.flow.trust.members import Trust, need_trust
from release_pipeline.policy import Policy
from release_pipeline.report.view import PublicView
from release_pipeline.stages.gates import Gate, judge_gates, judge_groups
from release_pipeline.stages.measures.groups import measure_groups
from release_pipeline.stages.package import ON_GRID, check_released
from release_pipeline.store.ledger import RESERVED, list_charges
from release_pipeline.store.registry import CLOCK_SLACK, Event, Registry, ReleaseId


def publish(site: Site, release: ReleaseId, *, key: PrivateKey, now: datetime | None = None, probe: Probe = PLAIN) -> Path:
    """Publish an approved candidate, and give the folder of its package. A published one is only verified again."""
    folder, built = site.package(str(release)), site.vault / "publishing" / release.file_name
    with site.publishing_alone():
        with site.open_registry() as registry:
            standing = standing_of(registry, release)
            begun = None if standing.state == PUBLISHED else _begin(site, registry, standing, key, now or datetime.now(UTC))
        if begun is None:
            _finish(folder, built, standing)
            return folder
        trust, intent, view = begun
        probe.passed("the intent is noted")
        digest, signed = build_package(
            built,
            candidate=site.candidate(str(release)),
            view=view,
            trust=trust,
            sign=lambda digest: trust.sign(key, kind="package", subject=str(release), digest=digest, at=intent.noted),
        )
        probe.passed("the package is built")
        with site.open_registry() as registry:
            standing = standing_of(registry, release)
            if need_trust(site, registry) != trust:
                raise Blocked("the list of trusted keys was changed meanwhile.", where=str(release), remedy="Publish again.")
            _check_publishable(site, registry, trust, standing, now=now or datetime.now(UTC))
            move(registry, release, PUBLISHED, package_hash=digest, signed=signed)
            standing = standing_of(registry, release)
        probe.passed("published is noted")
        _finish(folder, built, standing)
        probe.passed("the package is in its place")
        forget_series(site, release.policy)
    return folder


def _begin(site: Site, registry: Registry, standing: Standing, key: PrivateKey, now: datetime) -> tuple[Trust, Event, PublicView]:
    """The list of keys, the intent, and what the public will be told, when everything was looked at."""
    trust = need_trust(site, registry)
    by = trust.sign(key, kind="package", subject=str(standing.id), digest="")["statement"]["name"]  # refused if they may not
    _check_publishable(site, registry, trust, standing, now=now)
    intent = _note_intent(registry, standing, by)
    return trust, intent, build_view(site, registry.events, standing, policy_of(registry, standing.policy_hash))


def _note_intent(registry: Registry, standing: Standing, by: str) -> Event:
    """The event that the package will name as the head of the chain: that of an attempt that was stopped, if nothing happened
    since."""
    last = registry.events[-1]
    told = {"candidate_hash": standing.candidate_hash, "by": by}
    if (last.kind, last.release, last.content) == (PUBLISHING, standing.id, told):
        return last
    return move(registry, standing.id, PUBLISHING, **told)


def _finish(folder: Path, built: Path, standing: Standing) -> None:
    """Put the package of a release that is noted as published into its place, unless it is there, whole."""
    if not folder.exists() and package_is_whole(built, standing):
        place_package(built, folder)
    if not package_is_whole(folder, standing):
        raise Blocked("its package is not what was published.", where=str(standing.id), remedy=f"Look at {folder}.")
    shutil.rmtree(built, ignore_errors=True)


def read_service_key(site: Site) -> PrivateKey:
    """The key that site.yaml names for publishing without a person."""
    named = site.service_key
    if named is None:
        raise WrongUsage(
            "the site names no key to publish with.",
            where=str(site.home / "site.yaml"),
            remedy="Add 'service_key: FILE.key' and 'service_passphrase_file: FILE', or publish by command.",
        )
    return read_key(named[0], passphrase=read_passphrase(named[1]))


def describe_published(site: Site, release: ReleaseId) -> tuple[StageResult, Policy]:
    """What is told of a published release, its package and its public facts as they were recorded; and its policy then."""
    with site.open_registry(read_only=True) as registry:
        standing = standing_of(registry, release)
        policy = policy_of(registry, standing.policy_hash)
    facts, digest = read_facts(standing.facts, where=str(release)), str(standing.package_hash)
    told = {**facts.to_json(), "candidate_hash": standing.candidate_hash, "package_hash": digest}
    return StageResult("published", digest, told), policy


def list_publishable(site: Site, policy_name: str, *, now: datetime | None = None) -> tuple[list[ReleaseId], list[str]]:
    """The approved releases of a policy that may be published now; and of the others in words why not."""
    now = now or datetime.now(UTC)
    ready: list[ReleaseId] = []
    waiting: list[str] = []
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        for known, standing in sorted(read_standings(registry.events).items()):
            if known.policy == policy_name and standing.state in ("approved", PUBLISHING):
                found = list(_find_obstacles(site, registry, trust, standing, now))
                ready += [] if found else [known]
                waiting += [f"{known}: {' '.join(found)}"] if found else []
    return ready, waiting


def _check_publishable(site: Site, registry: Registry, trust: Trust, standing: Standing, *, now: datetime) -> None:
    """Raise `Blocked` with every reason why this candidate must not be published now."""
    if standing.state == "candidate":
        needed = policy_of(registry, standing.policy_hash).review.reviewers
        raise Blocked(
            f"it is not approved yet: {len(standing.approvers)} of {needed} reviewers have approved it.",
            where=str(standing.id),
            remedy=f"They look at {site.candidate(str(standing.id))} and run: release-pipeline approve {standing.id} --key KEY.",
        )
    check_move(registry, standing.id, PUBLISHING)
    found = list(_find_obstacles(site, registry, trust, standing, now))
    if found:
        raise Blocked(" ".join(found), where=str(standing.id), remedy="Nothing was published.")


def _find_obstacles(site: Site, registry: Registry, trust: Trust, standing: Standing, now: datetime) -> Iterator[str]:
    """Everything is looked at anew: hashes, data, gates, approvals, cap, embargo and clock."""
    caps = read_caps(site)
    release, candidate, policy = standing.id, site.candidate(str(standing.id)), policy_of(registry, standing.policy_hash)
    charge = next((e for e in registry.events if e.kind == RESERVED and e.release == release), None)
    if charge is None or standing.drawn is None:
        yield "The registry has no charge for it, or no draw."
        return
    if charge.content["policy_hash"] != standing.policy_hash:
        yield "It was charged under another policy than its candidate's."
    if standing.replaced is not None:
        yield f"It was given up for {standing.replaced}."
    if (folder := site.package(str(release))).exists() or folder.is_symlink():
        yield f"Something lies where its package belongs: {folder}."
    if not is_whole(candidate, standing.candidate_hash):
        yield "The candidate's folder is not what was frozen."
        return
    yield from _judge_candidate(candidate, policy, standing)
    about = {"what": "policy", "subject": policy.policy, "digest": standing.policy_hash}
    if find_approval(registry, trust, **about, before=charge.number) is None:
        yield "Its policy was not approved by the privacy officer before the charge."
    if find_approval(registry, trust, what="populations", subject="populations", digest=caps.hash) is None:
        yield "populations.yaml is not approved by the privacy officer as it is now."
    approvers = valid_approvers(registry, trust, standing, policy.steward)
    if len(approvers) < policy.review.reviewers:
        yield f"{len(approvers)} of {policy.review.reviewers} reviewers have approved it as it is."
    account = open_account(caps, policy, list_charges(registry))
    if not account.admits():
        yield f"{account.population} is over its cap: {account.spent} of {account.limit} ({account.unit})."
    if policy.publish.not_before is not None and now < policy.publish.not_before:
        yield f"It is under embargo until {policy.publish.not_before:%Y-%m-%d %H:%M} UTC."
    if (registry.events[-1].moment - now).total_seconds() > CLOCK_SLACK:
        yield "The clock is behind the registry's last event."


def _judge_candidate(candidate: Path, policy: Policy, standing: Standing) -> Iterator[str]:
    """The checks of the data, the gates of the evidence as the policy has them, and that the card's facts are what was signed."""
    facts = read_facts(standing.facts, where=str(standing.id))
    gates: list[Gate] = []
    for form in policy.publish.formats:
        table = read_table(candidate / f"data.{form}", format=form, policy=policy)
        yield from check_released(table, policy, rows=facts.rows_out, on_grid=facts.values == ON_GRID)
        gates += judge_groups(measure_groups(table, policy), policy.gates)
    evidence = load_evidence(candidate)
    if note_facts(evidence.facts, str(standing.candidate_hash)) != standing.facts:
        yield "The registry tells other facts of it than the evidence that was signed."
    gates += judge_gates({name: asdict(figures) for name, figures in evidence.columns.items()}, policy.gates)
    yield from (gate.words for gate in gates if not gate.passed)
