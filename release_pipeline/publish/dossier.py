"""The dossier of a published release, and the signed votes, returns and remarks of its review."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from release_pipeline import __version__
from release_pipeline.errors import Blocked
from release_pipeline.formats.evidence import EVIDENCE
from release_pipeline.ledger.account import ledger_to_json, read_ledgers
from release_pipeline.ledger.office import OFFICERS
from release_pipeline.ledger.policies import NotedPolicy, list_policies, policy_of
from release_pipeline.ledger.states import APPROVED, ReleaseStatus, read_statuses
from release_pipeline.pipeline.claims import read_audit
from release_pipeline.policy.plans.diff import describe_diff
from release_pipeline.publish.delivery import package_is_whole
from release_pipeline.publish.history import list_open_votes
from release_pipeline.publish.papers import render_papers, view_papers
from release_pipeline.publish.verification import write_events
from release_pipeline.report.page import REPORT
from release_pipeline.store.files import SUMS, check_output, is_whole, list_sums, write_bytes
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import write_statement
from release_pipeline.trust.members import KEYS, KEYS_SIGNATURE, need_trust
from release_pipeline.verifier.joining import join_verifier
from release_pipeline.verifier.remarks import REVIEW_FORMAT, is_review


def review_to_json(events: Sequence[Event], release: ReleaseId) -> dict[str, Any]:
    """Return the votes on a release, and the remarks on it and on its policy, as the chain has them: `verify.py` compares them
    one by one, and checks what is signed."""
    listed = [
        {"event": event.number, "kind": event.kind, "noted": event.noted, **_find_signed(event)}
        for event in events
        if is_review(event.kind, str(event.release or ""), event.content, str(release))
    ]
    return {"format": REVIEW_FORMAT, "release": str(release), "events": listed}


def _find_signed(event: Event) -> dict[str, Any]:
    document = {"document": event.content["document"]} if event.kind == "remarked" else {}
    return {"signed": event.content["signed"], **document}


# The dossier of a published release: one zip that answers an auditor months later, and that verifies itself offline. It is
# confidential: the evidence in it describes the data. No signature covers the zip as a whole; its parts are bound to the chain of
# events, whose head the published package names, and to the signatures.


_MOMENT = (1980, 1, 1, 0, 0, 0)  # of every file in the zip: the same content gives the same bytes
_README = """\
# Dossier of {release}

Made on {made} by {tool}. CONFIDENTIAL, all of it: candidate/evidence.json describes the data, and events.jsonl has the policies,
refusals and counts of every release of the site, of other populations too.

    python verify.py . --officer FINGERPRINT

checks all of it, offline, with Python alone (3.9 or later); on the zip too: `python verify.py FILE.zip`. Take verify.py from the
publisher if you fear the sender, and the officer's fingerprint from somewhere else than this dossier.

