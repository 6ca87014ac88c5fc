"""Alerts: the document for webhooks and mails, and the matters at a site that call for one.

`find_matters` is pure: it depends on the registry and the clock, and gives the same ids at every check. It reads no source, no
candidate and no package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import islice, takewhile
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from release_pipeline.errors import OverCap, PolicyInvalid, SecretLost
from release_pipeline.ledger.account import list_ahead
from release_pipeline.ledger.policies import Caps, list_heirs, list_populations, next_releases, open_population, words_of
from release_pipeline.ledger.states import (
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
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Moment
from release_pipeline.policy.plans.loss import Account, next_loss
from release_pipeline.store.ledger import LOST, Charge, charges_of
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.trust.remarks import find_role, is_visible

Kind: TypeAlias = Literal["failed", "blocked", "waiting", "late", "cap", "returned", "remarked", "decided"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """The document that a webhook gets: one thing that happened at a site, in facts that everyone at the site may know."""

    FORMAT: ClassVar[str] = "release-pipeline/alert/1"

    id: Annotated[str, "of the thing that happened: what is sent once more, since nobody knew whether it had come, has the same"]
    kind: Annotated[
        Kind,
        "failed: a run broke off; waiting: for reviewers, or for its publication; cap: nearly spent; decided: all votes are in",
    ]
    site: Annotated[str, "the name of the site's folder"]
    moment: Annotated[Moment, "when it happened; of a cap, when it was seen"]
    title: Annotated[str, "it in a few words"]
    words: Annotated[str, "it in a sentence; why checks, gates and guards refused a release only `release-pipeline status` says"]
    remedy: Annotated[str, "what somebody may do about it"]
    release: Annotated[
        str | None, "POLICY/PARTITION/rN; POLICY/PARTITION of one that is late; null for a cap, and for remarks on a policy"
    ] = None
    policy: Annotated[str | None, "the name of its policy; null for a cap"] = None
    population: Annotated[str | None, "of a cap, whose; null for all else"] = None
    reason_code: Annotated[
        str | None, "of a block, the code of its reason, as in `status`, where no record has a part in it; null otherwise"
    ] = None
    waits_for: Annotated[Literal["review", "publication"] | None, "of what is waiting; null for all else"] = None
    share: Annotated[int | None, "of a cap, the share in percent that site.yaml asked about; null for all else"] = None
    page: Annotated[str | None, "where the desk shows it, to who may see that there; null where site.yaml says no address"] = None

    @property
    def path(self) -> str:
        """Return the desk's page about it."""
        if self.release is not None:
            return f"/releases/{self.release}"
        return "/caps" if self.policy is None else f"/approvals/policies/{self.policy}"

    @property
    def text(self) -> str:
        """Return the alert as a mail."""
        page = () if self.page is None else (f"At the desk: {self.page}",)
        lines = (self.title, "", self.words, self.remedy, *page, "", f"Site {self.site}, {self.moment}.", f"Id: {self.id}")
        return "\n".join(lines) + "\n"


def read_alert(document: Mapping[str, Any]) -> Alert:
    """Return the alert of a document that was kept; unknown keys are left out."""
    known = {field.name for field in dataclasses.fields(Alert)}
    return Alert(**{name: value for name, value in document.items() if name in known})


@dataclass(frozen=True, slots=True)
class Spending:
    """The spent share of a population's cap. `refused`: the next release of each policy about it that the cap no longer admits,
    except those that no cap of this kind can ever admit."""

    account: Account
    refused: tuple[ReleaseId, ...]

    @property
    def share(self) -> Fraction | None:
        """Return the share of the cap that is spent, above 1 where it is overdrawn; None where no bound is known or the cap is
        0."""
        total, most = self.account.total, self.account.most
        return None if total is None or most == 0 else Fraction(total, most)

    def describe(self, share: int | None) -> str:
        """Return a sentence if `share` percent of the cap are spent or, without a share, if too little is left for what comes
        next; else empty."""
        account, names = self.account, ", ".join(map(str, self.refused))
        spent = f"{account.population} has spent {account.spent} of {account.limit} ({account.unit})"
        if share is not None:
            reached = self.share is None or self.share >= Fraction(share, 100)
            return f"{spent}, {share}% or more." if reached else ""
        return f"{spent}: {account.left} is left, and that is less than is needed for {names}." if names else ""


def list_spending(caps: Caps, policies: Iterable[Policy], events: tuple[Event, ...]) -> tuple[Spending, ...]:
    """Return how much is spent of the cap of every population that is declared, or can still be charged."""
    charges, known = charges_of(events), list(policies)
    open_ones = [name for name in list_populations(caps, charges) if not list_heirs(caps, name, charges)]
    return tuple(_find_spending(caps, name, known, charges, events) for name in open_ones)


def _find_spending(caps: Caps, name: str, policies: list[Policy], charges: list[Charge], events: tuple[Event, ...]) -> Spending:
    account, refused = open_population(caps, name, charges), list[ReleaseId]()
    for policy in policies:
        loss = next_loss(policy, None)
        for release in list_ahead(policy, charges, events)[:1] if policy.population == name else ():
            can_ever = account.of(loss) is not None
            if can_ever and not account.admits(loss):
                refused.append(release)
    return Spending(account, tuple(refused))


