"""The dossier of a published release: one zip that answers an auditor months later, and that verifies itself offline.

It is confidential: the evidence in it describes the data. Nothing signs the zip as a whole; what is in it is bound to the chain
of events, whose head the published package names, and to the signatures.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from release_pipeline import __version__
from release_pipeline.errors import Blocked
from release_pipeline.flow.claims import read_audit
from release_pipeline.flow.evidence import EVIDENCE, Evidence, load_evidence
from release_pipeline.flow.exploring.trials import Look, find_looks_before, note_looks
from release_pipeline.flow.facts import PublicFacts, read_facts
from release_pipeline.flow.files import check_output, write_bytes
from release_pipeline.flow.policies import NotedPolicy, list_policies, policy_of
from release_pipeline.flow.publication.papers import view_papers
from release_pipeline.flow.publication.published import package_is_whole
from release_pipeline.flow.publication.reviews import describe_reviews, review_to_json
from release_pipeline.flow.publication.software import find_commit, list_versions, read_lock
from release_pipeline.flow.publication.verification import write_events
from release_pipeline.flow.reviewing.page import REPORT
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import APPROVED, ReleaseStatus, read_statuses
from release_pipeline.flow.status.history import list_open_votes
from release_pipeline.flow.status.ledger import read_ledgers
from release_pipeline.flow.status.ledger_document import ledger_to_json
from release_pipeline.flow.sums import SUMS, is_whole, list_sums
from release_pipeline.flow.trust.keys import write_statement
from release_pipeline.flow.trust.members import KEYS, KEYS_SIGNATURE, Trust, need_trust
from release_pipeline.flow.trust.office import OFFICERS
from release_pipeline.policy import Policy
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import GeneraliseColumn, ListedColumn, NoiseColumn, RecomputeColumn
from release_pipeline.policy.words import describe_claim, describe_suppression
from release_pipeline.report.lineage import Step, draw_lineage
from release_pipeline.report.papers import render_papers
from release_pipeline.store.registry import Event, Registry, ReleaseId

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
| candidate/ | what the reviewers signed: evidence, and the sums of the data |
| policies/ | every policy that was used, by name and hash; diffs.txt says in words what changed |
| populations.json, ledger.json | the caps, and what was charged to the population |
| review.json, review.md | every vote on the candidate and every remark on it or its policy, with signatures; the same in words |
| checks.json | the checks of the data, the gates and the approvals of this release; looks at the data before its charge, if any |
| claims.json | what `audit-claims` found when it attacked what the policy claims{audited} |
| trusted-keys.json, trusted-keys.sig | whose signatures count, signed by the officer |
| papers/ | what an officer files: evaluation by NIST SP 800-226, annex to a DPIA, entry of a registry, as of today |
| lineage.svg, columns.csv | where the release came from; what was done to each column |
| dossier.json, versions.json, requirements.lock | what made it: commit, versions, lock file |
"""


def write_dossier(site: Site, release: ReleaseId, output: Path, *, overwrite: bool = False, refuse_open: bool = False) -> Path:
    """Write the dossier of a published release, also of one that was retracted or superseded. With `refuse_open` raise `Blocked`
    when the events that go into it have votes or remarks that are to be told to nobody yet."""
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
    """Every file of the dossier by name. The events are read once: those that are judged are those that are written."""
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
        looks = find_looks_before(events, release)
        policies = {noted.hash: noted for noted in list_policies(events)}
        populations = _populations_text(registry, release)
    package, candidate = site.package(str(release)), site.candidate(str(release))
    if not package_is_whole(package, release_status) or not is_whole(candidate, release_status.candidate_hash):
        raise Blocked(
            "its package or candidate is not what was published.", where=str(release), remedy="See `verify` of the site."
        )
    evidence = load_evidence(candidate)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    series = [str(name) for name in sorted(statuses) if name.policy == release.policy]
    tool = f"release-pipeline {__version__}"
    about = {"release": str(release), "made": made, "tool": tool, "commit": find_commit(), "series": series}
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
        "review.md": describe_reviews(events, release),
        "checks.json": _json(_collect_checks(evidence, release_status, policy, trust, looks)),
        "lineage.svg": _draw(release_status, policy, evidence, events, looks),
        "columns.csv": _list_columns(policy),
        "versions.json": _json(list_versions()),
        "requirements.lock": read_lock(),
        **({"claims.json": _json(claims)} if claims else {}),
        **{f"papers/{name}": text for name, text in render_papers(view_papers(site, release)).items()},
    }
    files = {f"package/{file.name}": file for file in package.iterdir() if not file.name.startswith("data.")}
    files |= {f"candidate/{name}": candidate / name for name in (SUMS, EVIDENCE, REPORT) if (candidate / name).is_file()}
    files["verify.py"] = Path(__file__).resolve().parents[2] / "verify.py"
    content = {name: text.encode() for name, text in texts.items()} | {name: file.read_bytes() for name, file in files.items()}
    return content | {SUMS: list_sums({name: hashlib.sha256(part).hexdigest() for name, part in content.items()}).encode()}


