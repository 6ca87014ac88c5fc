"""The queue of what is to be sent: in order, nothing lost, nothing held back by more than the one that takes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from release_pipeline.operate.alerts.outbox import NotSent, Outbox, describe_unsent
from release_pipeline.store.files import locked_if_free


class Receiver:
    """Takes documents, until it does not."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.takes = 99

    def __call__(self, document: Mapping[str, Any]) -> None:
        if len(self.got) == self.takes:
            raise NotSent("it answered 500.")
        self.got.append(document["is"])


def filled(folder: Path, *names: str) -> Outbox:
    """A queue with these in it."""
    outbox = Outbox(folder / "outbox" / "one")
    for name in names:
        outbox.put({"is": name}, name=name)
    return outbox


def test_all_are_sent_in_order_and_once(tmp_path: Path) -> None:
    """Put twice, a document is there once; files are the owner's alone."""
    outbox, receiver = filled(tmp_path, "c", "a", "b", "a"), Receiver()
    assert {file.stat().st_mode & 0o777 for file in outbox.list_files()} == {0o600}
    assert outbox.send(receiver) == 3
    assert receiver.got == ["c", "a", "b"]
    assert (outbox.list_files(), outbox.send(receiver), [*describe_unsent("x", outbox)]) == ([], 0, [])


def test_what_is_not_taken_stays_and_is_tried_again(tmp_path: Path) -> None:
    """The order holds, `status` tells since when, and it is over with the first that is taken."""
    outbox, receiver = filled(tmp_path, "a", "b", "c"), Receiver()
    receiver.takes = 1
    assert outbox.send(receiver) == 1
    first = outbox.failing
    assert first is not None
    assert outbox.send(receiver) == 0
    assert outbox.failing == first
    assert [*describe_unsent("hook", outbox)] == [f"hook: 2 not sent, tried since {first.since}: it answered 500."]
    outbox.put({"is": "d"}, name="d")
    receiver.takes = 99
    assert outbox.send(receiver) == 3
    assert (receiver.got, outbox.failing) == (["a", "b", "c", "d"], None)


def test_a_crash_after_sending_sends_it_once_more(tmp_path: Path) -> None:
    """At least once: whoever dies between sending and noting it has sent."""
    outbox, receiver = filled(tmp_path, "a", "b"), Receiver()

    def die(document: Mapping[str, Any]) -> None:
        receiver(document)
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        outbox.send(die)
    assert outbox.send(receiver) == 2
    assert receiver.got == ["a", "a", "b"]


def test_one_process_sends_at_a_time(tmp_path: Path) -> None:
    """The other one leaves it alone, and does not wait."""
    outbox, receiver = filled(tmp_path, "a"), Receiver()
    with locked_if_free(outbox.folder / "sending") as free:
        assert free
        assert outbox.send(receiver) == 0
    assert outbox.send(receiver) == 1


def test_what_is_refused_for_good_is_set_aside(tmp_path: Path) -> None:
    """What comes after it does not wait for it; it stays to be looked at, and is told."""
    outbox, sent = Outbox(tmp_path / "box"), list[int]()
    for number in range(3):
        outbox.put({"number": number}, name=str(number))

    def deliver(document: Mapping[str, Any]) -> None:
        if document["number"] == 1:
            raise NotSent("it answered 422.", for_good=True)
        sent.append(document["number"])

    assert outbox.send(deliver) == 2
    assert sent == [0, 2]
    assert outbox.list_files() == []
    [refused] = outbox.list_refused()
    assert json.loads(refused.read_text()) == {"number": 1}
    assert [*describe_unsent("a webhook", outbox)] == [f"a webhook: 1 refused for good, in {refused.parent}"]
