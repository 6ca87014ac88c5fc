"""A site as a component of a team's own Dagster project: five lines of YAML.

No `from __future__ import annotations`: Dagster reads the annotations of the class.
"""

from pathlib import Path
from typing import Annotated

import dagster as dg

from release_pipeline.apps.dagster.building import build_defs

_HOME = dg.Resolver.default(
    description="The folder of the site, which has its policies/: absolute, or as seen from the folder of this file.",
    examples=["../../sites/health", "/srv/health"],
)
_PREFIX = dg.Resolver.default(
    description="What every name of the site begins with in this project; needed by all sites but one. Keep it once "
    "something was released: Dagster's records have these names.",
    examples=["health", ["statistics", "health"]],
)

_AUTOMATIONS = dg.Resolver.default(
    description="Whether the site's schedules and sensors are on as soon as Dagster loads them: on or off. Whoever operates "
    "Dagster can switch each of them.",
    examples=["on"],
)


class ReleasePipelineSite(dg.Component, dg.Resolvable, dg.Model):
    """A site of Release Pipeline: every policy with its check, every release from its source to the signed package, and its
    timetables and sensors."""

    home: Annotated[str, _HOME]
    prefix: Annotated[str | list[str] | None, _PREFIX] = None
    automations: Annotated[str | bool, _AUTOMATIONS] = "off"

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the site; raises `WrongUsage` where there is none."""
        here = context.path if context.path.is_dir() else context.path.parent
        home, prefix = here / Path(self.home).expanduser(), () if self.prefix is None else self.prefix
        switch = self.automations  # YAML reads `on` as true
        return build_defs(home, prefix=prefix, automations=switch if isinstance(switch, str) else "on" if switch else "off")
