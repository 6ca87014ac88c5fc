"""What runs, and why it waits: every release of a steward's policies that is not over, and what can be done for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from release_pipeline.desk.backend.calls import Asked, Call, Document, allow
from release_pipeline.desk.backend.lookups import describe_line, keep, list_lines, read_policies, shorten_place
from release_pipeline.desk.backend.reviewing import RELEASE
from release_pipeline.desk.backend.runs import Run, read_runs, start_run
from release_pipeline.desk.people import Role
from release_pipeline.door import Refused
from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage
from release_pipeline.flow.editing import find_steward
from release_pipeline.flow.opening import LONGEST_REASON
from release_pipeline.flow.policies import Caps, Registry, read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.overview import Line
from release_pipeline.flow.status.prospects import describe_prospects, foresee
from release_pipeline.flow.texts import check_line
from release_pipeline.flow.trust.approvals import check_approved
from release_pipeline.flow.trust.members import Trust, read_trust
from release_pipeline.policy import Policy

OVER = frozenset({"published", "superseded", "retracted"})
RUNNABLE = frozenset({"open", "waiting", "late", "reserved", "drawn", "blocked"})
REVISABLE = frozenset({"returned", "rejected"})  # by reviewers, who signed that: any other is a command's, for it ends or charges
_TODO = {
    "open": "A run takes it to its candidate.",
    "waiting": "Its timetable opens it; a run opens it before.",
    "late": "See whether its source came, and ask the operator whether the site's daemon is at work; or run it.",
    "reserved": "Its run did not end. The next one goes on where it was, and charges nothing anew.",
    "drawn": "Its run did not end. The next one serves what was drawn, and charges nothing anew.",
    "candidate": "Its reviewers decide.",
    "approved": "The operator, or the site's service, publishes it.",
    "publishing": "Its publication did not end. The operator does it again.",
    "returned": "Answer its reviewers in a remark, or make a revision, which is charged anew.",
    "rejected": "It is never published. A revision is charged anew.",
    "blocked": "Mend what the reason says, then run it again. What was charged is not charged anew.",
    "damaged": "Tell the operator: somebody changed a folder.",
}


def _show_running(asked: Asked) -> Document:
    site = asked.site
    names = frozenset(policy.policy for policy in _list_mine(asked))
    facts = keep(site, ("running", names), lambda: _describe_policies(site, names))
    lines, runs = list_lines(site).lines, read_runs(site)
    return {
        "broken": _list_broken(asked),
        "policies": [{**one, "releases": _describe_releases(asked, one["name"], one["steward"], lines, runs)} for one in facts],
        "runs": asked.settings.runs,
        "all": asked.has(Role.OPERATOR),
        "longest": LONGEST_REASON,
    }


def _list_mine(asked: Asked) -> list[Policy]:
    """The policies whose runs are shown to who asks."""
    found = [one.policy for one in read_policies(asked.site) if one.policy is not None]
    return [policy for policy in found if asked.has(Role.OPERATOR) or policy.steward == asked.person.name]


def _list_broken(asked: Asked) -> list[str]:
    """Their policies that cannot be read: nothing of them runs."""
    names = [one.name for one in read_policies(asked.site) if one.policy is None]
    if asked.has(Role.OPERATOR) or not names:
        return names
    with asked.site.open_registry(read_only=True) as registry:
        return [name for name in names if find_steward(asked.site, name, registry.events) == asked.person.name]


def _describe_policies(site: Site, names: frozenset[str]) -> list[dict[str, Any]]:
    """Of each policy why nothing of it runs, if so, and what its next ticks charge: the registry is read once."""
    policies = [one.policy for one in read_policies(site) if one.policy is not None]
    try:
        caps: Caps | None = read_caps(site)
    except ReleasePipelineError:
        caps = None
    found: list[dict[str, Any]] = []
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
        for policy in policies:
            if policy.policy in names:
                others = [known for known in policies if known is not policy]
                found.append(
                    {
                        "name": policy.policy,
                        "steward": policy.steward,
                        "stopped": _say_stopped(site, registry, trust, policy, caps),
                        **_foresee(registry, policy, others, caps),
                    }
                )
    return found


def _say_stopped(site: Site, registry: Registry, trust: Trust | None, policy: Policy, caps: Caps | None) -> str:
    """Why a run of the policy would be refused, whatever the release; empty where none would for that."""
    if caps is None:
        return "populations.yaml cannot be read: the operator or the officer mends it."
    if trust is None:
        return "The site has no privacy officer: nobody has approved anything."
    try:
        caps.of(policy)
        check_approved(site, registry, trust, policy, caps)
    except ReleasePipelineError as error:
        return shorten_place(site, f"{error.what} {error.remedy}")
    return ""


def _foresee(registry: Registry, policy: Policy, others: list[Policy], caps: Caps | None) -> Document:
    if caps is None:
        return {"ahead": [], "held": ""}
    try:
        found = foresee(caps, policy, others, registry.events, now=datetime.now(UTC))
    except ReleasePipelineError as error:  # no cap is declared for its population, say
        return {"ahead": [error.what], "held": ""}
    words = list(describe_prospects(found))
    return {"ahead": [], "held": words[0]} if found.held is not None else {"ahead": words, "held": ""}


def _describe_releases(asked: Asked, name: str, steward: str, lines: Iterable[Line], runs: Mapping[str, Run]) -> list[Document]:
    is_mine = steward == asked.person.name and asked.has(Role.STEWARD)
    last = [
        (line, runs.get(f"{line.policy}/{line.partition}")) for line in lines if line.policy == name and not line.given_up_for
    ]
    return [
        {
            **describe_line(line),
            "todo": _TODO.get(line.state, ""),
            "can_run": line.state in RUNNABLE,
            "can_revise": line.state in REVISABLE and is_mine,
            "run": None if run is None else asdict(run),
        }
        for line, run in last
        if line.state not in OVER or (run is not None and run.is_running)
    ]


def _start(asked: Asked) -> Document:
    """A run of a release goes on, or of its next revision where a reason is given: of an approved policy alone."""
    if not asked.settings.runs:
        raise Refused(403, "runs are not started at this desk: site.yaml does not say 'desk: {runs: true}'.")
    name = asked.find("release", RELEASE)
    line = next((line for line in list_lines(asked.site).lines if line.release == name), None)
    policy = None if line is None else next((one for one in _list_mine(asked) if one.policy == line.policy), None)
    if line is None or policy is None or line.given_up_for:
        raise Refused(404, "there is no such release among those that you may run.")
    is_revision = asked.arguments.get("revise", "") == "yes"
    why = check_line(asked.get("why", most=LONGEST_REASON), where="the reason", longest=LONGEST_REASON) if is_revision else ""
    if is_revision and (policy.steward != asked.person.name or not asked.has(Role.STEWARD)):
        raise Refused(403, f"a revision is made by the steward of the policy, {policy.steward}.")
    _check(line, is_revision=is_revision, why=why)
    try:
        caps: Caps | None = read_caps(asked.site)
    except ReleasePipelineError:
        caps = None
    with asked.site.open_registry(read_only=True) as registry:
        if words := _say_stopped(asked.site, registry, read_trust(asked.site, registry), policy, caps):
            raise Blocked(words, where=policy.policy, remedy="Nothing was started.")
    start_run(asked.site, policy.policy, line.partition, by=asked.person.name, why=why)
    what = "a revision of it is being made" if is_revision else "it is being made"
    return {"words": f"{line.policy}/{line.partition}: {what}. This page says how far it is when you load it again."}


def _check(line: Line, *, is_revision: bool, why: str) -> None:
    if is_revision and not why:
        raise WrongUsage("a revision needs its reason.", where=line.release, remedy="It stays in the registry.")
    if is_revision and line.state not in REVISABLE:
        raise WrongUsage(
            f"it is {line.state}: at the desk a release is revised that its reviewers returned or rejected.",
            where=line.release,
            remedy=f"On the site's account: release-pipeline run {line.policy} --release {line.partition} --revise 'REASON'.",
        )
    if not is_revision and line.state not in RUNNABLE:
        raise WrongUsage(f"it is {line.state}: a run would change nothing.", where=line.release, remedy="A revision would.")


CALLS = (
    Call("running", allow(Role.STEWARD, Role.OPERATOR), _show_running),
    Call("start-run", allow(Role.STEWARD, Role.OPERATOR), _start, changes=True),
)
