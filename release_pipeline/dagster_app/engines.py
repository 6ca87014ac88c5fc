"""Dagster's own records in SQLite at the cost of one engine for each file. Dagster makes an engine for every event, and each new
one compiles the same statements again; it also reads all scripts of its tables again for every file."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy import create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool

_MAKER = "create_engine"  # the name by which each of Dagster's modules calls it
_MOST = 16  # files: three of a site, and one for each run, of which a daemon has many


def keep_engines() -> None:
    """From now on Dagster gets the engine that this process has of a file. No connection is kept: each event opens its own."""
    for storage in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        setattr(storage, _MAKER, _find_engine)
    if not hasattr(ScriptDirectory.from_config, "cache_info"):
        ScriptDirectory.from_config = lru_cache(ScriptDirectory.from_config)


def _find_engine(url: str, *, poolclass: type[NullPool], connect_args: dict[str, Any] | None = None) -> Engine:
    return _make_engine(url, poolclass, tuple((connect_args or {}).items()))


@lru_cache(_MOST)
def _make_engine(url: str, poolclass: type[NullPool], connect_args: tuple[tuple[str, Any], ...]) -> Engine:
    return create_engine(url, poolclass=poolclass, connect_args=dict(connect_args))
