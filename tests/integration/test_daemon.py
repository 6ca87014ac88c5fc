"""The daemon for real: nobody touches a site, and its three releases are made minute by minute; one of their runs is killed.

One session of some five minutes, told by `session`; every test looks at a part of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import psutil
import pytest

from release_pipeline.apps.dagster.launch import prepare
from release_pipeline.apps.dagster.runs import PROCESS
from tests.guards import HANGING
from tests.integration.processes import run_program
from tests.integration.sites import TinySite, make_rows, make_site
from tests.integration.stops import environment

pytestmark = pytest.mark.slow

RELEASES = ("1", "2", "3")
KILLED = "2"
MANY = 100_000  # records of the release whose run is killed, so that there is time to hit it
MADE = ["opened", "reserved", "secret", "drawn", "candidate"]
# A process started by a shell in the background ignores SIGINT, and so would all that it starts.
UI = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from release_pipeline.apps.cli import main
sys.exit(main())
"""


@dataclass
class Session:
    """What happened while the daemon lived, and after."""

    tiny: TinySite
    log: Path
    answers: list[tuple[str, subprocess.CompletedProcess[str]]] = field(default_factory=list)
    killed: str = ""  # the run
    states_at_kill: list[str] = field(default_factory=list)
    ui_answered: bool = False
    slots: int = -1
    stopped: int | None = None
    left: list[str] = field(default_factory=list)
    runs: Sequence[dg.DagsterRun] = ()
    ticks: Sequence[Any] = ()
    looks: Sequence[Any] = ()
    seconds: float = 0.0

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command in a process of its own."""
        done = run_program([*arguments, "--home", self.tiny.home], environment=environment())
        self.answers.append((arguments[0], done))
        return done

    def tail(self) -> str:
        """The end of what the daemon printed, for the message of a failure."""
        return self.log.read_text(errors="replace")[-3000:]

    def runs_of(self, release: str) -> list[dg.DagsterRun]:
        """The runs of a release, the first one first."""
        return [run for run in reversed(self.runs) if run.tags["dagster/partition"] == release]


def processes_of(tiny: TinySite) -> list[psutil.Process]:
    """Every process that has the site's Dagster records in its environment: the daemon and all that it started."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("DAGSTER_HOME") == str(tiny.site.dagster_home) and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def commands_of(processes: Sequence[psutil.Process]) -> list[str]:
    """The commands of those that have not ended since they were listed."""
    found: list[str] = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(" ".join(process.cmdline()))
    return found


def wait_until(happened: Callable[[], Any], what: str, session: Session, *, deadline: float, pause: float = 0.5) -> Any:
    """What `happened` gives, once it is true; fails, with the end of the daemon's log, when it is too late."""
    while not (found := happened()):
        assert time.monotonic() < deadline, f"{what}: it does not come. {session.tail()}"
        time.sleep(pause)
    return found


def kill_worker(session: Session, instance: dg.DagsterInstance, deadline: float) -> None:
    """SIGKILL for the process of the run, while its secret lies on the disk: after the charge, before the noise."""
    secret = session.tiny.site.vault / "secrets" / f"people~{KILLED}~r1"
    wait_until(secret.exists, "the secret of the release to be killed", session, deadline=deadline, pause=0.01)
    [run] = instance.get_runs(dg.RunsFilter(tags={"dagster/partition": KILLED}))
    os.kill(int(run.tags[PROCESS].split(":")[1]), signal.SIGKILL)
    session.killed = run.run_id

    def ended() -> bool:
        now = instance.get_run_by_id(run.run_id)
        return now is not None and now.is_finished

    wait_until(ended, "the end of the killed run", session, deadline=deadline)
    session.states_at_kill = [kind for kind in session.tiny.states(KILLED) if kind != "failed"]


