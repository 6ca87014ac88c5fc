"""The asset that a source comes from: a release is opened, and budget spent, only for a version whose blocking checks passed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.definitions.job_base import RepoBackedJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.loader import LoadingContextForTest

from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import SiteResource
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.pipeline.ingest import ingest
from tests.integration.sites import GX_WARNINGS, QUIET, Row, TinySite, failures, make_rows, make_site

pytestmark = GX_WARNINGS

PEOPLE = dg.AssetKey(["warehouse", "people"])
INGESTED, SOURCE = dg.AssetKey(["people", "ingested"]), dg.AssetKey(["people", "source"])
TABLE = "{path: warehouse.duckdb, table: people, release_column: year}"


@dataclass(frozen=True)
class Run:
    """What a run left."""

    all_events: list[dg.DagsterEvent]

    @property
    def success(self) -> bool:
        """Whether it ended well."""
        return self.all_events[-1].event_type == dg.DagsterEventType.RUN_SUCCESS


def make_job(name: str, *stages: str) -> Any:
    """A job of the team's that makes some stages of a release."""
    chosen = dg.AssetSelection.assets(*[dg.AssetKey(["people", stage]) for stage in stages])
    return dg.define_asset_job(name, selection=chosen, executor_def=dg.in_process_executor)


JOBS = [make_job("read", "ingested", "validated"), make_job("charge", "microaggregated"), make_job("ingest", "ingested")]


@dataclass
class Team:
    """A team's Dagster with an asset that delivers the source of a site, and two checks of it."""

    tiny: TinySite
    instance: dg.DagsterInstance
    deliver: Callable[[], None] = lambda: None
    passes: bool = True
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
    partitions: dg.PartitionsDefinition[Any] | None = None
    cursor: str | None = None
    assets: list[Any] = field(default_factory=list[Any])
    checks: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        @dg.asset(key=PEOPLE, partitions_def=self.partitions)
        def people() -> None:
            self.deliver()

        @dg.asset_check(asset=PEOPLE, blocking=True)
        def enough() -> dg.AssetCheckResult:
            return dg.AssetCheckResult(passed=self.passes, severity=self.severity)

        @dg.asset_check(asset=PEOPLE)
        def pretty() -> dg.AssetCheckResult:
            return dg.AssetCheckResult(passed=False)

        self.assets, self.checks = [people], [enough, pretty]

    def defs(self) -> dg.Definitions:
        """The team's definitions and the site's."""
        return dg.Definitions.merge(
            dg.Definitions(assets=self.assets, asset_checks=self.checks, jobs=JOBS), build_defs(self.tiny.home)
        )

    def make(self, *, checked: bool = True, passes: bool = True, partition: str | None = None) -> None:
        """Make the asset, and evaluate its checks in the same run."""
        self.passes = passes
        chosen = dg.AssetSelection.assets(PEOPLE) if checked else dg.AssetSelection.assets(PEOPLE).without_checks()
        self._run(chosen, partition)

    def check(self, *, passes: bool) -> None:
        """Evaluate the checks in a run that makes nothing."""
        self.passes = passes
        self._run(dg.AssetSelection.checks(*self.checks), None)

    def _run(self, chosen: dg.AssetSelection, partition: str | None) -> None:
        everything = [*self.assets, *self.checks]
        dg.materialize(
            everything, selection=chosen, instance=self.instance, partition_key=partition, raise_on_error=False, run_config=QUIET
        )

    def look(self, sensor: str = "arrival_people", *, defs: dg.Definitions | None = None) -> Any:
        """What a sensor does in its next look; `arrival` looks twice, for it believes a source at the second look."""
        repository = (self.defs() if defs is None else defs).get_repository_def()
        for _ in range(2 if sensor.startswith("arrival") else 1):
            with dg.build_sensor_context(
                instance=self.instance,
                repository_def=repository,
                cursor=self.cursor,
                resources={"site": SiteResource(str(self.tiny.home))},
            ) as context:
                found = repository.get_sensor_def(sensor).evaluate_tick(context)
            if sensor.startswith("arrival"):
                self.cursor = found.cursor
            if found.run_requests:
                break
        return found

    def run(self, job: str = "release_people", release: str = "1") -> Run:
        """A run of a job, as a worker executes it: it knows the definitions of its code location."""
        repository = self.defs().get_repository_def()
        run = self.instance.create_run_for_job(repository.get_job(job), tags={"dagster/partition": release}, run_config=QUIET)
        return Run(list(execute_run_iterator(RepoBackedJob(job, repository), run, self.instance)))

    def opened(self) -> list[str]:
        """The releases that were opened."""
        return [event.release.release for event in self.tiny.events() if event.kind == "opened" and event.release is not None]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., Team]]:
    """Makes a site whose source a team delivers, and the team's Dagster."""
    with dg.DagsterInstance.ephemeral() as instance:

        def make(*, partitions: dg.PartitionsDefinition[Any] | None = None, **parts: Any) -> Team:
            tiny = make_site(tmp_path / "site", **parts)
            (tiny.home / "site.yaml").write_text("upstream: {people: warehouse/people}\n")
            return Team(tiny, instance, partitions=partitions, deliver=lambda: tiny.write_rows(make_rows()))

        yield make


