"""How often somebody tried a token that lets nobody in. None can be guessed, and nobody is kept out for what others try: it is
told to whoever tries, and to the operator in the log."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from release_pipeline.door.refusal import Refused

MOST, SECONDS = 20, 60.0
_LOG = logging.getLogger(__name__)


class Attempts:
    """The wrong tokens of the last minute. Threads of several questions use it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moments: list[float] = []
        self._lock = threading.Lock()

    def note(self) -> None:
        """One more; refused as too many when there were `MOST` within a minute. The first that is too many is logged."""
        now = self._clock()
        with self._lock:
            before = [moment for moment in self._moments if moment + SECONDS > now]
            self._moments = [*before[-MOST:], now]
        if len(before) < MOST:
            return
        if len(before) == MOST:
            _LOG.warning("more than %d wrong tokens within a minute: somebody guesses, or a link is out of date", MOST)
        raise Refused(429, f"more than {MOST} wrong tokens came within a minute, and this was another. The operator is told.")
