"""The releases of a policy as Dagster's partitions."""

from typing import Any

import dagster as dg

from release_pipeline.dagster_app.site import asset_prefix
from release_pipeline.policy import Policy


def partitions_of(policy: Policy) -> dg.PartitionsDefinition[Any]:
    """A policy's releases as Dagster's partitions: those that it names, or periods as they are opened."""
    if policy.every:
        return dg.DynamicPartitionsDefinition(name=releases_name(policy))
    return dg.StaticPartitionsDefinition(list(policy.release_names))


def releases_name(policy: Policy) -> str:
    """The name of the dynamic partitions of a policy whose releases are periods."""
    return f"releases_{asset_prefix(policy.policy)}"