| file | what it is |
|---|---|
| events.jsonl | everything that the registry noted, a chain of hashes up to {events} events |
| package/ | the published package without its data, whose hashes are in its SHA256SUMS |
| candidate/ | what the reviewers signed: evidence with checks, gates and looks at the data, and the sums of the data |
| policies/ | every policy that was used, by name and hash; diffs.txt says in words what changed |
| populations.json, ledger.json | the caps, and what was charged to the population |
| review.json | every vote on the candidate and every remark on it or its policy, with signatures |
| claims.json | what `audit-claims` found when it attacked what the policy claims{audited} |
| trusted-keys.json, trusted-keys.sig | whose signatures count, signed by the officer |
| papers/ | what an officer files: evaluation by NIST SP 800-226, annex to a DPIA, entry of a registry, as of today |
| dossier.json | which release, the series, the officer, and what made this file |
"""


def write_dossier(site: Site, release: ReleaseId, output: Path, *, overwrite: bool = False, refuse_open: bool = False) -> Path:
    """Write the dossier of a published release, also of one that was retracted or superseded. With `refuse_open` raise `Blocked`
    when its events have votes or remarks that must still stay secret."""
    check_output(output, endings=(".zip",), overwrite=overwrite)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, part in sorted(_collect(site, release, refuse_open=refuse_open).items()):
            info = zipfile.ZipInfo(name, _MOMENT)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            archive.writestr(info, part)
    write_bytes(output, content.getvalue())
    return output


def _collect(site: Site, release: ReleaseId, *, refuse_open: bool) -> dict[str, bytes]:
    """Return every file of the dossier by name. The events are read once, so that those that are judged are those that are
    written."""
    with site.open_registry(read_only=True) as registry:
        trust, events = need_trust(site, registry), registry.events
        statuses = read_statuses(events)
        release_status = statuses.get(release, ReleaseStatus(release))
        if release_status.package_hash is None:
            raise Blocked(f"it is {release_status.state}: a dossier is of a published release.", where=str(release))
        if refuse_open and (hidden := list_open_votes(events)):
            raise Blocked(
                f"a dossier has the whole chain, and votes or remarks on {', '.join(hidden[:5])} are not to be told yet.",
                where=str(release),
                remedy="Ask again when these votes are in, or on the site's machine: release-pipeline dossier.",
            )
        policy = policy_of(registry, release_status.policy_hash)
        policies = {noted.hash: noted for noted in list_policies(events)}
        populations = _populations_text(registry, release)
    package, candidate = site.package(str(release)), site.candidate(str(release))
    if not package_is_whole(package, release_status) or not is_whole(candidate, release_status.candidate_hash):
        raise Blocked(
            "its package or candidate is not what was published.", where=str(release), remedy="See `verify` of the site."
        )
    made = datetime.now(UTC).isoformat(timespec="seconds")
    series = [str(name) for name in sorted(statuses) if name.policy == release.policy]
    tool = f"release-pipeline {__version__}"
    about = {"release": str(release), "made": made, "tool": tool, "series": series}
    [ledger] = read_ledgers(site, policy.population)
    claims = read_audit(site, release_status.policy_hash)
    texts = {
        "README.md": _README.format(
            release=release, made=made, tool=tool, events=len(events), audited="" if claims else " (nobody has run it: not here)"
        ),
        "dossier.json": _json({**about, "officer": trust.officer.key.fingerprint}),
        "events.jsonl": write_events(events),
        "populations.json": populations,
        KEYS: trust.text,
        KEYS_SIGNATURE: write_statement(trust.signed),
        **({OFFICERS: trust.officers} if trust.officers else {}),
        "policies/diffs.txt": "".join(f"{line}\n" for line in _describe_diffs(list(policies.values()))),
        **{f"policies/{noted.name}.{digest[:12]}.json": noted.text for digest, noted in policies.items()},
        "ledger.json": _json(ledger_to_json(ledger)),
        "review.json": _json(review_to_json(events, release)),
        "verify.py": join_verifier(),
        **({"claims.json": _json(claims)} if claims else {}),
        **{f"papers/{name}": text for name, text in render_papers(view_papers(site, release)).items()},
    }
    files = {f"package/{file.name}": file for file in package.iterdir() if not file.name.startswith("data.")}
    files |= {f"candidate/{name}": candidate / name for name in (SUMS, EVIDENCE, REPORT) if (candidate / name).is_file()}
    content = {name: text.encode() for name, text in texts.items()} | {name: file.read_bytes() for name, file in files.items()}
    return content | {SUMS: list_sums({name: hashlib.sha256(part).hexdigest() for name, part in content.items()}).encode()}


def _populations_text(registry: Registry, release: ReleaseId) -> str:
    """Return the caps as the officer last approved them before the release was charged."""
    text = ""
    for event in registry.events:
        if event.kind == APPROVED and event.content["what"] == "populations":
            text = event.content["text"]
        elif event.kind == "reserved" and event.release == release:
            break
    return text


def _describe_diffs(policies: Sequence[NotedPolicy]) -> Iterator[str]:
    """Yield the changes from version to version of each policy."""
    for name in sorted({noted.name for noted in policies}):
        versions = [noted for noted in policies if noted.name == name]
        yield f"{name}: {len(versions)} versions" if len(versions) > 1 else f"{name}: one version"
        for old, new in pairwise(versions):
            yield f"  from {old.hash[:12]} to {new.hash[:12]}:"
            yield from (f"    {line}" for line in describe_diff(old.policy, new.policy))


def _json(content: Any) -> str:
    return json.dumps(content, indent=2) + "\n"
