"""From the approved candidate to the public package: verified from scratch, written whole, once.

Boundaries: the intent is an event, with the moment and the head of the chain that the package will name. The package is built
inside the vault. After one more check it is recorded as published, with its hash and signature; then it moves into its folder. If
stopped before that record, nothing is public, and a rerun begins again; if stopped after it, a rerun moves the built package into
its folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release_pipeline.audit.gates import Gate, judge_gates, judge_groups, measure_groups
from release_pipeline.audit.package import check_released, read_back
from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.formats.evidence import load_evidence
from release_pipeline.formats.package import PackageView
from release_pipeline.ledger.facts import note_facts, read_facts
from release_pipeline.ledger.looks import find_looks_before, note_looks
from release_pipeline.ledger.office import OFFICERS, believed, check_accepted, is_ahead, write_officers
from release_pipeline.ledger.policies import find_unproved_claims, open_population, policy_of, read_caps
from release_pipeline.ledger.states import (
    PUBLISHED,
    PUBLISHING,
    RETRACTED,
    SUPERSEDED,
    ReleaseStatus,
    check_move,
    move,
    read_statuses,
    status_of,
)
from release_pipeline.pages.escaping import escape_markdown, format_text
from release_pipeline.pipeline.context import StageResult
from release_pipeline.pipeline.tables import read_data
from release_pipeline.policy import Policy
from release_pipeline.publish.delivery import TOMBSTONES, package_is_whole
from release_pipeline.publish.package import build_package, place_package, write_attestations
from release_pipeline.publish.papers import render_public_papers
from release_pipeline.publish.public_view import build_view
from release_pipeline.sentences import PUBLIC
from release_pipeline.store.files import PLAIN, Probe, check_line, clear_partials, is_whole, sync, write_text
from release_pipeline.store.files import PUBLIC as FOR_ALL
from release_pipeline.store.ledger import RESERVED, list_charges
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import find_approval, valid_approvers
from release_pipeline.trust.keys import PrivateKey, read_key, write_statement
from release_pipeline.trust.members import TRUSTED, Trust, need_trust


def publish(site: Site, release: ReleaseId, *, key: PrivateKey, now: datetime | None = None, probe: Probe = PLAIN) -> Path:
    """Publish an approved candidate, and return the folder of its package. A published one is only verified again."""
    folder, built = site.package(str(release)), site.vault / "publishing" / release.file_name
    with site.publishing_alone():
        with site.open_registry() as registry:
            status = status_of(registry, release)
            begun = None if status.state == PUBLISHED else _begin(site, registry, status, key, now or datetime.now(UTC))
        if begun is None:
            _finish(folder, built, status)
            return folder
        trust, intent, view, papers = begun
        probe.reached("the intent is noted")
        digest, signed = build_package(
            built,
            candidate=site.candidate(str(release)),
            view=view,
            papers=papers,
            trust=trust,
            attest=lambda card, hashes: write_attestations(card, hashes, trust, key),
            sign=lambda digest: trust.sign(key, kind="package", subject=str(release), digest=digest, at=intent.noted),
        )
        probe.reached("the package is built")
        with site.open_registry() as registry:
            status = status_of(registry, release)
            if need_trust(site, registry) != trust:
                raise Blocked("the list of trusted keys was changed meanwhile.", where=str(release), remedy="Publish again.")
            judged = view.card.hashes.candidate
            _check_publishable(site, registry, trust, status, now=now or datetime.now(UTC), judged=judged)
            move(registry, release, PUBLISHED, package_hash=digest, signed=signed)
            status = status_of(registry, release)
        probe.reached("published is noted")
        _finish(folder, built, status)
        probe.reached("the package is in its place")
    return folder


def _begin(
    site: Site, registry: Registry, status: ReleaseStatus, key: PrivateKey, now: datetime
) -> tuple[Trust, Event, PackageView, Mapping[str, str]]:
    """Check everything, and return the list of keys, the intent, the public facts, and the papers for the package."""
    trust = need_trust(site, registry)
    by = trust.check_may_sign(key, kind="package", subject=str(status.id)).name
    _check_publishable(site, registry, trust, status, now=now)
    intent = _record_intent(site, registry, status, by)
    policy = policy_of(registry, status.policy_hash)
    view = build_view(site, registry.events, status, policy)
    return trust, intent, view, render_public_papers(view)


def _record_intent(site: Site, registry: Registry, status: ReleaseStatus, by: str) -> Event:
    """Return the event that the package will name as the head of the chain: that of a stopped attempt, if nothing happened
    since.

    Earlier refusals are in the chain with the counts of checks. Someone could guess these counts from a published hash. So the
    head is blinded by a value that only the vault can make, and would make again.
    """
    last = registry.events[-1]
    blind = site.keyed_hash(f"blind of what follows {last.hash}".encode())
    payload = {"candidate_hash": status.candidate_hash, "by": by}
    known = {name: value for name, value in last.content.items() if name != "blind"}
    if (last.kind, last.release, known) == (PUBLISHING, status.id, payload):
        return last
    return move(registry, status.id, PUBLISHING, **payload, blind=blind)


def _finish(folder: Path, built: Path, status: ReleaseStatus) -> None:
    """Put the package of a release that is recorded as published into its folder, unless it is there, whole."""
    if not folder.exists() and package_is_whole(built, status):
        place_package(built, folder)
    if not package_is_whole(folder, status):
        raise Blocked("its package is not what was published.", where=str(status.id), remedy=f"Look at {folder}.")
    shutil.rmtree(built, ignore_errors=True)


def read_service_key(site: Site) -> PrivateKey:
    """Return the key that site.yaml names for publishing without a person, if it can sign now."""
    named = site.service_key
    if named is None:
        raise WrongUsage(
            "the site names no key to publish with.",
            where=str(site.home / "site.yaml"),
            remedy="Add 'service_key: FILE', or publish by command.",
        )
    key = read_key(named, attended=False)
    key.check()
    return key


def describe_published(site: Site, release: ReleaseId) -> tuple[StageResult, Policy]:
    """Return the result of a published release, its package and its public facts as they were recorded, and its policy then."""
    with site.open_registry(read_only=True) as registry:
        status = status_of(registry, release)
        policy = policy_of(registry, status.policy_hash)
    facts, digest = read_facts(status.facts, where=str(release)), str(status.package_hash)
    payload = {**facts.to_json(), "candidate_hash": status.candidate_hash, "package_hash": digest}
    return StageResult("published", digest, payload), policy


def list_publishable(site: Site, policy_name: str) -> tuple[list[ReleaseId], list[str]]:
    """Return the approved releases of a policy that may be published now, and a text for each of the others that says why not."""
    now = datetime.now(UTC)
    ready: list[ReleaseId] = []
    waiting: list[str] = []
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        for known, status in sorted(read_statuses(registry.events).items()):
            if known.policy == policy_name and status.state in ("approved", PUBLISHING):
                found = list(_find_obstacles(site, registry, trust, status, now))
                ready += [] if found else [known]
                waiting += [f"{known}: {' '.join(found)}"] if found else []
    return ready, waiting


def _check_publishable(
    site: Site, registry: Registry, trust: Trust, status: ReleaseStatus, *, now: datetime, judged: str = ""
) -> None:
    """Raise `Blocked` with every reason why this candidate must not be published now. `judged`: the hash of a candidate whose
    data were judged before; the same bytes are not judged again."""
    if status.state == "returned":
        raise Blocked(
            f"it was returned with reasons by {', '.join(status.returners)}, and is not published.",
            where=str(status.id),
            remedy="Its steward answers, or makes a revision. Who returned it may approve it after that.",
        )
    if status.state == "candidate":
        needed = policy_of(registry, status.policy_hash).review.reviewers
        voted = f"{len(status.voters)} of {needed} reviewers have voted."
        given = f"{len(status.approvers)} of {needed} reviewers have approved it."
        raise Blocked(
            f"it is not approved yet: {voted if status.is_blind else given}",
            where=str(status.id),
            remedy=f"They look at {site.candidate(str(status.id))} and run: release-pipeline approve {status.id} --key KEY.",
        )
    check_accepted(registry.events)
    check_move(registry, status.id, PUBLISHING)
    found = list(_find_obstacles(site, registry, trust, status, now, judged))
    if found:
        raise Blocked(" ".join(found), where=str(status.id), remedy="Nothing was published.")


def _find_obstacles(
    site: Site, registry: Registry, trust: Trust, status: ReleaseStatus, now: datetime, judged: str = ""
) -> Iterator[str]:
    """Yield every obstacle, after checking everything again: hashes, data unless those of this hash were `judged`, gates,
    approvals, cap, embargo and clock."""
    caps = read_caps(site)
    release, candidate, policy = status.id, site.candidate(str(status.id)), policy_of(registry, status.policy_hash)
    charge = next((e for e in registry.events if e.kind == RESERVED and e.release == release), None)
    if charge is None or status.drawn is None:
        yield "The registry has no charge for it, or no draw."
        return
    if charge.content["policy_hash"] != status.policy_hash:
        yield "It was charged under another policy than its candidate's."
    if status.replaced is not None:
        yield f"It was given up for {status.replaced}."
    if (folder := site.package(str(release))).exists() or folder.is_symlink():
        yield f"Something lies where its package belongs: {folder}."
    if not is_whole(candidate, status.candidate_hash):
        yield "The candidate's folder is not what was frozen."
        return
    if status.candidate_hash != judged:
        yield from _judge_candidate(candidate, policy, status)
    yield from _judge_looks(candidate, registry.events, release)
    yield from find_unproved_claims(policy)
    about = {"what": "policy", "subject": policy.policy, "digest": status.policy_hash}
    if find_approval(registry, trust, **about, before=charge.number) is None:
        yield "Its policy was not approved by the privacy officer before the charge."
    if find_approval(registry, trust, what="populations", subject="populations", digest=caps.hash) is None:
        yield "populations.yaml is not approved by the privacy officer as it is now."
    if returned := status.returners:
        yield f"It was returned with reasons by {', '.join(returned)}."
    approvers = valid_approvers(registry, trust, status, policy.steward)
    if len(approvers) < policy.review.reviewers:
        yield f"{len(approvers)} of {policy.review.reviewers} reviewers have approved it as it is."
    account = open_population(caps, policy.population, list_charges(registry))
    if not account.admits():
        yield f"{account.population} is over its cap: {account.spent} of {account.limit} ({account.unit})."
    if policy.publish.not_before is not None and now < policy.publish.not_before:
        yield f"It is under embargo until {policy.publish.not_before:%Y-%m-%d %H:%M} UTC."
    seen = believed(registry.events)
    if seen and is_ahead(seen[-1], now.timestamp()):
        yield "The clock is behind the registry's last event."


def _judge_looks(candidate: Path, events: Sequence[Event], release: ReleaseId) -> Iterator[str]:
    """Yield a fault unless reviewers saw the trials on the data that the card will report."""
    signed = [{**asdict(look), "compared": list(look.compared)} for look in load_evidence(candidate).looks]
    if signed != note_looks(find_looks_before(events, release)):
        yield "The registry tells other looks at the data before its charge than the evidence that was signed."


def _judge_candidate(candidate: Path, policy: Policy, status: ReleaseStatus) -> Iterator[str]:
    """Yield faults from the checks of the data, the gates of the evidence as the policy has them, and the comparison of the
    card's facts with what was signed."""
    facts = read_facts(status.facts, where=str(status.id))
    gates: list[Gate] = []
    for form in policy.publish.formats:
        table = read_data(candidate, form, policy)
        yield from check_released(table, policy, rows=facts.rows_out)
        if tuple(table.column_names) == policy.published_columns and policy.gates.on_released:
            gates += judge_groups(measure_groups(read_back(table, policy), policy), policy.gates)
    evidence = load_evidence(candidate)
    if note_facts(evidence.facts, str(status.candidate_hash)) != status.facts:
        yield "The registry tells other facts of it than the evidence that was signed."
    gates += judge_gates({name: asdict(figures) for name, figures in evidence.columns.items()}, policy.gates)
    yield from (gate.refusal for gate in gates if not gate.passed)


