"""What a person is told who stops a command, and that it is true: by the registry, and by what the next command does."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from release_pipeline.apps.cli import main
from release_pipeline.apps.dagster.serving import stopping_after
from tests.guards import HANGING
from tests.integration.processes import wait_for
from tests.integration.sites import TinySite, make_rows, make_site
from tests.integration.stops import command, command_limited, environment

GOES_ON = "`release-pipeline run people --release 1` goes on"
RUN = ("run", "people", "--release", "1")
FULL = "the disk is full, or this account may write no more to it. Make room."


def go_on(tiny: TinySite) -> int:
    """The same command once more, undisturbed: it needs no process of its own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return main([*RUN, "--home", str(tiny.home)])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("moment", "what", "words", "states"),
    [
        ("ingested", "SIGTERM", f"people/1/r1 is opened, and nothing is charged for it: {GOES_ON}.", ["opened"]),
        (
            "the secret is noted",
            "SIGINT",
            f"people/1/r1 is opened, charged, and its noise is not noted as drawn: {GOES_ON}, and charges nothing more.",
            ["opened", "reserved", "secret"],
        ),
    ],
)
def test_a_stopped_run_says_how_far_it_came(tmp_path: Path, moment: str, what: str, words: str, states: list[str]) -> None:
    """Exit code 130 and one sentence of what is opened, charged and drawn; no failure, and no fault of ours."""
    tiny = make_site(tmp_path / "site")
    done = command(tiny.home, *RUN, moment=moment, what=what)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, f"release-pipeline: stopped; {words}")
    assert [state for state in tiny.states() if state != "failed"] == states


def fail_when_stopped() -> None:
    """As a library does with an exception that it did not expect."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    os.kill(os.getpid(), signal.SIGTERM)
    raise AttributeError


def test_a_signal_that_somebody_swallows_is_heard_at_the_end() -> None:
    """Whatever handler was there meanwhile, and whatever exception it made of it; without a signal nothing happens."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with stopping_after():
            signal.signal(signal.SIGTERM, lambda *_: None)
            os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
        with pytest.raises(AttributeError), stopping_after():
            fail_when_stopped()
        assert heard == [signal.SIGTERM] * 2
        with stopping_after():
            pass
        assert heard == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


# no room


def test_a_full_disk_is_told_where_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """No file may grow beyond a limit that the vault needs: the vault is named, nothing else is printed, the release is not
    blocked; without the limit the same command makes it, and charges it once."""
    tiny = make_site(tmp_path / "site", rows=make_rows(20_000, releases=["1"]))
    done = command_limited(tiny.home, *RUN, file_bytes=400_000)
    assert (done.returncode, FULL in done.stderr) == (1, True), done.stderr
    assert str(tiny.site.vault / "folk.duckdb") in done.stderr
    for bad in ("Traceback", "nternal error", "SQL:", "Exception"):
        assert bad not in done.stderr
    assert tiny.status().state == "open"
    assert go_on(tiny) == 0
    assert [str(charge.id) for charge in tiny.charges()] == ["people/1/r1"]


# the UI


def processes_of(tiny: TinySite) -> list[psutil.Process]:
    """Every process that has the site in its command or its environment."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            lines = [*process.cmdline(), *process.environ().values()]
            if process.pid != os.getpid() and process.status() != "zombie" and any(str(tiny.home) in text for text in lines):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.slow
def test_sigterm_ends_a_ui_that_a_script_began_in_the_background(tmp_path: Path) -> None:
    """A shell lets what it begins with & ignore SIGINT, and Dagster did on SIGTERM what it did on SIGINT: nothing. Now SIGTERM
    ends it, with its webserver, its daemon, and their code server; SIGINT is for those who are at the terminal."""
    tiny = make_site(tmp_path / "site")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ui = f"{sys.executable} -m release_pipeline.apps.cli ui --home {tiny.home} --port {port}"
    script = f"{ui} > {tmp_path / 'log'} 2>&1 &\necho $!\n"
    begun = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, check=True, env=environment())
    process = psutil.Process(int(begun.stdout))
    try:
        wait_for(lambda: any("dagster._daemon" in " ".join(_words(one)) for one in processes_of(tiny)))
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.is_running()
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: not processes_of(tiny))
        assert "stopped, with everything that it had started" in (tmp_path / "log").read_text()
    finally:
        _kill(processes_of(tiny))


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child, sys.argv[1]])
print("begun", flush=True)
time.sleep(600)
"""
SERVE = """
import os, signal, sys
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup
from release_pipeline.apps.dagster import serving
serving._GRACE_SECONDS = serving._LEFTOVER_SECONDS = 0.5
sys.exit(serving.serve([sys.executable, "-c", sys.argv[1], sys.argv[2]], folder=Path("."), environment=os.environ))
"""


def test_what_will_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    """A server that ignores SIGTERM, with a child that does: both are gone when the process that served them ends, with 0."""
    mark = str(tmp_path)
    line = [sys.executable, "-c", SERVE, STUBBORN, mark]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANGING) == 0
            left = [one for one in psutil.process_iter() if mark in _words(one)]
            assert left == []
        finally:
            _kill(one for one in psutil.process_iter() if mark in _words(one))


def _words(process: psutil.Process) -> list[str]:
    """Its command; of one that ended since it was listed, nothing."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _kill(processes: Iterable[psutil.Process]) -> None:
    """Also where one has ended meanwhile."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
