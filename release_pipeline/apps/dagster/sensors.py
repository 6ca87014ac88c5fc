"""The daemon's sending: packages to targets that could not be reached at publication, and alerts to people.

No `from __future__ import annotations`: Dagster reads the annotations of these functions.
"""

from typing import Any

import dagster as dg

from release_pipeline.apps.dagster.names import Automations, Names
from release_pipeline.apps.dagster.releases import readable_failures
from release_pipeline.apps.dagster.runs import IN_PROGRESS, tag_run
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.publish.delivery import deliver, list_outstanding

EVERY_HOUR = "25 * * * *"


def build_delivery(names: Names, automations: Automations) -> tuple[dg.JobDefinition, dg.ScheduleDefinition]:
    """Return the job that delivers what is outstanding at targets, and the schedule that starts it while something is. Neither
    needs a key: packages were signed when they were published."""

    @dg.op(
        name=names.name("deliver_outstanding"),
        required_resource_keys={names.resource},
        description="Brings packages to targets that lack them, and tells targets what was superseded or retracted.",
    )
    def deliver_outstanding(context: dg.OpExecutionContext) -> None:
        site = names.site_of(context)
        tag_run(context)

        with readable_failures(last=True, where=site.home):
            deliver(site.open(), tell=context.log.info)

    @dg.job(name=names.name("deliver"), executor_def=dg.in_process_executor, description="What `release-pipeline deliver` does.")
    def delivery_job() -> None:
        deliver_outstanding()

    @dg.schedule(
        name=names.name("delivery"),
        job=delivery_job,
        required_resource_keys={names.resource},
        cron_schedule=EVERY_HOUR,
        execution_timezone="UTC",
        default_status=automations.schedule,
        description="Does what is outstanding at the targets of site.yaml, as long as something is.",
    )
    def delivery(context: dg.ScheduleEvaluationContext) -> Any:
        running = dg.RunsFilter(job_name=names.name("deliver"), statuses=IN_PROGRESS)
        for run in context.instance.get_runs(running, limit=1):
            return dg.SkipReason(f"Packages are being delivered (run {run.run_id[:8]}).")
        try:
            tasks = list_outstanding(names.site_of(context).open())
        except ReleasePipelineError as error:
            return dg.SkipReason(error.in_full)
        if not tasks:
            return dg.SkipReason("Nothing is outstanding at targets.")
        return dg.RunRequest(run_key=None)

    return delivery_job, delivery


LOOK_SECONDS = 30


def build_telling(names: Names, automations: Automations) -> dg.SensorDefinition:
    """Return the sensor that sends alerts, as `release-pipeline alert` does. It is separate from `watch`, which must not wait for
    a receiver."""

    @dg.sensor(
        name=names.name("tell"),
        required_resource_keys={names.resource},
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=automations.sensor,
        description="Tells those whom site.yaml names what happened, each thing once.",
    )
    def telling(context: dg.SensorEvaluationContext) -> Any:
        from release_pipeline.operate.alerts.sending import NOBODY, describe_sent, send_alerts  # takes long to load

        try:
            done = send_alerts(names.site_of(context).open())
        except ReleasePipelineError as error:
            return dg.SkipReason(error.in_full)
        return dg.SkipReason(f"{'; '.join(describe_sent(done)) if done else NOBODY}.")

    return telling
