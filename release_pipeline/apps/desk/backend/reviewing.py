"""The desk's view of a release and its candidate: the page that is signed, votes and remarks."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from release_pipeline.apps.desk.backend.calls import EVERYBODY, Asked, Call, Document, File
from release_pipeline.apps.desk.backend.home import VOTED
from release_pipeline.apps.desk.backend.lookups import describe_line, list_lines
from release_pipeline.apps.desk.backend.people import Role
from release_pipeline.apps.door import Refused
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.formats.evidence import EVIDENCE, load_evidence
from release_pipeline.formats.internal_view import InternalView
from release_pipeline.ledger.account import read_ledgers
from release_pipeline.ledger.policies import policy_of
from release_pipeline.ledger.states import RETRACTED, ReleaseStatus, read_statuses
from release_pipeline.mechanisms.basis.figures import format_apart
from release_pipeline.pipeline.opening import find_release
from release_pipeline.policy import Policy
from release_pipeline.policy.values.formats import say_unit
from release_pipeline.report.internal import describe_verdict
from release_pipeline.report.page import REPORT, ask_reviewers, build_internal_view
from release_pipeline.sentences import REVIEWERS
from release_pipeline.store.files import read_sums
from release_pipeline.store.registry import Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.members import read_trust
from release_pipeline.trust.remarks import Remark, VisibleVotes, list_release_passages, list_visible_remarks, read_visible_votes

RELEASE = re.compile(r"[a-z][a-z0-9-]{0,62}/[A-Za-z0-9._-]{1,64}(?:/r[1-9][0-9]{0,5})?")
READERS = frozenset({Role.REVIEWER, Role.OFFICER, Role.STEWARD, Role.AUDITOR})  # of candidates' pages, which are confidential
_BLOCK = re.compile(rb"<(style|script)(?: nonce=\"[^\"]*\")?>(.*?)</\1>", re.DOTALL)


def is_reader(asked: Asked, steward: str) -> bool:
    """Return whether the person who asks may see the page and the evidence of a candidate: of stewards only the policy's."""
    return asked.has(Role.REVIEWER, Role.OFFICER, Role.AUDITOR) or (asked.has(Role.STEWARD) and asked.person.name == steward)


def check_reader(asked: Asked, steward: str) -> None:
    """Refuse anyone who may not see a candidate."""
    if not is_reader(asked, steward):
        raise Refused(403, f"the candidate is for its reviewers, the officer, auditors and its steward, {steward}.")


def find_steward(registry: Registry, status: ReleaseStatus) -> str:
    """Return the steward of the policy that a release is made under; empty before it has spent budget."""
    return policy_of(registry, status.policy_hash).steward if status.policy_hash else ""


def _list_releases(asked: Asked) -> Document:
    listing = list_lines(asked.site)
    return {"releases": [describe_line(line) for line in listing.lines], "made": listing.made}


def _show_release(asked: Asked) -> Document:
    site, name = asked.site, asked.find("release", RELEASE)
    line = next((line for line in list_lines(site).lines if line.release == name), None)
    if line is None or line.id is None:
        if line is not None:
            return {"release": describe_line(line), "candidate": None}
        raise Refused(404, "the site has no such release.")
    with site.open_registry(read_only=True) as registry:
        statuses = read_statuses(registry.events)
        status = statuses[_find(statuses, name)]
        policy = policy_of(registry, status.policy_hash) if status.policy_hash else None
        votes = None if status.candidate_hash is None else read_visible_votes(registry, status.id, reader=asked.person.name)
        trust = read_trust(site, registry)
        retraction = _describe_retraction(registry, status)
        remarks = list_visible_remarks(registry, trust, name, reader=asked.person.name)
    vote_refusal = _find_vote_refusal(asked, policy, status)
    may_read = policy is not None and is_reader(asked, policy.steward)
    return {
        "votes": None if votes is None else _describe_votes(votes),
        "remarks": [_describe_remark(remark, status) for remark in remarks if may_read],
        "release": describe_line(line),
        "retraction": retraction,
        "steward": "" if policy is None else policy.steward,
        "before": _find_before(site, statuses, status),
        "candidate": None if policy is None else _describe_candidate(asked, policy, status),
        "vote_refusal": vote_refusal,
        "headroom": "" if policy is None or vote_refusal else _describe_headroom(site, policy, status),
        "draft": _describe_draft(asked, status),
    }


def _find(statuses: Mapping[ReleaseId, ReleaseStatus], name: str) -> ReleaseId:
    return next(known for known in statuses if str(known) == name)


def _describe_retraction(registry: Registry, status: ReleaseStatus) -> Document | None:
    """Return who retracted the release, when and why; None if it is not retracted."""
    if status.state != RETRACTED:
        return None
    event = next(event for event in reversed(registry.events) if (event.kind, event.release) == (RETRACTED, status.id))
    return {"by": str(event.content["signed"]["statement"]["name"]), "at": event.noted, "why": status.reason}


def _find_before(site: Site, statuses: Mapping[ReleaseId, ReleaseStatus], status: ReleaseStatus) -> str:
    """Return the release before it that has a candidate's page: an earlier revision, or the last one of the series."""
    made = [
        known
        for known in statuses.values()
        if known.id.policy == status.id.policy and known.id != status.id and known.candidate_hash is not None
        if known.moments.get("candidate", "") <= status.moments.get("candidate", "~")
        and (site.candidate(str(known.id)) / REPORT).exists()
    ]
    same = [known for known in made if known.id.release == status.id.release]
    before = max(same or made, key=lambda known: known.moments.get("candidate", ""), default=None)
    return "" if before is None else str(before.id)


