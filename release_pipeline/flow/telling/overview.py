"""What `status` and the demo's table tell of a site: from the registry, the clock, and the evidence of candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.admission import open_account
from release_pipeline.flow.policies import Caps, read_caps
from release_pipeline.flow.publication.package import package_is_whole
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import Standing, list_standings, read_standings
from release_pipeline.flow.sums import is_whole
from release_pipeline.flow.timetable import describe_due, next_releases
from release_pipeline.flow.trust.approvals import check_may_run
from release_pipeline.policy import Policy
from release_pipeline.policy.calendar import Upcoming
from release_pipeline.store.ledger import charges_of, list_next_losses
from release_pipeline.store.registry import CLOCK_SLACK, Event, Registry, ReleaseId

SCOPE_WORDS = {
    "column": "for the column lists",
    "centroid": "for each centroid",
    "table": "for the whole table",
    "class": "within each class",
}
MOST_LATE = 12  # periods of a series that are late, told one by one
KINDS = {"dp": "DP", "idp": "iDP", "k-epsilon": "(k,eps)"}


@dataclass(frozen=True, slots=True)
class Line:
    """One release of the site: declared and not begun (`open`, `waiting` for its time, or `late`), or as the registry has it."""

    release: str
    state: str
    reason: str = ""
    rows: int | None = None
    claim: str = ""
    since: str = ""
    note: str = ""  # reason and claim have it too, among what a page shows in columns and links of its own

    def to_json(self) -> dict[str, Any]:
        """The line for a script."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "note"}


def list_releases(site: Site, *, now: datetime | None = None) -> tuple[list[Line], list[str]]:
    """Every release that is declared or was begun, with its state; and what is broken at the site, in words."""
    now = now or datetime.now(UTC)
    with site.open_registry(read_only=True) as registry:
        events = registry.events
        policies, broken = site.read_policies()
        caps, without = _read_caps(site)
        if caps is not None:
            broken += [*dict.fromkeys(_find_unapproved(site, registry, policies, caps))]
    standings = read_standings(events)
    broken += _find_broken_clock(events)
    lines = [line for policy in policies for line in _lines_of(site, policy, standings, events, caps, now)]
    told = {line.release for line in lines}
    unread = " (its policy cannot be read, or has this release no more)"
    lines += [_line(site, known, unread) for name, known in sorted(standings.items()) if str(name) not in told]
    return lines, [*broken, *without]


def _read_caps(site: Site) -> tuple[Caps | None, list[str]]:
    """The caps, or in words why there are none."""
    try:
        return read_caps(site), []
    except ReleasePipelineError as error:
        return None, [str(error)]


def describe_status(site: Site, *, now: datetime | None = None) -> Iterator[str]:
    """The releases of a site in lines for a person."""
    lines, broken = list_releases(site, now=now)
    width = max([7, *(len(line.release) for line in lines)])
    yield f"{'release':<{width}}  {'state':<10}  {'rows':>9}  what"
    for line in lines:
        rows = "" if line.rows is None else f"{line.rows:,}"
        yield f"{line.release:<{width}}  {line.state:<10}  {rows:>9}  {line.reason or line.claim}".rstrip()
    for reason in broken:
        yield f"broken: {reason}"


def describe_candidates(site: Site) -> Iterator[str]:
    """A table of all candidates with figures of their evidence: internal, unless the data are public as the demo's."""
    standings = sorted(list_standings(site).items())
    states = [standing for _, standing in standings if standing.candidate_hash is not None]
    if not states:
        return
    evidence = {state.id: json.loads((site.candidate(str(state.id)) / "evidence.json").read_text()) for state in states}
    names = list(evidence[states[0].id]["columns"])
    head = "".join(f"{name:>9}" for name in names)
    yield f"{'':<14}{'':>7}  {'':<34}{'':>4}{'':>5}  {'error of each column':^{9 * len(names)}}"
    yield f"{'release':<14}{'rows':>7}  {'epsilon':<34}{'k':>4}{'k*':>5}  {head}{'linkage':>9}  state"
    for state in states:
        facts, audit = state.facts, evidence[state.id]["audit"]
        kind = KINDS.get(facts["definition"])
        epsilon = f"{facts['epsilon']}, {kind}, {SCOPE_WORDS[facts['scope']]}" if kind else "none: k-anonymity"
        linked = audit.get("record_linkage")  # an earlier version measured it otherwise
        linkage = "" if linked is None else f"{100 * linked['value']:.1f}%"
        errors = "".join(f"{audit['error'][name]:>9.3f}" for name in names)
        yield (
            f"{state.id!s:<14}{facts['rows_out']:>7,}  {epsilon:<34}{facts['k']:>4}{facts['anonymity_k'] or '':>5}  {errors}"
            f"{linkage:>9}  {state.state}"
        )


