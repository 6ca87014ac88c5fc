"""Where lineage events wait until they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from release_pipeline.flow.alerts.outbox import Outbox, folder_of
from release_pipeline.flow.site import Site


def spool_of(site: Site) -> Outbox:
    """The queue of a site's lineage."""
    return Outbox(folder_of(site) / "lineage")


def keep_event(site: Site, event: Mapping[str, Any]) -> None:
    """Keep an event until it is sent."""
    spool_of(site).put(event, name=f"{event['run']['runId']}-{event['eventType']}")