# The end of a published package: it is retracted, or superseded by a later revision. Both are for good. The officer's signed
# statement is an event first, and then a tombstone in the package. If stopped in between, a rerun finishes it.


KINDS = {RETRACTED: "retract", SUPERSEDED: "supersede"}  # what is signed for each state


def retract(site: Site, release: ReleaseId, *, key: PrivateKey, why: str, probe: Probe = PLAIN) -> Path:
    """Retract a published release for the officer, with the reason: its data leave the package, a tombstone stays."""
    if not why.strip():
        raise WrongUsage("a retraction needs its reason.", where=str(release), remedy="Add --why 'REASON'.")
    why = check_line(why)
    return _withdraw(site, release, RETRACTED, key=key, payload={"reason": why}, why=why, probe=probe)


def supersede(
    site: Site, release: ReleaseId, successor: ReleaseId, *, key: PrivateKey, why: str = "", probe: Probe = PLAIN
) -> Path:
    """Refer the readers of a published release to a later revision, whose card names it in turn; signed by the officer."""
    if (successor.policy, successor.release) != (release.policy, release.release) or successor.revision <= release.revision:
        raise WrongUsage("only a later revision of the same release can supersede it.", where=str(successor))

    def check_successor(registry: Registry) -> None:
        known = read_statuses(registry.events).get(successor)
        state = "not opened" if known is None else known.state
        if state != PUBLISHED:
            raise Blocked(f"it is {state}, not published.", where=str(successor), remedy="Publish it first.")

    words = check_line(f"{successor}: {why}" if why.strip() else str(successor))
    payload = {"successor": str(successor)}
    return _withdraw(site, release, SUPERSEDED, key=key, payload=payload, why=words, probe=probe, check=check_successor)


