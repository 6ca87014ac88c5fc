"""The definitions that workspace.yaml loads, in processes that belong to one site, which are set up here.

`building` makes the definitions, and leaves a team's process as it is.
"""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import AUTOMATIONS
from release_pipeline.apps.dagster.process import set_up_process
from release_pipeline.store.site import HOME

set_up_process()

# Materializations that are started in the UI run as the jobs do: all steps in the run's process.
defs = dg.Definitions.merge(
    build_defs(Path(os.environ.get(HOME) or "."), automations=os.environ.get(AUTOMATIONS, "off")),
    dg.Definitions(executor=dg.in_process_executor),
)
