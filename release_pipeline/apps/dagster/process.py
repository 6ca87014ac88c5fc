"""Dagster's own records when they cannot be written: what is wrong, where its libraries print the statement and all that it was
to write. A full disk, or memory that is used up, in words."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine, ExceptionContext
from sqlalchemy.exc import StatementError

from release_pipeline.errors import StoreError, disk_full, memory_full

_FULL, _FAILED = (
    "database or disk is full",
    "disk I/O error",
)  # the second also when the log beside the file cannot grow, or be mapped
_NO_MEMORY = "out of memory"
_HARDLY_ANYTHING = 1 << 20  # bytes: less than a database takes to grow


def report_in_words() -> None:
    """From now on every engine of this process tells it so; done once."""
    if not event.contains(Engine, "handle_error", _report):
        event.listen(Engine, "handle_error", _report)


def _report(context: ExceptionContext) -> None:
    place = context.engine.url.database if context.engine is not None else None
    text = str(context.original_exception)
    if place and (_FULL in text or (_FAILED in text and _is_full(place))):
        raise disk_full(place) from None
    if place and _FAILED in text:
        remedy = "Is the disk in order, and is memory left? Then try again: nothing that was stored or charged is lost."
        raise StoreError(
            "neither disk nor memory were given to write Dagster's own records.", where=place, remedy=remedy
        ) from None
    if place and (_NO_MEMORY in text or isinstance(context.original_exception, MemoryError)):
        raise memory_full(place) from None
    if isinstance(context.sqlalchemy_exception, StatementError):
        context.sqlalchemy_exception.statement = None


def _is_full(file: str) -> bool:
    """Whether the disk that a file lies on has hardly anything left."""
    try:
        return shutil.disk_usage(Path(file).parent).free < _HARDLY_ANYTHING
    except OSError:
        return False


# What is done to a process that is a site's own before Dagster runs in it: no cell of a record
# leaves it, and it keeps to one thread. A team's process is left as it is.


def set_up_process() -> None:
    """Error texts of libraries may quote cells: Dagster keeps them out of its records, and of the console too."""
    for library in ("OPENBLAS", "OMP"):  # of the processes of runs, as in `apps.cli.program`
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    os.environ["DAGSTER_REDACT_USER_CODE_ERRORS"] = "1"
    redacted = logging.getLogger("dagster.redacted_errors")
    redacted.addHandler(logging.NullHandler())
    redacted.propagate = False
    report_in_words()