def _lines_of(
    site: Site,
    policy: Policy,
    standings: Mapping[ReleaseId, Standing],
    events: tuple[Event, ...],
    caps: Caps | None,
    now: datetime,
) -> Iterator[Line]:
    """The releases of one policy: those that it names in its order, or by period as they were opened; and the next one."""
    begun = [known.release for known in standings if known.policy == policy.policy]
    coming = {upcoming.release: upcoming for upcoming in _take_coming(policy, events, now)}
    names = sorted({*begun, *coming}) if policy.every else policy.release_names
    for name in names:
        mine = [known for id, known in sorted(standings.items()) if (id.policy, id.release) == (policy.policy, name)]
        if mine:
            yield from (_line(site, known, approvals=_say_approvals(policy, known)) for known in mine)
        elif policy.cron is not None:
            upcoming = coming[name]
            late = upcoming.is_late(now)
            refused = _find_refusal(caps, policy, name, events) if late and caps is not None else ""
            due = describe_due(upcoming, policy)
            yield Line(f"{policy.policy}/{name}", "late" if late else "waiting", f"{due}{refused}")
        else:
            yield Line(f"{policy.policy}/{name}", "open")


def _take_coming(policy: Policy, events: tuple[Event, ...], now: datetime) -> Iterator[Upcoming]:
    """The releases that come: all of a list; of periods those that are late, the first few, and the next one."""
    for place, upcoming in enumerate(next_releases(policy, events, now), start=1):
        yield upcoming
        if policy.every and (place == MOST_LATE or not upcoming.is_late(now)):
            return


def _find_refusal(caps: Caps, policy: Policy, release: str, events: tuple[Event, ...]) -> str:
    """That the ledger has no room for the next release of a policy, in words; empty if it has, or nobody can tell."""
    charges = charges_of(events)
    try:
        account = open_account(caps, policy, charges)
    except ReleasePipelineError:  # a population that is not declared: a run says so
        return ""
    fits = account.admits(*list_next_losses(charges, policy, [release]))
    return "" if fits else f"; the ledger would refuse it: {account.left} is left of {account.limit} ({account.unit})"


def _say_approvals(policy: Policy, known: Standing) -> str:
    """How many have approved what waits for its reviewers."""
    if known.state not in ("candidate", "approved") or known.replaced is not None:
        return ""
    names = f": {', '.join(known.approvers)}" if known.approvers else ""
    return f" (approved by {len(known.approvers)} of {policy.review.reviewers}{names})"


def _line(site: Site, known: Standing, remark: str = "", *, approvals: str = "") -> Line:
    shown, folder, words = known.state, site.candidate(str(known.id)), known.reason
    if shown == "candidate" and not is_whole(folder, known.candidate_hash):
        shown, remark, approvals = "damaged", " (the candidate's folder is not what was frozen)", ""
    if known.package_hash is not None and not package_is_whole(site.package(str(known.id)), known):
        shown, remark = "damaged", f" ({shown}; the package is not what was published)"
    elsewhere = approvals
    if known.successor:
        elsewhere += f" (superseded by {known.successor})"
    if known.replaced is not None:
        elsewhere += f" (given up for {known.replaced})"
    if known.failed:
        words = f"{words} The last run broke off: {known.failed}".strip()
    opened = f"opened: {known.why}" if known.state == "open" and known.why else ""
    claim, told = str(known.facts.get("claim", "")) or opened, remark + elsewhere
    return Line(
        str(known.id),
        shown,
        words + told * bool(words),
        known.facts.get("rows_out"),
        claim + told,
        known.since,
        note=(words or opened) + remark,
    )


def _find_unapproved(site: Site, registry: Registry, policies: list[Policy], caps: Caps) -> Iterator[str]:
    """What the officer has not approved as it is now, so that nothing of it runs; in words."""
    for policy in policies:
        try:
            check_may_run(site, registry, policy, caps)
        except ReleasePipelineError as error:
            yield error.in_full


def _find_broken_clock(events: tuple[Event, ...]) -> Iterator[str]:
    """Where the clock was set back between two events: nothing of a release depends on it, but its dates do."""
    for before, after in pairwise(events):
        if (before.moment - after.moment).total_seconds() > CLOCK_SLACK:
            yield f"the clock was set back: event {after.number} is dated {after.noted}, and the one before it {before.noted}."
    if events and (events[-1].moment - datetime.now(UTC)).total_seconds() > CLOCK_SLACK:
        yield f"the clock is behind the registry, whose last event is dated {events[-1].noted}."
