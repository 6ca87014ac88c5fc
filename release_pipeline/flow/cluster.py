"""What site.yaml says of the cluster whose machines work on long arrays: `spark`, where `engine` is spark. No token stands there:
${NAME} is taken from the environment."""

from __future__ import annotations

import os
import re
from ipaddress import IPv6Address
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import unquote

from pydantic import AfterValidator, StrictStr, TypeAdapter

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.flow.settings import Say, Settings, meets, wrong
from release_pipeline.flow.site import Site
from release_pipeline.store.expansion import expand
from release_pipeline.store.shared import Cluster, check_storage
from release_pipeline.store.spark import SparkWorkers

SPARK, SECTION = "spark", "spark"
SAID = "As in {url: 'sc://spark.example.org:15002', storage: /shared/folder}."
_URL = re.compile(
    r"sc://([\w.-]+|\[(?P<ipv6>[0-9A-Fa-f:.]{2,45})\])(:(?P<port>[0-9]{1,5}))?(/|/(;[a-z0-9_.-]+=[!-:<>-~]*)+)?", re.ASCII
)
_NAMED = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_OPEN = ("use_ssl", "user_id", "session_id", "user_agent")  # what may stand in a file: others are sent, as tokens are
_ADDRESS = "It is as sc://spark.example.org:15002, or with parameters behind it: sc://spark.example.org:443/;use_ssl=true."
_TOLD = ("token", "authorization", "x-api-key", "api-key", "password")  # what a text is that may be one of them is not told


def find_cluster(site: Site) -> Cluster | None:
    """The cluster that a site names; nobody is asked anything before there is work for it. Where the engine is another one it is
    there for what it left to be removed, and its faults are nobody's business."""
    is_used = site.engine == SPARK
    try:
        url, folder = _read_cluster(site)
        name = site.keyed_hash(b"in the shared folder of a cluster" + os.fsencode(site.vault.resolve()))[:16]
    except ReleasePipelineError:
        if is_used:
            raise
        return None
    return Cluster(folder, SparkWorkers(url, where=f"{site.home / 'site.yaml'}: spark"), name, is_used)


def check_section(site: Site) -> None:
    """Refuse what site.yaml says of a cluster, if its engine is one."""
    if site.engine == SPARK:
        _read_section(site)


def find_obstacle(site: Site) -> str:
    """Why the cluster that will work cannot, as far as it is seen from here without asking its server; empty if nothing is."""
    try:
        _, folder = _read_cluster(site)
        check_storage(folder)
    except ReleasePipelineError as error:
        return error.in_full
    return ""


def _read_cluster(site: Site) -> tuple[str, Path]:
    """The address and the folder that are said."""
    said, file = _read_section(site), str(site.home / "site.yaml")
    try:
        url, storage = (expand(text, site.environment) for text in (said.url, said.storage))
    except SourceError as error:
        raise ReleasePipelineError("what spark names is not in the environment.", where=file, remedy=error.remedy) from None
    if not _is_address(url):
        what = "what the url of spark names is no address of Spark Connect."
        raise ReleasePipelineError(what, where=file, remedy=_ADDRESS)
    folder = (site.home / storage).resolve()
    if site.releases.resolve() in (folder, *folder.parents):
        what = "the storage of spark is a folder that is published."
        raise ReleasePipelineError(what, where=file, remedy="Confidential records are written there: name another.")
    return url, folder


def _read_section(site: Site) -> SparkSettings:
    """As it stands there."""
    said: SparkSettings | None = site.read_section(SECTION, _SECTION)
    if said is None:
        what, file = "the engine is spark, and no cluster is named.", str(site.home / "site.yaml")
        raise ReleasePipelineError(what, where=file, remedy=f"Say spark: {SAID[6:]}")
    return said


def _check_url(url: str) -> str:
    parameters = [part.partition("=")[0] for part in url.split(";")[1:] if part]
    if "@" in re.split("[/;]", url.removeprefix("sc://"), maxsplit=1)[0]:
        raise wrong("a name or a password may not stand in it.", "Say what the server asks for as a token: ${NAME}.")
    if others := [name for name in parameters if name not in _OPEN]:
        what = f"'{others[0]}' may be a secret." if others[0] in _TOLD else "a parameter may be a secret."
        raise wrong(what, "Put the whole address into the environment: ${NAME}.")
    if not _is_address(_NAMED.sub("1", url) if url.startswith("sc://") else url) and _NAMED.fullmatch(url) is None:
        raise wrong("this is no address of Spark Connect.", f"{_ADDRESS} Or it is ${{NAME}}.")
    return url


_says_something = meets(lambda text: text.strip() != "" and "\0" not in text)


class SparkSettings(Settings):
    """What stands under `spark`."""

    mapping: ClassVar[tuple[str, str]] = ("this does not say which cluster.", SAID)

    url: Annotated[StrictStr, _says_something, AfterValidator(_check_url), Say("url is no text.", SAID)]
    storage: Annotated[StrictStr, _says_something, Say("storage is no text.", SAID)]


_SECTION: TypeAdapter[SparkSettings] = TypeAdapter(SparkSettings)


def _is_address(url: str) -> bool:
    found = _URL.fullmatch(url)
    if found is None or int(found["port"] or 1) not in range(1, 1 << 16) or not unquote(url).isprintable():
        return False
    try:
        IPv6Address(found["ipv6"] or "::")
    except ValueError:
        return False
    return True
