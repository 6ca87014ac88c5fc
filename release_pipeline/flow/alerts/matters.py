"""What there is to tell of a site, by its registry and the clock: pure, and the same at every look, so that what was told is
known by its id. No source, no candidate and no package is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Literal

from release_pipeline.errors import OverCap, PolicyInvalid, SecretLost
from release_pipeline.flow.alerts.alert import Alert
from release_pipeline.flow.alerts.caps import Spending
from release_pipeline.flow.holds import find_holds
from release_pipeline.flow.reviewing.remarks import find_role, is_told
from release_pipeline.flow.states import (
    APPROVED,
    BLOCKED,
    CANDIDATE,
    FAILED,
    MOVES,
    OUT,
    REJECTED,
    REMARKED,
    RETURNED,
    ReleaseStatus,
    read_statuses,
)
from release_pipeline.flow.upcoming import next_releases, words_of
from release_pipeline.policy import Policy
from release_pipeline.store.ledger import LOST
from release_pipeline.store.registry import Event, ReleaseId

AT_ONCE = timedelta(minutes=25)  # the schedule that publishes looks every ten minutes, and a package may take as long
LATE_AFTER = timedelta(minutes=10)  # the daemon opens what is due when it is due, and takes a moment
MOST_LATE = 12  # periods of a series that are late
REFUSED = "The release was refused. `release-pipeline status` at the site says why: the reason may reveal something of a record."
OPEN = frozenset({OverCap.code, PolicyInvalid.code, SecretLost.code})  # reasons that no record has a part in
AGAIN = "Look at it with `release-pipeline status`, repair what it names, and run it again."


@dataclass(frozen=True, slots=True)
class Matter:
    """Something to tell. `stands`: it is so still; what is over is told only to those who were there when it happened.
    `number`: of the event that it is, for many have one second in common."""

    alert: Alert
    stands: bool = True
    number: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What a look knows of a site."""

    name: str
    events: tuple[Event, ...]
    policies: tuple[Policy, ...]
    spending: tuple[Spending, ...]
    publishes_by_itself: bool
    shares: Collection[int | None]  # of caps, those that somebody asked about
    now: datetime
    desk: str = ""  # where people reach it


def find_matters(view: View) -> list[Matter]:
    """Everything that there is or was to tell, in the order in which it happened."""
    statuses = read_statuses(view.events)
    found = [*_of_events(view, statuses), *_waiting(view, statuses.values()), *_late(view), *_of_caps(view)]
    found += [*_of_votes(view, statuses.values()), *_of_remarks(view, statuses)]
    if view.desk:
        found = [replace(matter, alert=replace(matter.alert, page=view.desk + matter.alert.path)) for matter in found]
    return sorted(found, key=lambda matter: (datetime.fromisoformat(matter.alert.moment), matter.number))


def _of_events(view: View, statuses: Mapping[ReleaseId, ReleaseStatus]) -> Iterator[Matter]:
    """Runs that broke off, and releases that were blocked. Of blocks that followed each other without anything in between the
    last is told: a step notes what it found, and then that it was refused for it."""
    blocks: dict[ReleaseId, Matter] = {}
    last_failed = {event.release: event.number for event in view.events if event.kind == FAILED}
    for event in view.events:
        release = event.release
        if release is None:
            continue
        words = str(event.content.get("reason", ""))
        if event.kind in (BLOCKED, LOST):
            alert = _alert(view, event, release, "blocked", f"{release} is blocked", words)
            code = str(event.content.get("code", "")) or None
            is_open = event.kind == LOST or code in OPEN
            alert = replace(alert, reason_code=code) if is_open else replace(alert, words=REFUSED)
            blocks[release] = Matter(alert, number=event.number)
        elif event.kind in MOVES and release in blocks:
            yield replace(blocks.pop(release), stands=False)
        elif event.kind == FAILED and not event.content.get("told_elsewhere"):
            stands = statuses[release].failed == words and event.number == last_failed[release]
            alert = _alert(view, event, release, "failed", f"A run of {release} broke off", words)
            yield Matter(alert, stands, event.number)
    for release, matter in blocks.items():
        yield replace(matter, stands=statuses[release].state == "blocked")


def _alert(view: View, event: Event, release: ReleaseId, kind: Literal["failed", "blocked"], title: str, words: str) -> Alert:
    return Alert(
        id=f"{kind}/{release}/event-{event.number}-{event.hash[:16]}",  # after a restore another event may have the number
        kind=kind,
        site=view.name,
        moment=event.noted,
        title=title,
        words=words,
        remedy=AGAIN,
        release=str(release),
        policy=release.policy,
    )


