"""The releases of a policy as Dagster's partitions."""

from typing import Any

import dagster as dg

from release_pipeline.dagster_app.names import Names
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy import Policy


def partitions_of(policy: Policy, names: Names) -> dg.PartitionsDefinition[Any]:
    """A policy's releases as Dagster's partitions: those that it names, or periods as they are opened."""
    if policy.every:
        return dg.DynamicPartitionsDefinition(name=names.releases(policy.policy))
    return dg.StaticPartitionsDefinition(list(policy.release_names))


def chosen_release(context: dg.AssetExecutionContext) -> str:
    """The partition of this run; refused without one, as of a run that a script launched."""
    if not context.has_partition_key:
        raise ReleasePipelineError("the run says no release.", remedy="Launch it for one of the job's partitions.")
    return context.partition_key
