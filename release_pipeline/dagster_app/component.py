"""A site as a component of a team's own Dagster project: five lines of YAML.

No `from __future__ import annotations`: Dagster reads the annotations of the class.
"""

from pathlib import Path
from typing import Annotated

import dagster as dg

from release_pipeline.dagster_app.building import build_defs
from release_pipeline.flow.site import find_site

_HOME = dg.Resolver.default(
    description="The folder of the site, which has its policies/: absolute, or as seen from the folder of this file.",
    examples=["../../sites/health", "/srv/health"],
)
_PREFIX = dg.Resolver.default(
    description="What every name of the site begins with in this project; needed by all sites but one. It stays as it is once "
    "something was released: records of Dagster stand under these names.",
    examples=["health", ["statistics", "health"]],
)


class ReleasePipelineSite(dg.Component, dg.Resolvable, dg.Model):
    """A site of Release Pipeline: every policy with its check, every release from its source to the signed package, and the
    timetables and sensors that look after them."""

    home: Annotated[str, _HOME]
    prefix: Annotated[str | list[str] | None, _PREFIX] = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions of the site; refused in words where there is none."""
        here = context.path if context.path.is_dir() else context.path.parent
        site = find_site(here / Path(self.home).expanduser())
        return build_defs(site.home, prefix=() if self.prefix is None else self.prefix)
