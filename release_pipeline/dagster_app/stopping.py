"""A stop is heard, whatever Dagster makes of it.

While Dagster executes a job it has signal handlers of its own: between steps a signal is put off and may be forgotten, and in one
it becomes an exception in the midst of somebody's library, which may raise another. So the run ends as a failure that none was,
or goes on. What arrived is therefore written down by Python itself, beside any handler.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

_STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping_after() -> Iterator[None]:
    """At the end of the block, however it ends, the signals that came are given to the handlers that were there before it."""
    if current_thread() is not main_thread():  # no signal is handled here
        yield
        return
    reads, writes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    handlers = {number: signal.getsignal(number) for number in _STOPPING}
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        heard = _read(reads)
        os.close(reads)
        os.close(writes)
        for number, handler in handlers.items():
            signal.signal(number, handler)
            if number in heard and callable(handler):
                handler(number, None)


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 4096)
    except BlockingIOError:
        return b""