def _populations_text(registry: Registry, release: ReleaseId) -> str:
    """The caps as the officer last approved them before the release was charged."""
    text = ""
    for event in registry.events:
        if event.kind == APPROVED and event.content["what"] == "populations":
            text = event.content["text"]
        elif event.kind == "reserved" and event.release == release:
            break
    return text


def _describe_diffs(policies: Sequence[NotedPolicy]) -> Iterator[str]:
    """What changed from version to version of each policy."""
    for name in sorted({noted.name for noted in policies}):
        versions = [noted for noted in policies if noted.name == name]
        yield f"{name}: {len(versions)} versions" if len(versions) > 1 else f"{name}: one version"
        for old, new in pairwise(versions):
            yield f"  from {old.hash[:12]} to {new.hash[:12]}:"
            yield from (f"    {line}" for line in describe_diff(old.policy, new.policy))


def _collect_checks(
    evidence: Evidence, release_status: ReleaseStatus, policy: Policy, trust: Trust, looks: Sequence[Look]
) -> dict[str, Any]:
    return {
        "checks_passed": evidence.checks_passed,
        **({"own_suite": [asdict(own) for own in evidence.own_suite]} if evidence.own_suite else {}),
        "gates": [dict(sorted(gate.to_json().items())) for gate in evidence.gates],
        "warnings": list(evidence.warnings),
        "approved_by": release_status.approvers,
        "reviewers_needed": policy.review.reviewers,
        "steward": policy.steward,
        "officer": trust.officer.name,
        **({"looks": note_looks(looks)} if looks else {}),
    }


def _draw(
    release_status: ReleaseStatus, policy: Policy, evidence: Evidence, events: Sequence[Event], looks: Sequence[Look]
) -> str:
    facts, protect = read_facts(release_status.facts, where=str(release_status.id)), policy.protect
    k = f", k {protect.k}" if protect.k else ""
    classes = [f"in classes by {name_some(policy.generalised_columns)}"] if policy.generalised_columns else []
    together = ", together" if policy.vectors is not None and len(policy.noise_columns) > 1 else ""
    parts: list[str] = []
    if policy.parts > 1:
        parts = [f"{policy.parts} random parts of the records, each {'grouped ' if classes else ''}on its own"]
    stages = (
        Step("source", (policy.source.words,)),
        Step("ingested", (_records_words(policy, facts, release_status.id.release),)),
        Step("validated", (f"{sum(evidence.checks_passed.values())} checks passed",)),
        Step("microaggregated", (*parts, f"{protect.method}{k}: {name_some(policy.noise_columns)}{together}", *classes)),
        Step("masked", (describe_claim(policy),)),
        Step(
            "suppressed",
            (describe_suppression(policy), f"{facts.cells_blanked} cells blanked, {facts.rows_out:,} records left"),
        ),
        Step("audited", (f"{len(evidence.gates)} gates passed",)),
        Step("candidate", (f"hash {release_status.candidate_hash}",)),
        Step(f"package: {release_status.state}", (f"hash {release_status.package_hash}",)),
    )
    looked = {look.number for look in looks}
    happened = [
        Step(f"event {event.number}: {event.kind}", _words_of(event))
        for event in events
        if event.release == release_status.id or event.number in looked
    ]
    return draw_lineage(f"Where {release_status.id} came from", stages, happened)


def _records_words(policy: Policy, facts: PublicFacts, release: str) -> str:
    return f"{facts.rows_in:,} records of release {release}"


def _words_of(event: Event) -> tuple[str, ...]:
    lines = event.content
    words = [event.noted]
    signer = lines["signed"]["statement"]["name"] if lines.get("signed") else lines.get("by")
    words += [f"by {signer}"] if signer else []
    words += [str(lines[name]) for name in ("why", "reason", "successor") if lines.get(name)]
    return tuple(words)


def _list_columns(policy: Policy) -> str:
    """What was done to each column, as CSV."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("column", "role", "do", "released", "domain", "grid", "values", "epsilon", "why"))
    for name, column in policy.columns.items():
        noise = column if isinstance(column, NoiseColumn) else None
        values = " ".join(map(str, column.values)) if isinstance(column, ListedColumn) else ""
        if isinstance(column, GeneraliseColumn):
            values = column.hierarchy.words
        if isinstance(column, RecomputeColumn):
            values = "; ".join(policy.derive[name].preview())
        writer.writerow(
            (
                name,
                column.role,
                column.do,
                "yes" if column.is_released else "no",
                " to ".join(noise.domain_texts if noise.clock else map(str, noise.domain)) if noise else "",
                (noise.grid_text if noise.clock else noise.grid) if noise else "",
                values,
                policy.column_epsilon.get(name, ""),
                getattr(column, "why", None) or "",
            )
        )
    writer.writerows((name, "", "drop", "no", "", "", "", "", "") for name in policy.drop)
    return table.getvalue()


def _json(content: Any) -> str:
    return json.dumps(content, indent=2) + "\n"
