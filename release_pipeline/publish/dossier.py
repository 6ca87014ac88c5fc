"""What people signed of a release while it was reviewed, for its dossier: votes, returns and remarks, as data and in words."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
import subprocess
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import distributions
from itertools import pairwise
from pathlib import Path
from typing import Any

from release_pipeline import __version__
from release_pipeline.errors import Blocked
from release_pipeline.formats.evidence import EVIDENCE, Evidence, load_evidence
from release_pipeline.ledger.account import ledger_to_json, read_ledgers
from release_pipeline.ledger.facts import PublicFacts, read_facts
from release_pipeline.ledger.looks import Look, find_looks_before, note_looks
from release_pipeline.ledger.office import OFFICERS
from release_pipeline.ledger.policies import NotedPolicy, list_policies, policy_of
from release_pipeline.ledger.states import APPROVED, ReleaseStatus, read_statuses
from release_pipeline.pages.escaping import escape_markdown, format_text
from release_pipeline.pipeline.claims import read_audit
from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import GeneraliseColumn, ListedColumn, NoiseColumn, RecomputeColumn
from release_pipeline.policy.plans.diff import describe_diff
from release_pipeline.policy.plans.plan import describe_claim, describe_suppression
from release_pipeline.policy.values.formats import name_some
from release_pipeline.publish.delivery import package_is_whole
from release_pipeline.publish.history import list_open_votes
from release_pipeline.publish.papers import render_papers, view_papers
from release_pipeline.publish.verification import write_events
from release_pipeline.report.page import REPORT
from release_pipeline.store.files import SUMS, check_output, is_whole, list_sums, write_bytes
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import write_statement
from release_pipeline.trust.members import KEYS, KEYS_SIGNATURE, Trust, need_trust
from release_pipeline.verifier.joining import join_verifier
from release_pipeline.verifier.remarks import REVIEW_FORMAT, is_review

_DEEDS = {"approved": "approved it", "returned": "returned it", "rejected": "rejected it", "remarked": "remarked"}


def review_to_json(events: Sequence[Event], release: ReleaseId) -> dict[str, Any]:
    """Each event of the review as it stands in the chain: `verify.py` compares them one by one, and checks what is signed."""
    listed = [
        {"event": event.number, "kind": event.kind, "noted": event.noted, **_find_signed(event)}
        for event in _list_reviews(events, release)
    ]
    return {"format": REVIEW_FORMAT, "release": str(release), "events": listed}


def _find_signed(event: Event) -> dict[str, Any]:
    document = {"document": event.content["document"]} if event.kind == "remarked" else {}
    return {"signed": event.content["signed"], **document}


def _list_reviews(events: Sequence[Event], release: ReleaseId) -> list[Event]:
    """The votes on a release, and the remarks on it and on its policy, in order."""
    return [event for event in events if is_review(event.kind, str(event.release or ""), event.content, str(release))]


def describe_reviews(events: Sequence[Event], release: ReleaseId) -> str:
    """The same as a page in Markdown."""
    return "\n".join([f"# Review of {release}", "", *_describe(_list_reviews(events, release))]) + "\n"


def _describe(events: Sequence[Event]) -> Iterator[str]:
    if not events:
        yield "Nobody voted or remarked."
    for event in events:
        said = event.content["signed"]["statement"]
        about = f"candidate {said['hash'][:12]}"
        if event.kind == "remarked":
            document = event.content["document"]
            what = "candidate" if event.release is not None else f"policy {document['subject']}"
            about = f"on {what} {document['hash'][:12]}"
        yield f"## Event {event.number}, {event.noted}: {said['name']} {_DEEDS[event.kind]}, {about}"
        yield ""
        yield f"Signed {said['at']} with the key {said['signer'][:16]}."
        yield ""
        if said["why"]:
            yield from ("Reason: " + escape_markdown(said["why"]), "")
        for entry in event.content["document"]["remarks"] if event.kind == "remarked" else ():
            yield f"- {escape_markdown(entry['passage']) or 'the whole'}:"
            yield from (f"  {escape_markdown(line)}  " for line in entry["text"].split("\n"))
            yield ""


# Which software made something: commit, versions, and the lock file that it was installed from.


UNKNOWN = "unknown"
_PACKAGE = Path(__file__).resolve().parents[1]


def find_commit() -> str:
    """The commit of the checkout that this runs from, with a + when files in it were changed; unknown in an installed package."""
    if not (_PACKAGE.parent / ".git").exists():
        return UNKNOWN
    try:
        commit, changed = (
            subprocess.run(["git", "-C", str(_PACKAGE.parent), *words], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603, S607
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return commit + "+" * bool(changed)


def list_versions() -> dict[str, str]:
    """Python and every installed distribution, by name."""
    found = {known.name.lower(): known.version for known in distributions() if known.name}
    return {"python": platform.python_version(), "system": platform.platform(), **dict(sorted(found.items()))}


def read_lock() -> str:
    """The lock file, of the installed package or of the checkout."""
    for file in (_PACKAGE / "requirements.lock", _PACKAGE.parent / "requirements.lock"):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return UNKNOWN + "\n"


# Where a release came from, as a picture: the stages of its data in one lane, what was noted of it
# in the other.


WIDTH, LANE, BOX, GAP, LINE = 980, 470, 450, 18, 17
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1a1a1a}.head{font-weight:600}.small{font-size:12px;fill:#444}"
    ".title{font-size:19px;font-weight:600}"
    ".box{fill:#fff;stroke:#456;stroke-width:1.2}.people{fill:#f4f1e6;stroke:#865}.lane{font-weight:600;font-size:14px}"
)
LONGEST, MOST_LINES = 54.0, 3  # of a text in a box: the width of a line, in digits, and the number of lines
LONGEST_HEAD, LONGEST_TITLE = 44.0, 66.0  # wider letters
_NO_XML = {0xFFFE: "[U+FFFE]", 0xFFFF: "[U+FFFF]"}


@dataclass(frozen=True, slots=True)
class Step:
    """One box: what it is, and lines that say more."""

    title: str
    lines: tuple[str, ...] = ()


def draw_lineage(title: str, stages: Sequence[Step], noted: Sequence[Step]) -> str:
    """The picture as SVG: the stages of the data from the source to the package, beside them the events of the registry.

    What is too wide for its box goes on in the next line, and what is too long for three lines is cut.
    """
    titles = _wrap(title, LONGEST_TITLE)
    top = 78 + 24 * (len(titles) - 1)
    lanes = ((20, "the data", stages, "box"), (20 + LANE + 20, "the registry", noted, "box people"))
    parts = [f'<text x="20" y="{34 + 24 * number}" class="title">{line}</text>' for number, line in enumerate(titles)]
    bottom = top
    for left, name, steps, kind in lanes:
        parts.append(f'<text x="{left}" y="{top - 12}" class="lane">{name}</text>')
        y = top
        for place, step in enumerate(steps):
            lines = [("head", line) for line in _wrap(step.title, LONGEST_HEAD)]
            lines += [("small", line) for text in step.lines for line in _wrap(text, LONGEST)]
            height = 9 + LINE * len(lines)
            if place:
                parts.append(f'<path d="M{left + BOX // 2} {y - GAP} v{GAP - 3}" stroke="#456" marker-end="url(#tip)"/>')
            parts.append(f'<rect x="{left}" y="{y}" width="{BOX}" height="{height}" rx="5" class="{kind}"/>')
            parts += [
                f'<text x="{left + 12}" y="{y + 18 + LINE * number}" class="{size}">{line}</text>'
                for number, (size, line) in enumerate(lines)
            ]
            y += height + GAP
        bottom = max(bottom, y)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" height="{bottom}" role="img">'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        (
            head,
            f"<title>{escape(_plain(title))}</title>",
            f"<style>{_STYLE}</style>",
            f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z" fill="#456"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{bottom}" fill="#fafaf8"/>',
            *parts,
            "</svg>\n",
        )
    )


def _wrap(text: str, longest: float) -> list[str]:
    """The text in at most three lines of that width, escaped; broken at spaces unless a word is too wide for any line."""
    lines, rest = list[str](), _plain(text)
    while rest and len(lines) < MOST_LINES:
        fits = _count_fitting(rest, longest)
        if fits < len(rest):
            if len(lines) == MOST_LINES - 1:
                rest = f"{rest[: _count_fitting(rest, longest - 2)].rstrip()}…"  # 2: the dots are as wide as a wide letter
                fits = len(rest)
            else:
                space = rest.rfind(" ", 0, fits + 1)
                fits = space if space > fits // 2 else fits
        lines.append(escape(rest[:fits].rstrip()))
        rest = rest[fits:].lstrip()
    return lines or [""]


def _count_fitting(text: str, longest: float) -> int:
    """How many of the first characters fit into a line."""
    width = 0.0
    for place, char in enumerate(text):
        width += _width(char)
        if width > longest:
            return place
    return len(text)


def _width(char: str) -> float:
    """How wide a character is at most, in digits, in the sans-serif fonts that are common."""
    if unicodedata.east_asian_width(char) in "WF" or char in "MWmw@%…" or ord(char) > 0x2FF:
        return 2.0
    return 1.3 if char.isupper() or ord(char) > 0x7F else 1.0


def _plain(text: str) -> str:
    return format_text(text).translate(_NO_XML)


# The dossier of a published release: one zip that answers an auditor months later, and that
# verifies itself offline.
#
# It is confidential: the evidence in it describes the data. Nothing signs the zip as a whole; what
# is in it is bound to the chain of events, whose head the published package names, and to the
# signatures.


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
        "verify.py": join_verifier(),
        **({"claims.json": _json(claims)} if claims else {}),
        **{f"papers/{name}": text for name, text in render_papers(view_papers(site, release)).items()},
    }
    files = {f"package/{file.name}": file for file in package.iterdir() if not file.name.startswith("data.")}
    files |= {f"candidate/{name}": candidate / name for name in (SUMS, EVIDENCE, REPORT) if (candidate / name).is_file()}
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