def _waiting(view: View, statuses: Iterable[ReleaseStatus]) -> Iterator[Matter]:
    """Candidates that wait for their reviewers, and approved ones that nobody publishes at once."""
    since = {event.release: event.number for event in view.events if event.kind in (CANDIDATE, APPROVED)}
    for known in statuses:
        if known.replaced is not None or known.lost or known.state not in (CANDIDATE, APPROVED):
            continue
        is_review = known.state == CANDIDATE
        soon = view.now - datetime.fromisoformat(known.since) < AT_ONCE
        if not is_review and view.publishes_by_itself and soon:
            continue
        whom = "its reviewers" if is_review else "its publication"
        command = f"release-pipeline {'approve' if is_review else 'publish'} {known.id}"
        yield Matter(
            Alert(
                id=f"waiting/{known.id}/{known.state}/{(known.candidate_hash or '')[:16]}",
                kind="waiting",
                site=view.name,
                moment=known.since,
                title=f"{known.id} waits for {whom}",
                words=f"{known.id} is {'a candidate' if is_review else 'approved'} since {words_of(_moment(known.since))}.",
                remedy=f"`{command}`, or why not: `release-pipeline status`.",
                release=str(known.id),
                policy=known.id.policy,
                waits_for="review" if is_review else "publication",
            ),
            number=since[known.id],
        )


def _of_votes(view: View, statuses: Iterable[ReleaseStatus]) -> Iterator[Matter]:
    """What the votes made of a release, once they are all in: that it was returned, or that it is decided. No name, no reason."""
    for known in statuses:
        turns = [(view.events[number - 1], state) for number, state in known.decided if state in (APPROVED, RETURNED, REJECTED)]
        for event, state in turns:
            kind = "returned" if state == RETURNED else "decided"
            title = f"{known.id} was returned with reasons" if state == RETURNED else f"The votes on {known.id} are in"
            alert = Alert(
                id=f"{kind}/{known.id}/event-{event.number}-{event.hash[:16]}",
                kind=kind,
                site=view.name,
                moment=event.noted,
                title=title,
                words=f"{title}.",
                remedy=f"`release-pipeline review show {known.id}` says what people signed.",
                release=str(known.id),
                policy=known.id.policy,
            )
            stands = event is turns[-1][0] and known.state not in OUT and known.replaced is None
            yield Matter(alert, stands, event.number)


def _of_remarks(view: View, statuses: Mapping[ReleaseId, ReleaseStatus]) -> Iterator[Matter]:
    """That somebody remarked on something, once that may be told: where, and no text of it."""
    for event in view.events:
        if event.kind != REMARKED:
            continue
        known = None if event.release is None else statuses[event.release]
        about, since = str(event.content["document"]["hash"]), event
        role = find_role(view.events, event)
        if known is not None and not is_told(role, about, known):
            continue
        if known is not None and role == "reviewer":  # told with the votes, if these came later
            since = max(event, view.events[known.told.get(about, event.number) - 1], key=lambda one: one.number)
        subject = str(event.content["subject"])
        target = subject if known is not None else f"policies/{subject}.yaml"
        alert = Alert(
            id=f"remarked/{subject}/event-{event.number}-{event.hash[:16]}",
            kind="remarked",
            site=view.name,
            moment=since.noted,
            title=f"There are remarks on {subject}",
            words=f"There are remarks on {subject}.",
            remedy=f"`release-pipeline review show {target}` shows them.",
            release=None if known is None else subject,
            policy=subject.split("/")[0],
        )
        stands = known is None or (known.state not in OUT and known.replaced is None)
        yield Matter(alert, stands, since.number)


def _late(view: View) -> Iterator[Matter]:
    """Releases that their timetables should have opened before; none of a series that is held."""
    holds = find_holds(view.events)
    for policy in view.policies:
        if policy.cron is None or policy.policy in holds:
            continue
        coming = islice(next_releases(policy, view.events, view.now), MOST_LATE)
        for upcoming in takewhile(lambda each: each.is_late(view.now - LATE_AFTER), coming):
            assert upcoming.due is not None  # noqa: S101  for the type checker: what is late was due
            release = f"{policy.policy}/{upcoming.release}"
            yield Matter(
                Alert(
                    id=f"late/{release}",
                    kind="late",
                    site=view.name,
                    moment=upcoming.due.isoformat(),
                    title=f"{release} is late",
                    words=f"Release {upcoming.release} was due {words_of(upcoming.due)} and is not opened.",
                    remedy="Does the daemon run, and has the source arrived? Its ticks say why it is not opened.",
                    release=release,
                    policy=policy.policy,
                )
            )


def _of_caps(view: View) -> Iterator[Matter]:
    """Caps that are nearly spent: nothing that comes has room, or the share that somebody asked about is reached."""
    for spending in view.spending:
        for share in sorted(view.shares, key=lambda asked: asked or 0):
            if (words := spending.describe(share)) == "":
                continue
            about = "next" if share is None else f"{share}%"
            yield Matter(
                Alert(
                    id=f"cap/{spending.population}/{spending.limit} ({spending.unit})/{about}",
                    kind="cap",
                    site=view.name,
                    moment=view.now.isoformat(timespec="seconds"),
                    title=f"The cap of {spending.population} is nearly spent",
                    words=words,
                    remedy="The cap is the privacy officer's: `release-pipeline ledger` has all charges.",
                    population=spending.population,
                    share=share,
                )
            )


def _moment(noted: str) -> datetime:
    return datetime.fromisoformat(noted)
