"""What `status` tells of alerts and lineage: what is wrong in site.yaml, what travels readable, and who takes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.alerts.look import outbox_of
from release_pipeline.flow.alerts.outbox import count_orphans, describe_unsent
from release_pipeline.flow.alerts.settings import WebhookSettings, fill, is_open_road, read_alerts, read_lineage
from release_pipeline.flow.openlineage.spool import spool_of
from release_pipeline.flow.site import Site


def find_trouble(site: Site) -> Iterator[str]:
    """It in words, a sentence each; no address that may be a secret is in them."""
    try:
        rules, lineage = read_alerts(site), read_lineage(site)
    except ReleasePipelineError as error:
        yield error.in_full
        return
    for rule in {rule.name: rule for rule in rules}.values():
        yield from describe_unsent(rule.channel.words, outbox_of(site, rule))
    if left := count_orphans(site, {*(rule.name for rule in rules), spool_of(site).folder.name}):
        yield f"{left} alerts wait for a channel that site.yaml named before: those who are named now were not told of them"
    if lineage is not None:
        yield from describe_unsent(lineage.words, spool_of(site))
    yield from find_warnings(site)


def find_warnings(site: Site) -> Iterator[str]:
    """What travels readable, to another machine."""
    lineage = read_lineage(site)
    hooks = [rule.channel for rule in read_alerts(site) if isinstance(rule.channel, WebhookSettings)]
    hooks += [WebhookSettings(lineage.address)] if lineage is not None and lineage.folder is None else []
    for hook in dict.fromkeys(hooks):
        with suppress(ReleasePipelineError, ValueError):  # what the environment lacks is told when something is sent
            if is_open_road(fill(site, hook.address)):
                yield f"{hook.words}: what goes there by http can be read on its way to another machine. Use https."
