"""What the events say of each release: its state, its charge, its secret, its noise, its candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.ledger.states import (
    APPROVED,
    BLOCKED,
    CANDIDATE,
    DRAWN,
    FAILED,
    MOVES,
    OPENED,
    POLICY,
    PRUNED,
    PUBLISHING,
    SECRET,
    SERVED,
    ReleaseStatus,
    read_statuses,
)
from release_pipeline.operate.overview import Moments
from release_pipeline.policy.plans.loss import LOSSES, Loss
from release_pipeline.store.ledger import RESERVED, Charge
from release_pipeline.store.registry import Event, ReleaseId

ONE, TWO, OTHER = ReleaseId("people", "1"), ReleaseId("people", "1", 2), ReleaseId("people", "2")
LOSS = Loss(None, None, None, 5, 7, None)
CONTENT: dict[str, dict[str, Any]] = {
    OPENED: {"why": "by hand"},
    RESERVED: {
        "population": "folk",
        "policy_hash": "policy of the charge",
        "source": "keyed hash",
        "records": 60,
        "loss": {name: getattr(LOSS, name) for name in LOSSES},
        "unit": "releases",
        "cap": "3",
    },
    SECRET: {"check": "check value"},
    DRAWN: {"masked": "keyed hash of the masked table"},
    CANDIDATE: {"candidate_hash": "hash", "facts": {"rows_out": 59}, "policy_hash": "policy of the candidate"},
    BLOCKED: {"reason": "too few", "policy_hash": "policy of the refusal"},
    FAILED: {"reason": "killed", "run": "a run"},
    PRUNED: {},
    POLICY: {"policy": "people"},
}
NORMAL = (OPENED, RESERVED, SECRET, DRAWN, CANDIDATE)
STATE = {OPENED: "open", RESERVED: "reserved", DRAWN: "drawn", CANDIDATE: "candidate", BLOCKED: "blocked"}
PROGRESS = (OPENED, RESERVED, DRAWN, CANDIDATE)


def noted(number: int) -> str:
    """When event `number` was noted."""
    return (datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=number)).isoformat()


def event_of(number: int, kind: str, release: ReleaseId | None, content: Mapping[str, object]) -> Event:
    """One event."""
    return Event(number, kind, noted(number), release, content, f"hash {number}")


def events_of(*happened: str | tuple[str, ReleaseId | None]) -> list[Event]:
    """Events of these kinds, of release 1 unless another is named."""
    pairs = [(one, ONE) if isinstance(one, str) else one for one in happened]
    return [event_of(number, kind, release, CONTENT.get(kind, {})) for number, (kind, release) in enumerate(pairs, start=1)]


def release_status(*happened: str | tuple[str, ReleaseId | None], release: ReleaseId = ONE) -> ReleaseStatus:
    """One release after these events."""
    return read_statuses(events_of(*happened))[release]


def test_every_step_of_the_protocol_is_told() -> None:
    """Opened, reserved, secret, drawn, candidate: each adds what it knows and leaves the rest; the last change of state is since
    when; the secret alone changes no state."""
    expected = ReleaseStatus(ONE, "open", since=noted(1), why="by hand")
    assert release_status(*NORMAL[:1]) == expected
    made = Charge(ONE, "folk", "policy of the charge", "keyed hash", 60, LOSS, noted(2))
    expected = dataclasses.replace(expected, state="reserved", since=noted(2), policy_hash="policy of the charge", charge=made)
    assert release_status(*NORMAL[:2]) == expected
    expected = dataclasses.replace(expected, secret="check value")  # noqa: S106
    assert release_status(*NORMAL[:3]) == expected
    expected = dataclasses.replace(expected, state="drawn", since=noted(4), drawn="keyed hash of the masked table")
    assert release_status(*NORMAL[:4]) == expected
    expected = dataclasses.replace(
        expected,
        state="candidate",
        since=noted(5),
        candidate_hash="hash",
        facts={"rows_out": 59},
        policy_hash="policy of the candidate",
    )
    assert release_status(*NORMAL) == expected


@pytest.mark.parametrize("count", range(1, len(NORMAL)))
def test_blocked_keeps_what_was_reached_and_says_why(count: int) -> None:
    """Charge, secret and noise stay known: nothing is taken back by a refusal, and the policy that was refused is not the one
    of the charge."""
    before, after = release_status(*NORMAL[:count]), release_status(*NORMAL[:count], BLOCKED)
    assert after == dataclasses.replace(before, state="blocked", reason="too few", since=noted(count + 1))


def test_every_moment_is_kept_and_an_approval_goes_with_its_candidate() -> None:
    """When each step last happened; of another candidate than was approved nobody has approved anything."""
    happened = [*NORMAL, APPROVED, PUBLISHING, PRUNED]
    steps = {kind: noted(number) for number, kind in enumerate(happened, start=1) if kind != SECRET}
    approved = {"name": "ben", "hash": "hash", "needed": 1, "signed": {"statement": {"why": ""}}}

    def moments(*kinds: str) -> Mapping[str, str]:
        events = events_of(*kinds)
        lines = [event_of(event.number, APPROVED, ONE, approved) if event.kind == APPROVED else event for event in events]
        return read_statuses(lines)[ONE].moments

    assert moments(*happened) == steps
    again = moments(*NORMAL, APPROVED, CANDIDATE)
    assert again == {kind: steps[kind] for kind in (OPENED, RESERVED, DRAWN)} | {CANDIDATE: noted(7)}
    assert release_status(*NORMAL[:2], BLOCKED, BLOCKED).moments[BLOCKED] == noted(4)


def test_every_moment_has_a_place_in_the_document() -> None:
    """So that no event of a registry makes `status --json` fail."""
    assert {field.name for field in dataclasses.fields(Moments)} == {kind for kind in MOVES if kind != SECRET} | {PRUNED}


@pytest.mark.parametrize("count", range(1, len(NORMAL) + 1))
def test_failed_changes_no_state(count: int) -> None:
    """A run that broke off leaves the release what it was, and when it became that; how it ended is told."""
    before, after = release_status(*NORMAL[:count]), release_status(*NORMAL[:count], FAILED)
    assert after == dataclasses.replace(before, failed="killed")


@pytest.mark.parametrize("kind", [*PROGRESS, BLOCKED, SERVED])
def test_failed_is_cleared_by_what_came_of_the_next_run(kind: str) -> None:
    """What came of the next run counts; and a run may break off again."""
    assert release_status(OPENED, FAILED, kind).failed == ""
    assert release_status(OPENED, FAILED, kind, FAILED).failed == "killed"


def test_a_revision_replaces_the_one_before_it() -> None:
    """The first is given up for the second and stays otherwise what it was; the second begins with nothing of it."""
    found = read_statuses(events_of(*NORMAL[:3], (OPENED, TWO), (OPENED, OTHER)))
    assert found[ONE] == dataclasses.replace(release_status(*NORMAL[:3]), replaced=TWO)
    assert found[TWO] == ReleaseStatus(TWO, "open", since=noted(4), why="by hand")
    assert found[OTHER] == ReleaseStatus(OTHER, "open", since=noted(5), why="by hand")
    found = read_statuses(events_of(*NORMAL, (OPENED, TWO), (RESERVED, TWO), (OPENED, TWO.next), FAILED))
    assert (found[ONE].replaced, found[TWO].replaced, found[TWO.next].replaced) == (TWO, TWO.next, None)
    assert (found[TWO].state, found[TWO].charge and found[TWO].charge.id) == ("reserved", TWO)
    assert found[ONE].failed == "killed"


IDS = st.sampled_from([ONE, TWO, TWO.next, OTHER, ReleaseId("others", "1"), None])
HAPPENED = st.lists(st.tuples(st.sampled_from(list(CONTENT)), IDS), max_size=20)


@given(HAPPENED)
def test_releases_do_not_meddle_with_each_other(happened: Sequence[tuple[str, ReleaseId | None]]) -> None:
    """Whatever happens in whatever order: a release is what its own events make it, and is replaced when the next was opened."""
    events = events_of(*happened)
    found = read_statuses(events)
    for release in (ONE, TWO, OTHER):
        own = [event for event in events if event.release == release]
        opened = any(event.kind == OPENED and event.release == release.next for event in events)
        alone = read_statuses(own).get(release, ReleaseStatus(release))
        expected = dataclasses.replace(alone, replaced=release.next if opened else None)
        assert found.get(release, ReleaseStatus(release)) == expected


@given(HAPPENED)
def test_what_was_spent_drawn_or_frozen_is_never_forgotten(happened: Sequence[tuple[str, ReleaseId | None]]) -> None:
    """No event takes a charge, a secret, the noise or a candidate back; the state is that of the last one that is a state."""
    parts = {RESERVED: "charge", SECRET: "secret", DRAWN: "drawn", CANDIDATE: "candidate_hash"}
    found = read_statuses(events_of(*happened))
    for release, known in found.items():
        kinds = [kind for kind, of in happened if of == release]
        for kind, name in parts.items():
            assert bool(getattr(known, name)) == (kind in kinds)
        states = [STATE[kind] for kind in kinds if kind in STATE]
        assert known.state == (states[-1] if states else "open")
        assert (known.reason == "too few") == (known.state == "blocked")
