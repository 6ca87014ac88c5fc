"""What waits for somebody, by their roles: the first page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from release_pipeline.desk.counter.calls import EVERYBODY, Asked, Call, Document
from release_pipeline.desk.counter.listing import describe_line, list_lines
from release_pipeline.desk.people import Role
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import REMARKED, last_votes, read_statuses
from release_pipeline.flow.status.overview import Line
from release_pipeline.flow.trust.approvals import find_approval
from release_pipeline.flow.trust.members import read_trust

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
    broken = list(listing.broken) if asked.has(Role.OPERATOR) else []
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
    stewards, name = _find_stewards(asked.site), asked.person.name
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
    policies, broken = site.read_policies()
    del broken  # its steward is told
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
        if trust is None:
            return
        for policy in policies:
            digest = policy.canonical_hash()
            if find_approval(registry, trust, what="policy", subject=policy.policy, digest=digest) is None:
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
    stewards = _find_stewards(asked.site)
    for line in lines:
        if stewards.get(line.policy) != asked.person.name or line.given_up_for:
            continue
        if line.state in ("blocked", "returned", "rejected", "late") or line.failed:
            words = f"{line.release} is {line.state}"
            yield Matter("steward", words, line.reason or line.failed or "", f"/releases/{line.release}", line.since)


def _list_for_operator(lines: Iterable[Line]) -> Iterator[Matter]:
    for line in lines:
        if line.given_up_for:
            continue
        if line.state in ("late", "blocked", "damaged") or line.failed:
            yield Matter(
                "operator", f"{line.release} is {line.state}", line.reason or line.failed or "", "/operations", line.since
            )
        elif line.state in ("approved", "publishing"):
            yield Matter("operator", f"{line.release} waits to be published", line.reason, "/operations", line.since)


def _find_stewards(site: Site) -> dict[str, str]:
    return {policy.policy: policy.steward for policy in site.read_policies()[0]}


def _show_nothing(asked: Asked) -> Document:
    """Who asks, which every answer says."""
    del asked
    return {}


CALLS = (Call("home", EVERYBODY, _show_home), Call("me", EVERYBODY, _show_nothing))
