"""The last asset of a chain: what the public has. Made from an approved candidate with the service's key, by hand or by schedule.

No `from __future__ import annotations`: Dagster reads the annotations of these functions.
"""

from typing import Any

import dagster as dg

from release_pipeline import __version__
from release_pipeline.dagster_app.metadata import build_metadata, column_metadata
from release_pipeline.dagster_app.operations import RELEASE
from release_pipeline.dagster_app.partitions import partitions_of
from release_pipeline.dagster_app.releases import OWNERS, RETRIES, readable_failures
from release_pipeline.dagster_app.runs import find_run, process_tags
from release_pipeline.dagster_app.site import SiteParam, asset_prefix
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.opening import open_release
from release_pipeline.flow.publication.publish import describe_published, list_publishable, publish, read_service_key
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseId
from release_pipeline.policy import Policy

EVERY_TEN_MINUTES = "*/10 * * * *"


def publishing_job_name(policy: str) -> str:
    """The job that publishes one release of a policy."""
    return f"publish_{asset_prefix(policy)}"


def build_publication(policy: Policy, *, by_itself: bool) -> tuple[Any, Any, dg.ScheduleDefinition]:
    """The asset `published` of a policy, the job that makes it for one release, and the schedule that does so once it may be.

    `by_itself`: the schedule runs unless somebody stops it, for the site names the key that it needs.
    """
    prefix = asset_prefix(policy.policy)

    @dg.asset(
        key=published_key(policy.policy),
        partitions_def=partitions_of(policy),
        pool="publication",
        group_name="public",
        kinds={"parquet", "csv"},
        owners=OWNERS,
        code_version=__version__,
        deps=[_candidate_key(policy.policy)],
        description="The package in releases/: data, privacy card, note, sums and signature. Everything is verified anew before.",
    )
    def published(context: dg.AssetExecutionContext, site: SiteParam) -> dg.MaterializeResult[Any]:
        context.instance.add_run_tags(context.run.run_id, process_tags(context.run.run_id))
        with readable_failures(last=context.op_execution_context.retry_number >= RETRIES, where=site.home):
            here = site.open()
            release = open_release(here, policy.policy, context.partition_key).id
            publish(here, release, key=read_service_key(here))
            metadata, version = _describe(here, release)
        return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(version))

    job = dg.define_asset_job(
        publishing_job_name(policy.policy),
        selection=dg.AssetSelection.assets(published_key(policy.policy)),
        description=f"One approved release of {policy.policy}, from its candidate to the public package.",
    )

    @dg.schedule(
        name=f"publication_{prefix}",
        job_name=publishing_job_name(policy.policy),
        cron_schedule=EVERY_TEN_MINUTES,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING if by_itself else dg.DefaultScheduleStatus.STOPPED,
        description=f"Publishes approved releases of {policy.policy} with the service's key, as soon as nothing holds them back.",
    )
    def publication(context: dg.ScheduleEvaluationContext, site: SiteParam) -> Any:
        return _request(context.instance, site.open(), policy)

    return published, job, publication


def published_key(policy: str) -> dg.AssetKey:
    """The asset that the public has."""
    return dg.AssetKey([asset_prefix(policy), "published"])


def describe_package(site: Site, release: ReleaseId) -> dg.AssetMaterialization:
    """The materialization of a package that was published by command."""
    metadata, version = _describe(site, release)
    tags = {"dagster/data_version": version}
    return dg.AssetMaterialization(published_key(release.policy), partition=release.release, metadata=metadata, tags=tags)


def _candidate_key(policy: str) -> dg.AssetKey:
    return dg.AssetKey([asset_prefix(policy), "candidate"])


def _describe(site: Site, release: ReleaseId) -> tuple[dict[str, Any], str]:
    """The metadata of a published release under the policy that it was made under, and the hash of its package."""
    result, policy = describe_published(site, release)
    metadata = build_metadata(result, show_internal=False) | column_metadata(
        policy, _candidate_key(policy.policy), stage=result.stage
    )
    return metadata, result.version


def _request(instance: dg.DagsterInstance, site: Site, policy: Policy) -> Any:
    """What a tick asks for: a run for each release that may be published now, or the reasons why there is none."""
    run = find_run(instance, publishing_job_name(policy.policy), unfinished=True)
    if run is not None:
        return dg.SkipReason(f"release {run.tags.get('dagster/partition', '?')} is being published (run {run.run_id[:8]}).")
    try:
        read_service_key(site)  # or every tick would begin a run that cannot end well
        ready, waiting = list_publishable(site, policy.policy)
    except ReleasePipelineError as error:
        return dg.SkipReason(error.in_full)
    if not ready:
        return dg.SkipReason(" ".join(waiting) or "Nothing is approved and not yet published.")
    return [dg.RunRequest(partition_key=release.release, tags={RELEASE: str(release)}) for release in ready]
