"""The first page: tasks that wait for a person, by their roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from release_pipeline.apps.desk.backend.calls import EVERYBODY, Asked, Call, Document
from release_pipeline.apps.desk.backend.lookups import describe_line, describe_reason, list_lines, read_policies
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

VOTED = ("candidate", "approved", "returned")  # states in which reviewers may vote or remark


@dataclass(frozen=True, slots=True)
class Task:
    """A task that waits for a person: its role, what, why, since when, and the page for it."""

    role: str
    title: str
    reason: str
    page: str
    since: str = ""


def _show_home(asked: Asked) -> Document:
    listing = list_lines(asked.site)
    tasks = [asdict(task) for role in Role if role in asked.person.roles for task in _list_tasks(asked, role, listing.lines)]
    recent = sorted((line for line in listing.lines if line.since), key=lambda line: line.since, reverse=True)[:10]
    broken = list(listing.faults) if asked.has(Role.OPERATOR) else []
    return {"tasks": tasks, "recent": [describe_line(line) for line in recent], "broken": broken, "made": listing.made}


def _list_tasks(asked: Asked, role: Role, lines: Iterable[Line]) -> Iterator[Task]:
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


def _list_for_reviewer(asked: Asked, lines: Iterable[Line]) -> Iterator[Task]:
    """Yield candidates that they have not voted on, and those that they returned and whose steward answered since."""
    name = asked.person.name
    stewards = {file.name: file.policy.steward for file in read_policies(asked.site) if file.policy is not None}
    with asked.site.open_registry(read_only=True) as registry:
        statuses = {str(release): status for release, status in read_statuses(registry.events).items()}
        answers = [event for event in registry.events if event.kind == REMARKED and event.content["name"] in stewards.values()]
    for line in lines:
        status = statuses.get(line.release)
        if line.state not in VOTED or line.given_up_for or status is None or stewards.get(line.policy) == name:
            continue
        last_vote = last_votes(status.votes, status.candidate_hash).get(name)
        page = f"/releases/{line.release}"
        if last_vote is None and line.state != "approved":
            needed = "" if line.approvals is None else f" of {line.approvals.needed}"
            yield Task("reviewer", f"Review {line.release}", f"{len(status.voters)}{needed} have voted", page, line.since)
        elif last_vote is not None and last_vote.verdict == "return":
            answered = [event for event in answers if str(event.release) == line.release and event.number > last_vote.number]
            if answered:
                yield Task("reviewer", f"Look at {line.release} again", "its steward answered", page, answered[-1].noted)


def _list_for_officer(site: Site) -> Iterator[Task]:
    policies = [file.policy for file in read_policies(site) if file.policy is not None]
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
        if trust is None:
            return
        for policy in _list_unapproved(registry, trust, policies):
            page = f"/approvals/policies/{policy.policy}"
            yield Task("officer", f"Approve the policy {policy.policy}", "it is not approved as it is now", page)
        try:
            digest = read_caps(site).hash
        except ReleasePipelineError as error:
            yield Task("officer", "Look at populations.yaml", error.what, "/approvals/populations")
            return
        if find_approval(registry, trust, what="populations", subject="populations", digest=digest) is None:
            yield Task("officer", "Approve the caps", "populations.yaml is not approved as it is now", "/approvals/populations")


def _list_for_steward(asked: Asked, lines: Iterable[Line]) -> Iterator[Task]:
    """Yield policies and releases of theirs that are held up, and the people whom they wait for."""
    site, name = asked.site, asked.person.name
    readable = {file.name: file.policy for file in read_policies(site) if file.policy is not None}
    policies = {policy_name: policy for policy_name, policy in readable.items() if policy.steward == name}
    with site.open_registry(read_only=True) as registry:
        statuses = {str(release): status for release, status in read_statuses(registry.events).items()}
        answers = [event for event in registry.events if event.kind == REMARKED and event.content["name"] == name]
        trust = read_trust(site, registry)
        officer = "" if trust is None else trust.officer.name
        unapproved = [] if trust is None else list(_list_unapproved(registry, trust, policies.values()))
    for policy in unapproved:
        title, page = f"{policy.policy} waits for {officer}", f"/approvals/policies/{policy.policy}"
        yield Task("steward", title, "nothing of it runs until it is approved as it is now", page, _find_saved(site, policy))
    for line in lines:
        if line.policy not in policies or line.given_up_for:
            continue
        if line.state in ("blocked", "returned", "rejected", "late") or line.failed:
            waits = _describe_answered(statuses.get(line.release), answers) if line.state == "returned" else ""
            reason = waits or describe_reason(line) or line.failed or ""
            yield Task("steward", f"{line.release} is {line.state}", reason, f"/releases/{line.release}", line.since)


def _list_unapproved(registry: Registry, trust: Trust, policies: Iterable[Policy]) -> Iterator[Policy]:
    """Yield the policies that the officer did not approve as they are now."""
    for policy in policies:
        digest = policy.canonical_hash()
        if find_approval(registry, trust, what="policy", subject=policy.policy, digest=digest) is None:
            yield policy


def _find_saved(site: Site, policy: Policy) -> str:
    """Return when the policy's file was written last."""
    with suppress(OSError):
        written = site.policy_file(policy.policy).stat().st_mtime
        return datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds")
    return ""


def _describe_answered(status: ReleaseStatus | None, answers: Iterable[Event]) -> str:
    """Return a text: who reads the steward's answer to the last return; empty while there is no answer."""
    if status is None:
        return ""
    votes = last_votes(status.votes, status.candidate_hash)
    last = max((vote.number for vote in votes.values() if vote.verdict == "return"), default=0)
    if not any(event.release == status.id and event.number > last for event in answers):
        return ""
    return f"you answered; it waits for {' and '.join(status.returners)}"


def _list_for_operator(lines: Iterable[Line]) -> Iterator[Task]:
    for line in lines:
        page = f"/releases/{line.release}"
        if line.given_up_for:
            continue
        if line.state in ("late", "blocked", "damaged") or line.failed:
            reason = describe_reason(line) or line.failed or ""
            yield Task("operator", f"{line.release} is {line.state}", reason, page, line.since)
        elif line.state in ("approved", "publishing"):
            yield Task("operator", f"{line.release} waits to be published", line.reason, page, line.since)


CALLS = (
    Call("home", EVERYBODY, _show_home),
    Call("help", EVERYBODY, lambda _: {"yardsticks": list_yardsticks()}),
    Call("me", EVERYBODY, lambda _: {}),  # every answer needs the person who asks
)
