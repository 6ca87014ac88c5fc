"""Commands of this program that the counter starts: with values that cannot be taken for options, and without a shell."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from release_pipeline.desk.counter.places import shorten_place
from release_pipeline.flow.site import Site

_TAIL = 8192  # bytes of what a command printed
MOST_LINES = 12


def command_of(*arguments: str) -> list[str]:
    """The command line; a value goes into one word with its option, as in --release=2."""
    return [sys.executable, "-P", "-m", "release_pipeline.cli", *arguments]


def start_command(site: Site, command: Sequence[str], log: Path, *, passed: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """A command goes on as a process of its own session, what it prints going into a file; it has the descriptors `passed`."""
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603  its words are ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=site.home,
            start_new_session=True,
            pass_fds=passed,
        )


def run_command(site: Site, command: Sequence[str], log: Path, *, seconds: float) -> int | None:
    """The exit code of a command, what it prints going into a file; None where it was ended, because it took longer."""
    process = start_command(site, command, log)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
        process.wait()


def read_tail(site: Site, log: Path, *, most: int = MOST_LINES, size: int = _TAIL) -> tuple[str, ...]:
    """The last lines that a command printed, as plain text, without where the site lies."""
    try:
        with log.open("rb") as content:
            content.seek(max(0, content.seek(0, os.SEEK_END) - size))
            text = content.read(size).decode("utf-8", "replace")
    except OSError:
        return ()
    lines = shorten_place(site, text).replace("\r", "\n").split("\n")
    plain = ("".join(char if char.isprintable() else " " for char in line).rstrip() for line in lines)
    return tuple(line for line in plain if line)[-most:]
