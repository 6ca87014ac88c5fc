"""What site.yaml says of the cluster whose machines work on long arrays: `spark`, where `engine` is spark. No token stands there:
${NAME} is taken from the environment."""

from __future__ import annotations

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
SAID = "As in {url: 'sc://host:15002', storage: /shared/folder}."
_KEYS = ("url", "storage")
_URL = re.compile(r"sc://\S+|\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def find_cluster(site: Site) -> Cluster | None:
    """The cluster of a site whose engine it is; nobody is asked anything before there is work for it."""
    if site.engine != SPARK:
        return None
    file = str(site.home / "site.yaml")
    said = site.read_section(SECTION, _find_faults)
    if not isinstance(said, Mapping):
        raise ReleasePipelineError("the engine is spark, and no cluster is named.", where=file, remedy=f"Say spark: {SAID[6:]}")
    try:
        url, storage = (expand(str(said[key]), site.environment) for key in _KEYS)
    except SourceError as error:
        raise ReleasePipelineError("what spark names is not in the environment.", where=file, remedy=error.remedy) from None
    folder = (site.home / storage).resolve()
    if site.releases.resolve() in (folder, *folder.parents):
        what = "the storage of spark is a folder that is published."
        raise ReleasePipelineError(what, where=file, remedy="Confidential records are written there: name another.")
    workers = SparkWorkers(url, where=f"{file}: spark")
    return Cluster(folder, workers, site.keyed_hash(b"in the shared folder of a cluster")[:16])


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
    if "token=" in url:
        yield (SECTION, "url"), "a token stands in the address.", "Put the whole address into the environment: ${NAME}."
    elif _URL.fullmatch(url) is None:
        yield (SECTION, "url"), "this is no address of Spark Connect.", "It begins with sc:// or is ${NAME}."
