"""Votes on a candidate: what they make of it, and who is told of them, against plain rules over all short sequences of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from release_pipeline.ledger.states import (
    APPROVED,
    CANDIDATE,
    MOVES,
    PUBLISHED,
    PUBLISHING,
    REJECTED,
    RETURNED,
    ReleaseStatus,
    read_statuses,
)
from release_pipeline.store.registry import Event, ReleaseId

ONE = ReleaseId("people", "1")
KINDS = (APPROVED, RETURNED)
NAMES = ("ben", "cleo", "dora")
STEPS = [*product(KINDS, NAMES), (REJECTED, "ben"), (CANDIDATE, "a"), (CANDIDATE, "b"), (PUBLISHING, ""), (PUBLISHED, "")]
Step = tuple[str, str]


def content_of(kind: str, who: str, digest: str, needed: int) -> Mapping[str, Any]:
    """What belongs to an event of a kind."""
    if kind == CANDIDATE:
        return {"candidate_hash": who, "facts": {}, "policy_hash": "policy"}
    if kind == PUBLISHED:
        return {"package_hash": "package", "signed": {}}
    signed = {"statement": {"why": f"{who} says why", "signer": f"key of {who}"}}
    return {"what": "candidate", "hash": digest, "name": who, "needed": needed, "reason": "why", "signed": signed}


def events_of(steps: Sequence[Step], needed: int) -> list[Event]:
    """The first candidate, and then these."""
    events, digest = list[Event](), "a"
    for number, (kind, who) in enumerate([(CANDIDATE, "a"), *steps], start=1):
        digest = who if kind == CANDIDATE else digest
        noted = f"2026-03-01T{number:02}:00:00+00:00"
        events.append(Event(number, kind, noted, ONE, content_of(kind, who, digest, needed), f"hash {number}"))
    return events


def list_legal(length: int, needed: int) -> Iterator[tuple[tuple[Step, ...], ReleaseStatus]]:
    """Every sequence of that length that the table of moves lets happen, with what is read of it."""
    for steps in product(STEPS, repeat=length):
        events, digest = events_of(steps, needed), "a"
        for place, (kind, who) in enumerate(steps, start=1):
            before = read_statuses(events[:place])[ONE]
            if before.state not in MOVES[kind] or (kind == CANDIDATE and who == digest):  # noted only when it is another one
                break
            digest = who if kind == CANDIDATE else digest
        else:
            yield steps, read_statuses(events)[ONE]


def tell(steps: Sequence[Step], needed: int) -> tuple[str, bool, set[str], set[str]]:
    """What a person who reads the rules makes of them: the state, whether votes are blind, who approved and who returned it.

    Votes are about the hash that the candidate had. What is rejected or published stays so; what is being published is stopped by
    a return alone. Else it is returned while somebody's last vote is that and as many people voted as are needed, at any time."""
    digest, voted, open_to, outcome, frozen = "a", [("", "", "")], set[str](), "", False
    for kind, who in steps:
        if kind == CANDIDATE:
            digest, frozen = who, True
        elif kind in (*KINDS, REJECTED):
            voted.append((digest, who, kind))
            frozen = False
            if len({name for at, name, _ in voted if at == digest}) >= needed:
                open_to.add(digest)
        if kind == REJECTED:
            open_to.add(digest)
            outcome = REJECTED
        if kind in (PUBLISHING, PUBLISHED):
            outcome = kind
        if kind == RETURNED:
            outcome = ""
    last = {name: verdict for at, name, verdict in voted if at == digest}
    gave, back = ({name for name, verdict in last.items() if verdict == kind} for kind in KINDS)
    blind = digest not in open_to
    if outcome:
        return outcome, blind, gave, back
    if frozen:  # nobody has voted since it was made anew
        return "candidate", blind, gave, back
    state = "returned" if back and not blind else "approved" if not back and len(gave) >= needed else "candidate"
    return state, blind, gave, back


