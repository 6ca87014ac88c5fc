"""A check of a site: new alerts are put in the queues of the channels that want them. Nothing is sent here.

A file has the ids of alerts that were queued. It is written after the queues: a crash in between queues an alert once more, under
the same id. At the first check there is no such file, and what is over by then is not queued.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.ledger.policies import read_caps
from release_pipeline.operate.alerts.matters import Alert, Matter, Spending, View, find_matters, list_spending
from release_pipeline.operate.alerts.outbox import Outbox, count_orphans, describe_unsent, folder_of
from release_pipeline.operate.alerts.settings import Rule, WebhookSettings, fill, is_open_road, read_alerts
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import to_json
from release_pipeline.store.files import locked, own_folder, write_private_json, write_text
from release_pipeline.store.registry import Event
from release_pipeline.store.site import Site, read_desk_address

TOLD, HEAD = "told", "head"


@dataclass(frozen=True, slots=True)
class QueuedAlert:
    """An alert that was put in queues, and the rules that want it."""

    alert: Alert
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a registry at the last check."""

    number: int
    hash: str

    def is_in(self, events: tuple[Event, ...]) -> bool:
        """Return whether a registry still has it."""
        return [event.hash for event in events[self.number - 1 : self.number]] == [self.hash]


def look(site: Site, *, now: datetime | None = None) -> list[QueuedAlert]:
    """Put new alerts in the queues, and return them; none where site.yaml has no `alerts`."""
    rules = read_alerts(site)
    if not rules:
        return []
    folder = folder_of(site)
    own_folder(site.dagster_home)
    with locked(folder):
        view = _read_view(site, rules, now or datetime.now(UTC))
        matters, queued = find_matters(view), list[QueuedAlert]()
        if not (folder / TOLD).exists():
            over = "".join(f"{matter.alert.id}\n" for matter in matters if not matter.stands)
            write_text(folder / TOLD, over)  # over before the first check
        for new in _list_new(folder, matters, rules):
            for rule in new.rules:
                outbox_of(site, rule).put(to_json(new.alert), name=_file_name(new.alert))
            _append(folder / TOLD, new.alert.id)
            queued.append(new)
        _note_head(folder, view.events)
    return queued


def preview(site: Site, *, now: datetime | None = None) -> list[QueuedAlert]:
    """Return the alerts that a check would put in the queues now. Changes nothing."""
    rules, folder = read_alerts(site), folder_of(site)
    if not rules:
        return []
    matters = find_matters(_read_view(site, rules, now or datetime.now(UTC)))
    if not (folder / TOLD).exists():
        matters = [matter for matter in matters if matter.stands]
    return [*_list_new(folder, matters, rules)]


def describe_preview(queued: list[QueuedAlert]) -> Iterator[str]:
    """Yield lines for a person: the alerts that would be sent, and their receivers."""
    for new in queued:
        receivers = ", ".join(rule.channel.title for rule in new.rules) or "nobody"
        yield f"{new.alert.kind}: {new.alert.title}: {new.alert.words} (to {receivers})"
    if not queued:
        yield "nothing is to be told"


def outbox_of(site: Site, rule: Rule) -> Outbox:
    """Return the queue of the channel that a rule names."""
    return Outbox(folder_of(site) / rule.name)


def read_spending(site: Site, policies: list[Policy], events: tuple[Event, ...]) -> tuple[Spending, ...]:
    """Return how far the caps are spent; nothing where populations.yaml cannot be read, which `status` reports."""
    with suppress(ReleasePipelineError):
        return list_spending(read_caps(site), policies, events)
    return ()


def _read_view(site: Site, rules: tuple[Rule, ...], now: datetime) -> View:
    policies, _ = site.read_policies()
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    shares = {rule.share for rule in rules if "cap" in rule.on}
    spending = read_spending(site, policies, events) if shares else ()
    name, desk = site.home.name, read_desk_address(site)
    return View(name, events, tuple(policies), spending, site.publishes_by_itself, shares, now, desk)


def _list_new(folder: Path, matters: list[Matter], rules: tuple[Rule, ...]) -> Iterator[QueuedAlert]:
    """Yield the alerts that were not queued before, with the rules that want them, each channel once."""
    known = _read_queued(folder)
    for matter in matters:
        alert = matter.alert
        if alert.id not in known:
            known.add(alert.id)
            wanting = {rule.name: rule for rule in rules if rule.wants(alert.kind, alert.share)}
            yield QueuedAlert(alert, tuple(wanting.values()))


def _read_queued(folder: Path) -> set[str]:
    """Return the ids of alerts that were queued, without an incomplete line of a stopped write."""
    try:
        text = (folder / TOLD).read_text(encoding="utf-8")
    except FileNotFoundError:
        return set()
    return {line for line in text.splitlines(keepends=False) if line}


def _append(file: Path, line: str) -> None:
    """Add a line at the end of a file, on the disk for good. An incomplete line of an earlier write is ended first."""
    with file.open("r+b") as written:
        if written.seek(0, os.SEEK_END) and (written.seek(-1, os.SEEK_END), written.read(1))[1] != b"\n":
            written.write(b"\n")
        written.write(f"{line}\n".encode())
        written.flush()
        os.fsync(written.fileno())


def _file_name(alert: Alert) -> str:
    """Return the id as a part of a file's name."""
    return hashlib.sha256(alert.id.encode()).hexdigest()[:16]


def read_head(folder: Path) -> Head | None:
    """Return the last event that a check saw; None where there was no check. ValueError where it is there and cannot be read."""
    try:
        seen = json.loads((folder / HEAD).read_text(encoding="utf-8"))
        return Head(int(seen["event"]), str(seen["hash"]))
    except FileNotFoundError:
        return None
    except (OSError, KeyError, TypeError) as error:
        raise ValueError from error


def _note_head(folder: Path, events: tuple[Event, ...]) -> None:
    """Record the last event, so that `operate.health` can ask later whether the registry still has
    it. The record stays as it is where the registry lost that event, or it cannot be read: another
    record would hide that."""
    try:
        seen = read_head(folder)
    except ValueError:
        return
    if events and (seen is None or seen.is_in(events)):
        write_private_json(folder / HEAD, {"event": events[-1].number, "hash": events[-1].hash})


def find_trouble(site: Site) -> Iterator[str]:
    """Yield what `status` reports about alerts: faults in site.yaml, receivers that take nothing, and what travels readable. No
    sentence has an address that may be a secret."""
    try:
        rules = read_alerts(site)
    except ReleasePipelineError as error:
        yield error.in_full
        return
    for rule in {rule.name: rule for rule in rules}.values():
        yield from describe_unsent(rule.channel.title, outbox_of(site, rule))
    if left := count_orphans(site, {rule.name for rule in rules}):
        yield f"{left} alerts wait for a channel that site.yaml named before: those who are named now were not told of them"
    yield from find_warnings(site)


def find_warnings(site: Site) -> Iterator[str]:
    """Yield a sentence for each channel that sends readable text to another machine."""
    hooks = [rule.channel for rule in read_alerts(site) if isinstance(rule.channel, WebhookSettings)]
    for hook in dict.fromkeys(hooks):
        with suppress(ReleasePipelineError, ValueError):  # missing variables are reported when something is sent
            if is_open_road(fill(site, hook.address)):
                yield f"{hook.title}: what goes there by http can be read on its way to another machine. Use https."