AT_ONCE = timedelta(minutes=25)  # the schedule that publishes runs every ten minutes, and a package may take as long
LATE_AFTER = timedelta(minutes=10)  # the daemon opens what is due when it is due, and takes a moment
MOST_LATE = 12  # periods of a series that are late
REFUSED = "The release was refused. `release-pipeline status` at the site says why: the reason may reveal something of a record."
OPEN = frozenset({OverCap.code, PolicyInvalid.code, SecretLost.code})  # reasons that do not depend on any record
AGAIN = "Look at it with `release-pipeline status`, repair what it names, and run it again."


@dataclass(frozen=True, slots=True)
class Matter:
    """An alert, and whether it still `stands`; the first check of a site skips what is over. `number`: of the event that it is
    about, since many events share a second."""

    alert: Alert
    stands: bool = True
    number: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a check reads of a site."""

    name: str
    events: tuple[Event, ...]
    policies: tuple[Policy, ...]
    spending: tuple[Spending, ...]
    publishes_by_itself: bool
    shares: Collection[int | None]  # of caps, those that somebody asked about
    now: datetime
    desk: str = ""  # where people reach it

    def alert(self, kind: Kind, key: str, moment: str, title: str, words: str, remedy: str, **facts: Any) -> Alert:
        """Return an alert of this site. Its id has its kind and `key`."""
        id = f"{kind}/{key}"
        alert = Alert(id=id, kind=kind, site=self.name, moment=moment, title=title, words=words, remedy=remedy, **facts)
        return replace(alert, page=self.desk + alert.path) if self.desk else alert


def find_matters(view: View) -> list[Matter]:
    """Return every alert that the site gives or ever gave, in the order in which things happened."""
    state = read_state(view.events)
    matters = [*_of_runs(view, state), *_waiting(view, state), *_of_votes(view, state), *_of_remarks(view, state)]
    matters += [*_late(view, state), *_of_caps(view)]
    return sorted(matters, key=lambda matter: (datetime.fromisoformat(matter.alert.moment), matter.number))


def _name(event: Event) -> str:
    """Return the event by number and hash: after a restore another event may have its number."""
    return f"event-{event.number}-{event.hash[:16]}"


def _of_runs(view: View, state: SiteState) -> Iterator[Matter]:
    """Yield runs that broke off, and releases that were blocked. Of successive blocks only the last counts: a step records its
    findings, and then that it was refused for them."""
    blocks: dict[ReleaseId, Matter] = {}
    last_failed = {event.release: event.number for event in view.events if event.kind == FAILED}
    for event in view.events:
        release = event.release
        if release is None:
            continue
        reason, facts = str(event.content.get("reason", "")), {"release": str(release), "policy": release.policy}
        key = f"{release}/{_name(event)}"
        if event.kind in (BLOCKED, LOST):
            code = str(event.content.get("code", "")) or None
            is_open = event.kind == LOST or code in OPEN
            reason, code = (reason, code) if is_open else (REFUSED, None)
            alert = view.alert("blocked", key, event.noted, f"{release} is blocked", reason, AGAIN, reason_code=code, **facts)
            blocks[release] = Matter(alert, number=event.number)
        elif event.kind in MOVES and release in blocks:
            yield replace(blocks.pop(release), stands=False)
        elif event.kind == FAILED and not event.content.get("told_elsewhere"):
            stands = state.releases[release].failed == reason and event.number == last_failed[release]
            alert = view.alert("failed", key, event.noted, f"A run of {release} broke off", reason, AGAIN, **facts)
            yield Matter(alert, stands, event.number)
    for release, matter in blocks.items():
        yield replace(matter, stands=state.releases[release].state == "blocked")


def _waiting(view: View, state: SiteState) -> Iterator[Matter]:
    """Yield candidates that wait for their reviewers, and approved ones that are not published at once."""
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
    """Yield that a release was returned or is decided, once all votes are in, without a name or a reason."""
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
    """Yield that there are remarks on something, once that may be shown, without their text."""
    for event in view.events:
        if event.kind != REMARKED:
            continue
        status = None if event.release is None else state.releases[event.release]
        about, since, role = str(event.content["document"]["hash"]), event, find_role(view.events, event)
        if status is not None and not is_visible(role, about, status):
            continue
        if status is not None and role == "reviewer":  # shown with the votes, if these came later
            since = view.events[max(event.number, status.disclosed.get(about, 0)) - 1]
        subject = str(event.content["subject"])
        target = subject if status is not None else f"policies/{subject}.yaml"
        title, remedy = f"There are remarks on {subject}", f"`release-pipeline review show {target}` shows them."
        facts = {"release": None if status is None else subject, "policy": subject.split("/")[0]}
        alert = view.alert("remarked", f"{subject}/{_name(event)}", since.noted, title, f"{title}.", remedy, **facts)
        yield Matter(alert, status is None or (status.state not in OUT and status.replaced is None), since.number)


def _late(view: View, state: SiteState) -> Iterator[Matter]:
    """Yield releases that their timetables should have opened before; none of a series that is held."""
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
    """Yield caps that are nearly spent: they do not admit what comes next, or a share with an alert is reached."""
    remedy, moment = "The cap is the privacy officer's: `release-pipeline ledger` has all charges.", view.now
    for spending in view.spending:
        account = spending.account
        for share in sorted(view.shares, key=lambda asked: asked or 0):
            if sentence := spending.describe(share):
                about, facts = "next" if share is None else f"{share}%", {"population": account.population, "share": share}
                key = f"{account.population}/{account.limit} ({account.unit})/{about}"
                title = f"The cap of {account.population} is nearly spent"
                yield Matter(view.alert("cap", key, moment.isoformat(timespec="seconds"), title, sentence, remedy, **facts))
