"""Dagster's records of a site: its runs, which of them are dead, and when its daemon last worked.

Dagster never learns that a run from the command line, or the whole `ui`, was killed: the run stays "started", counts as one of
the runs at once, and holds up the queue. So every run is tagged with its process, and the next run or check looks for it.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg
from dagster._core.events import DagsterEventType

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.site import Site

PROCESS, HOST, RUN = "release-pipeline/process", "release-pipeline/host", "release-pipeline/run"
PARTS = "error"
_ONE_PROCESS = ("in_process", "execute_in_process_executor")  # Dagster's executors that execute all steps of a run in its process
IN_PROGRESS = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_BROKE_OFF = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
AssetPartition: TypeAlias = "tuple[dg.AssetKey, str | None]"
GONE = "The process of this run is gone: it was killed, or the machine went down."


class RecordsUnreadable(ReleasePipelineError):
    """Dagster's own records of a site cannot be opened."""


@contextmanager
def opened_records(site: Site) -> Iterator[dg.DagsterInstance]:
    """Yield Dagster's own records of a site; raises `RecordsUnreadable` where they cannot be opened."""
    try:
        instance = dg.DagsterInstance.from_config(str(site.dagster_home))
    except ReleasePipelineError:
        raise
    except Exception as error:  # any configured storage raises its own
        raise _refuse_records(site, type(error).__name__) from None
    with instance:
        yield instance


def _refuse_records(site: Site, kind: str) -> RecordsUnreadable:
    return RecordsUnreadable(
        f"Dagster's own records cannot be opened ({kind}).",
        where=str(site.dagster_home / "dagster.yaml"),
        remedy="Does its storage answer, and are name and password right?",
    )


def read_heartbeat(site: Site) -> datetime | None:
    """Return the last heartbeat of the site's Dagster daemon, or None where there is none or it never ran. Makes no file."""
    if not ((site.dagster_home / "dagster.yaml").is_file() and (site.dagster_home / "history").is_dir()):
        return None
    with opened_records(site) as instance:
        try:
            return last_heartbeat(instance)
        except Exception as error:  # a storage that opens may lack what is asked of it
            raise _refuse_records(site, type(error).__name__) from None


def last_heartbeat(instance: dg.DagsterInstance) -> datetime | None:
    """Return the last heartbeat of any part of the daemon, or None."""
    beats = [beat.timestamp for beat in instance.get_daemon_heartbeats().values()]
    return datetime.fromtimestamp(max(beats), UTC) if beats else None


def process_tags(run_id: str | None = None) -> dict[str, str]:
    """Return the tags of a run of this process, with the run's id once it is known, since a re-execution copies its tags."""
    mine = {PROCESS: _identify(os.getpid()), HOST: _name_machine()}
    return mine if run_id is None else {**mine, RUN: run_id}


