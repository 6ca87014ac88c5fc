"""The runs that were started at the desk: by a command of this program, without a shell.

A run is a process of its own session, which goes on when the backend ends. Each release has one at a time, whoever asks, for it
holds a lock as long as it lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from release_pipeline.desk.backend.lookups import shorten_place
from release_pipeline.errors import Blocked
from release_pipeline.flow.files import write_text
from release_pipeline.flow.site import Site
from release_pipeline.policy.load import read_text
from release_pipeline.policy.typed import read_as

MOST_AT_ONCE = 4
_TRIES, _PAUSE = 5, 0.05  # who only looks whether a run goes on holds its lock for a moment
_TAIL = 8192  # bytes of what a command printed
MOST_LINES = 12


def command_of(*arguments: str) -> list[str]:
    """The command line; a value goes into one word with its option, as in --release=2."""
    return [sys.executable, "-P", "-m", "release_pipeline.cli", *arguments]


def _read_tail(site: Site, log: Path) -> tuple[str, ...]:
    """The last lines that a command printed, as plain text, without where the site lies."""
    try:
        with log.open("rb") as content:
            content.seek(max(0, content.seek(0, os.SEEK_END) - _TAIL))
            text = content.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ()
    lines = shorten_place(site, text).replace("\r", "\n").split("\n")
    plain = ("".join(char if char.isprintable() else " " for char in line).rstrip() for line in lines)
    return tuple(line for line in plain if line)[-MOST_LINES:]


@dataclass(frozen=True, slots=True)
class Run:
    """The last run of a release that was started here: by whom, when, and with which reason where it began a revision. `code`:
    its exit code, None while it goes on, and where nobody saw its end."""

    release: str
    by: str
    at: str
    why: str = ""
    code: int | None = None
    is_running: bool = False
    lines: tuple[str, ...] = ()


def start_run(site: Site, policy: str, release: str, *, by: str, why: str = "") -> None:
    """`release-pipeline run` of a release goes on; with a reason, of its next revision. Refused while another one does."""
    folder = _make_folder(site)
    name = f"{policy}@{release}"  # neither has an @
    with site.changing_desk():
        if len([run for run in read_runs(site).values() if run.is_running]) >= MOST_AT_ONCE:
            raise Blocked(f"{MOST_AT_ONCE} runs go on already.", where=f"{policy}/{release}", remedy="Wait for one of them.")
        lock = _take(folder / f"{name}.lock", fcntl.LOCK_EX)
        if lock is None:
            raise Blocked("a run of it goes on.", where=f"{policy}/{release}", remedy="Wait for its end.")
        try:
            run = Run(f"{policy}/{release}", by, datetime.now(UTC).isoformat(timespec="microseconds"), why)
            _note(folder / f"{name}.json", run)
            command = command_of("run", policy, f"--release={release}", f"--home={site.home}")
            command += [f"--revise={why}"] if why else []
            with (folder / f"{name}.log").open("wb") as output:
                process = subprocess.Popen(  # noqa: S603  its words are ours
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=site.home,
                    start_new_session=True,
                    pass_fds=(lock,),
                )
        finally:
            os.close(lock)
    threading.Thread(target=_await_end, args=(process, folder / f"{name}.json", run), daemon=True).start()


def read_runs(site: Site) -> Mapping[str, Run]:
    """The last run of each release that was started here, by POLICY/RELEASE."""
    found: dict[str, Run] = {}
    for file in sorted((site.desk / "runs").glob("*.json")):
        run = read_as(Run, json.loads(read_text(file)), where=str(file))
        going = _is_held(file.with_suffix(".lock"))
        found[run.release] = replace(run, is_running=going, lines=_read_tail(site, file.with_suffix(".log")))
    return found


def _make_folder(site: Site) -> Path:
    with site.changing_desk():  # its folder is there
        folder = site.desk / "runs"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _await_end(process: subprocess.Popen[bytes], file: Path, run: Run) -> None:
    code = process.wait()
    with contextlib.suppress(Exception):  # the site is gone: nobody asks any more
        known = read_as(Run, json.loads(read_text(file)), where=str(file))
        if known.at == run.at and known.code is None:
            _note(file, replace(run, code=code))


def _note(file: Path, run: Run) -> None:
    write_text(file, json.dumps(asdict(run)) + "\n")


def _take(file: Path, how: int, *, tries: int = _TRIES) -> int | None:
    """A descriptor that holds the lock; None where a run holds it."""
    lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    for attempt in range(tries):
        time.sleep(_PAUSE * bool(attempt))
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, how | fcntl.LOCK_NB)
            return lock
    os.close(lock)
    return None


def _is_held(file: Path) -> bool:
    lock = _take(file, fcntl.LOCK_SH, tries=1)
    if lock is not None:
        os.close(lock)
    return lock is None
