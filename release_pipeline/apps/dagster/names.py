"""How what belongs to a site is called in Dagster, and when its definitions are made anew.

Whether schedules and sensors begin switched on: only `release-pipeline ui` asks for it, or whoever writes `on`.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

import dagster as dg

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.pipeline.release import STAGES
from release_pipeline.policy import Policy
from release_pipeline.store.site import Site, find_site

AUTOMATIONS = "RELEASE_PIPELINE_AUTOMATIONS"


@dataclass(frozen=True, slots=True)
class Automations:
    """How schedules and sensors begin, as Dagster has it. What somebody switched since then counts."""

    schedule: dg.DefaultScheduleStatus
    sensor: dg.DefaultSensorStatus


ON = Automations(dg.DefaultScheduleStatus.RUNNING, dg.DefaultSensorStatus.RUNNING)
OFF = Automations(dg.DefaultScheduleStatus.STOPPED, dg.DefaultSensorStatus.STOPPED)


def read_automations(said: str) -> Automations:
    """How they begin by `on` or `off`; anything else is refused."""
    if said not in ("on", "off"):
        raise WrongUsage(f"automations cannot be '{said}'.", where="automations", remedy="Say 'on' or 'off'.")
    return ON if said == "on" else OFF


# A site as Dagster's resource.


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


# How what belongs to a site is called in Dagster. One instance may have several sites, each but one
# with a prefix of its own.


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


# The releases of a policy as Dagster's partitions.


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


# Definitions are made of a site's files, and made anew when one of these was added, changed or
# taken away.
#
# Dagster makes them anew when somebody asks it to: nothing in it looks at files. Under `release-
# pipeline ui` the process of the door asks, as the button Reload does. A run that is going on has
# read its own, and is left to end.


STALE = "Policies or settings of the site were changed since these definitions were loaded: reload them."
LOOK_SECONDS = 2.0
Stamps: TypeAlias = "frozenset[tuple[str, int, int, int]]"
_FILES = ("policies/**/*", "populations.yaml", "site.yaml")


def stamp_files(home: Path) -> Stamps:
    """What the definitions of a site depend on, by size, time and number of each file."""
    found: set[tuple[str, int, int, int]] = set()
    for pattern in _FILES:
        for file in home.glob(pattern):
            try:
                known = file.stat()
            except OSError:  # taken away in between, or a link to nowhere
                continue
            found.add((str(file), known.st_size, known.st_mtime_ns, known.st_ino))
    return frozenset(found)


def reload_when_changed(
    home: Path, loaded: Stamps, reload: Callable[[], None], ending: Event, *, seconds: float = LOOK_SECONDS
) -> None:
    """Call `reload` after each change of the site's files, once they stay as they are for one look; until `ending` is set.
    `loaded`: how they were before the definitions were loaded."""
    before = loaded
    while not ending.wait(seconds):
        now = stamp_files(home)
        if now == before and now != loaded:
            loaded = now
            logging.getLogger("dagster").info("Files of the site were changed: its definitions are loaded anew.")
            reload()
        before = now