def tag_run(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> None:
    """Tag a run with its process, if it has one. Where each step has a separate process, as under a team's executor, a step's
    process ends long before the run, which would seem dead: there Dagster's own monitoring checks."""
    if context.job_def.executor_def.name in _ONE_PROCESS:
        context.instance.add_run_tags(context.run.run_id, process_tags(context.run.run_id))


def free_dead_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Mark as failed the runs of this machine whose process is gone, free their slots in pools, and return those runs."""
    dead: list[dg.DagsterRun] = []
    filters = dg.RunsFilter(statuses=IN_PROGRESS, tags={HOST: _name_machine()})
    for run in instance.get_runs(filters):
        tag = run.tags.get(PROCESS, "")
        process = re.fullmatch(r"[^:]*:([0-9]{1,9}):[^:]*", tag)
        copied = run.tags.get(RUN) != run.run_id and (RUN in run.tags or "dagster/parent_run_id" in run.tags)
        if copied or process is None or _identify(int(process[1])) == tag:
            continue
        now = instance.get_run_by_id(run.run_id)  # it may have ended well in between, and a report would overwrite that
        if now is not None and now.status in IN_PROGRESS:
            instance.report_run_failed(now, GONE)
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            dead.append(now)
    return dead


def find_run(
    instance: dg.DagsterInstance, assets: Collection[dg.AssetKey], *, partition: str | None = None
) -> dg.DagsterRun | None:
    """Return the last run that was to make one of these assets, of one release or any, however it was started; None if there is
    none."""
    planned = [instance.get_latest_planned_materialization_info(key, partition) for key in assets]
    last = max((info for info in planned if info is not None), key=lambda info: info.storage_id, default=None)
    return None if last is None else instance.get_run_by_id(last.run_id)


def find_unfinished_run(
    instance: dg.DagsterInstance, assets: Collection[dg.AssetKey], *, partition: str | None = None
) -> dg.DagsterRun | None:
    """Return a run that is to make one of these assets, of one release or any, and has not ended, or None."""
    for run in instance.get_runs(dg.RunsFilter(statuses=IN_PROGRESS)):
        planned, _ = list_assets(instance, run)
        if any(key in assets and partition in (None, of_release) for key, of_release in planned):
            return run
    return None


def list_ended_runs(instance: dg.DagsterInstance, assets: Collection[dg.AssetKey], *, limit: int) -> list[dg.DagsterRun]:
    """Return the failed and cancelled runs among the last ones that were to make each of these assets."""
    kind = DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    wanted = [dg.EventRecordsFilter(kind, asset_key=key) for key in assets]
    records = [record for each in wanted for record in instance.event_log_storage.get_event_records(each, limit=limit)]
    runs = {record.run_id for record in records}
    return list(instance.get_runs(dg.RunsFilter(run_ids=list(runs), statuses=_BROKE_OFF))) if runs else []


def list_assets(instance: dg.DagsterInstance, run: dg.DagsterRun) -> tuple[set[AssetPartition], set[AssetPartition]]:
    """Return the assets that a run was to make, and those that it made, with their partitions."""
    planned: set[AssetPartition] = set()
    made: set[AssetPartition] = set()
    kinds = {DagsterEventType.ASSET_MATERIALIZATION_PLANNED: planned, DagsterEventType.ASSET_MATERIALIZATION: made}
    for record in instance.get_records_for_run(run.run_id, of_type=set(kinds)).records:
        event = record.event_log_entry.dagster_event
        if event is not None and event.asset_key is not None:
            kinds[event.event_type].add((event.asset_key, event.partition))
    return planned, made


def parts_of(error: ReleasePipelineError) -> dict[str, Any]:
    """Return the metadata of a failed step that has the error in parts; its description is one sentence."""
    parts = {"code": error.code, "what": error.what, "where": error.where, "remedy": error.remedy, "details": list(error.details)}
    return {PARTS: dg.MetadataValue.json(parts)}


def find_cause(result: dg.ExecuteInProcessResult) -> tuple[str, ReleasePipelineError | None]:
    """Return the description of the step that failed first, and its error in parts; empty where no step failed."""
    for event in result.all_events:
        failure = event.step_failure_data.user_failure_data if event.is_step_failure else None
        if failure is not None:
            parts = failure.metadata.get(PARTS)
            return failure.description or "", _read_parts(parts.value) if isinstance(parts, dg.JsonMetadataValue) else None
    return "", None


def _read_parts(parts: Any) -> ReleasePipelineError:
    error = ReleasePipelineError(parts["what"], where=parts["where"], remedy=parts["remedy"])
    error.code, error.details = parts["code"], tuple(parts["details"])
    return error


def _name_machine() -> str:
    """Return a name of this machine and the container on it: another container of the same name numbers processes from 1 again,
    and its processes would look dead from here."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _identify(pid: int) -> str:
    """Return a process's boot, number and start, so that no later one is taken for it; without a start if it is gone."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return f"?:{pid}:{'alive' if _is_alive(pid) else ''}"
    return f"{boot}:{pid}:{'' if fields[0] in 'ZX' else fields[19]}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
