"""What is done to a process that is a site's own before Dagster runs in it: no cell of a record leaves it, and it keeps to one
thread. A team's process is left as it is."""

from __future__ import annotations

import logging
import os

from release_pipeline.dagster_app.records import report_in_words


def set_up_process() -> None:
    """Error texts of libraries may quote cells: Dagster keeps them out of its records, and of the console too."""
    for library in ("OPENBLAS", "OMP"):  # of the processes of runs, as in `cli.program`
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    os.environ["DAGSTER_REDACT_USER_CODE_ERRORS"] = "1"
    redacted = logging.getLogger("dagster.redacted_errors")
    redacted.addHandler(logging.NullHandler())
    redacted.propagate = False
    report_in_words()
