"""From the approved candidate to the public package: verified from scratch, written whole, once.

Boundaries: the intent is an event, with the moment and the head of the chain that the package will name; the package is built
from it, the same bytes every time; it takes its place; it is noted as published. Stopped anywhere, a rerun finishes it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release_pipeline import __version__
from release_pipeline.errors import Blocked
from release_pipeline.flow.admission import open_account
from release_pipeline.flow.approvals import find_approval, valid_approvers
from release_pipeline.flow.candidate import SUMS, candidate_hash, is_whole
from release_pipeline.flow.keys import PrivateKey
from release_pipeline.flow.policies import policy_of, populations_hash
from release_pipeline.flow.public_view import build_view
from release_pipeline.flow.reservation import PLAIN, Probe
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PUBLISHED, PUBLISHING, Standing, check_move, move, standing_of
from release_pipeline.flow.trust import Trust, need_trust
from release_pipeline.policy import Policy
from release_pipeline.report.public import render_card_html, render_card_json, render_datapackage, render_note
from release_pipeline.store.folders import locked, sync
from release_pipeline.store.ledger import RESERVED, list_charges
from release_pipeline.store.registry import Event, Registry, ReleaseId

SIGNATURE = "SHA256SUMS.sig"
TOMBSTONES = {"retracted": "RETRACTED", "superseded": "SUPERSEDED"}
_CLOCK_SLACK = 60.0


def publish(site: Site, release: ReleaseId, *, key: PrivateKey, now: datetime | None = None, probe: Probe = PLAIN) -> Path:
    """Publish an approved candidate, and give the folder of its package. A published one is only verified again."""
    now = now or datetime.now(UTC)
    folder = package_folder(site, release)
    with locked(site.releases):
        with site.open_registry() as registry:
            trust = need_trust(site, registry)
            standing = standing_of(registry, release)
            if standing.state == PUBLISHED:
                if not is_package_whole(folder) or package_hash(folder) != standing.package_hash:
                    raise Blocked("its package is not what was published.", where=str(release), remedy=f"Look at {folder}.")
                return folder
            trust.sign(key, kind="package", subject=str(release), digest="")  # refuse before anything if they may not
            policy = policy_of(registry, standing.policy_hash)
            check_publishable(site, registry, trust, standing, policy, now=now)
            if standing.state == PUBLISHING:
                intent = next(e for e in reversed(registry.events) if e.kind == PUBLISHING and e.release == release)
            else:
                by = trust.find(key.public).name
                intent = move(registry, release, PUBLISHING, candidate_hash=standing.candidate_hash, by=by)
            view = build_view(site, registry, standing, policy, intent)
        probe.passed("the intent is noted")
        texts = {
            "privacy-card.json": render_card_json(view),
            "privacy-card.html": render_card_html(view),
            "RELEASE_NOTE.md": render_note(view),
            "trusted-keys.json": trust.text,
            "trusted-keys.sig": json.dumps(trust.signed, indent=2, sort_keys=True) + "\n",
        }
        if folder.exists():  # put in its place by an attempt that was stopped before it could note that
            shutil.rmtree(folder)
        digest, signed = _build(site, release, folder, policy, texts, view, trust, key, intent, probe)
        probe.passed("the package is in its place")
        with site.open_registry() as registry:
            move(registry, release, PUBLISHED, package_hash=digest, signed=signed)
        probe.passed("published is noted")
    return folder


def check_publishable(site: Site, registry: Registry, trust: Trust, standing: Standing, policy: Policy, *, now: datetime) -> None:
    """Raise `Blocked` with every reason why this candidate must not be published now. Looks at everything anew."""
    if standing.state != PUBLISHING:
        check_move(registry, standing.id, PUBLISHING)
    found = list(_find_obstacles(site, registry, trust, standing, policy, now))
    if found:
        raise Blocked(" ".join(found), where=str(standing.id), remedy="Nothing was published.")


def package_folder(site: Site, release: ReleaseId) -> Path:
    """Where the package of a release is, or would be."""
    return site.releases / str(release)


def package_hash(folder: Path) -> str:
    """The hash of a package: SHA-256 of its list of sums, which cover every other file but the signature of that list."""
    return hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()


def is_package_whole(folder: Path) -> bool:
    """Whether every file of the list of sums is there with its hash, and nothing else but signature and tombstones."""
    return (folder / SUMS).is_file() and is_whole(folder, besides=(SIGNATURE, *_tombstone_files()))


def _find_obstacles(site: Site, registry: Registry, trust: Trust, standing: Standing, policy: Policy, now: datetime) -> Any:
    release, candidate = standing.id, site.candidate(str(standing.id))
    charge = next((e for e in registry.events if e.kind == RESERVED and e.release == release), None)
    if charge is None or standing.drawn is None:
        yield "The registry has no charge for it, or no draw."
        return
    if standing.replaced is not None:
        yield f"It was given up for {standing.replaced}."
    if not is_whole(candidate) or candidate_hash(candidate) != standing.candidate_hash:
        yield "The candidate's folder is not what was frozen."
        return
    if (
        find_approval(registry, trust, what="policy", subject=policy.policy, digest=policy.canonical_hash(), before=charge.number)
        is None
    ):
        yield "Its policy was not approved by the privacy officer before the charge."
    if find_approval(registry, trust, what="populations", subject="populations", digest=populations_hash(site)) is None:
        yield "populations.yaml is not approved by the privacy officer as it is now."
    evidence = json.loads((candidate / "evidence.json").read_text(encoding="utf-8"))
    for name, value, limit in evidence["gates"]:
        if not value <= limit:
            yield f"The {name} is over its limit."
    approvers = valid_approvers(registry, trust, standing, policy.steward)
    if len(approvers) < policy.review.reviewers:
        yield f"{len(approvers)} of {policy.review.reviewers} reviewers have approved it as it is."
    account = open_account(site, policy, list_charges(registry))
    if not account.admits():
        yield f"{account.population} is over its cap: {account.spent} of {account.limit} ({account.unit})."
    if policy.publish.not_before is not None and now < policy.publish.not_before:
        yield f"It is under embargo until {policy.publish.not_before:%Y-%m-%d %H:%M} UTC."
    if (registry.events[-1].moment - now).total_seconds() > _CLOCK_SLACK:
        yield "The clock is behind the registry's last event."


def _build(
    site: Site,
    release: ReleaseId,
    folder: Path,
    policy: Policy,
    texts: Mapping[str, str],
    view: Any,
    trust: Trust,
    key: PrivateKey,
    intent: Event,
    probe: Probe,
) -> tuple[str, dict[str, Any]]:
    """Write the package beside its place, sign it, and put it there; gives its hash and the signed statement."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(left)
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    partial.mkdir()
    try:
        candidate = site.candidate(str(release))
        data = [f"data.{form}" for form in policy.publish.formats]
        for name in data:
            shutil.copyfile(candidate / name, partial / name)
        known = {name: (_digest(partial / name), (partial / name).stat().st_size) for name in data}
        for name, text in {**texts, "datapackage.json": render_datapackage(view, known)}.items():
            (partial / name).write_text(text, encoding="utf-8")
        sums = "".join(f"{_digest(file)}  {file.name}\n" for file in sorted(partial.iterdir()))
        (partial / SUMS).write_text(sums, encoding="utf-8")
        digest = hashlib.sha256(sums.encode()).hexdigest()
        signed = trust.sign(key, kind="package", subject=str(release), digest=digest, at=intent.noted)
        (partial / SIGNATURE).write_text(json.dumps(signed, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        for file in partial.iterdir():
            file.chmod(0o644)
            sync(file)
        partial.chmod(0o755)
        probe.passed("the package is built")
        partial.replace(folder)
        sync(folder.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return digest, signed


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _tombstone_files() -> list[str]:
    return [f"{name}.{ending}" for name in TOMBSTONES.values() for ending in ("json", "md")]


__all__ = ["__version__", "check_publishable", "is_package_whole", "package_folder", "package_hash", "publish"]
