"""Telling people what they wait for: the sensor that looks, and sends what waits. No run knows of it.

No `from __future__ import annotations`: Dagster reads the annotations of these functions.
"""

from typing import Any

import dagster as dg

from release_pipeline.dagster_app.automations import Automations
from release_pipeline.dagster_app.names import Names
from release_pipeline.errors import ReleasePipelineError

LOOK_SECONDS = 30


def build_telling(names: Names, automations: Automations) -> dg.SensorDefinition:
    """The sensor that does what `release-pipeline alert` does. It is apart from `watch`, which waits for nobody."""

    @dg.sensor(
        name=names.name("tell"),
        required_resource_keys={names.resource},
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=automations.sensor,
        description="Tells those whom site.yaml names what happened, each thing once, and sends lineage.",
    )
    def telling(context: dg.SensorEvaluationContext) -> Any:
        from release_pipeline.flow.alerts.sender import NOBODY, describe_sent, tell  # what sends takes long to load

        try:
            done = tell(names.site_of(context).open())
        except ReleasePipelineError as error:
            return dg.SkipReason(error.in_full)
        words = "; ".join(describe_sent(done)) if done else NOBODY
        return dg.SkipReason(f"{words}.")

    return telling