@pytest.fixture
def team(build: Callable[..., Team]) -> Team:
    """Of a source that is a file."""
    return build()


def begin_again(team: Team) -> None:
    """A run that is to make the asset anew, and breaks off."""
    job = team.defs().resolve_implicit_global_asset_job_def()
    run = team.instance.create_run_for_job(job, asset_selection=frozenset([PEOPLE]), status=dg.DagsterRunStatus.STARTED)
    team.instance.report_run_failed(run, "gone")


def replace(team: Team) -> None:
    """Another file in the place of the delivered one, as old as that one."""
    old = (team.tiny.home / "people.csv").stat()
    team.tiny.write_rows(make_rows(seed=1), name="other.csv")
    os.utime(team.tiny.home / "other.csv", ns=(old.st_atime_ns, old.st_mtime_ns))
    (team.tiny.home / "other.csv").rename(team.tiny.home / "people.csv")


WAYS: dict[str, tuple[Callable[[Team], None], str]] = {
    "never made": (lambda _: None, "do not know that warehouse/people was ever made"),
    "failed": (lambda team: team.make(passes=False), "of its blocking checks 'enough' failed"),
    "passed for the one before": (
        lambda team: (team.make(), team.make(checked=False))[0],
        "of its blocking checks 'enough' was not evaluated since",
    ),
    "file replaced": (lambda team: (team.make(), replace(team))[0], "after warehouse/people was made (at"),
    "broke off": (lambda team: (team.make(), begin_again(team))[0], "did not (run"),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_release_is_opened_or_run_for_a_source_that_did_not_pass(team: Team, way: str) -> None:
    """The sensor skips with the reason and opens nothing; a run that somebody starts all the same is refused in words, before it
    reads a record, and no budget is spent."""
    spoil, words = WAYS[way]
    spoil(team)
    found = team.look()
    assert (found.run_requests, team.opened()) == ([], [])
    assert words in found.skip_message
    result = team.run()
    assert not result.success
    assert words in failures(result)[0]
    assert team.tiny.charges() == []
    assert not (team.tiny.site.vault / "folk.duckdb").exists()


def test_a_release_is_opened_and_run_for_a_version_that_passed(team: Team) -> None:
    """A check that blocks nothing does not stop it."""
    team.make()
    found = team.look()
    assert [request.partition_key for request in found.run_requests] == ["1"], found.skip_message
    result = team.run()
    assert result.success, failures(result)
    assert len(team.tiny.charges()) == 1


def test_a_blocking_check_that_warns_blocks_nothing(team: Team) -> None:
    """The release is opened once the check is evaluated as a warning."""
    team.make(passes=False)
    assert team.look().run_requests == []
    team.severity = dg.AssetCheckSeverity.WARN
    team.check(passes=False)
    found = team.look()
    assert [request.partition_key for request in found.run_requests] == ["1"], found.skip_message


def test_the_timetable_waits_too(build: Callable[..., Team], tmp_path: Path) -> None:
    """Its tick is skipped with the same reason."""
    team = build(releases='{list: ["1", "2"], cron: "* * * * *"}')
    repository = team.defs().get_repository_def()
    timetable = repository.get_schedule_def("timetable_people")
    resources = {"site": SiteResource(str(team.tiny.home))}
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as team.instance:
        team.make(passes=False)
        with dg.build_schedule_context(instance=team.instance, repository_def=repository, resources=resources) as context:
            found = timetable.evaluate_tick(context)
    assert (found.run_requests, team.opened()) == ([], [])
    assert "'enough' failed" in str(found.skip_message)


def test_what_comes_between_reading_and_charging_stops_the_charge(team: Team) -> None:
    """The source was delivered anew since its records were read: though it passed, no budget is spent on the old ones."""
    team.make()
    assert team.run("read").success
    team.make()
    result = team.run("charge")
    assert not result.success
    assert "read from another version of the source than the one whose" in failures(result)[0]
    assert team.tiny.charges() == []
    team.make()
    assert team.run().success


def test_a_release_that_was_charged_is_finished(team: Team) -> None:
    """A check that fails after the charge wastes no budget: the records are those that were charged."""
    team.make()
    assert team.run("read").success
    assert team.run("charge").success
    team.check(passes=False)
    assert team.run().success
    assert len(team.tiny.charges()) == 1


def test_a_check_of_another_code_location_that_fails_in_a_run_of_its_own_counts(team: Team) -> None:
    """The run that made the asset knew nothing of it. One that blocks nothing, `pretty`, does not count."""
    here = build_defs(team.tiny.home)
    team.make(checked=False)
    team.check(passes=False)
    found = team.look(defs=here)
    assert found.run_requests == []
    assert "'enough' failed" in found.skip_message
    assert "pretty" not in found.skip_message
    team.check(passes=True)
    assert [request.partition_key for request in team.look(defs=here).run_requests] == ["1"]


def test_a_partition_that_failed_holds_the_releases_of_all(build: Callable[..., Team]) -> None:
    """All partitions write to the same source, so a release needs that its own passed, and the one that was made last."""
    team = build(source=TABLE, partitions=dg.StaticPartitionsDefinition(["1", "2"]))
    team.deliver = lambda: fill(team.tiny, make_rows())
    team.make(partition="1")
    team.make(partition="2", passes=False)
    words = "partition 2 of warehouse/people was made"
    found = team.look()
    assert (found.run_requests, team.opened()) == ([], [])
    assert words in found.skip_message
    assert words in failures(team.run())[0]
    team.make(partition="1", passes=False)
    team.make(partition="2")
    assert "partition 1 of warehouse/people was made" in failures(team.run())[0]
    assert team.tiny.charges() == []
    team.make(partition="1")
    result = team.run()
    assert result.success, failures(result)


def test_a_run_of_another_partition_holds_the_releases_of_all(build: Callable[..., Team]) -> None:
    """A backfill plans its runs before the first of them writes: one may break off after the last materialization."""
    team = build(source=TABLE, partitions=dg.StaticPartitionsDefinition(["1", "2"]))
    team.deliver = lambda: fill(team.tiny, make_rows())
    job = team.defs().resolve_implicit_global_asset_job_def()
    run = team.instance.create_run_for_job(
        job,
        asset_selection=frozenset([PEOPLE]),
        status=dg.DagsterRunStatus.STARTED,
        tags={"dagster/partition": "2"},
    )
    team.make(partition="1")
    team.instance.report_run_failed(run, "gone")
    found = team.look()
    assert (found.run_requests, team.opened()) == ([], [])
    assert f"did not (run {run.run_id[:8]})" in found.skip_message

    team.make(partition="2")
    assert [request.partition_key for request in team.look().run_requests] == ["1"]


def fill(tiny: TinySite, rows: Sequence[Row], table: str = "people") -> None:
    """Write rows into a table of the team's DuckDB file."""
    tiny.write_rows(rows, name=f"{table}.csv")
    with duckdb.connect(str(tiny.home / "warehouse.duckdb")) as warehouse:
        warehouse.execute(f"CREATE OR REPLACE TABLE {table} AS FROM read_csv('{tiny.home / table}.csv', all_varchar=true)")


def test_other_tables_of_the_same_file_may_be_written(build: Callable[..., Team]) -> None:
    """The version of a table is the materialization of its asset."""
    team = build(source=TABLE)
    team.deliver = lambda: fill(team.tiny, make_rows())
    team.make()
    fill(team.tiny, make_rows(3), "others")
    assert team.run("read").success
    fill(team.tiny, make_rows(4), "others")
    assert team.run("charge").success
    team.make()
    result = team.run("ingest", "2")
    assert result.success, failures(result)
    team.make()
    assert "has not been passed" in failures(team.run("charge", "2"))[0]


def test_a_source_that_changes_while_it_is_read_is_refused(build: Callable[..., Team], monkeypatch: pytest.MonkeyPatch) -> None:
    """With or without an upstream asset: half of each version would be a third."""
    team = build()
    (team.tiny.home / "site.yaml").unlink()
    from release_pipeline.pipeline import ingest as ingest_stage

    begin_run = ingest_stage.begin_run

    def change(*arguments: Any, **options: Any) -> None:
        begin_run(*arguments, **options)
        team.tiny.write_rows(make_rows(seed=1))

    with monkeypatch.context() as patched:
        patched.setattr(ingest_stage, "begin_run", change)
        with pytest.raises(ReleasePipelineError, match="was changed while it was read"):
            ingest(team.tiny.flow())
    assert ingest(team.tiny.flow()).source


# staleness


def stale(team: Team) -> StaleStatus:
    """How `ingested` of the first release stands."""
    graph = team.defs().resolve_asset_graph()
    return CachingStaleStatusResolver(team.instance, graph, LoadingContextForTest(team.instance)).get_status(INGESTED, "1")


def test_what_was_read_of_an_older_version_is_stale(build: Callable[..., Team]) -> None:
    """Once `watch` observes the source again; and fresh after the next run."""
    team = build(source=TABLE)
    team.deliver = lambda: fill(team.tiny, make_rows())

    def observe() -> int:
        events = team.look("watch").asset_events
        for event in events:
            team.instance.report_runless_asset_event(event)
        return len(events)

    team.make()
    assert stale(team) == StaleStatus.MISSING
    assert team.run("ingest").success
    assert stale(team) == StaleStatus.FRESH
    assert not observe()  # `ingested` observed this version itself
    assert stale(team) == StaleStatus.FRESH
    team.make()
    assert observe()
    assert stale(team) == StaleStatus.STALE
    assert team.run("ingest").success
    assert stale(team) == StaleStatus.FRESH
