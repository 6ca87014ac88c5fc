"""The daemon's own work: opens releases, records failures, frees dead runs, reports what is late, prunes.

No `from __future__ import annotations`: Dagster reads the annotations of these functions.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg

from release_pipeline.apps.dagster.names import STALE, Automations, Names, Stamps, asset_prefix, stamp_files
from release_pipeline.apps.dagster.runs import find_run, find_unfinished_run, free_dead_runs, list_assets, list_ended_runs
from release_pipeline.errors import ReleasePipelineError, StoreBusy
from release_pipeline.ledger.states import latest_revision, list_statuses
from release_pipeline.operate.retention import prune
from release_pipeline.operate.timetable import (
    TIMETABLE,
    HasRun,
    Tick,
    arrival,
    describe_late,
    record_policies,
    tick,
)
from release_pipeline.pipeline.context import record_failed_run
from release_pipeline.pipeline.opening import list_recorded_runs, open_release
from release_pipeline.pipeline.sources import open_source, version_of
from release_pipeline.policy import Policy
from release_pipeline.store.site import Site

RELEASE, OPENED = "release-pipeline/release", "release-pipeline/opened"
DATA_VERSION = "dagster/data_version"
LOOK_SECONDS = 30
PRUNE_AT = "15 3 * * *"
ON_TIME = "on_time"


class Refused(dg.Failure):
    """A step that one of our own checks refused; the registry has it as a block."""


def build_timetable(policy: Policy, names: Names, automations: Automations) -> dg.ScheduleDefinition:
    """Return the schedule of a policy that has a cron: each tick opens the next release, or reports why not."""
    assert policy.cron is not None  # noqa: S101  for the type checker

    @dg.schedule(
        name=names.name("timetable", asset_prefix(policy.policy)),
        job_name=names.job(policy.policy),
        required_resource_keys={names.resource},
        cron_schedule=policy.cron.text,
        execution_timezone="UTC",
        default_status=automations.schedule,
        description=f"Opens the next release of {policy.policy} and runs it to its candidate.",
    )
    def timetable(context: dg.ScheduleEvaluationContext) -> Any:
        running = _describe_running(context.instance, policy, names)
        if running:
            return dg.SkipReason(running)
        site = names.site_of(context).open()
        opened = tick(site, policy.policy, why=TIMETABLE, has_run=_has_run(context.instance, names))
        return _request(context.instance, policy, opened, names)

    return timetable


def build_arrival(policy: Policy, names: Names, automations: Automations) -> dg.SensorDefinition:
    """Return the sensor of a policy, which opens the next release when its source has arrived, if it is due."""
    when = "once it is due" if policy.cron else "as soon as this is switched on"

    @dg.sensor(
        name=names.name("arrival", asset_prefix(policy.policy)),
        job_name=names.job(policy.policy),
        required_resource_keys={names.resource},
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=automations.sensor,
        description=f"Opens the next release of {policy.policy} when its source has arrived and stays as it is, {when}.",
    )
    def arrived(context: dg.SensorEvaluationContext) -> Any:
        busy = _describe_running(context.instance, policy, names)
        if busy:
            return dg.SkipReason(busy)
        site, has_run = names.site_of(context).open(), _has_run(context.instance, names)
        opened, cursor = arrival(site, policy.policy, cursor=context.cursor or "", has_run=has_run)
        context.update_cursor(cursor)
        return _request(context.instance, policy, opened, names)

    return arrived


def build_failure_hook(names: Names) -> dg.HookDefinition:
    """Return the failure hook of the jobs that make releases."""

    @dg.failure_hook(name="record_failure", required_resource_keys={names.resource})
    def record_failure(context: dg.HookContext) -> None:
        """Leave an event in the registry when a step fails. Never raises: that would hide the failure itself."""
        try:
            run = context.instance.get_run_by_id(context.run_id)
            failed = context.op_exception
            reason = failed.description or "it failed." if isinstance(failed, dg.Failure) else f"{type(failed).__name__}."
            if run is not None:
                site, blocked = names.site_of(context).open(), isinstance(failed, Refused)
                _record_failed(site, context.instance, run, f"{context.step_key}: {reason}", names, told_elsewhere=blocked)
        except Exception as error:
            context.log.warning(f"The failure could not be noted in the registry: {type(error).__name__}.")

    return record_failure


def build_watch(policies: list[Policy], names: Names, loaded: Stamps, automations: Automations) -> dg.SensorDefinition:
    """Return the sensor that looks after the site: dead runs, failures that no hook could record, and releases that are late.
    `loaded`: the site's files when these definitions were made, to report where no process reloads them."""

    @dg.sensor(
        name=names.name("watch"),
        required_resource_keys={names.resource},
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=automations.sensor,
        description="Frees what dead runs hold, notes runs that broke off in the registry, checks that releases are on time, and "
        "observes sources.",
    )
    def watch(context: dg.SensorEvaluationContext) -> Any:
        here, instance = names.site_of(context).open(), context.instance
        freed = free_dead_runs(instance)
        try:
            record_policies(here)
            noted = list_recorded_runs(here)
            for policy in policies:
                ended = list_ended_runs(instance, names.chain(policy.policy), limit=20)
                for run in (run for run in ended if run.run_id not in noted):
                    _record_failed(here, instance, run, "the run was cancelled, killed, or broke off.", names)
            late = {policy.policy: describe_late(here, policy) for policy in policies if policy.cron}
        except ReleasePipelineError as error:
            return dg.SkipReason(str(error))
        cursor = "\n".join(f"{name}: {sentence}" for name, sentence in sorted(late.items()))
        checks = [] if cursor == context.cursor else [_check_on_time(policy, late, names) for policy in policies if policy.cron]
        events = [*checks, *_observe(instance, here, policies, names)]
        reasons = [f"Freed {run.run_id}." for run in freed] + [line for line in late.values() if line]
        reasons += [STALE] if stamp_files(here.home) != loaded else []
        return dg.SensorResult(skip_reason=" ".join(reasons) or "All is well.", cursor=cursor, asset_events=events)

    return watch


