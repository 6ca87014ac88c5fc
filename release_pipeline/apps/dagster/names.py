"""The names of a site in Dagster: assets and jobs, releases as partitions, and when definitions are stale."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
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
    """The state in which schedules and sensors begin, in Dagster's terms; a later switch in the UI overrides it. Only
    `release-pipeline ui`, or `on` in a project's settings, asks for `ON`."""

    schedule: dg.DefaultScheduleStatus
    sensor: dg.DefaultSensorStatus


ON = Automations(dg.DefaultScheduleStatus.RUNNING, dg.DefaultSensorStatus.RUNNING)
OFF = Automations(dg.DefaultScheduleStatus.STOPPED, dg.DefaultSensorStatus.STOPPED)


def read_automations(switch: str) -> Automations:
    """Return how schedules and sensors begin by `on` or `off`; anything else is refused."""
    if switch not in ("on", "off"):
        raise WrongUsage(f"automations cannot be '{switch}'.", where="automations", remedy="Say 'on' or 'off'.")
    return ON if switch == "on" else OFF


@dataclass(frozen=True, slots=True)
class SiteResource:
    """A site by its folder, as Dagster's resource. It is not configurable: run config comes from anyone who reaches the
    webserver, and could send a job into another site's folder, or show {env: NAME} in an error."""

    home: str

    def open(self) -> Site:
        """Return the site."""
        return find_site(Path(self.home))


def fix_site(site: SiteResource) -> dg.ResourceDefinition:
    """Return the resource for Dagster's definitions. Its schema of config is empty, so that Dagster refuses any config for it."""
    return dg.ResourceDefinition(resource_fn=lambda _: site, config_schema={}, description="The site of these definitions.")


_PART = re.compile("[A-Za-z][A-Za-z0-9_]*")
_POLICY = re.compile("[a-z][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one site. An instance may have several sites, all but one with a prefix. Names without a prefix are in the
    records of every site in use: they never change."""

    prefix: tuple[str, ...] = ()

    def name(self, *parts: str) -> str:
        """Return the name of a job, a schedule, a sensor, an op, a group or a pool, or the key of a resource."""
        return "_".join((*self.prefix, *parts))

    def key(self, *parts: str) -> dg.AssetKey:
        """Return the key of an asset."""
        return dg.AssetKey([*self.prefix, *parts])

    @property
    def resource(self) -> str:
        """Return the key of the site's resource."""
        return self.name("site")

    def site_of(self, context: Any) -> SiteResource:
        """Return the site, from any context that Dagster gives to a function that requires the resource."""
        site: SiteResource = getattr(context.resources, self.resource)
        return site

    def stage(self, policy: str, stage: str) -> dg.AssetKey:
        """Return the asset key of one stage of a policy's chain, including its source and its published package."""
        return self.key(asset_prefix(policy), stage)

    def chain(self, policy: str) -> list[dg.AssetKey]:
        """Return the assets that a run makes of a release, in order."""
        return [self.stage(policy, stage) for stage in STAGES]

    def policy_file(self, file_name: str) -> dg.AssetKey:
        """Return the asset key of a policy file."""
        return self.key("policy", _name_file(Path(file_name).stem))

    def job(self, policy: str) -> str:
        """Return the name of the job that makes one release of a policy."""
        return self.name("release", asset_prefix(policy))

    def publishing_job(self, policy: str) -> str:
        """Return the name of the job that publishes one release of a policy."""
        return self.name("publish", asset_prefix(policy))

    def releases(self, policy: str) -> str:
        """Return the name of the dynamic partitions of a policy whose releases are periods; an instance has one set of that
        name."""
        return self.name("releases", asset_prefix(policy))


def asset_prefix(policy: str) -> str:
    """Return a policy's name in the form of Dagster's keys and names."""
    return policy.replace("-", "_")


def read_prefix(prefix: str | Sequence[str]) -> Names:
    """Return the names under a prefix of one or several parts; raises `WrongUsage` for a prefix that Dagster's names cannot
    have."""
    parts = (prefix,) if isinstance(prefix, str) else tuple(prefix)
    if any(not _PART.fullmatch(part) for part in parts):
        raise WrongUsage(
            f"'{'/'.join(parts)}' cannot be the prefix of a site.",
            remedy="A part of it is a letter and then letters, digits and _: health, or [statistics, health].",
        )
    return Names(parts)


def _name_file(stem: str) -> str:
    """Return a name for a policy file. A file that no policy could have, such as an editor's copy, gets the letters that Dagster
    allows and a hash: it is a broken policy and breaks no other definitions."""
    if _POLICY.fullmatch(stem):
        return asset_prefix(stem)
    return f"{re.sub('[^A-Za-z0-9_]', '_', stem)}_{hashlib.sha256(stem.encode(errors='surrogateescape')).hexdigest()[:8]}"


def partitions_of(policy: Policy, names: Names) -> dg.PartitionsDefinition[Any]:
    """Return a policy's releases as Dagster's partitions: those that it names, or periods as they are opened."""
    if policy.every:
        return dg.DynamicPartitionsDefinition(name=names.releases(policy.policy))
    return dg.StaticPartitionsDefinition(list(policy.release_names))


def chosen_release(context: dg.AssetExecutionContext) -> str:
    """Return the partition of this run; refused without one, as for a run that a script launched."""
    if not context.has_partition_key:
        raise ReleasePipelineError("the run says no release.", remedy="Launch it for one of the job's partitions.")
    return context.partition_key


# Definitions are made from a site's files, and again when one of these was added, changed or removed. Dagster does not watch
# files: it reloads definitions on request. Under `release-pipeline ui` the process of the door asks for it, as the button Reload
# does. A run in progress keeps its own.


STALE = "Policies or settings of the site were changed since these definitions were loaded: reload them."
LOOK_SECONDS = 2.0
Stamps: TypeAlias = "frozenset[tuple[str, int, int, int]]"
_FILES = ("policies/**/*", "populations.yaml", "site.yaml")


def stamp_files(home: Path) -> Stamps:
    """Return the files that the definitions of a site depend on, each with its size, time and number."""
    stamps: set[tuple[str, int, int, int]] = set()
    for pattern in _FILES:
        for file in home.glob(pattern):
            with suppress(OSError):  # removed in between, or a link to nowhere
                status = file.stat()
                stamps.add((str(file), status.st_size, status.st_mtime_ns, status.st_ino))
    return frozenset(stamps)


def reload_when_changed(
    home: Path, loaded: Stamps, reload: Callable[[], None], ending: Event, *, seconds: float = LOOK_SECONDS
) -> None:
    """Call `reload` after each change of the site's files, once two checks find them equal; until `ending` is set. `loaded`: the
    files' stamps before the definitions were loaded."""
    before = loaded
    while not ending.wait(seconds):
        now = stamp_files(home)
        if now == before and now != loaded:
            loaded = now
            logging.getLogger("dagster").info("Files of the site were changed: its definitions are loaded again.")
            reload()
        before = now