@pytest.mark.slow
@pytest.mark.parametrize("needed", [1, 2])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_states_are_what_the_rules_say(length: int, needed: int) -> None:
    """Over every sequence that may happen: state, blindness, and who approved and returned it."""
    count = 0
    for steps, found in list_legal(length, needed):
        count += 1
        seen = (found.state, found.is_blind, set(found.approvers), set(found.returners))
        assert seen == tell(steps, needed), steps
        if found.returners:
            assert found.state not in ("approved", "publishing", "published"), steps
        if found.is_blind:
            assert found.state == "candidate", steps
            assert not found.reason, steps
            assert RETURNED not in found.moments, steps
        if found.state == "returned":
            order = [vote.name for vote in found.votes if vote.verdict == "return" and vote.name in found.returners]
            names = [name for place, name in enumerate(order) if name not in order[place + 1 :]]
            assert found.reason == "; ".join(f"returned by {name}: {name} says why" for name in names)
    assert count > 5**length


def test_reading_on_is_reading_anew() -> None:
    """Events that come one by one give what they give together, whoever was asked of in between."""
    steps = [(RETURNED, "ben"), (APPROVED, "cleo"), (APPROVED, "dora"), (APPROVED, "ben"), (PUBLISHING, ""), (RETURNED, "cleo")]
    events = events_of(steps, 2)
    states = [read_statuses(events[: place + 1])[ONE].state for place in range(len(events))]
    assert states == ["candidate", "candidate", "returned", "returned", "approved", "publishing", "returned"]
    read_statuses([])
    assert read_statuses(events)[ONE].state == "returned"


def lists(number: int, **people: str) -> Event:
    """An event with a list of trusted keys: names and roles."""
    keys = {name: {"role": role, "key": f"key of {name}"} for name, role in people.items()}
    return Event(number, "trusted", f"2026-03-02T{number:02}:00:00+00:00", None, {"keys": keys}, f"hash {number}")


def test_a_return_by_somebody_who_left_holds_nothing_up() -> None:
    """Nobody could lift it. What is left decides: two approvals, or one vote that stays blind."""
    events = events_of([(RETURNED, "ben"), (APPROVED, "cleo"), (APPROVED, "dora")], 2)
    here = lists(5, ben="reviewer", cleo="reviewer", dora="reviewer")
    gone = lists(6, cleo="reviewer", dora="reviewer")
    assert read_statuses([*events, here])[ONE].state == "returned"
    assert read_statuses([*events, here, gone])[ONE].state == "approved"
    assert read_statuses([*events[:3], lists(4, cleo="reviewer")])[ONE].is_blind
    assert read_statuses([*events, lists(5, ben="steward", cleo="reviewer", dora="reviewer")])[ONE].state == "approved"


def test_an_approval_by_somebody_who_left_opens_no_vote() -> None:
    """Of those who are reviewers now one has voted, and nobody is told how."""
    events = events_of([(APPROVED, "ben"), (RETURNED, "cleo")], 2)
    assert read_statuses(events)[ONE].state == "returned"
    found = read_statuses([*events, lists(4, cleo="reviewer", dora="reviewer")])[ONE]
    assert (found.state, found.is_blind, found.voters) == ("candidate", True, ["cleo"])


def revokes(monkeypatch: pytest.MonkeyPatch, events: Sequence[Event]) -> None:
    """As if the officer had revoked the key of everybody who is named by an event `revoked` among these, from ever."""
    gone = {f"key of {event.content['who']}" for event in events if event.kind == "revoked"}
    office = SimpleNamespace(revoked=gone, lists=(), is_taken_back=lambda _, signer: signer in gone)
    monkeypatch.setattr("release_pipeline.ledger.states.read_office", lambda _: office if gone else None)


