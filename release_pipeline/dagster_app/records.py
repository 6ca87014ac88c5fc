"""Dagster's own records on a full disk: told in words, where its libraries print the statement with all that it was to write."""

from __future__ import annotations

from sqlalchemy import event
from sqlalchemy.engine import Engine, ExceptionContext

from release_pipeline.errors import disk_full
from release_pipeline.store.folders import is_full

_FULL, _FAILED = "database or disk is full", "disk I/O error"  # the second also when the log beside the file cannot grow


def tell_full_disk() -> None:
    """From now on every engine of this process says so in words; done once."""
    if not event.contains(Engine, "handle_error", _tell):
        event.listen(Engine, "handle_error", _tell)


def _tell(context: ExceptionContext) -> None:
    place = context.engine.url.database if context.engine is not None else None
    text = str(context.original_exception)
    if place and (_FULL in text or (_FAILED in text and is_full(place))):
        raise disk_full(place) from None
