"""The asset that a policy's source comes from: whether its blocking checks passed, and which version of the source that is.

Dagster holds assets back behind a blocking check only within one run. A release is another run, and its budget cannot be
recovered, so it reads Dagster's records itself.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import dagster as dg
from dagster._core.events import DagsterEventType
from dagster._core.storage.asset_check_execution_record import COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

from release_pipeline.errors import Blocked
from release_pipeline.pipeline.sources import open_source, version_of
from release_pipeline.policy import Policy
from release_pipeline.store.site import Site
from release_pipeline.store.source import SourceDoor

DATA_VERSION = "dagster/data_version"
_HISTORY = 100  # executions of a check, and runs that were to make an asset, that are looked through
_ELSEWHERE = "Run the release in the Dagster that makes it, or take it out of `upstream` in site.yaml."


def admit_source(instance: dg.DagsterInstance, graph: Any, site: Site, policy: Policy, release: str, source: SourceDoor) -> str:
    """The version of a policy's source. Raises `Blocked` unless its upstream asset is made, passed its blocking checks as it is,
    and was made after the source was last written. `graph`: the assets of this code location, where they are known.

    All partitions write to one source: the partition of the release has to pass, and whichever was made last."""
    if not (upstream := site.upstream_of(policy.policy)):
        return version_of(site, source)
    key = dg.AssetKey(list(upstream))
    name = key.to_user_string()
    made, last = _last_made(instance, key, release), _last_made(instance, key)
    if made is None or last is None:
        raise Blocked(f"these records of Dagster do not know that {name} was ever made.", remedy=_ELSEWHERE)
    if run := _find_unmade(instance, key, made, last):
        what = f"{name} is being made, or the last run that was to make it did not (run {run[:8]})."
        raise Blocked(what, remedy="Wait for that run or end it, or make the asset again.")
    for record in [made] if made.storage_id == last.storage_id else [made, last]:
        if failed := _find_failed(instance, graph, key, record):
            of = "" if record.partition_key is None else f"partition {record.partition_key} of "
            what = f"{of}{name} was made {_words_of(record.timestamp)}, and of its blocking checks {'; '.join(failed)}."
            raise Blocked(what, remedy="Repair the source, then make the asset and evaluate its checks again.")
    if source.written is not None and source.written > last.timestamp:
        what = f"{source.name} was written or moved {_words_of(source.written)}, after {name} was made "
        raise Blocked(f"{what}({_words_of(last.timestamp)}).", remedy="Make the asset again: its checks did not see this file.")
    return find_version(instance, site, policy, source)


def find_version(instance: dg.DagsterInstance, site: Site, policy: Policy, source: SourceDoor | None = None) -> str:
    """The version of a policy's source: of a file by its stamp; of what shows no time, as a table, by the last materialization
    of the upstream asset. Empty where nothing tells."""
    upstream = site.upstream_of(policy.policy)
    made = _last_made(instance, dg.AssetKey(list(upstream))) if upstream else None
    if source is None and (made is None or not is_table(policy)):  # a database is not opened without need: others write to it
        source = open_source(site, policy)
    if made is not None and (source is None or source.written is None):
        return site.keyed_hash(f"source asset {made.storage_id}".encode())
    return version_of(site, source or open_source(site, policy))


def is_table(policy: Policy) -> bool:
    """Whether the source is a table of a database, or a query."""
    return any(place is not None for place in (policy.source.postgres, policy.source.spark, policy.source.table))


def observation_of(source: dg.AssetKey, version: str, description: str = "") -> dg.AssetObservation:
    """That a source has this version. Dagster compares it with the one that `ingested` read."""
    return dg.AssetObservation(source, description=description or None, tags={DATA_VERSION: version} if version else None)


def last_version(instance: dg.DagsterInstance, source: dg.AssetKey) -> str:
    """The version of a source that was observed last; empty where none was."""
    seen = instance.fetch_observations(source, limit=1).records
    observed = seen[0].asset_observation if seen else None
    return (observed.tags or {}).get(DATA_VERSION, "") if observed is not None else ""


def _last_made(instance: dg.DagsterInstance, key: dg.AssetKey, release: str | None = None) -> dg.EventLogRecord | None:
    """The last materialization of an asset: of the partition that is called as the release, where there is one."""
    if release is not None:
        of_release = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[release])
        if records := instance.fetch_materializations(of_release, limit=1).records:
            return records[0]
    return next(iter(instance.fetch_materializations(key, limit=1).records), None)


def _find_unmade(instance: dg.DagsterInstance, key: dg.AssetKey, made: dg.EventLogRecord, last: dg.EventLogRecord) -> str:
    """The run that is making an asset, in whichever partition, or that ended since the last materialization and made nothing;
    empty where there is none."""
    for partition, record in ((made.partition_key, made), (None, last)):
        latest = instance.get_latest_planned_materialization_info(key, partition)
        if latest is not None and latest.storage_id > record.storage_id:
            return latest.run_id
    # a run that was planned before the last materialization may still write after it, as those of a backfill do
    planning = dg.EventRecordsFilter(DagsterEventType.ASSET_MATERIALIZATION_PLANNED, asset_key=key)
    planned = instance.event_log_storage.get_event_records(planning, limit=_HISTORY)
    runs = instance.get_run_records(dg.RunsFilter(run_ids=list({record.run_id for record in planned}))) if planned else ()
    writing = {
        run.dagster_run.run_id
        for run in runs
        if run.dagster_run.status in NOT_FINISHED_STATUSES or (run.end_time or 0) > last.timestamp
    }
    for record in planned:
        if record.run_id in writing and not _made_in_run(instance, key, record):
            return record.run_id
    return ""


def _made_in_run(instance: dg.DagsterInstance, key: dg.AssetKey, planned: dg.EventLogRecord) -> bool:
    """Whether a run has made what it was to make of an asset."""
    of_run = instance.get_records_for_run(planned.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION).records
    return any(
        record.asset_key == key and planned.partition_key in (None, record.partition_key)  # None: a run of several partitions
        for record in of_run
    )


def _find_failed(instance: dg.DagsterInstance, graph: Any, key: dg.AssetKey, made: dg.EventLogRecord) -> list[str]:
    """Which blocking checks of an asset failed since it was made, whoever declared them, or were not evaluated: of these only
    those that this code location declares, and those of the run that made it."""
    blocking = _checks_of_run(instance, key, made.run_id)
    if graph is not None:
        keys = graph.get_check_keys_for_assets({key})
        blocking |= {check.name: graph.get_check_spec(check).blocking for check in keys}
    failed: list[str] = []
    for name in sorted(blocking.keys() | _checks_on_record(instance, key)):
        blocks = blocking.get(name)
        if blocks is False:
            continue
        found = _last_evaluation(instance, dg.AssetCheckKey(key, name), made)
        if found is None:
            if name in blocking:
                failed.append(f"'{name}' was not evaluated since")
        elif not found.passed and found.severity == dg.AssetCheckSeverity.ERROR and (blocks or found.blocking is not False):
            failed.append(f"'{name}' failed")
    return failed


def _checks_of_run(instance: dg.DagsterInstance, key: dg.AssetKey, run: str) -> dict[str, bool | None]:
    """The checks of an asset that a run was to evaluate: whether they block, None where the run does not say."""
    blocking: dict[str, bool | None] = {}
    kinds = {DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED, DagsterEventType.ASSET_CHECK_EVALUATION}
    for record in instance.get_records_for_run(run, of_type=kinds).records if run else ():
        event = record.event_log_entry.dagster_event
        check: Any = None if event is None else event.event_specific_data
        if check is not None and check.asset_key == key:
            blocking[check.check_name] = getattr(check, "blocking", None)
    return blocking


def _checks_on_record(instance: dg.DagsterInstance, key: dg.AssetKey) -> set[str]:
    """The names of all checks of an asset that were ever executed. Dagster has no call for them: it looks checks up by name."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        raise Blocked("the records of this Dagster cannot be searched for failed checks.", remedy=_ELSEWHERE)
    table = AssetCheckExecutionsTable
    of_asset = table.select().with_only_columns(table.c.check_name).where(table.c.asset_key == key.to_string())
    with storage.index_connection() as connection:
        return {str(row[0]) for row in connection.execute(of_asset.distinct())}


def _last_evaluation(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey, made: dg.EventLogRecord
) -> dg.AssetCheckEvaluation | None:
    """The last evaluation of a check that was of this materialization."""
    history = instance.event_log_storage.get_asset_check_execution_history(
        check, limit=_HISTORY, status=COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES
    )
    for record in history:
        found = record.evaluation
        if found is None:
            continue
        target = found.target_materialization_data
        of_same_run = bool(made.run_id) and record.run_id == made.run_id
        if of_same_run or (target.storage_id == made.storage_id if target else record.create_timestamp > made.timestamp):
            return found
    return None


def _words_of(moment: float) -> str:
    return f"at {datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S} UTC"
