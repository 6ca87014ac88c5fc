"""What site.yaml says of the cluster whose machines work on long arrays: `spark`, where `engine` is spark. No token stands there:
${NAME} is taken from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.flow.site import Site
from release_pipeline.policy.messages import suggest
from release_pipeline.policy.text import Problem
from release_pipeline.policy.typed import Plain
from release_pipeline.store.expansion import expand
from release_pipeline.store.shared import Cluster
from release_pipeline.store.spark import SparkWorkers

SPARK, SECTION = "spark", "spark"
SAID = "As in {url: 'sc://spark.example.org:15002', storage: /shared/folder}."
_KEYS = ("url", "storage")
_URL, _NAMED = re.compile(r"sc://\S+"), re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_OPEN = ("use_ssl", "user_id", "session_id", "user_agent")  # what may stand in a file: others are sent, as tokens are
_LONGEST = 40  # a name of one that is told


def find_cluster(site: Site) -> Cluster | None:
    """The cluster that a site names; nobody is asked anything before there is work for it. Where the engine is another one it is
    there for what it left to be removed, and its faults are nobody's business."""
    is_used = site.engine == SPARK
    try:
        return _find_cluster(site, is_used=is_used)
    except ReleasePipelineError:
        if is_used:
            raise
        return None


def _find_cluster(site: Site, *, is_used: bool) -> Cluster:
    file = str(site.home / "site.yaml")
    said = site.read_section(SECTION, _find_faults)
    if not isinstance(said, Mapping):
        raise ReleasePipelineError("the engine is spark, and no cluster is named.", where=file, remedy=f"Say spark: {SAID[6:]}")
    try:
        url, storage = (expand(str(said[key]), site.environment) for key in _KEYS)
    except SourceError as error:
        raise ReleasePipelineError("what spark names is not in the environment.", where=file, remedy=error.remedy) from None
    if _URL.fullmatch(url) is None:
        what = "what the url of spark names is no address of Spark Connect."
        raise ReleasePipelineError(what, where=file, remedy="It begins with sc://.")
    folder = (site.home / storage).resolve()
    if site.releases.resolve() in (folder, *folder.parents):
        what = "the storage of spark is a folder that is published."
        raise ReleasePipelineError(what, where=file, remedy="Confidential records are written there: name another.")
    name = site.keyed_hash(b"in the shared folder of a cluster" + os.fsencode(site.vault.resolve()))[:16]
    return Cluster(folder, SparkWorkers(url, where=f"{file}: spark"), name, is_used)


def _find_faults(said: Plain) -> Iterator[Problem]:
    if not isinstance(said, Mapping):
        yield (SECTION,), "this does not say which cluster.", SAID
        return
    for key in said:
        if key not in _KEYS:
            yield (SECTION, str(key)), f"'{key}' is not known here.", suggest(str(key), _KEYS)
    for key in _KEYS:
        if key not in said:
            yield (SECTION,), f"{key} is missing.", SAID
        elif not isinstance(said[key], str) or not str(said[key]).strip():
            yield (SECTION, key), f"{key} is no text.", SAID
    url = said.get("url")
    if not isinstance(url, str):
        return
    parameters = [part.partition("=")[0] for part in url.partition("/;")[2].split(";") if part]
    if others := [name for name in parameters if name not in _OPEN]:
        what = f"'{others[0]}' may be a secret." if len(others[0]) < _LONGEST else "a parameter may be a secret."
        yield (SECTION, "url"), what, "Put the whole address into the environment: ${NAME}."
    elif _URL.fullmatch(url) is None and _NAMED.fullmatch(url) is None:
        yield (SECTION, "url"), "this is no address of Spark Connect.", "It begins with sc:// or is ${NAME}."
