"""A site as Dagster's resource, and how its policies are called there."""

from pathlib import Path
from typing import Any

import dagster as dg

from release_pipeline.flow.site import Site, find_site


class SiteResource(dg.ConfigurableResource[Any]):
    """A site by its folder."""

    home: str

    def open(self) -> Site:
        """The site."""
        return find_site(Path(self.home))


def asset_prefix(policy: str) -> str:
    """A policy's name as the prefix of its asset keys."""
    return policy.replace("-", "_")


def job_name(policy: str) -> str:
    """The job that makes one release of a policy."""
    return f"release_{asset_prefix(policy)}"