def _withdraw(
    site: Site,
    release: ReleaseId,
    state: str,
    *,
    key: PrivateKey,
    payload: dict[str, str],
    why: str,
    probe: Probe,
    check: Callable[[Registry], None] = lambda _: None,
) -> Path:
    """Record the event, unless there is one already, and write its tombstone. `check` may refuse a new one."""
    with site.publishing_alone():
        with site.open_registry() as registry:
            trust = need_trust(site, registry)
            status = status_of(registry, release)
            if status.state != state:
                check(registry)
            about: dict[str, str] = {"kind": KINDS[state], "subject": str(release), "digest": str(status.package_hash)}
            if status.state == state:
                trust.check_may_sign(key, kind=KINDS[state], subject=str(release))
            else:
                signed = trust.sign(key, **about, why=why)
                move(registry, release, state, **payload, hash=status.package_hash, signed=signed)
            event = _find_event(registry, release, state)
            signed, officers = event.content["signed"], _name_officers(registry, trust, release, event)
            trust.check_event(event, **about)
        probe.reached(f"{state} is noted")
        folder = site.package(str(release))
        if not folder.is_dir():
            raise Blocked(
                "its package is not there.", where=str(release), remedy=f"It was in {folder}; the registry has noted it."
            )
        _bury(folder, state, signed, officers, probe)
    return folder


