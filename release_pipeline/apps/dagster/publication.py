"""The last asset of a chain: the published package, made from an approved candidate with the service's key.

No `from __future__ import annotations`: Dagster reads the annotations of these functions.
"""

from typing import Any

import dagster as dg

from release_pipeline import __version__
from release_pipeline.apps.dagster.metadata import build_metadata, column_metadata
from release_pipeline.apps.dagster.names import Automations, Names, asset_prefix, chosen_release, partitions_of
from release_pipeline.apps.dagster.operations import RELEASE
from release_pipeline.apps.dagster.releases import OWNERS, RETRIES, readable_failures
from release_pipeline.apps.dagster.runs import find_unfinished_run, tag_run
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.pipeline.context import StageResult
from release_pipeline.pipeline.opening import open_release
from release_pipeline.policy import Policy
from release_pipeline.publish.delivery import deliver
from release_pipeline.publish.publish import describe_published, list_publishable, publish, read_service_key
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site

CANDIDATE, PUBLISHED = "candidate", "published"
EVERY_TEN_MINUTES = "*/10 * * * *"


def build_publication(policy: Policy, names: Names, automations: Automations) -> tuple[Any, Any, dg.ScheduleDefinition]:
    """Return the asset `published` of a policy, the job that makes it for one release, and the schedule that starts it once the
    release may be published."""
    published_key = names.stage(policy.policy, PUBLISHED)

    @dg.asset(
        key=published_key,
        partitions_def=partitions_of(policy, names),
        pool=names.name("publication"),
        required_resource_keys={names.resource},
        group_name=names.name("public"),
        kinds={"parquet", "csv"},
        owners=OWNERS,
        code_version=__version__,
        deps=[names.stage(policy.policy, CANDIDATE)],
        description="The package in releases/, and at the targets of site.yaml: data, privacy card, note, sums and signature. "
        "Everything is verified again before.",
    )
    def published(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        site = names.site_of(context)
        tag_run(context)
        last = context.op_execution_context.retry_number >= RETRIES
        with readable_failures(last=last, where=site.home):
            here = site.open()
            release = open_release(here, policy.policy, chosen_release(context)).id
            publish(here, release, key=read_service_key(here))
            made, charged = describe_published(here, release)  # by the policy that it was made under
            _deliver(context, here, release, names)
        return dg.MaterializeResult(metadata=_describe(made, charged, names), data_version=dg.DataVersion(made.version))

    job = dg.define_asset_job(
        names.publishing_job(policy.policy),
        executor_def=dg.in_process_executor,
        selection=dg.AssetSelection.assets(published_key),
        description=f"One approved release of {policy.policy}, from its candidate to the public package.",
    )

    @dg.schedule(
        name=names.name("publication", asset_prefix(policy.policy)),
        job_name=names.publishing_job(policy.policy),
        required_resource_keys={names.resource},
        cron_schedule=EVERY_TEN_MINUTES,
        execution_timezone="UTC",
        default_status=automations.schedule,
        description=f"Publishes approved releases of {policy.policy} with the service's key, as soon as nothing holds them back.",
    )
    def publication(context: dg.ScheduleEvaluationContext) -> Any:
        return _request(context.instance, names.site_of(context).open(), policy, names)

    return published, job, publication


def _deliver(context: dg.AssetExecutionContext, site: Site, release: ReleaseId, names: Names) -> None:
    """Deliver a package to the targets of the site. If that fails, so does the run; but the package is public, so Dagster gets
    its materialization first."""
    try:
        deliver(site, release)
    except ReleasePipelineError:
        context.instance.report_runless_asset_event(describe_package(site, release, names))  # what a failed step logs is lost
        raise


def describe_package(site: Site, release: ReleaseId, names: Names) -> dg.AssetMaterialization:
    """Return the materialization of a package that was published by command."""
    made, policy = describe_published(site, release)
    tags = {"dagster/data_version": made.version}
    key = names.stage(release.policy, PUBLISHED)
    return dg.AssetMaterialization(key, partition=release.release, metadata=_describe(made, policy, names), tags=tags)


def _describe(made: StageResult, policy: Policy, names: Names) -> dict[str, Any]:
    """Return the metadata of a published release under the policy that it was made under."""
    candidate = names.stage(policy.policy, CANDIDATE)
    return build_metadata(made, show_internal=False) | column_metadata(policy, candidate)


def _request(instance: dg.DagsterInstance, site: Site, policy: Policy, names: Names) -> Any:
    """Return a request to run each release that may be published now, or the reasons why there is none."""
    run = find_unfinished_run(instance, [names.stage(policy.policy, PUBLISHED)])
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
