"""Serves a program until somebody stops it, and ends every process that it started.

It runs in a separate session, so that all that it starts can be found and ended together. The program could not end them all by
itself. A shell's background processes ignore SIGINT. Dagster makes SIGTERM do whatever SIGINT does, so that it ignored both. And
a server that is stopped between two of its children leaves the first behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GRACE_SECONDS = 75.0  # Dagster gives each of its services a minute
_LEFTOVER_SECONDS = 10.0
_LOOK_SECONDS = 0.1


def serve(program: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> int:
    """Run `program` in `folder` until it ends, or until SIGTERM, SIGINT or SIGHUP asks this process to stop. Returns its exit
    code, or 0 after a signal. Every process that it started has ended then. A second signal ends the waiting."""
    with _heard() as asked:  # before anything is started, so that any later signal is answered
        server = subprocess.Popen(program, cwd=folder, env=environment, start_new_session=True)  # noqa: S603  our own program
        try:
            while server.poll() is None and not asked:
                time.sleep(_LOOK_SECONDS)
            if asked:
                _send(server.pid, signal.SIGTERM, alone=True)
                _wait(server, asked, _GRACE_SECONDS)
        finally:
            _end_all(server, asked)
        return 0 if asked else server.returncode


@contextmanager
def _heard() -> Iterator[list[int]]:
    """Yield the list that gets the number of each signal that asks to stop; ignored signals stay ignored."""
    asked: list[int] = []
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _STOPPING}

    def hear(number: int, frame: FrameType | None) -> None:
        handler = before[number]
        if callable(handler):
            try:
                handler(number, frame)
            except KeyboardInterrupt:
                asked.append(number)
        else:
            asked.append(number)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, hear)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(server: subprocess.Popen[bytes], asked: list[int], seconds: float) -> None:
    """Wait until the server has ended, the time is over, or another signal comes."""
    times, end = len(asked), time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < end and len(asked) == times:
        time.sleep(_LOOK_SECONDS)


def _end_all(server: subprocess.Popen[bytes], asked: list[int]) -> None:
    """End every process of the server's session: those that do not end by themselves get SIGTERM, and then SIGKILL."""
    times = len(asked)
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        _send(server.pid, number)
        end = time.monotonic() + _LEFTOVER_SECONDS
        while _is_there(server) and time.monotonic() < end and (len(asked) == times or number == signal.SIGKILL):
            time.sleep(_LOOK_SECONDS)
        if not _is_there(server):
            return


def _is_there(server: subprocess.Popen[bytes]) -> bool:
    server.poll()  # it must not stay a zombie of ours, which counts as one of its group
    return _send(server.pid, 0)


def _send(group: int, number: int, *, alone: bool = False) -> bool:
    """Send a signal to a group of processes, or only to its leader if `alone`; returns whether there was one."""
    try:
        (os.kill if alone else os.killpg)(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


# While Dagster executes a job it has its own signal handlers: between steps a signal is put off and may
# be forgotten, and in a step it becomes an exception within some library, which may raise another. So
# the run ends as if it had failed, or goes on. Python therefore writes down the signals that arrive.


_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping_after() -> Iterator[None]:
    """At the end of the block, however it ends, give the signals that came to the handlers that were there before it."""
    if current_thread() is not main_thread():  # no signal is handled here
        yield
        return
    reads, writes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    handlers = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
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