def live(session: Session, instance: dg.DagsterInstance, deadline: float) -> None:
    """Everything that happens while the daemon lives. Nobody touches it, but for the kill and commands beside it."""
    tiny = session.tiny

    def begun() -> Sequence[dg.DagsterRun]:
        return instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))

    wait_until(begun, "the first run", session, deadline=deadline)
    session.command("status")
    session.command("ledger")
    kill_worker(session, instance, deadline)
    session.command("status")
    session.command("run", "people", "--release", KILLED)
    session.command("ledger")

    def complete() -> bool:
        statuses = {str(name): release_status.state for name, release_status in tiny.statuses().items()}
        busy = [run for run in instance.get_runs() if not run.is_finished]
        return not busy and all(statuses.get(f"people/{name}/r1") == "candidate" for name in RELEASES)

    wait_until(complete, "three candidates", session, deadline=deadline, pause=2.0)
    known = len(ticks_of(instance, "timetable_people"))
    wait_until(
        lambda: len(ended_ticks(instance, "timetable_people")) > known,
        "one more tick, with nothing left to open",
        session,
        deadline=deadline,
        pause=2.0,
    )
    wait_until(
        lambda: any(event.kind == "failed" for event in tiny.events()),
        "the event of the killed run",
        session,
        deadline=deadline,
        pause=2.0,
    )


def ticks_of(instance: dg.DagsterInstance, name: str) -> list[Any]:
    """Every tick of a schedule or look of a sensor, the first one first."""
    states = [state for state in instance.all_instigator_state() if state.instigator_name == name]
    found = [tick for state in states for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id)]
    return sorted(found, key=lambda tick: tick.timestamp)


