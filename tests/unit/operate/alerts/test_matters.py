"""What people elsewhere are told of a release that was refused: that it was, and not why."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from release_pipeline.errors import Blocked, DataRefused, GateFailed
from release_pipeline.ledger.states import BLOCKED, OPENED
from release_pipeline.operate.alerts.matters import REFUSED, View, find_matters
from release_pipeline.policy.documents import to_json
from release_pipeline.store.registry import Event, ReleaseId

NOTED = "2026-03-10T12:00:00+00:00"
RELEASE = ReleaseId("people", "1")


def view_of(reason: str, code: str) -> View:
    """A site with one release, which was blocked."""
    events = (
        Event(1, OPENED, NOTED, RELEASE, {"why": "by hand"}, "a"),
        Event(2, BLOCKED, NOTED, RELEASE, {"reason": reason, "code": code, "policy_hash": "ab" * 32}, "b"),
    )
    now = datetime(2026, 3, 11, tzinfo=UTC)
    return View("office", events, (), (), publishes_by_itself=False, shares=(), now=now)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("the expected error of income is over the limit 1e-07 (the figure is in the vault).", GateFailed.code),
        ("since people/1/r1 fewer than 10 people joined, and not none.", GateFailed.code),
        ("the population 'folk' is carried on by adults, so nothing is charged to it any more.", Blocked.code),
        ("the data do not meet the policy. column income: up to 10 records with NaN.", DataRefused.code),
        ("something else", ""),
    ],
)
def test_a_refusal_is_sent_without_its_reason(reason: str, code: str) -> None:
    """Neither the words nor the kind of it: each is an answer about the records, without noise."""
    [matter] = find_matters(view_of(reason, code))
    assert (matter.alert.words, matter.alert.reason_code) == (REFUSED, None)
    assert reason not in str(to_json(matter.alert)) + matter.alert.text
