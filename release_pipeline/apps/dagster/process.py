"""Settings for a process that belongs to one site, made before Dagster runs in it. A team's process is left as it is.

No cell of a record leaves the process, it keeps to one thread, and a full disk or memory gets a clear message: Dagster's
libraries would print the statement and all that it was to write.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine, ExceptionContext
from sqlalchemy.exc import StatementError

from release_pipeline.errors import StoreError, disk_full, memory_full

_FULL = "database or disk is full"
_FAILED = "disk I/O error"  # also when the log next to the file cannot grow, or be mapped
_NO_MEMORY = "out of memory"
_HARDLY_ANYTHING = 1 << 20  # bytes: less than a database takes to grow


def set_up_process() -> None:
    """Keep texts of errors, which may quote cells, out of Dagster's records and the console, and report a full disk clearly."""
    for library in ("OPENBLAS", "OMP"):  # of the processes of runs, as in `apps.cli.program`
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    os.environ["DAGSTER_REDACT_USER_CODE_ERRORS"] = "1"
    redacted = logging.getLogger("dagster.redacted_errors")
    redacted.addHandler(logging.NullHandler())
    redacted.propagate = False
    if not event.contains(Engine, "handle_error", _report):
        event.listen(Engine, "handle_error", _report)


def _report(context: ExceptionContext) -> None:
    """Raise our own error where Dagster's records cannot be written, and remove the statement from any other."""
    database = context.engine.url.database if context.engine is not None else None
    text = str(context.original_exception)
    if database and (_FULL in text or (_FAILED in text and _is_full(database))):
        raise disk_full(database) from None
    if database and _FAILED in text:
        remedy = "Is the disk in order, and is memory left? Then try again: nothing that was stored or charged is lost."
        raise StoreError(
            "neither disk nor memory were given to write Dagster's own records.", where=database, remedy=remedy
        ) from None
    if database and (_NO_MEMORY in text or isinstance(context.original_exception, MemoryError)):
        raise memory_full(database) from None
    if isinstance(context.sqlalchemy_exception, StatementError):
        context.sqlalchemy_exception.statement = None


def _is_full(file: str) -> bool:
    """Return whether the disk of a file has hardly any space left."""
    try:
        return shutil.disk_usage(Path(file).parent).free < _HARDLY_ANYTHING
    except OSError:
        return False