def ended_ticks(instance: dg.DagsterInstance, name: str) -> list[Any]:
    """Those that are not being evaluated."""
    return [tick for tick in ticks_of(instance, name) if tick.status.value != "STARTED"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The whole session: started, lived, and stopped by one SIGINT to its group."""
    folder = tmp_path_factory.mktemp("daemon")
    rows = [
        *make_rows(60, releases=("1",)),
        *make_rows(MANY, releases=(KILLED,), seed=1),
        *make_rows(60, releases=("3",), seed=2),
    ]
    tiny = make_site(folder / "site", rows=rows, releases='{list: ["1", "2", "3"], cron: "* * * * *"}')
    prepare(tiny.site)
    session = Session(tiny, folder / "log")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = time.monotonic()
    with session.log.open("wb") as log, dg.DagsterInstance.from_config(str(tiny.site.dagster_home)) as instance:
        ui = subprocess.Popen(
            [sys.executable, "-c", UI, "ui", "--home", str(tiny.home), "--port", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=environment(),
        )
        try:
            live(session, instance, began + 4 * HANGING)
            session.seconds = time.monotonic() - began
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=HANGING) as answer:
                session.ui_answered = answer.status == 200
            session.slots = instance.event_log_storage.get_concurrency_info("vault_folk").active_slot_count
            os.killpg(ui.pid, signal.SIGINT)
            session.stopped = ui.wait(HANGING)
            gone = time.monotonic() + HANGING
            while processes_of(tiny) and time.monotonic() < gone:
                time.sleep(0.5)
            session.left = commands_of(processes_of(tiny))
            session.runs = instance.get_runs()
            session.ticks = ticks_of(instance, "timetable_people")
            session.looks = ticks_of(instance, "arrival_people")
        finally:
            for process in processes_of(tiny):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            ui.kill()
            ui.wait()
    return session


def test_every_release_becomes_a_candidate_and_is_charged_once(session: Session) -> None:
    """Opened, charged, drawn and frozen in that order, each once, though one of the runs was killed on the way."""
    tiny = session.tiny
    assert {str(name): release_status.state for name, release_status in tiny.statuses().items()} == {
        f"people/{name}/r1": "candidate" for name in RELEASES
    }
    assert all(tiny.flow(name).candidate_is_whole() for name in RELEASES)
    for name in RELEASES:
        assert [kind for kind in tiny.states(name) if kind != "failed"] == MADE, name
    assert sorted(str(charge.id) for charge in tiny.charges()) == [f"people/{name}/r1" for name in RELEASES]
    opened = [event.release.release for event in tiny.events() if event.kind == "opened" and event.release]
    assert opened == list(RELEASES)
    assert all(release_status.why in ("its time has come", "its source arrived") for release_status in tiny.statuses().values())


def test_every_tick_is_accounted_for(session: Session) -> None:
    """One a minute without a gap: each with a run, or skipped with a reason in words; none failed. Every run that nobody asked
    for by hand is of a tick or of the arrival of the source, and every release that was opened has one."""
    ticks, looks = session.ticks, session.looks
    assert len(ticks) >= len(RELEASES)
    minutes = [round(tick.timestamp) for tick in ticks]
    assert minutes == list(range(minutes[0], minutes[-1] + 1, 60)), minutes
    assert all(minute % 60 == 0 for minute in minutes)
    for tick in [*ticks, *looks]:
        when = datetime.fromtimestamp(tick.timestamp, UTC)
        assert tick.status.value in ("SUCCESS", "SKIPPED"), (when, tick.status, tick.error)
        assert tick.error is None
        if tick.status.value == "SUCCESS":
            assert len(tick.run_ids) == 1, when
        else:
            assert not tick.run_ids, when
            assert len(str(tick.skip_reason)) > 10, when
            assert str(tick.skip_reason).endswith((".", ")", "after the other.")), when
    asked = [run_id for tick in [*ticks, *looks] for run_id in tick.run_ids]
    unasked = [run for run in session.runs if "dagster/schedule_name" in run.tags or "dagster/sensor_name" in run.tags]
    assert sorted(asked) == sorted(run.run_id for run in unasked)
    assert len(session.runs) == len(unasked) + 1, "the only other run is the one by hand"
    assert {run.tags["dagster/partition"] for run in unasked} == set(RELEASES)
    why = {str(name): release_status.why for name, release_status in session.tiny.statuses().items()}
    for run in unasked:
        assert run.tags["release-pipeline/release"] in why
        assert run.tags["release-pipeline/opened"]
    assert ticks[-1].skip_reason == "every release of the policy has been opened."


def test_killed_run_is_the_only_one_that_failed_and_is_noted(session: Session) -> None:
    """It was killed after its charge; the next attempt, by hand beside the daemon, made the candidate with the same charge. One
    event says that the run broke off."""
    assert session.states_at_kill[:2] == ["opened", "reserved"]
    assert session.states_at_kill[2:] in ([], ["secret"]), "killed too late: the noise was drawn"
    statuses = {run.run_id: run.status.value for run in session.runs}
    assert statuses.pop(session.killed) == "FAILURE"
    assert set(statuses.values()) == {"SUCCESS"}
    runs = session.runs_of(KILLED)
    assert runs[0].run_id == session.killed
    assert len(runs) >= 2
    events = [event for event in session.tiny.events() if event.kind == "failed"]
    assert [event.content["run"] for event in events] == [session.killed]
    assert "killed" in events[0].content["reason"]
    [status] = [line for line in session.command("status").stdout.splitlines() if line.startswith(f"people/{KILLED}/r1")]
    assert status.split()[1] == "candidate"
    assert "broke off" not in status, "the last run went through"


def test_nothing_remains_locked_or_half_made(session: Session) -> None:
    """No slot of the pool, no secret, no half-written candidate; every database can be opened for writing at once."""
    assert session.slots == 0
    site = session.tiny.site
    assert list((site.vault / "secrets").iterdir()) == []
    assert [path for path in site.vault.rglob(".*") if path.name not in (".gitignore",)] == []
    for file in (site.registry, site.vault / "folk.duckdb"):
        duckdb.connect(str(file)).close()


def test_one_interrupt_ends_the_daemon_and_all_that_it_started(session: Session) -> None:
    """As Ctrl-C in a terminal does: it exits with code 0, and no process of it is left."""
    assert session.stopped == 0, session.tail()
    assert session.left == []
