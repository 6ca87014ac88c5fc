"""How what belongs to a site is called in Dagster. One instance may have several sites, each but one with a prefix of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from release_pipeline.dagster_app.site import SiteResource
from release_pipeline.errors import WrongUsage
from release_pipeline.flow.release import STAGES

_PART = re.compile("[A-Za-z][A-Za-z0-9_]*")
_POLICY = re.compile("[a-z][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one site. Those without a prefix stand in the records of every site in use: they never change."""

    prefix: tuple[str, ...] = ()

    def name(self, *parts: str) -> str:
        """The name of a job, a schedule, a sensor, an op, a group or a pool, or the key of a resource."""
        return "_".join((*self.prefix, *parts))

    def key(self, *parts: str) -> dg.AssetKey:
        """The key of an asset."""
        return dg.AssetKey([*self.prefix, *parts])

    @property
    def resource(self) -> str:
        """The key of the site's resource."""
        return self.name("site")

    def site_of(self, context: Any) -> SiteResource:
        """The site, in whatever context Dagster gives to a function that requires the resource."""
        site: SiteResource = getattr(context.resources, self.resource)
        return site

    def stage(self, policy: str, stage: str) -> dg.AssetKey:
        """The asset of one stage of a policy's chain, its source and what the public has included."""
        return self.key(asset_prefix(policy), stage)

    def chain(self, policy: str) -> list[dg.AssetKey]:
        """The assets that a run makes of a release, in order."""
        return [self.stage(policy, stage) for stage in STAGES]

    def policy_file(self, file_name: str) -> dg.AssetKey:
        """The asset of a policy file."""
        return self.key("policy", _name_file(Path(file_name).stem))

    def job(self, policy: str) -> str:
        """The job that makes one release of a policy."""
        return self.name("release", asset_prefix(policy))

    def publishing_job(self, policy: str) -> str:
        """The job that publishes one release of a policy."""
        return self.name("publish", asset_prefix(policy))

    def releases(self, policy: str) -> str:
        """The dynamic partitions of a policy whose releases are periods. An instance has one set of a name, whoever uses it."""
        return self.name("releases", asset_prefix(policy))


def asset_prefix(policy: str) -> str:
    """A policy's name as it stands in keys and names of Dagster."""
    return policy.replace("-", "_")


def read_prefix(prefix: str | Sequence[str], *, where: str = "") -> Names:
    """The names under a prefix of one part or several; refused in words where a name of Dagster's could not have it."""
    parts = (prefix,) if isinstance(prefix, str) else tuple(prefix)
    if any(not _PART.fullmatch(part) for part in parts):
        raise WrongUsage(
            f"'{'/'.join(parts)}' cannot be the prefix of a site.",
            where=where,
            remedy="A part of it is a letter and then letters, digits and _: health, or [statistics, health].",
        )
    return Names(parts)


def _name_file(stem: str) -> str:
    """The name of a policy file: of one that no policy could have, its letters that Dagster knows, and a hash that tells it from
    others. A copy, or what an editor leaves beside a file, is a broken policy and takes no definitions down."""
    if _POLICY.fullmatch(stem):
        return asset_prefix(stem)
    return f"{re.sub('[^A-Za-z0-9_]', '_', stem)}_{hashlib.sha256(stem.encode(errors='surrogateescape')).hexdigest()[:8]}"
