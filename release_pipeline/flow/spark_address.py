"""What site.yaml says of Spark: `spark: {url: ...}`, the server that counts records where `engine` is spark, and that has the
tables of `source: {spark: ...}`. No token stands there: ${NAME} is taken from the environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import unquote

from pydantic import AfterValidator, StrictStr, TypeAdapter

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.flow.settings import FILE, Say, Settings, wrong
from release_pipeline.flow.site import Site
from release_pipeline.store.expansion import expand

if TYPE_CHECKING:
    from release_pipeline.store.spark import SparkAddress

_SAID = "As in {url: 'sc://spark.example.org:15002'}."
_URL = re.compile(r"sc://([\w.-]+|\[[0-9A-Fa-f:.]{2,45}\])(:(?P<port>[0-9]{1,5}))?(/|/(;[a-z0-9_.-]+=[!-:<>-~]*)+)?", re.ASCII)
_NAMED = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_OPEN = ("use_ssl", "user_id", "session_id", "user_agent")  # what may stand in a file: others are sent, as tokens are
_ADDRESS = "It is as sc://spark.example.org:15002, or with parameters behind it: sc://spark.example.org:443/;use_ssl=true."


def find_workers(site: Site) -> SparkAddress | None:
    """The server whose workers count the records of files, if the engine is spark."""
    if site.engine != "spark":
        return None
    if (spark := find_spark(site)) is None:
        what = "the engine is spark, and no server is named."
        raise ReleasePipelineError(what, where=str(site.home / FILE), remedy=f"Say spark: {_SAID[6:]}")
    return spark


def find_spark(site: Site) -> SparkAddress | None:
    """The server that a site names; nobody asks it anything here."""
    said: SparkSettings | None = site.read_section("spark", _SECTION)
    if said is None:
        return None
    file = str(site.home / FILE)
    try:
        url = expand(said.url, site.environment)
    except SourceError as error:
        raise ReleasePipelineError("what spark names is not in the environment.", where=file, remedy=error.remedy) from None
    if not _is_address(url):
        what = "what the url of spark names is no address of Spark Connect."
        raise ReleasePipelineError(what, where=file, remedy=_ADDRESS)
    from release_pipeline.store.spark import SparkAddress  # PyArrow is large: only where there is a server

    return SparkAddress(url, where=f"{file}: spark")


def _check_url(url: str) -> str:
    names = [part.partition("=")[0] for part in url.split(";")[1:] if part]
    if "@" in re.split("[/;]", url.removeprefix("sc://"), maxsplit=1)[0]:
        raise wrong("a name or a password may not stand in it.", "Say what the server asks for as a token: ${NAME}.")
    if any(name not in _OPEN for name in names):
        raise wrong("a parameter may be a secret.", "Put the whole address into the environment: ${NAME}.")
    if not _is_address(_NAMED.sub("1", url) if url.startswith("sc://") else url) and _NAMED.fullmatch(url) is None:
        raise wrong("this is no address of Spark Connect.", f"{_ADDRESS} Or it is ${{NAME}}.")
    return url


class SparkSettings(Settings):
    """What stands under `spark`."""

    mapping: ClassVar[tuple[str, str]] = ("this does not say which server.", _SAID)

    url: Annotated[StrictStr, AfterValidator(_check_url), Say("url is no text.", _SAID)]


_SECTION: TypeAdapter[SparkSettings] = TypeAdapter(SparkSettings)


def _is_address(url: str) -> bool:
    found = _URL.fullmatch(url)
    return found is not None and int(found["port"] or 1) in range(1, 1 << 16) and unquote(url).isprintable()
