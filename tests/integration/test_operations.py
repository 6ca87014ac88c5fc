"""What the daemon does unasked, in process: it opens releases, notes failures, frees dead runs, says what is late, prunes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from release_pipeline.apps.dagster import operations, releases
from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import Names, SiteResource
from release_pipeline.apps.dagster.runs import HOST, PROCESS, free_dead_runs, process_tags
from release_pipeline.errors import StoreBusy
from release_pipeline.operate import timetable
from release_pipeline.operate.overview import describe_status
from release_pipeline.pipeline import validate as validate_stage
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.policy.values.periods import name_period
from release_pipeline.store import database as connections
from release_pipeline.store.registry import Event, ReleaseId
from tests.guards import HANGING
from tests.integration.clocks import stop_clock
from tests.integration.processes import is_running, wait_for
from tests.integration.sites import (
    GX_WARNINGS,
    ROOT,
    TinySite,
    failures,
    make_rows,
    make_site,
    policy_text,
    run_job,
)
from tests.integration.stops import environment

pytestmark = GX_WARNINGS

MINUTELY = '{list: ["1", "2"], cron: "* * * * *"}'
YEARLY = '{list: ["1", "2"], cron: "0 0 1 1 *"}'
CANARY = "kanarie"  # no word of the project
UNFINISHED = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"]


@dataclass(frozen=True)
class Operated:
    """A site with its Dagster records, and what the daemon would call there."""

    tiny: TinySite
    instance: dg.DagsterInstance

    def repository(self) -> dg.RepositoryDefinition:
        """The definitions as they are now."""
        return build_defs(self.tiny.home).get_repository_def()

    def tick(self, schedule: str = "timetable_people") -> Any:
        """One tick of a schedule."""
        repository = self.repository()
        with dg.build_schedule_context(
            instance=self.instance,
            repository_def=repository,
            scheduled_execution_time=datetime.now(UTC),
            resources={"site": SiteResource(home=str(self.tiny.home))},
        ) as context:
            return repository.get_schedule_def(schedule).evaluate_tick(context)

    def look(self, sensor: str = "watch", cursor: str | None = None) -> Any:
        """One look of a sensor."""
        repository = self.repository()
        with dg.build_sensor_context(
            instance_ref=self.instance.get_ref(),
            repository_def=repository,
            cursor=cursor,
            resources={"site": SiteResource(home=str(self.tiny.home))},
        ) as context:
            return repository.get_sensor_def(sensor).evaluate_tick(context)

    def begin(
        self, release: str = "1", *, status: str = "STARTED", tags: Mapping[str, str] | None = None, policy: str = "people"
    ) -> dg.DagsterRun:
        """A run's record without the run."""
        job = f"release_{policy}"
        repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("release-pipeline"), "__repository__")
        return self.instance.create_run_for_job(
            self.repository().get_job(job),
            tags={"dagster/partition": release, **(tags or {})},
            status=dg.DagsterRunStatus[status],
            remote_job_origin=RemoteJobOrigin(repository, job) if status == "QUEUED" else None,  # as only the daemon's are
        )

    def status_of(self, run: dg.DagsterRun) -> str:
        """A run's status as recorded."""
        found = self.instance.get_run_by_id(run.run_id)
        assert found is not None
        return found.status.value

    def run(self, release: str = "1") -> dg.ExecuteInProcessResult:
        """The whole chain for one release."""
        return run_job(self.tiny, release, instance=self.instance)

    def slots(self) -> int:
        """How many slots of the vault's pool are taken."""
        return self.instance.event_log_storage.get_concurrency_info("vault_folk").active_slot_count

    def failed(self) -> list[Event]:
        """The events of runs that broke off."""
        return [event for event in self.tiny.events() if event.kind == "failed"]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty Dagster records, kept as the repository's dagster.yaml says: made once, because making them takes seconds."""
    folder = tmp_path_factory.mktemp("records") / "dagster"
    folder.mkdir()
    shutil.copyfile(ROOT / "dagster.yaml", folder / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        assert instance.get_runs() == []
    return folder


@pytest.fixture
def operate(tmp_path: Path, records: Path) -> Iterator[Callable[..., Operated]]:
    """Makes a site with its records; everything is closed at the end. Its clock stands still: a timetable that fires every minute
    makes nothing late while a busy machine takes its time."""
    with ExitStack() as opened:
        stop_clock(opened.enter_context(pytest.MonkeyPatch.context()))

        def make(**parts: Any) -> Operated:
            tiny = make_site(tmp_path / "site", **parts)
            shutil.copytree(records, tiny.site.dagster_home)
            return Operated(tiny, opened.enter_context(dg.DagsterInstance.from_config(str(tiny.site.dagster_home))))

        yield make


@pytest.fixture
def scheduled(operate: Callable[..., Operated]) -> Operated:
    """A site whose two releases are due minute by minute."""
    return operate(releases=MINUTELY)


@pytest.fixture(scope="module")
def gone() -> dict[str, str]:
    """The tags of a process that has ended."""
    program = "import json; from release_pipeline.apps.dagster.runs import process_tags; print(json.dumps(process_tags()))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment())
    return json.loads(done.stdout)


def requested(evaluated: Any) -> list[str]:
    """The releases that a tick or a look asks for."""
    return [request.partition_key for request in evaluated.run_requests]


@contextmanager
def held(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A DuckDB file that another process has open for writing."""
    program = "import sys, time, duckdb; c = duckdb.connect(sys.argv[1]); print('held', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program, str(file)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def hurry(monkeypatch: pytest.MonkeyPatch, *, retries: int = 5) -> None:
    """Wait for a lock, and between the attempts of a step, for tenths of a second instead of half a minute."""
    monkeypatch.setitem(connections.open_database.__wrapped__.__kwdefaults__, "wait", 0.2)  # type: ignore[attr-defined]
    monkeypatch.setattr(releases, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(releases, "RETRIES", retries)


# the timetable


def test_every_policy_has_its_schedule_and_sensors_in_the_right_state(operate: Callable[..., Operated]) -> None:
    """A cron makes a schedule that runs by itself and an arrival sensor that does; without one the sensor waits to be switched
    on. Watch, prune and delivery run at every site."""
    operated = operate(releases=MINUTELY)
    operated.tiny.write_policy(policy="by-hand")
    operated.tiny.write_policy(policy="by-year", releases='{every: year, cron: "0 6 2 1 *"}')
    operated.tiny.write_policy(policy="once", releases="once", source="{path: people.csv}")
    defs = build_defs(operated.tiny.home, automations="on")
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    assert {one.name: one.default_status.value for one in repository.schedule_defs} == {
        "timetable_people": "RUNNING",
        "timetable_by_year": "RUNNING",
        "prune_daily": "RUNNING",
        "delivery": "RUNNING",
        **{f"publication_{name}": "STOPPED" for name in ("people", "by_year", "by_hand", "once")},
    }
    assert {one.name: one.default_status.value for one in repository.sensor_defs} == {
        "arrival_people": "RUNNING",
        "arrival_by_year": "RUNNING",
        "arrival_by_hand": "STOPPED",
        "arrival_once": "STOPPED",
        "tell": "RUNNING",
        "watch": "RUNNING",
    }
    timetables = {one.name: one for one in repository.schedule_defs if one.name.startswith("timetable_")}
    assert {one.cron_schedule for one in timetables.values()} == {"* * * * *", "0 6 2 1 *"}
    assert {one.execution_timezone for one in timetables.values()} == {"UTC"}
    assert {one.job_name for one in timetables.values()} == {"release_people", "release_by_year"}


def test_tick_opens_the_next_release_and_asks_for_its_run(scheduled: Operated) -> None:
    """The first that was not opened: noted in the registry with the reason, and requested with it as a tag; nothing charged."""
    first = scheduled.tick()
    assert requested(first) == ["1"]
    [request] = first.run_requests
    assert request.run_key == "people/1/r1"
    assert {request.tags["release-pipeline/release"], request.tags["release-pipeline/opened"]} == {
        "people/1/r1",
        "its time has come",
    }
    [opened] = [event for event in scheduled.tiny.events() if event.kind == "opened"]
    assert (opened.release, opened.content["why"]) == (ReleaseId("people", "1"), "its time has come")
    assert scheduled.tiny.charges() == []
    scheduled.begin("1", status="SUCCESS")
    assert requested(scheduled.tick()) == ["2"]
    scheduled.begin("2", status="SUCCESS")
    last = scheduled.tick()
    assert (requested(last), last.skip_message) == ([], "every release of the policy has been opened.")
    assert [event.release for event in scheduled.tiny.events() if event.kind == "opened"] == [
        ReleaseId("people", "1"),
        ReleaseId("people", "2"),
    ]


@pytest.mark.parametrize("status", UNFINISHED)
def test_tick_waits_for_the_release_that_is_being_made(scheduled: Operated, status: str) -> None:
    """Whatever stage its run is at, queued or being cancelled: nothing is opened, and the reason names release and run. The
    arrival sensor waits likewise."""
    run = scheduled.begin("1", status=status)
    for found in (scheduled.tick(), scheduled.look("arrival_people")):
        assert requested(found) == []
        assert found.skip_message == f"release 1 is being made (run {run.run_id[:8]}); one after the other."
    assert scheduled.tiny.events() == ()


def backfill(operated: Operated, release: str, *, status: str) -> dg.DagsterRun:
    """A run of a release as a backfill of the UI begins it: of Dagster's own job for assets, which is not the policy's."""
    repository = operated.repository()
    chosen = frozenset(Names().chain("people"))
    job = repository.get_job(repository.get_implicit_job_def_for_assets(list(chosen)).name)
    tags = {"dagster/partition": release, "dagster/backfill": "b"}
    return operated.instance.create_run_for_job(
        job.get_subset(asset_selection=chosen),
        tags=tags,
        asset_selection=chosen,
        status=dg.DagsterRunStatus[status],
    )


def test_a_backfill_is_a_run_of_the_release(scheduled: Operated) -> None:
    """While it works, nothing else is opened; a release that it began is not asked for again; if it breaks off, that is noted."""
    scheduled.tick()
    run = backfill(scheduled, "1", status="STARTED")
    assert run.job_name.startswith("__ASSET_JOB")
    for found in (scheduled.tick(), scheduled.look("arrival_people")):
        assert (requested(found), found.skip_message) == (
            [],
            f"release 1 is being made (run {run.run_id[:8]}); one after the other.",
        )
    scheduled.instance.report_run_failed(run, "gone")
    assert requested(scheduled.tick()) == ["2"]
    scheduled.look()
    [event] = scheduled.failed()
    assert (event.release, event.content["run"]) == (ReleaseId("people", "1"), run.run_id)


def test_broken_policy_takes_no_other_timetable_down(scheduled: Operated) -> None:
    """It has neither schedule nor sensor; the others open their releases and are watched."""
    broken = policy_text(policy="broken", releases=MINUTELY, protect="{method: magic}")
    (scheduled.tiny.home / "policies" / "broken.yaml").write_text(broken)
    (scheduled.tiny.home / "policies" / "worse.yaml").write_text("{")
    defs = build_defs(scheduled.tiny.home)
    dg.Definitions.validate_loadable(defs)
    names = {one.name for one in [*defs.get_repository_def().schedule_defs, *defs.get_repository_def().sensor_defs]}
    of_all = {"prune_daily", "delivery", "tell", "watch"}
    assert names == {"timetable_people", "arrival_people", "publication_people", *of_all}
    assert requested(scheduled.tick()) == ["1"]
    assert scheduled.look().skip_message == "All is well."


def put_on(monkeypatch: pytest.MonkeyPatch, later: timedelta) -> None:
    """Timetables are looked at so much later."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + later

    monkeypatch.setattr(timetable, "datetime", Later)


def test_period_becomes_a_partition_when_its_tick_comes(
    operate: Callable[..., Operated], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The year that ended last, which the policy names as the first: not before its time has come; then opened, added to the
    partitions, and requested; the next one has not ended, and is not added."""
    this = name_period("year", datetime.now(UTC))
    year = str(int(this) - 1)
    operated = operate(releases=f'{{every: year, first: {year}, cron: "* * * * *"}}', rows=make_rows(releases=(year, this)))
    early = operated.tick()
    assert (requested(early), early.skip_message.startswith(f"release {year} is due ")) == ([], True)
    put_on(monkeypatch, timedelta(minutes=1))
    assert operated.instance.get_dynamic_partitions("releases_people") == []
    found = operated.tick()
    assert requested(found) == [year]
    assert list(operated.instance.get_dynamic_partitions("releases_people")) == [year]
    assert found.run_requests[0].tags["dagster/partition"] == year
    operated.begin(year, status="SUCCESS")
    waits = operated.tick()
    assert (requested(waits), waits.skip_message) == ([], f"the year {this} has not ended yet.")
    assert list(operated.instance.get_dynamic_partitions("releases_people")) == [year]


# the arrival of a source


# failures and refusals


def break_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception inside a stage, with a cell in its text."""

    def fail(*_: Any) -> Any:
        raise KeyError(CANARY)

    monkeypatch.setattr(validate_stage, "collect_facts", fail)


def break_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the step around the stage, where nothing turns it into words."""

    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError(CANARY)

    monkeypatch.setattr(releases, "build_metadata", fail)


@pytest.mark.parametrize(("broken", "kind"), [(break_flow, "KeyError"), (break_step, "ValueError")])
def test_failed_run_leaves_one_event_in_words(
    scheduled: Operated, monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None], kind: str
) -> None:
    """The step and the type of the error, and the run; never its text. The watch adds nothing, and status tells it."""
    broken(monkeypatch)
    result = scheduled.run()
    assert not result.success
    [event] = scheduled.failed()
    assert event.release == ReleaseId("people", "1")
    assert event.content["run"] == result.run_id
    assert kind in event.content["reason"]
    assert "people__" in event.content["reason"]
    scheduled.look()
    assert len(scheduled.failed()) == 1
    monkeypatch.undo()
    [line] = [line for line in describe_status(scheduled.tiny.site) if line.startswith("people/1/r1")]
    assert "The last run broke off" in line
    assert kind in line
    files = [file for file in scheduled.tiny.home.rglob("*") if file.is_file()]
    assert len(files) > 5
    assert not [file for file in files if CANARY.encode() in file.read_bytes()]
    assert not any(CANARY in repr(one) for one in (*result.all_events, *scheduled.tiny.events()))


# the watch


@pytest.mark.parametrize("ended", ["failed", "cancelled"])
def test_watch_notes_runs_that_broke_off(scheduled: Operated, ended: str) -> None:
    """A run that ended without a word of a step, once: another look adds nothing."""
    run = scheduled.begin("1")
    if ended == "failed":
        scheduled.instance.report_run_failed(run, "gone")
    else:
        scheduled.instance.report_run_canceled(run)
    for _ in range(2):
        scheduled.look()
        [event] = scheduled.failed()
        assert (event.release, event.content["run"]) == (ReleaseId("people", "1"), run.run_id)
        assert event.content["reason"] == "the run was cancelled, killed, or broke off."


def test_watch_checks_that_releases_are_on_time(scheduled: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passes until a due release was not opened, then fails as a warning with the release and its time, then passes
    again; it is evaluated when that changes, and otherwise the watch is quiet."""
    describe_late = operations.describe_late

    def evaluations(found: Any) -> list[tuple[bool, str, str]]:
        checks = [one for one in found.asset_events if isinstance(one, dg.AssetCheckEvaluation)]
        assert all(one.asset_key.path == ["people", "candidate"] and one.check_name == "on_time" for one in checks)
        return [(one.passed, str(one.metadata["found"].value), one.severity.value) for one in checks]

    first = scheduled.look()
    assert evaluations(first) == [(True, "nothing is late", "WARN")]
    assert first.skip_message == "All is well."
    quiet = scheduled.look(cursor=first.cursor)
    assert (evaluations(quiet), quiet.skip_message, quiet.cursor) == ([], "All is well.", first.cursor)
    [seen] = [event.moment for event in scheduled.tiny.events() if event.kind == "policy"]
    monkeypatch.setattr(operations, "describe_late", partial(describe_late, now=seen + timedelta(minutes=5)))
    due = seen.replace(second=0) + timedelta(minutes=1)
    words = f"Release 1 was due {due:%Y-%m-%d %H:%M} UTC."
    late = scheduled.look(cursor=quiet.cursor)
    assert evaluations(late) == [(False, words, "WARN")]
    assert late.skip_message == words
    still = scheduled.look(cursor=late.cursor)
    assert (evaluations(still), still.skip_message) == ([], words)
    monkeypatch.undo()
    scheduled.tick()
    after = scheduled.look(cursor=still.cursor)
    assert evaluations(after) == [(True, "nothing is late", "WARN")]


# dead runs

HANG = """
import sys, time
from pathlib import Path
from release_pipeline.apps.dagster.launch import run_release
from release_pipeline.pipeline import validate
from release_pipeline.store.site import find_site
from release_pipeline.masking import centroids

home, function = Path(sys.argv[1]), sys.argv[2]

def hang(*_, **__):
    (home / "hanging").touch()
    time.sleep(3600)

setattr(validate if hasattr(validate, function) else centroids, function, hang)
run_release(find_site(home), "people", "1")
"""


@contextmanager
def hanging(tiny: TinySite, function: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run of release 1 as the command line begins it, in a process of its own that comes to a halt in that function."""
    marker = tiny.home / "hanging"
    with subprocess.Popen([sys.executable, "-c", HANG, str(tiny.home), function], env=environment()) as process:
        try:
            deadline = time.monotonic() + HANGING
            while not marker.exists():
                assert process.poll() is None, "the run ended before it came to a halt"
                assert time.monotonic() < deadline, "the run did not get that far"
                time.sleep(0.1)
            yield process
        finally:
            process.kill()


def test_run_killed_in_a_step_is_freed_and_a_live_one_left_alone(operate: Callable[..., Operated]) -> None:
    """While its process lives, the run holds the pool's slot and the timetable waits. Killed, a zombie even, it is marked as
    failed by the next watch, its slot is free, its end is noted, and the timetable goes on."""
    scheduled = operate(releases=YEARLY)  # minute by minute, release 2 may be late before the watch looks
    with hanging(scheduled.tiny, "collect_facts") as process:
        [run] = scheduled.instance.get_runs()
        assert run.tags[PROCESS].split(":")[1] == str(process.pid)
        assert scheduled.slots() == 1
        assert free_dead_runs(scheduled.instance) == []
        assert scheduled.look().skip_message == "All is well."
        assert "release 1 is being made" in str(scheduled.tick().skip_message)
        assert (scheduled.status_of(run), scheduled.slots()) == ("STARTED", 1)
        process.send_signal(signal.SIGKILL)
        wait_for(lambda: not is_running(process.pid))
        assert scheduled.look().skip_message == f"Freed {run.run_id}."
    assert (scheduled.status_of(run), scheduled.slots()) == ("FAILURE", 0)
    assert [event.content["run"] for event in scheduled.failed()] == [run.run_id]
    assert free_dead_runs(scheduled.instance) == []
    assert scheduled.look().skip_message == "All is well."
    assert requested(scheduled.tick()) == ["2"]


@pytest.mark.parametrize("status", ["STARTED", "CANCELING"])
def test_run_of_a_process_that_is_gone_is_freed(scheduled: Operated, gone: dict[str, str], status: str) -> None:
    """Also one that somebody tried to cancel in the UI, and one whose number another process has by now."""
    reused = ":".join([*process_tags()[PROCESS].split(":")[:2], "1"])
    runs = [
        scheduled.begin("1", status=status, tags=gone),
        scheduled.begin("2", status=status, tags={**process_tags(), PROCESS: reused}),
    ]
    assert {run.run_id for run in free_dead_runs(scheduled.instance)} == {run.run_id for run in runs}
    assert {scheduled.status_of(run) for run in runs} == {"FAILURE"}


def test_run_that_ended_well_is_never_overwritten(
    scheduled: Operated, gone: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that ended long ago, nor one that ended between the list of runs and the look at it."""
    finished = scheduled.begin("1", status="SUCCESS", tags=gone)
    assert free_dead_runs(scheduled.instance) == []
    stale = finished.with_status(dg.DagsterRunStatus.STARTED)
    monkeypatch.setattr(type(scheduled.instance), "get_runs", lambda *_, **__: [stale])
    assert free_dead_runs(scheduled.instance) == []
    assert scheduled.status_of(finished) == "SUCCESS"


def test_runs_of_other_machines_and_of_nobody_are_left_alone(scheduled: Operated, gone: dict[str, str]) -> None:
    """Whether a process lives can be seen on its own machine alone; and a run that says nothing of its process may live."""
    runs = [scheduled.begin("1", tags={**gone, HOST: f"not-{gone[HOST]}"}), scheduled.begin("2")]
    assert free_dead_runs(scheduled.instance) == []
    assert {scheduled.status_of(run) for run in runs} == {"STARTED"}


@pytest.mark.parametrize("status", ["QUEUED", "NOT_STARTED", "STARTING", "STARTED"])
def test_run_that_is_executed_anew_is_not_taken_for_the_dead_one(scheduled: Operated, gone: dict[str, str], status: str) -> None:
    """Dagster's "re-execute" gives the new run the tags of the old one: until its own process has begun, they say nothing."""
    dead = scheduled.begin("1", status="FAILURE", tags=gone)
    again = {**dead.tags, "dagster/parent_run_id": dead.run_id, "dagster/root_run_id": dead.run_id}
    run = scheduled.begin("1", status=status, tags=again)
    assert free_dead_runs(scheduled.instance) == []
    assert scheduled.status_of(run) == status


# a database that another process has


def test_step_that_finds_the_vault_in_use_is_tried_again(scheduled: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attempts find it held, then it is let go: the run ends well, the candidate is charged once, nothing is blocked or
    noted as failed."""
    hurry(monkeypatch)
    ingest(scheduled.tiny.flow())
    vault = scheduled.tiny.site.vault / "folk.duckdb"
    refusals: list[Path] = []
    with held(vault) as holder:
        connect = connections._connect

        def count(path: Path, **options: Any) -> Any:
            try:
                return connect(path, **options)
            except StoreBusy:
                refusals.append(path)
                if len(refusals) == 2:
                    holder.kill()
                    holder.wait()
                raise

        monkeypatch.setattr(connections, "_connect", count)
        result = scheduled.run()
    assert result.success, failures(result)
    assert refusals == [vault, vault]
    assert [event.event_type_value for event in result.all_events].count("STEP_UP_FOR_RETRY") == 2
    assert scheduled.tiny.states() == ["opened", "reserved", "secret", "drawn", "candidate"]
    assert len(scheduled.tiny.charges()) == 1
    assert scheduled.slots() == 0


# retention and freshness