def _describe_candidate(asked: Asked, policy: Policy, status: ReleaseStatus) -> Document | None:
    """Return the first parts of the candidate's page, for reviewers: verdict, gates, questions, and passages for remarks; None
    for others."""
    view = _read_view(asked.site, policy, status) if is_reader(asked, policy.steward) else None
    if view is None or status.candidate_hash is None:
        return None
    return {
        "hash": status.candidate_hash,
        "claim": view.claim,
        "statement": view.statement,
        "verdict": describe_verdict(view),
        "gates": [_describe_gate(gate) for gate in view.gates],
        "decide": [asdict(question) for question in ask_reviewers(policy, view)],
        "warnings": list(view.warnings),
        "passages": list(list_release_passages(asked.site, status.id, status.candidate_hash).items()),
        "reviewers": policy.review.reviewers,
    }


def _read_view(site: Site, policy: Policy, status: ReleaseStatus) -> InternalView | None:
    """Return the content of a candidate's page; None without a candidate."""
    folder = site.candidate(str(status.id))
    if status.candidate_hash is None or not (folder / EVIDENCE).exists():
        return None
    return build_internal_view(policy, load_evidence(folder))


def _describe_votes(votes: VisibleVotes) -> Document:
    """Return what a reader may know of the votes: their own and the number of votes, and all of them once they are in."""
    return {
        "needed": votes.needed,
        "count": votes.count,
        "are_in": votes.are_in,
        "own": None if votes.own_vote is None else asdict(votes.own_vote),
        "given": [asdict(vote) for vote in votes.given],
        "last": sorted(vote.number for vote in votes.votes),
    }


def _describe_remark(remark: Remark, status: ReleaseStatus) -> Document:
    return {**asdict(remark), "is_of_now": remark.about == status.candidate_hash}


def _describe_gate(gate: Any) -> Document:
    value, limit = format_apart(gate.value, gate.limit)
    value = REVIEWERS("gates.proved", value=value) if gate.is_proved else value
    return {"name": gate.name, "value": value, "limit": limit, "at_least": gate.at_least, "passed": gate.passed}


def _find_vote_refusal(asked: Asked, policy: Policy | None, status: ReleaseStatus) -> str:
    """Return the reason why the person who asks may not vote; empty if they may."""
    if not asked.has(Role.REVIEWER):
        return "Reviewers vote."
    if policy is not None and policy.steward == asked.person.name:
        return "You are the steward of the policy, and no steward reviews."
    if status.state not in VOTED or status.replaced is not None:
        return f"It is {status.state}: there is nothing to decide."
    return ""


def _describe_headroom(site: Site, policy: Policy, status: ReleaseStatus) -> str:
    """Return a text: the budget that a revision like this one would spend, and whether the cap admits it."""
    [ledger] = read_ledgers(site, policy.population)
    account = ledger.account
    charge = next((charge for charge in ledger.charges if charge.id == status.id), None)
    if charge is None:
        return ""
    fits = "fits" if account.admits(charge.loss) else "does not fit"
    spent, unit = account.format(account.of(charge.loss)), say_unit(account.unit)
    return (
        f"A revision is charged again. This release took {spent} ({unit}), and of {account.limit} for {policy.population} "
        f"{account.left} is left: another like it {fits}."
    )


def _describe_draft(asked: Asked, status: ReleaseStatus) -> Document:
    if status.candidate_hash is None:
        return {"remarks": []}
    draft = asked.drafts.read(asked.person.name, str(status.id), status.candidate_hash)
    return {"remarks": [asdict(remark) for remark in draft.remarks]}


def _show_report(asked: Asked) -> File:
    """Return the page that is signed, byte for byte, with the hashes of its styles and scripts for a content security policy."""
    name = asked.find("release", RELEASE)
    release = find_release(asked.site, name)
    folder = asked.site.candidate(str(release))
    with asked.site.open_registry(read_only=True) as registry:
        status = read_statuses(registry.events)[release]
        digest = status.candidate_hash
        check_reader(asked, find_steward(registry, status))
    if digest is None or not (folder / REPORT).exists():
        raise Refused(404, "it has no page: it was not made, or its tables were removed.")
    content = (folder / REPORT).read_bytes()
    if read_sums(folder, digest).get(REPORT) != hashlib.sha256(content).hexdigest():  # the rest of the folder may be large
        raise ReleasePipelineError(
            "the page in the candidate's folder is not the one that was frozen, and is not shown.",
            where=name,
            remedy="Tell the operator: somebody changed it.",
        )
    return File("text/html; charset=utf-8", content=content, facts=hash_blocks(content))


def hash_blocks(page: bytes) -> dict[str, list[str]]:
    """Return the hashes by which a content security policy lets the styles and scripts in a page through, and no others."""
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for kind, content in _BLOCK.findall(page):
        hashes[kind.decode()].append(base64.b64encode(hashlib.sha256(content).digest()).decode())
    return hashes


CALLS = (
    Call("releases", EVERYBODY, _list_releases),
    Call("release", EVERYBODY, _show_release, shows="its figures"),
    Call("report", READERS, _show_report, shows="the report"),
)
