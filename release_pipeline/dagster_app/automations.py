"""Whether schedules and sensors begin switched on: only `release-pipeline ui` asks for it, or whoever writes `on`."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from release_pipeline.errors import WrongUsage

AUTOMATIONS = "RELEASE_PIPELINE_AUTOMATIONS"


@dataclass(frozen=True, slots=True)
class Automations:
    """How schedules and sensors begin, as Dagster has it. What somebody switched since then counts."""

    schedule: dg.DefaultScheduleStatus
    sensor: dg.DefaultSensorStatus


ON = Automations(dg.DefaultScheduleStatus.RUNNING, dg.DefaultSensorStatus.RUNNING)
OFF = Automations(dg.DefaultScheduleStatus.STOPPED, dg.DefaultSensorStatus.STOPPED)


def read_automations(said: str) -> Automations:
    """How they begin by `on` or `off`; anything else is refused."""
    if said not in ("on", "off"):
        raise WrongUsage(f"automations cannot be '{said}'.", where="automations", remedy="Say 'on' or 'off'.")
    return ON if said == "on" else OFF
