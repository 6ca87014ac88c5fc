"""Where something of a site is in Dagster's UI, for links from pages that know no Dagster: `dagster_app` names it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode


def asset_prefix(policy: str) -> str:
    """A policy's name as it stands in keys and names there."""
    return policy.replace("-", "_")


def name_job(policy: str) -> str:
    """The job that makes one release of a policy, without the prefix that a team may give to a site."""
    return f"release_{asset_prefix(policy)}"


@dataclass(frozen=True, slots=True)
class DagsterPages:
    """The pages of a site's own Dagster at an address."""

    address: str

    def show_runs(self, policy: str = "") -> str:
        """Its runs, or those that make releases of a policy."""
        return self._join("/runs" + (f"?{urlencode({'q[0]': f'job:{name_job(policy)}'})}" if policy else ""))

    def show_asset(self, policy: str, stage: str = "candidate", *, partition: str = "") -> str:
        """One stage of a policy's chain, of one release where that is named."""
        found = f"/assets/{quote(asset_prefix(policy))}/{quote(stage)}"
        return self._join(found + (f"?{urlencode({'view': 'partitions', 'partition': partition})}" if partition else ""))

    def show_daemons(self) -> str:
        """Whether its daemons live."""
        return self._join("/deployment/daemons")

    def _join(self, path: str) -> str:
        return self.address.rstrip("/") + path
