"""What a service prints, as its manager keeps it: one line a record on standard error, with time, level and name.

Dagster's webserver, daemon, code servers and runs are processes of their own, each with loggers that it sets up by itself, some
on standard output and in colours. So what all of them print is read here and written anew, in the process that started them. What
was no record stays readable: on standard error it is one, named `output`; on standard output it is for people, like the links to
log in, and goes there as it came. What errors of libraries quote is kept out before (`definitions`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Literal, TextIO

from release_pipeline.errors import WrongUsage

VARIABLE = "RELEASE_PIPELINE_LOG"
FORMS = ("text", "json")
OUTPUT = "output"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DAGSTER = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}) - (\S+) - ([A-Z]+) - (.*)")
_UVICORN = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL):\s+(.*)")
_TIME = "%Y-%m-%d %H:%M:%S %z"


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a log."""

    time: datetime
    level: str
    name: str
    message: str

    @property
    def text(self) -> str:
        """It for a person."""
        return f"{self._time} {self.level} {self.name}: {self.message}"

    @property
    def json(self) -> str:
        """It for a program."""
        return json.dumps({"time": self._time, "level": self.level, "name": self.name, "message": self.message})

    @property
    def _time(self) -> str:
        return self.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def choose_form(environment: Mapping[str, str], stream: TextIO) -> str | None:
    """How records are written: as the variable says, else as text where nobody looks on; None leaves a terminal what Dagster
    prints."""
    said = environment.get(VARIABLE, "")
    if said not in ("", *FORMS):
        raise WrongUsage(f"'{said}' is no form of a log.", where=VARIABLE, remedy=f"Allowed: {', '.join(FORMS)}.")
    return said or (None if stream.isatty() else FORMS[0])


def read_record(line: str, now: datetime) -> Record | None:
    """The record that a line is; None where it is none."""
    plain = _COLOUR.sub("", line.rstrip("\r\n"))
    if (found := _DAGSTER.fullmatch(plain)) is not None:
        try:
            return Record(datetime.strptime(found[1], _TIME), found[3], found[2], found[4])
        except ValueError:  # a day that there is not
            return None
    if (found := _UVICORN.fullmatch(plain)) is not None:
        return Record(now, found[1], "uvicorn", found[2])
    return None


def rewrite(lines: Iterable[bytes], *, form: str, source: Literal["stdout", "stderr"]) -> None:
    """Write what a service prints on one of its streams, until it ends."""
    for raw in lines:
        line, now = raw.decode("utf-8", "replace"), datetime.now(UTC)
        record = read_record(line, now)
        with suppress(OSError, UnicodeError):  # a full disk behind it: what is printed is still read, or the service would stop
            if record is None and source == "stdout":
                print(line, end="", flush=True)
            elif record is not None or line.strip():
                record = record or Record(now, "INFO", OUTPUT, _COLOUR.sub("", line.rstrip("\r\n")))
                print(record.json if form == "json" else record.text, file=sys.stderr, flush=True)


def form_of_service() -> str | None:
    """That of the service that this process is to start."""
    return choose_form(os.environ, sys.stderr)


# A program that serves until somebody stops it, and the end of everything that it started.
#
# It runs in a session of its own, so that all that it starts can be found and ended together. That
# is not left to the program: what a shell starts in the background ignores SIGINT, and Dagster
# makes SIGTERM do whatever SIGINT does, so that it ignored both; and a server that is stopped
# between two of its children leaves the first behind.


_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GRACE_SECONDS = 75.0  # Dagster gives each of its services a minute
_LEFTOVER_SECONDS = 10.0
_LOOK_SECONDS = 0.1


def serve(program: Sequence[str], *, folder: Path, environment: Mapping[str, str], form: str | None = None) -> int:
    """Run `program` in `folder` until it ends or this process is asked to stop, by SIGTERM, SIGINT, or SIGHUP; gives its exit
    code, or 0 after being asked. Nothing that it started is left then. Who asks twice does not want to wait. `form`: how what it
    prints is written (`logs`); None leaves it alone."""
    pipe = None if form is None else subprocess.PIPE
    with _heard() as asked:  # before anything is started: whoever asks from now on is answered
        server = subprocess.Popen(  # noqa: S603  our own program
            program, cwd=folder, env=environment, start_new_session=True, stdout=pipe, stderr=pipe
        )
        writers = _write_logs(server, form)
        try:
            while server.poll() is None and not asked:
                time.sleep(_LOOK_SECONDS)
            if asked:
                _send(server.pid, signal.SIGTERM, alone=True)
                _wait(server, asked, _GRACE_SECONDS)
        finally:
            _end_all(server, asked)
            _end_logs(server, writers)
        return 0 if asked else server.returncode


def _write_logs(server: subprocess.Popen[bytes], form: str | None) -> list[threading.Thread]:
    """The threads that write anew what the server and all that it started print."""
    if form is None or server.stdout is None or server.stderr is None:
        return []
    writers = [
        threading.Thread(target=rewrite, args=(server.stdout,), kwargs={"form": form, "source": "stdout"}, daemon=True),
        threading.Thread(target=rewrite, args=(server.stderr,), kwargs={"form": form, "source": "stderr"}, daemon=True),
    ]
    for writer in writers:
        writer.start()
    return writers


def _end_logs(server: subprocess.Popen[bytes], writers: list[threading.Thread]) -> None:
    """Everything that was printed is written; whoever still holds a stream, though the session is gone, is not waited for."""
    for writer in writers:
        writer.join(_LEFTOVER_SECONDS)
    for stream, writer in zip((server.stdout, server.stderr), writers, strict=False):
        if stream is not None and not writer.is_alive():
            stream.close()


@contextmanager
def _heard() -> Iterator[list[int]]:
    """The signals that ask to stop only add their number to the list; those that are ignored stay ignored."""
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
    """Until the server has ended, the time is over, or somebody asks once more."""
    times, end = len(asked), time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < end and len(asked) == times:
        time.sleep(_LOOK_SECONDS)


def _end_all(server: subprocess.Popen[bytes], asked: list[int]) -> None:
    """No process of the server's session is left: those that do not end by themselves are told to, and then killed."""
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
    """Whether there was anybody to send a signal to."""
    try:
        (os.kill if alone else os.killpg)(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


# A stop is heard, whatever Dagster makes of it.
#
# While Dagster executes a job it has signal handlers of its own: between steps a signal is put off
# and may be forgotten, and in one it becomes an exception in the midst of somebody's library, which
# may raise another. So the run ends as a failure that none was, or goes on. What arrived is
# therefore written down by Python itself, beside any handler.


_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping_after() -> Iterator[None]:
    """At the end of the block, however it ends, the signals that came are given to the handlers that were there before it."""
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
