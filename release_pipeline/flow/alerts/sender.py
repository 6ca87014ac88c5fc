"""Sending what waits in the queues of a site: alerts by their channels, lineage to where it goes. What is not taken stays where
it is, in order, and is tried again at the next look."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.alerts.alert import read_alert
from release_pipeline.flow.alerts.channels import open_address, open_channel
from release_pipeline.flow.alerts.look import look, outbox_of
from release_pipeline.flow.alerts.outbox import Deliver, NotSent, Outbox
from release_pipeline.flow.alerts.settings import LineageSettings, Rule, read_alerts, read_lineage
from release_pipeline.flow.files import write_text
from release_pipeline.flow.openlineage.spool import spool_of
from release_pipeline.flow.site import Site

NOBODY = "nothing is told: site.yaml has neither 'alerts' nor 'lineage'"
LONGEST_SECONDS = 30.0  # of one look, all channels together: after that the next one goes on


@dataclass(frozen=True, slots=True)
class Sent:
    """What one receiver got, and how much is left for it."""

    name: str
    sent: int
    left: int
    words: str = ""  # why something is left


def tell(site: Site, *, longest: float = LONGEST_SECONDS) -> list[Sent]:
    """Look, and send what waits. Raises only for what is wrong at the site; who takes nothing is told in what is given."""
    trouble: ReleasePipelineError | None = None
    try:
        look(site)
    except ReleasePipelineError as error:  # of a registry that cannot be read, say: what waits already is sent all the same
        trouble = error
    end = time.monotonic() + longest
    rules = list({rule.name: rule for rule in read_alerts(site)}.values())
    rules.sort(key=lambda rule: outbox_of(site, rule).failing is not None)  # who took nothing last time keeps nobody waiting
    done = [_send(rule.channel.words, outbox_of(site, rule), _alerts_to(site, rule), end) for rule in rules]
    lineage = read_lineage(site)
    if lineage is not None:
        done.append(_send(lineage.words, spool_of(site), _lineage_to(site, lineage), end))
    if trouble is not None:
        raise trouble
    return done


def describe_sent(done: list[Sent]) -> Iterator[str]:
    """It in lines for a person."""
    for each in done:
        left = f", {each.left} left{f': {each.words}' if each.words else ''}" if each.left else ""
        yield f"{each.name}: {each.sent} sent{left}"


def _send(name: str, outbox: Outbox, deliver: Deliver, end: float) -> Sent:
    sent = outbox.send(deliver, may_go_on=lambda: time.monotonic() < end)
    left, failing = len(outbox.list_files()), outbox.failing
    return Sent(name, sent, left, "" if failing is None else failing.words)


def _alerts_to(site: Site, rule: Rule) -> Deliver:
    opened = cache(lambda: open_channel(site, rule))

    def deliver(document: Mapping[str, Any]) -> None:
        opened().send(read_alert(document))

    return deliver


def _lineage_to(site: Site, lineage: LineageSettings) -> Deliver:
    folder = lineage.folder
    if folder is not None:
        return lambda document: _keep(folder, document)
    opened = cache(lambda: open_address(site, lineage.address))
    return lambda document: opened()(document)


def _keep(folder: Path, document: Mapping[str, Any]) -> None:
    """The event as a file of a folder, whose name sorts by its time; sent once more it is the same file."""
    name = f"{document['eventTime'].replace(':', '')}-{document['run']['runId']}-{document['eventType']}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / name, json.dumps(document) + "\n")
    except (OSError, ReleasePipelineError) as error:
        raise NotSent(f"the folder cannot be written to ({type(error).__name__}).") from None