def everything_told(found: ReleaseStatus) -> tuple[object, ...]:
    """All that is told of a release whose votes are blind."""
    return found.state, found.reason, found.since, found.moments, found.decided, found.disclosed, found.voters, found.is_blind


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, 3, 4])
def test_what_is_told_while_blind_is_the_same_whatever_votes_say(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all sequences of votes, people who leave the list or come back, and keys that are revoked: those that differ in
    verdicts alone are told as the same, until the votes of one are in, and then they are in all."""
    people, count = ("ben", "cleo"), 0
    for shape in product([*product(("vote", "leave", "back", "revoke"), people), ("vote", "dora")], repeat=length):
        told = list[tuple[object, ...]]()
        blind = list[bool]()
        for verdicts in product(KINDS, repeat=sum(kind == "vote" for kind, _ in shape)):
            given, here = iter(verdicts), {"ben", "cleo", "dora"}
            events = [*events_of([], 2), lists(2, ben="reviewer", cleo="reviewer", dora="reviewer")]
            for number, (kind, who) in enumerate(shape, start=3):
                noted = f"2026-03-03T{number:02}:00:00+00:00"
                if kind == "vote":
                    verdict = next(given)
                    events.append(Event(number, verdict, noted, ONE, content_of(verdict, who, "a", 2), f"hash {number}"))
                elif kind == "revoke":
                    events.append(Event(number, "revoked", noted, None, {"who": who}, f"hash {number}"))
                else:
                    here = here - {who} if kind == "leave" else here | {who}
                    events.append(lists(number, **dict.fromkeys(sorted(here), "reviewer")))
            revokes(monkeypatch, events)
            found = read_statuses(events)[ONE]
            blind.append(found.is_blind)
            told.append(everything_told(found))
        assert len(set(blind)) == 1, shape
        if blind[0]:
            assert all(one == told[0] for one in told), shape
            count += len(told) > 1
    assert count > 4**length


def test_who_leaves_takes_an_approval_along() -> None:
    """What two approved waits for another vote when one of them is no reviewer any more, as what one of them returned does."""
    events = events_of([(APPROVED, "ben"), (APPROVED, "cleo")], 2)
    here, gone = lists(4, ben="reviewer", cleo="reviewer"), lists(5, cleo="reviewer", dora="reviewer")
    assert read_statuses([*events, here])[ONE].state == "approved"
    found = read_statuses([*events, here, gone])[ONE]
    assert (found.state, found.is_blind, found.voters) == ("candidate", True, ["cleo"])


REVISIONS = [ONE, ONE.next, ONE.next.next]


def revise_events(steps: Sequence[tuple[str, str]]) -> list[Event]:
    """A candidate, and then votes on the revision that is the last then, revisions, and their ends; two must approve."""
    events, at = events_of([], 2), 0
    for kind, who in steps:
        wanted = [(kind, who)] if kind != "opened" else [("opened", ""), (CANDIDATE, f"candidate {at + 1}")]
        for each, name in wanted:
            at += each == "opened"
            number = len(events) + 1
            digest = f"candidate {at}" if at else "a"
            content = {"why": "why"} if each == "opened" else content_of(each, name, digest, 2)
            events.append(Event(number, each, f"2026-03-01T00:{number:02}:00+00:00", REVISIONS[at], content, f"hash {number}"))
    return events


@pytest.mark.slow
def test_no_revision_opens_a_vote() -> None:
    """Over all sequences of votes, rejections and up to two revisions: whatever is given up is told if its votes were in by then,
    or those on a later one are, and what is blind is told as the same whatever the votes say."""
    acts = [("vote", "ben"), ("vote", "cleo"), ("opened", ""), (REJECTED, "dora")]
    count = 0
    for shape in product(acts, repeat=5):
        kinds = [kind for kind, _ in shape]
        early = [place for place, kind in enumerate(kinds) if kind == REJECTED]
        if kinds.count("opened") not in (1, 2) or any(kinds[place + 1 : place + 2] not in ([], ["opened"]) for place in early):
            continue
        voted, over, at = [set[str](), set[str](), set[str]()], set[int](), 0
        for kind, who in shape:
            at += kind == "opened"
            voted[at] |= {who} if kind == "vote" else set[str]()
            over |= {at} if kind == REJECTED else set()
        are_in = [len(voted[place]) >= 2 or place in over for place in range(at + 1)]
        expected = [not any(are_in[place:]) for place in range(at + 1)]
        told = list[list[tuple[object, ...]]]()
        for verdicts in product(KINDS, repeat=kinds.count("vote")):
            given = iter(verdicts)
            steps = [(next(given) if kind == "vote" else kind, who) for kind, who in shape]
            found = read_statuses(revise_events(steps))
            assert [found[name].is_blind for name in REVISIONS[: at + 1]] == expected, steps
            told.append([everything_told(found[name]) for name in REVISIONS[: at + 1] if found[name].is_blind])
        assert all(one == told[0] for one in told), shape
        count += any(expected)
    assert count > 100
