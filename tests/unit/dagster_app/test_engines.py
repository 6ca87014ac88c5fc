"""Dagster's records in SQLite: how often a process makes what only costs it time."""

from __future__ import annotations

from pathlib import Path

from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage

from release_pipeline.dagster_app.engines import keep_engines


def test_each_file_has_one_engine_whose_connections_are_closed(tmp_path: Path) -> None:
    keep_engines()
    events = SqliteEventLogStorage(str(tmp_path / "events"))
    runs = SqliteRunStorage.from_local(str(tmp_path / "runs"))
    schedules = SqliteScheduleStorage.from_local(str(tmp_path / "schedules"))
    engines = []
    for connect in (events.index_connection, lambda: events.run_connection("run"), runs.connect, schedules.connect):
        with connect() as first:
            pass
        with connect() as second:
            assert second.engine is first.engine
        assert first.closed
        assert second.closed
        engines.append(first.engine)
    assert len(set(engines)) == 4


def test_the_scripts_of_the_tables_are_read_once_for_each_kind_of_file() -> None:
    keep_engines()
    keep_engines()  # done once
    from dagster._core.storage.event_log.sqlite import sqlite_event_log
    from dagster._core.storage.sql import get_alembic_config

    config = get_alembic_config(sqlite_event_log.__file__)
    assert ScriptDirectory.from_config(config) is ScriptDirectory.from_config(config)
