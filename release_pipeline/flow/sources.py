"""The source of a policy, as its site reads it; and whether it has what the policy declares, by its header and no record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.flow.site import Site
from release_pipeline.flow.spark_address import find_spark
from release_pipeline.policy import Policy
from release_pipeline.policy.sections import Source
from release_pipeline.stages.checks import match_header, refusals
from release_pipeline.store.expansion import expand
from release_pipeline.store.objects import is_address
from release_pipeline.store.source import SourceDoor, find_source


@dataclass(frozen=True, slots=True)
class HeaderLook:
    """What a source's header says. `faults`: for which a run would be refused, a sentence each; `unread`: why nobody read it."""

    faults: tuple[str, ...] = ()
    unread: str = ""


def open_source(site: Site, policy: Policy) -> SourceDoor:
    """The source of a policy, as its site reads it."""
    spark = None if policy.source.spark is None else find_spark(site)
    return find_source(
        policy.source, folder=site.home, values=site.environment, expected=policy.declared, vault=site.vault, spark=spark
    )


def version_of(site: Site, source: SourceDoor) -> str:
    """A keyed hash that changes when what is delivered does; empty where only reading it tells."""
    return site.keyed_hash(f"source {source.name} {stamp}".encode()) if (stamp := source.stamp) else ""


def look_at_header(site: Site, policy: Policy, *, everywhere: bool) -> HeaderLook:
    """Whether the source is there, can be read as text or table, and has the declared columns. A source that is no file here, or
    that this account may not read, is left unread, unless it is to be looked for `everywhere`."""
    if not everywhere and (why := _find_distance(policy.source, site.home, site.environment)):
        return HeaderLook(unread=why)
    try:
        source = open_source(site, policy)
    except ReleasePipelineError as error:
        return HeaderLook((str(error),))
    return HeaderLook(tuple(f"{source.name}: {fault}" for fault in refusals(match_header(source.header, policy)[1])))


def _find_distance(source: Source, folder: Path, values: Mapping[str, str]) -> str:
    """Why a source is not looked at unasked; empty for a file that this account can read, or that is not there."""
    if source.path is None:
        return "it is a database"
    try:
        written = expand(source.path, values)
    except SourceError as error:
        return error.what.rstrip(".")
    if is_address(written):
        return "it is elsewhere"
    try:
        (folder / written).stat()
    except PermissionError:
        return "this account may not read it"
    except (OSError, ValueError):
        return ""
    return "" if os.access(folder / written, os.R_OK) else "this account may not read it"
