"""The clocks by which a site dates its events and reads its timetables; those of Dagster and of other processes go on."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

import pytest

from release_pipeline.ledger import account as ledger
from release_pipeline.operate import overview, timetable
from release_pipeline.store import registry

READERS = (registry, timetable, overview, ledger)


def stop_clock(patch: pytest.MonkeyPatch) -> datetime:
    """In the middle of this minute, where it stands as long as `patch` lasts."""
    moment = datetime.now(UTC).replace(second=30, microsecond=0)

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return moment.astimezone(tz)

    for reader in READERS:
        patch.setattr(reader, "datetime", Stopped)
    return moment


def set_registry_clock(patch: pytest.MonkeyPatch, start: datetime) -> Any:
    """That of the registry alone: it stands at this moment until `moment` of what this gives is set."""

    class Clock(datetime):
        moment = start

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return cls.moment

    patch.setattr(registry, "datetime", Clock)
    return Clock