def build_prune(names: Names, automations: Automations) -> tuple[dg.JobDefinition, dg.ScheduleDefinition]:
    """Return the job that removes from the vault the tables past their policies' retention, and its daily schedule."""

    @dg.op(
        name=names.name("prune_vault"),
        required_resource_keys={names.resource},
        description="Removes intermediate tables older than their policy retains them.",
    )
    def prune_vault(context: dg.OpExecutionContext) -> None:
        for pruned in prune(names.site_of(context).open()):
            context.log.info(f"{pruned.population}: {', '.join(str(release) for release in pruned.releases)}")

    @dg.job(name=names.name("prune"), executor_def=dg.in_process_executor, description="What `release-pipeline prune` does.")
    def prune_job() -> None:
        prune_vault()

    daily = dg.ScheduleDefinition(
        name=names.name("prune_daily"),
        job=prune_job,
        cron_schedule=PRUNE_AT,
        execution_timezone="UTC",
        default_status=automations.schedule,
        description="Empties the vault of what its policies retain no longer.",
    )
    return prune_job, daily


def on_time_check(policy: Policy, candidate: dg.AssetKey, site: Site) -> Iterator[dg.AssetCheckResult]:
    """Yield the check of the timetable, for a release that has just been made."""
    if policy.cron is not None:
        try:
            late = describe_late(site, policy)
        except ReleasePipelineError as error:  # the candidate is made: nothing more may fail
            late = str(error)
        metadata = {"found": late or "nothing is late"}
        yield dg.AssetCheckResult(check_name=ON_TIME, asset_key=candidate, passed=not late, metadata=metadata)


