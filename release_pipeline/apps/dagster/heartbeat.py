"""When the daemon of a site last said that it lives."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.site import Site


def read_heartbeat(site: Site) -> datetime | None:
    """It of the site's own Dagster; None where there is none, or its daemon never ran. Makes nothing."""
    file = site.dagster_home / "dagster.yaml"
    if not (file.is_file() and (site.dagster_home / "history").is_dir()):
        return None
    try:
        with dg.DagsterInstance.from_config(str(site.dagster_home)) as instance:
            return last_heartbeat(instance)
    except Exception as error:  # whatever storage is configured raises its own
        words = f"Dagster's own records cannot be opened ({type(error).__name__})."
        raise ReleasePipelineError(words, where=str(file), remedy="Does its storage answer?") from None


def last_heartbeat(instance: dg.DagsterInstance) -> datetime | None:
    """The last one of any part of the daemon; None where there was none."""
    beats = [beat.timestamp for beat in instance.get_daemon_heartbeats().values()]
    return datetime.fromtimestamp(max(beats), UTC) if beats else None
