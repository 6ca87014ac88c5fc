"""What events say of deliveries, what is outstanding, and what `verify` says of a chain with them."""

from __future__ import annotations

from typing import Any

import pytest

from release_pipeline.ledger.states import ReleaseStatus
from release_pipeline.publish.delivery import list_tasks
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.targets.settings import TargetSettings
from release_pipeline.verifier.chain import AT_TARGETS, History
from release_pipeline.verifier.chain import Event as VerifiedEvent
from release_pipeline.verifier.report import Report

RELEASE = ReleaseId("people", "1")
HASH, NOTED = "a" * 64, "2026-11-01T10:00:00+00:00"
OPEN = TargetSettings("open", "../public")
MOVED = TargetSettings("open", "../elsewhere")
PLACE = {"target": "open", "via": "to", "address": "../public", "package_hash": HASH}
BEGUN = ("delivering", PLACE)
DONE = ("delivered", {**PLACE, "where": "there"})


def recalled(state: str) -> tuple[str, dict[str, Any]]:
    """The event of a recall."""
    return "recalled", {**PLACE, "state": state, "put": [], "removed": []}


def tell(*happened: tuple[str, dict[str, Any]]) -> list[Event]:
    """The events of a chain."""
    return [Event(number, kind, NOTED, RELEASE, content, "") for number, (kind, content) in enumerate(happened, start=1)]


@pytest.mark.parametrize(
    ("state", "happened", "targets", "words"),
    [
        ("published", [], [OPEN], ["people/1/r1: not delivered to open (../public)"]),
        ("published", [BEGUN], [OPEN], [f"people/1/r1: not delivered to open (../public), begun at {NOTED}"]),
        ("published", [BEGUN, DONE], [OPEN], []),
        ("published", [BEGUN, DONE], [], []),
        ("published", [BEGUN, DONE], [MOVED], ["people/1/r1: not delivered to open (../elsewhere)"]),
        ("published", [], [TargetSettings("open", "x", frozenset({"others"}))], []),
        ("superseded", [], [OPEN], ["people/1/r1: not delivered to open (../public)"]),
        ("superseded", [BEGUN], [], []),
        ("superseded", [BEGUN, DONE], [OPEN], ["people/1/r1: open (../public) is not told yet that it was superseded"]),
        ("superseded", [BEGUN, DONE, recalled("superseded")], [OPEN], []),
        ("retracted", [], [OPEN], []),
        ("retracted", [BEGUN], [OPEN], ["people/1/r1: open (../public) is not told yet that it was retracted"]),
        ("retracted", [BEGUN, DONE], [], ["people/1/r1: open (../public) is not told yet that it was retracted"]),
        (
            "retracted",
            [BEGUN, DONE, recalled("superseded")],
            [OPEN],
            ["people/1/r1: open (../public) is not told yet that it was retracted"],
        ),
        ("retracted", [BEGUN, DONE, recalled("retracted")], [OPEN], []),
    ],
)
def test_what_is_outstanding_follows_from_state_events_and_targets(
    state: str, happened: list[tuple[str, dict[str, Any]]], targets: list[TargetSettings], words: list[str]
) -> None:
    """Deliveries of what is public, and recalls wherever something is, whatever site.yaml says by now."""
    status = ReleaseStatus(RELEASE, state, package_hash=HASH)
    assert [task.description for task in list_tasks(tell(*happened), {RELEASE: status}, targets)] == words


def judge(*happened: tuple[str, dict[str, Any]], published: str = HASH) -> list[str]:
    """What `verify` says of a chain of these events about a package, beside what it says of signatures."""
    report = Report(None)
    history = History(report, [])
    history._published[str(RELEASE)] = published
    for number, (kind, content) in enumerate(happened, start=1):
        event = VerifiedEvent(number, kind, str(RELEASE), content, "hash")
        history._of.setdefault((kind, event.release), []).append(event)
        with report.about(f"event {number} ({kind})"):
            if kind in AT_TARGETS:
                history._take(event)
    return [f"{finding.level}: {finding.words}" for finding in report.findings]


RETRACTED: tuple[str, dict[str, Any]] = ("retracted", {})


@pytest.mark.parametrize(
    ("happened", "words"),
    [
        ([DONE], "it tells of a delivery to open that no event before it began"),
        ([("delivering", {**PLACE, "package_hash": "b" * 64})], "it tells of another package of people/1/r1 than was published"),
        ([BEGUN, ("delivered", {**DONE[1], "address": "x"})], "that no event before it began"),
        ([BEGUN, recalled("retracted"), RETRACTED], "people/1/r1 was retracted, and no event before it says so"),
        ([BEGUN, RETRACTED, recalled("published")], "no event before it says so"),
        ([("delivering", {})], "'target' is missing"),
        ([("delivering", {**PLACE, "target": "a b"})], "'target' is missing or is not what it must be"),
    ],
)
def test_verify_fails_for_deliveries_that_cannot_be(happened: list[tuple[str, dict[str, Any]]], words: str) -> None:
    """Of another package, without an intent, or a recall of what was neither retracted nor superseded."""
    assert [found for found in judge(*happened) if found.startswith("FAIL") and words in found]
