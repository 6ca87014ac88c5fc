"""The origins of records: they identify a trial on records that are then released, whatever the policy or population is
called.

An origin is a hash under the vault's key: of the place that a policy declares, of where that is, and of the content of a file.
Without the vault it reveals nothing. A changed copy, or another query, has another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import unquote

from pydantic import AfterValidator, StrictStr, TypeAdapter

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.ledger.policies import list_policies
from release_pipeline.policy import Policy
from release_pipeline.policy.file.sections import Source
from release_pipeline.policy.loading.load import read_policy
from release_pipeline.policy.values.text import read_yaml
from release_pipeline.rows.checks import match_header, refusals
from release_pipeline.store.delta import LOG
from release_pipeline.store.environment import expand
from release_pipeline.store.files import hash_of_file, is_same_file
from release_pipeline.store.ledger import RESERVED
from release_pipeline.store.registry import Event
from release_pipeline.store.settings import FILE, Say, Settings, wrong
from release_pipeline.store.site import Site
from release_pipeline.store.source import FileSource, SourceReader, find_source, list_parquet

if TYPE_CHECKING:
    from release_pipeline.store.spark import SparkAddress


_OF_A_SITE = ("populations.yaml", "registry.duckdb", "vault", "site.yaml")


def find_home(path: Path) -> Path | None:
    """Return the site that something is in, however deep: the nearest folder above it that has policies, and the other parts of a
    site."""
    for folder in path.resolve().parents:
        if (folder / "policies").is_dir() and any((folder / name).exists() for name in _OF_A_SITE):
            return folder
    return None


def hash_content(site: Site, file: Path) -> str:
    """Return a hash that identifies the content to anyone who has the vault and the file, and reveals nothing to others: against
    a plain hash, guesses could be tested."""
    return site.keyed_hash(f"looked at: {hash_file(file)}".encode())


def hash_file(file: Path) -> str:
    """Return the plain hash of a file."""
    try:
        return hash_of_file(file)
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(file)) from None


def list_file_origins(site: Site, files: Iterable[Path]) -> list[str]:
    """Return the origins of files: of the place of each, and of its content."""
    origins, home = list[str](), site.home.resolve()
    for file in files:
        place = file.resolve()
        inside = place.relative_to(home) if place.is_relative_to(home) else place  # the site may be moved, or restored elsewhere
        origins += [_hash_place(site, str(inside)), hash_content(site, file)]
    return origins


def list_origins(site: Site, source: Source, files: Sequence[Path] = ()) -> list[str]:
    """Return the origins of a declared source, as it is now: of its text, of its place, and of its content where it is a file or
    a folder. `files`: those that have its records, where they are known."""
    origins = [_hash_place(site, _write(source))]
    if source.path is None:
        origins.append(_hash_place(site, expand(_write(source), site.environment)))
    else:
        origins += list_file_origins(site, files or list_files(_find_file(site, source.path)))
    return list(dict.fromkeys(origins))


def find_source_like(site: Site, file: Path, *, strict: bool) -> str:
    """Return why a file is confidential here: it is in the vault, or it is a source of this site, the same file or with the same
    content; empty where it is neither; of a folder, why a file in it is. `strict`: refuse where that cannot be decided, because a
    place depends on a variable that is not set."""
    if file.resolve().is_relative_to(site.vault.resolve()):
        return "it lies in the vault"
    events: tuple[Event, ...] = ()
    if site.has_registry:
        with site.open_registry(read_only=True) as registry:
            events = registry.events
    files = [file, *list_files(file)]
    for written in dict.fromkeys(_list_paths(site, events)):
        try:
            place = _find_file(site, written)
            sources = [place, *list_files(place)]
        except SourceError:
            if strict:
                raise
            continue
        if any(source.resolve() == own.resolve() or is_same_file(source, own) for source in sources for own in files):
            return f"it is the source {written}"
        if any(_has_same_content(source, own) for source in sources for own in files):
            return f"it has the content of the source {written}"
    known = {origin for event in events if _is_of_a_source(event) for origin in event.content.get("origins", ())}
    if known and any(hash_content(site, own) in known for own in files if own.is_file()):
        return "it has the content of what was a source"
    return ""


def _is_of_a_source(event: Event) -> bool:
    return event.kind == RESERVED or (event.kind == "looked" and event.content["on"] == "mask")


def list_files(path: Path) -> tuple[Path, ...]:
    """Return the files that a source has: one, or those of a folder; none where nothing is there. Of a Delta table also those of
    earlier versions, and of its log, which has cells: they are of the same people."""
    if (path / LOG).is_dir():
        return tuple(sorted(file for file in path.rglob("*") if file.is_file()))
    if path.is_dir():
        return list_parquet(path)
    return (path,) if path.is_file() else ()


def _has_same_content(source: Path, file: Path) -> bool:
    try:
        return source.is_file() and source.stat().st_size == file.stat().st_size and hash_file(source) == hash_file(file)
    except (OSError, SourceError):
        return False


def _list_paths(site: Site, events: Iterable[Event]) -> Iterator[str]:
    """Yield the paths of sources as all policies write them: of existing files, also in invalid policies, and of every version
    that was ever recorded."""
    for file in site.policy_files():
        try:
            path = read_yaml(read_policy(file)).value["source"]["path"]
        except (ReleasePipelineError, KeyError, TypeError, IndexError):
            continue
        if isinstance(path, str):
            yield path
    yield from (noted.policy.source.path for noted in list_policies(events) if noted.policy.source.path is not None)


def _find_file(site: Site, written: str) -> Path:
    return site.home / expand(written, site.environment)


def _write(source: Source) -> str:
    """Return a source in a line; the layout of a query does not matter."""
    parts = (source.path, source.postgres, source.spark, source.table, source.query)
    return " ".join(" ".join(part.lower().split() if part is source.query else [part]) for part in parts if part)


def _hash_place(site: Site, place: str) -> str:
    return site.keyed_hash(f"place: {place}".encode())


# The section `spark: {url: ...}` of site.yaml: the server that counts records where `engine` is spark, and that has the tables of
# `source: {spark: ...}`. No token is in it: ${NAME} is taken from the environment.


_SAID = "As in {url: 'sc://spark.example.org:15002'}."
_URL = re.compile(r"sc://([\w.-]+|\[[0-9A-Fa-f:.]{2,45}\])(:(?P<port>[0-9]{1,5}))?(/|/(;[a-z0-9_.-]+=[!-:<>-~]*)+)?", re.ASCII)
_NAMED = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_OPEN = ("use_ssl", "user_id", "session_id", "user_agent")  # the options that a file may have: others are sent, as tokens are
_ADDRESS = "It is as sc://spark.example.org:15002, or with parameters behind it: sc://spark.example.org:443/;use_ssl=true."


def find_workers(site: Site) -> SparkAddress | None:
    """Return the server whose workers count the records of files, if the engine is spark."""
    if site.engine != "spark":
        return None
    if (spark := find_spark(site)) is None:
        what = "the engine is spark, and no server is named."
        raise ReleasePipelineError(what, where=str(site.home / FILE), remedy=f"Say spark: {_SAID[6:]}")
    return spark


def find_spark(site: Site) -> SparkAddress | None:
    """Return the server that a site names, without connecting to it."""
    settings: SparkSettings | None = site.read_section("spark", _SECTION)
    if settings is None:
        return None
    file = str(site.home / FILE)
    try:
        url = expand(settings.url, site.environment)
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
    """The settings under `spark`."""

    mapping: ClassVar[tuple[str, str]] = ("this does not say which server.", _SAID)

    url: Annotated[StrictStr, AfterValidator(_check_url), Say("url is no text.", _SAID)]


_SECTION: TypeAdapter[SparkSettings] = TypeAdapter(SparkSettings)


def _is_address(url: str) -> bool:
    found = _URL.fullmatch(url)
    return found is not None and int(found["port"] or 1) in range(1, 1 << 16) and unquote(url).isprintable()


# The source of a policy, as its site reads it; and the check of its header against the policy, without reading a record.


@dataclass(frozen=True, slots=True)
class HeaderLook:
    """The result of reading a source's header. `faults`: for which a run would be refused, a sentence each; `unread`: why it was
    not read."""

    faults: tuple[str, ...] = ()
    unread: str = ""


def open_source(site: Site, policy: Policy, version: int | None = None) -> SourceReader:
    """Return the source of a policy, as its site reads it; of a Delta table the current version, or this one."""
    spark, values = None if policy.source.spark is None else find_spark(site), site.environment
    source = find_source(policy.source, folder=site.home, values=values, expected=policy.declared, spark=spark, version=version)
    if isinstance(source, FileSource) and source.partitions and policy.is_only_counted and find_workers(site):
        what = "Spark's workers read the files of the Delta table, which lack the partition columns."
        raise SourceError(what, where=source.name, remedy=f"Write engine: duckdb in {FILE}.")
    return source


def version_of(site: Site, source: SourceReader) -> str:
    """Return a keyed hash that changes when the delivered content does; empty where only reading it shows that."""
    return site.keyed_hash(f"source {source.name} {stamp}".encode()) if (stamp := source.stamp) else ""


def look_at_header(site: Site, policy: Policy, *, everywhere: bool) -> HeaderLook:
    """Check whether the source is there, can be read as text or table, and has the declared columns. A source that is no file
    here, or that this account may not read, is left unread, unless `everywhere`."""
    if not everywhere and (why := _find_distance(policy.source, site.home, site.environment)):
        return HeaderLook(unread=why)
    try:
        source = open_source(site, policy)
    except ReleasePipelineError as error:
        return HeaderLook((str(error),))
    return HeaderLook(tuple(f"{source.name}: {fault}" for fault in refusals(match_header(source.header, policy)[1])))


def _find_distance(source: Source, folder: Path, values: Mapping[str, str]) -> str:
    """Return why a source is not checked without a request; empty for a file that this account can read, or that does not
    exist."""
    if source.path is None:
        return "it is a database"
    try:
        written = expand(source.path, values)
    except SourceError as error:
        return error.what.rstrip(".")
    try:
        (folder / written).stat()
    except PermissionError:
        return "this account may not read it"
    except (OSError, ValueError):
        return ""
    return "" if os.access(folder / written, os.R_OK) else "this account may not read it"
