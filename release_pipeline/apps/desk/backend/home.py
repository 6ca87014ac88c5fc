"""What waits for somebody, by their roles: the first page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from release_pipeline.apps.desk.backend.calls import EVERYBODY, Asked, Call, Document
from release_pipeline.apps.desk.backend.lookups import describe_line, list_lines, read_policies, tell_reason
from release_pipeline.apps.desk.backend.people import Role
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.ledger.policies import read_caps
from release_pipeline.ledger.states import REMARKED, ReleaseStatus, last_votes, read_statuses
from release_pipeline.operate.overview import Line
from release_pipeline.policy import Policy
from release_pipeline.report.questions import list_yardsticks
from release_pipeline.store.registry import Event, Registry
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import find_approval
from release_pipeline.trust.members import Trust, read_trust

VOTED = ("candidate", "approved", "returned")  # states in which reviewers may say something


@dataclass(frozen=True, slots=True)
class Matter:
    """One thing that somebody is to do: as whom, what, why, since when, and the page for it."""

    role: str
    words: str
    reason: str
    page: str
    since: str = ""


def _show_home(asked: Asked) -> Document:
    listing = list_lines(asked.site)
    matters = [
        asdict(matter) for role in Role if role in asked.person.roles for matter in _list_matters(asked, role, listing.lines)
    ]
    recent = sorted((line for line in listing.lines if line.since), key=lambda line: line.since, reverse=True)[:10]
    broken = list(listing.faults) if asked.has(Role.OPERATOR) else []
    return {"matters": matters, "recent": [describe_line(line) for line in recent], "broken": broken, "made": listing.made}


def _list_matters(asked: Asked, role: Role, lines: Iterable[Line]) -> Iterator[Matter]:
    match role:
        case Role.REVIEWER:
            yield from _list_for_reviewer(asked, lines)
        case Role.OFFICER:
            yield from _list_for_officer(asked.site)
        case Role.STEWARD:
            yield from _list_for_steward(asked, lines)
        case Role.OPERATOR:
            yield from _list_for_operator(lines)
        case Role.AUDITOR:
            return


def _list_for_reviewer(asked: Asked, lines: Iterable[Line]) -> Iterator[Matter]:
    """What they have not voted on, and what they returned and its steward answered since."""
    name = asked.person.name
    stewards = {one.name: one.policy.steward for one in read_policies(asked.site) if one.policy is not None}
    with asked.site.open_registry(read_only=True) as registry:
        statuses = {str(release): status for release, status in read_statuses(registry.events).items()}
        answers = [event for event in registry.events if event.kind == REMARKED and event.content["name"] in stewards.values()]
    for line in lines:
        status = statuses.get(line.release)
        if line.state not in VOTED or line.given_up_for or status is None or stewards.get(line.policy) == name:
            continue
        own = last_votes(status.votes, status.candidate_hash).get(name)
        page = f"/releases/{line.release}"
        if own is None and line.state != "approved":
            needed = "" if line.approvals is None else f" of {line.approvals.needed}"
            yield Matter("reviewer", f"Review {line.release}", f"{len(status.voters)}{needed} have voted", page, line.since)
        elif own is not None and own.verdict == "return":
            since = [event.noted for event in answers if str(event.release) == line.release and event.number > own.number]
            if since:
                yield Matter("reviewer", f"Look at {line.release} again", "its steward answered", page, since[-1])


def _list_for_officer(site: Site) -> Iterator[Matter]:
    policies = [one.policy for one in read_policies(site) if one.policy is not None]  # of the others its steward is told
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
        if trust is None:
            return
        for policy in _list_unapproved(registry, trust, policies):
            page = f"/approvals/policies/{policy.policy}"
            yield Matter("officer", f"Approve the policy {policy.policy}", "it is not approved as it is now", page)
        try:
            digest = read_caps(site).hash
        except ReleasePipelineError as error:
            yield Matter("officer", "Look at populations.yaml", error.what, "/approvals/populations")
            return
        if find_approval(registry, trust, what="populations", subject="populations", digest=digest) is None:
            yield Matter("officer", "Approve the caps", "populations.yaml is not approved as it is now", "/approvals/populations")


def _list_for_steward(asked: Asked, lines: Iterable[Line]) -> Iterator[Matter]:
    """What of theirs is held up, and by whom: by themselves, or by others whom they wait for."""
    site, name = asked.site, asked.person.name
    policies = {one.name: one.policy for one in read_policies(site) if one.policy is not None and one.policy.steward == name}
    with site.open_registry(read_only=True) as registry:
        statuses = {str(release): status for release, status in read_statuses(registry.events).items()}
        answers = [event for event in registry.events if event.kind == REMARKED and event.content["name"] == name]
        trust = read_trust(site, registry)
        officer = "" if trust is None else trust.officer.name
        unapproved = [] if trust is None else list(_list_unapproved(registry, trust, policies.values()))
    for policy in unapproved:
        words, page = f"{policy.policy} waits for {officer}", f"/approvals/policies/{policy.policy}"
        yield Matter("steward", words, "nothing of it runs until it is approved as it is now", page, _find_saved(site, policy))
    for line in lines:
        if line.policy not in policies or line.given_up_for:
            continue
        if line.state in ("blocked", "returned", "rejected", "late") or line.failed:
            waits = _tell_answered(statuses.get(line.release), answers) if line.state == "returned" else ""
            words, reason = f"{line.release} is {line.state}", waits or tell_reason(line) or line.failed or ""
            yield Matter("steward", words, reason, f"/releases/{line.release}", line.since)


def _list_unapproved(registry: Registry, trust: Trust, policies: Iterable[Policy]) -> Iterator[Policy]:
    """The policies of which the officer approved another text last, or none."""
    for policy in policies:
        digest = policy.canonical_hash()
        if find_approval(registry, trust, what="policy", subject=policy.policy, digest=digest) is None:
            yield policy


def _find_saved(site: Site, policy: Policy) -> str:
    """When its file was written last."""
    with suppress(OSError):
        written = site.policy_file(policy.policy).stat().st_mtime
        return datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds")
    return ""


def _tell_answered(status: ReleaseStatus | None, answers: Iterable[Event]) -> str:
    """That a steward's answer came after the last return and who is to read it; empty while there is none."""
    if status is None:
        return ""
    votes = last_votes(status.votes, status.candidate_hash)
    last = max((vote.number for vote in votes.values() if vote.verdict == "return"), default=0)
    if not any(event.release == status.id and event.number > last for event in answers):
        return ""
    return f"you answered; it waits for {' and '.join(status.returners)}"


def _list_for_operator(lines: Iterable[Line]) -> Iterator[Matter]:
    for line in lines:
        page = f"/releases/{line.release}"
        if line.given_up_for:
            continue
        if line.state in ("late", "blocked", "damaged") or line.failed:
            reason = tell_reason(line) or line.failed or ""
            yield Matter("operator", f"{line.release} is {line.state}", reason, page, line.since)
        elif line.state in ("approved", "publishing"):
            yield Matter("operator", f"{line.release} waits to be published", line.reason, page, line.since)


CALLS = (
    Call("home", EVERYBODY, _show_home),
    Call("help", EVERYBODY, lambda _: {"yardsticks": list_yardsticks()}),
    Call("me", EVERYBODY, lambda _: {}),  # every answer says who asks
)