def _find_event(registry: Registry, release: ReleaseId, state: str) -> Event:
    return next(event for event in registry.events if (event.kind, event.release) == (state, release))


def _name_officers(registry: Registry, trust: Trust, release: ReleaseId, event: Event) -> str:
    """Return how the officer who signed an event followed the one whom the package names; empty where it is the same."""
    published = next(each for each in registry.events if (each.kind, each.release) == (PUBLISHED, release))
    officers = [each.content["officer"] for each in registry.events[: published.number] if each.kind == TRUSTED]
    signer = event.content["signed"]["statement"]["signer"]
    return write_officers(registry.events, trust.office, upto=signer) if officers[-1] != signer else ""


def _tell(state: str, payload: Mapping[str, str], *, file: str) -> str:
    """Return the text of a tombstone for people."""
    why = escape_markdown(format_text(payload["why"]))  # any markup in it is shown and has no effect
    at, release, name = payload["at"], payload["subject"], payload["name"]
    if state == RETRACTED:
        return PUBLIC("note.tombstone.retracted", release=release, at=at, name=name, why=why, file=file)
    later = f"../{payload['why'].partition(':')[0].rpartition('/')[2]}/"
    return PUBLIC("note.tombstone.superseded", release=release, at=at, name=name, why=why, later=later, file=file)


def _bury(folder: Path, state: str, signed: Any, officers: str, probe: Probe) -> None:
    """Write the tombstone for machines and for people, and then remove the data if it is a retraction."""
    name, payload = TOMBSTONES[state], signed["statement"]
    clear_partials(folder)
    write_text(folder / f"{name}.json", write_statement(signed), mode=FOR_ALL)
    if officers:
        write_text(folder / f"{name}.{OFFICERS}", officers, mode=FOR_ALL)
    probe.reached("the tombstone is signed")
    write_text(folder / f"{name}.md", _tell(state, payload, file=f"{name}.json"), mode=FOR_ALL)
    probe.reached("the tombstone is written")
    if state == RETRACTED:
        for file in folder.glob("data.*"):
            file.unlink()
        sync(folder)
    probe.reached(f"{state} is done")
