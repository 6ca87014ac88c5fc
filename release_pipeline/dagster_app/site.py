"""A site as Dagster's resource."""

from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from release_pipeline.flow.site import Site, find_site


@dataclass(frozen=True, slots=True)
class SiteResource:
    """A site by its folder. Not one of Dagster's configurable resources: run config comes from whoever reaches the webserver, and
    would send a job into another site's folder, or have {env: NAME} told in an error."""

    home: str

    def open(self) -> Site:
        """The site."""
        return find_site(Path(self.home))


def fix_site(site: SiteResource) -> dg.ResourceDefinition:
    """The resource for Dagster's definitions: its schema of config is empty, so that any config for it is refused."""
    return dg.ResourceDefinition(resource_fn=lambda _: site, config_schema={}, description="The site of these definitions.")
