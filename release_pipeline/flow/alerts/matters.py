"""What there is to tell of a site, by its registry and the clock: pure, and the same at every look, so that what was told is
known by its id. No source, no candidate and no package is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from release_pipeline.errors import OverCap, PolicyInvalid, SecretLost
from release_pipeline.flow.alerts.alert import Alert, Kind
from release_pipeline.flow.alerts.caps import Spending
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
    SiteState,
    read_state,
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

    def alert(self, kind: Kind, key: str, moment: str, title: str, words: str, remedy: str, **facts: Any) -> Alert:
        """An alert of this site. `key`: with its kind, what it is known by."""
        id = f"{kind}/{key}"
        made = Alert(id=id, kind=kind, site=self.name, moment=moment, title=title, words=words, remedy=remedy, **facts)
        return replace(made, page=self.desk + made.path) if self.desk else made


def find_matters(view: View) -> list[Matter]:
    """Everything that there is or was to tell, in the order in which it happened."""
    state = read_state(view.events)
    found = [*_of_runs(view, state), *_waiting(view, state), *_of_votes(view, state), *_of_remarks(view, state)]
    found += [*_late(view, state), *_of_caps(view)]
    return sorted(found, key=lambda matter: (datetime.fromisoformat(matter.alert.moment), matter.number))


def _name(event: Event) -> str:
    """The event, whatever comes after a restore: another event may have its number then."""
    return f"event-{event.number}-{event.hash[:16]}"


def _of_runs(view: View, state: SiteState) -> Iterator[Matter]:
    """Runs that broke off, and releases that were blocked. Of blocks that followed each other without anything in between the
    last is told: a step notes what it found, and then that it was refused for it."""
    blocks: dict[ReleaseId, Matter] = {}
    last_failed = {event.release: event.number for event in view.events if event.kind == FAILED}
    for event in view.events:
        release = event.release
        if release is None:
            continue
        words, facts = str(event.content.get("reason", "")), {"release": str(release), "policy": release.policy}
        key = f"{release}/{_name(event)}"
        if event.kind in (BLOCKED, LOST):
            code = str(event.content.get("code", "")) or None
            is_open = event.kind == LOST or code in OPEN
            words, code = (words, code) if is_open else (REFUSED, None)
            alert = view.alert("blocked", key, event.noted, f"{release} is blocked", words, AGAIN, reason_code=code, **facts)
            blocks[release] = Matter(alert, number=event.number)
        elif event.kind in MOVES and release in blocks:
            yield replace(blocks.pop(release), stands=False)
        elif event.kind == FAILED and not event.content.get("told_elsewhere"):
            stands = state.releases[release].failed == words and event.number == last_failed[release]
            alert = view.alert("failed", key, event.noted, f"A run of {release} broke off", words, AGAIN, **facts)
            yield Matter(alert, stands, event.number)
    for release, matter in blocks.items():
        yield replace(matter, stands=state.releases[release].state == "blocked")


def _waiting(view: View, state: SiteState) -> Iterator[Matter]:
    """Candidates that wait for their reviewers, and approved ones that nobody publishes at once."""
    since = {event.release: event.number for event in view.events if event.kind in (CANDIDATE, APPROVED)}
    for status in state.releases.values():
        if status.replaced is not None or status.lost or status.state not in (CANDIDATE, APPROVED):
            continue
        is_review, entered = status.state == CANDIDATE, datetime.fromisoformat(status.since)
        if not is_review and view.publishes_by_itself and view.now - entered < AT_ONCE:
            continue
        alert = view.alert(
            "waiting",
            f"{status.id}/{status.state}/{(status.candidate_hash or '')[:16]}",
            status.since,
            f"{status.id} waits for its {'reviewers' if is_review else 'publication'}",
            f"{status.id} is {'a candidate' if is_review else 'approved'} since {words_of(entered)}.",
            f"`release-pipeline {'approve' if is_review else 'publish'} {status.id}`, or why not: `release-pipeline status`.",
            release=str(status.id),
            policy=status.id.policy,
            waits_for="review" if is_review else "publication",
        )
        yield Matter(alert, number=since[status.id])


def _of_votes(view: View, state: SiteState) -> Iterator[Matter]:
    """What the votes made of a release, once they are all in: that it was returned, or that it is decided. No name, no reason."""
    for status in state.releases.values():
        id, turns = status.id, [turn for turn in status.decided if turn[1] in (APPROVED, RETURNED, REJECTED)]
        for number, became in turns:
            event, is_returned = view.events[number - 1], became == RETURNED
            title = f"{id} was returned with reasons" if is_returned else f"The votes on {id} are in"
            remedy = f"`release-pipeline review show {id}` says what people signed."
            kind, key = "returned" if is_returned else "decided", f"{id}/{_name(event)}"
            alert = view.alert(kind, key, event.noted, title, f"{title}.", remedy, release=str(id), policy=id.policy)
            stands = number == turns[-1][0] and status.state not in OUT and status.replaced is None
            yield Matter(alert, stands, number)


def _of_remarks(view: View, state: SiteState) -> Iterator[Matter]:
    """That somebody remarked on something, once that may be told: where, and no text of it."""
    for event in view.events:
        if event.kind != REMARKED:
            continue
        status = None if event.release is None else state.releases[event.release]
        about, since, role = str(event.content["document"]["hash"]), event, find_role(view.events, event)
        if status is not None and not is_told(role, about, status):
            continue
        if status is not None and role == "reviewer":  # told with the votes, if these came later
            since = view.events[max(event.number, status.told.get(about, 0)) - 1]
        subject = str(event.content["subject"])
        target = subject if status is not None else f"policies/{subject}.yaml"
        title, remedy = f"There are remarks on {subject}", f"`release-pipeline review show {target}` shows them."
        facts = {"release": None if status is None else subject, "policy": subject.split("/")[0]}
        alert = view.alert("remarked", f"{subject}/{_name(event)}", since.noted, title, f"{title}.", remedy, **facts)
        yield Matter(alert, status is None or (status.state not in OUT and status.replaced is None), since.number)


def _late(view: View, state: SiteState) -> Iterator[Matter]:
    """Releases that their timetables should have opened before; none of a series that is held."""
    remedy = "Does the daemon run, and has the source arrived? Its ticks say why it is not opened."
    for policy in view.policies:
        if policy.cron is None or policy.policy in state.holds:
            continue
        coming = islice(next_releases(policy, view.events, view.now), MOST_LATE)
        for upcoming in takewhile(lambda each: each.is_late(view.now - LATE_AFTER), coming):
            assert upcoming.due is not None  # noqa: S101  for the type checker: what is late was due
            release, facts = f"{policy.policy}/{upcoming.release}", {"policy": policy.policy}
            words = f"Release {upcoming.release} was due {words_of(upcoming.due)} and is not opened."
            due = upcoming.due.isoformat()
            yield Matter(view.alert("late", release, due, f"{release} is late", words, remedy, release=release, **facts))


def _of_caps(view: View) -> Iterator[Matter]:
    """Caps that are nearly spent: nothing that comes has room, or the share that somebody asked about is reached."""
    remedy, moment = "The cap is the privacy officer's: `release-pipeline ledger` has all charges.", view.now
    for spending in view.spending:
        account = spending.account
        for share in sorted(view.shares, key=lambda asked: asked or 0):
            if words := spending.describe(share):
                about, facts = "next" if share is None else f"{share}%", {"population": account.population, "share": share}
                key = f"{account.population}/{account.limit} ({account.unit})/{about}"
                title = f"The cap of {account.population} is nearly spent"
                yield Matter(view.alert("cap", key, moment.isoformat(timespec="seconds"), title, words, remedy, **facts))