def _check_on_time(policy: Policy, late: dict[str, str], names: Names) -> dg.AssetCheckEvaluation:
    sentence = late[policy.policy]
    return dg.AssetCheckEvaluation(
        asset_key=names.stage(policy.policy, "candidate"),
        check_name=ON_TIME,
        passed=not sentence,
        metadata={"found": dg.MetadataValue.text(sentence or "nothing is late")},
        severity=dg.AssetCheckSeverity.WARN,
    )


def _request(instance: dg.DagsterInstance, policy: Policy, opened: Tick, names: Names) -> Any:
    """Return the requests to Dagster after a tick."""
    if opened.release is None:
        return dg.SkipReason(opened.reason)
    partition = opened.release.release
    if policy.every:
        instance.add_dynamic_partitions(names.releases(policy.policy), [partition])
    tags = {RELEASE: str(opened.release), OPENED: opened.reason}
    return dg.RunRequest(partition_key=partition, run_key=str(opened.release), tags=tags)


def _has_run(instance: dg.DagsterInstance, names: Names) -> HasRun:
    return lambda release: find_run(instance, names.chain(release.policy), partition=release.release) is not None


def _observe(instance: dg.DagsterInstance, site: Site, policies: Sequence[Policy], names: Names) -> Iterator[dg.AssetObservation]:
    """Yield an observation of each source whose version differs from the last observed one. Left out are sources that cannot be
    read now, and tables, which would be opened twice a minute."""
    for policy in policies:
        source = names.stage(policy.policy, "source")
        with suppress(ReleasePipelineError):
            if _is_table(policy):
                continue
            version = version_of(site, open_source(site, policy))
            if version not in ("", _last_version(instance, source)):
                yield observation_of(source, version)


def observation_of(source: dg.AssetKey, version: str, description: str = "") -> dg.AssetObservation:
    """Return the observation that a source has this version. Dagster compares it with the one that `ingested` read."""
    return dg.AssetObservation(source, description=description or None, tags={DATA_VERSION: version} if version else None)


def _is_table(policy: Policy) -> bool:
    """Return whether the source is a table of a database, or a query."""
    return any(option is not None for option in (policy.source.postgres, policy.source.spark, policy.source.table))


def _last_version(instance: dg.DagsterInstance, source: dg.AssetKey) -> str:
    """Return the last observed version of a source, or an empty text."""
    records = instance.fetch_observations(source, limit=1).records
    observed = records[0].asset_observation if records else None
    return (observed.tags or {}).get(DATA_VERSION, "") if observed is not None else ""


def _describe_running(instance: dg.DagsterInstance, policy: Policy, names: Names) -> str:
    """Return a text: the release of the policy that is being made; empty if none."""
    run = find_unfinished_run(instance, names.chain(policy.policy))
    if run is None:
        return ""
    return f"release {run.tags.get('dagster/partition', '?')} is being made (run {run.run_id[:8]}); one after the other."


def _record_failed(
    site: Site, instance: dg.DagsterInstance, run: dg.DagsterRun, reason: str, names: Names, *, told_elsewhere: bool = False
) -> None:
    """Record a failed run for each release that it did not make as far as it was to. A broken or missing policy hides no
    failure."""
    (planned, made), statuses = list_assets(instance, run), list_statuses(site)
    policies = {known.policy for known in site.read_policies()[0]} | {release.policy for release in statuses}
    for policy in sorted(policies):
        chain = names.chain(policy)
        missing = {partition for key, partition in planned - made if key in chain and partition is not None}
        for partition in sorted(missing):
            last = find_run(instance, chain, partition=partition)
            overtaken = last is not None and last.run_id != run.run_id and last.status == dg.DagsterRunStatus.SUCCESS
            if (release := latest_revision(statuses, policy, partition)) not in statuses:
                try:
                    release = open_release(site, policy, partition).id
                except StoreBusy:
                    raise
                except ReleasePipelineError:
                    continue  # a partition that the policy no longer has, and no release was begun for it
            record_failed_run(site, release, reason, run=run.run_id, told_elsewhere=told_elsewhere or overtaken)
