"""The definitions that workspace.yaml loads, in processes that are this site's alone.

What is done to the process here is for the site's own: `building` has the definitions themselves, and leaves a team's process as
it is.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import dagster as dg

from release_pipeline.dagster_app.automations import AUTOMATIONS
from release_pipeline.dagster_app.building import build_defs
from release_pipeline.dagster_app.records import report_in_words
from release_pipeline.flow.site import HOME

for _library in ("OPENBLAS", "OMP"):  # of the processes of runs, as in `cli.program`
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Error texts of libraries may quote cells: Dagster keeps them out of its records, and here out of the console too.
os.environ["DAGSTER_REDACT_USER_CODE_ERRORS"] = "1"
_redacted = logging.getLogger("dagster.redacted_errors")
_redacted.addHandler(logging.NullHandler())
_redacted.propagate = False
report_in_words()

# What somebody selects in the UI is materialized as the jobs do it: all steps in the run's process.
defs = dg.Definitions.merge(
    build_defs(Path(os.environ.get(HOME) or "."), automations=os.environ.get(AUTOMATIONS, "off")),
    dg.Definitions(executor=dg.in_process_executor),
)
