"""The site's health for machines, which have no session at the door."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from release_pipeline.operate.health import check_health
from release_pipeline.store.site import Site

HEALTH = "/healthz"
REMEMBERED_SECONDS = 10.0  # a later request in this time gets the same answer: anyone may ask, and each check costs time


class Machines:
    """Answers ok or not ok, and no more, to anyone who knows the name of the door. It checks once at a time, in a thread, so that
    a busy registry delays no other request."""

    def __init__(
        self, site: Site, *, heartbeat: Callable[[], datetime | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._site, self._heartbeat, self._clock = site, heartbeat, clock
        self._is_well, self._until = False, float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def answer(self) -> Response:
        """Return the answer to a request for `HEALTH`."""
        async with self._one_at_a_time:
            if self._clock() >= self._until:
                self._is_well = await run_in_threadpool(self._look)
                self._until = self._clock() + REMEMBERED_SECONDS
        return PlainTextResponse("ok\n" if self._is_well else "not ok\n", 200 if self._is_well else 503)

    def _look(self) -> bool:
        try:
            return check_health(self._site, heartbeat=self._heartbeat).ok
        except Exception:  # any configured storage of Dagster raises its own
            return False
