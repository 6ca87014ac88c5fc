"""Where records come from: what tells that somebody looked at what is then released, whatever policy or population it is called.

An origin is a hash under the vault's key: of the place that a policy declares, of where that is, and of the content of a file.
Nobody without the vault learns from it what it is of. A copy that was changed, or another query, has another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.flow.files import is_same_file
from release_pipeline.flow.policies import list_policies
from release_pipeline.flow.site import Site
from release_pipeline.flow.sums import hash_of_file
from release_pipeline.policy.load import read_policy
from release_pipeline.policy.sections import Source
from release_pipeline.policy.text import read_yaml
from release_pipeline.store.expansion import expand
from release_pipeline.store.ledger import RESERVED
from release_pipeline.store.objects import is_address
from release_pipeline.store.registry import Event
from release_pipeline.store.source import list_parquet

_OF_A_SITE = ("populations.yaml", "registry.duckdb", "vault", "site.yaml")


def find_home(path: Path) -> Path | None:
    """The site that something lies in, however deep: the nearest folder above it that has policies, and what a site has else."""
    for folder in path.resolve().parents:
        if (folder / "policies").is_dir() and any((folder / name).exists() for name in _OF_A_SITE):
            return folder
    return None


def hash_content(site: Site, file: Path) -> str:
    """What tells whoever has the file that it was this one, and nobody else anything: its plain hash would tell guesses apart."""
    return site.keyed_hash(f"looked at: {hash_file(file)}".encode())


def hash_file(file: Path) -> str:
    """The plain hash of a file."""
    try:
        return hash_of_file(file)
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(file)) from None


def list_file_origins(site: Site, file: Path) -> list[str]:
    """Of a file: where it is, and what it has."""
    place, home = file.resolve(), site.home.resolve()
    inside = place.relative_to(home) if place.is_relative_to(home) else place  # the site may be moved, or restored elsewhere
    return [_hash_place(site, str(inside)), hash_content(site, file)]


def list_origins(site: Site, source: Source) -> list[str]:
    """Of what a policy declares, as it is there now: as it is written, where that is, and what is in it where it is a file, or in
    the files of a folder."""
    found = [_hash_place(site, _write(source))]
    file = find_source_file(site, source)
    if file is None:
        found.append(_hash_place(site, expand(_write(source), site.environment)))
    else:
        found += [origin for part in _list_files(file) for origin in list_file_origins(site, part)]
    return list(dict.fromkeys(found))


def find_source_file(site: Site, source: Source) -> Path | None:
    """The file or folder that a source is; None where it is a table of a server, or in an object store."""
    return None if source.path is None else _find_file(site, source.path)


def find_source_like(site: Site, file: Path, *, strict: bool) -> str:
    """Why a file is confidential here: it lies in the vault, or it is a source of this site, the same file or with the same
    content; nothing where it is neither. `strict`: refuse where that cannot be told, for a place depends on what is not set."""
    if file.resolve().is_relative_to(site.vault.resolve()):
        return "it lies in the vault"
    events: tuple[Event, ...] = ()
    if site.has_registry:
        with site.open_registry(read_only=True) as registry:
            events = registry.events
    for written in dict.fromkeys(_list_paths(site, events)):
        try:
            place = _find_file(site, written)
            sources = [] if place is None else [place, *_list_files(place)]
        except SourceError:
            if strict:
                raise
            continue
        if any(source.resolve() == file.resolve() or is_same_file(source, file) for source in sources):
            return f"it is the source {written}"
        if any(_has_same_content(source, file) for source in sources):
            return f"it has the content of the source {written}"
    known = {origin for event in events if _is_of_a_source(event) for origin in event.content.get("origins", ())}
    if known and hash_content(site, file) in known:
        return "it has the content of what was a source"
    return ""


def _is_of_a_source(event: Event) -> bool:
    return event.kind == RESERVED or (event.kind == "looked" and event.content["on"] == "mask")


def _list_files(place: Path) -> tuple[Path, ...]:
    """The files that a source has: one, or those of a folder; none where nothing lies there."""
    if place.is_dir():
        return list_parquet(place)
    return (place,) if place.is_file() else ()


def _has_same_content(source: Path, file: Path) -> bool:
    try:
        return source.is_file() and source.stat().st_size == file.stat().st_size and hash_file(source) == hash_file(file)
    except (OSError, SourceError):
        return False


def _list_paths(site: Site, events: Iterable[Event]) -> Iterator[str]:
    """The paths of sources as all policies write them: of files that lie there, whatever else is wrong with them, and of every
    version that was ever noted."""
    for file in site.policy_files():
        try:
            path = read_yaml(read_policy(file)).value["source"]["path"]
        except (ReleasePipelineError, KeyError, TypeError, IndexError):
            continue
        if isinstance(path, str):
            yield path
    yield from (noted.policy.source.path for noted in list_policies(events) if noted.policy.source.path is not None)


def _find_file(site: Site, written: str) -> Path | None:
    place = expand(written, site.environment)
    return None if is_address(place) else site.home / place


def _write(source: Source) -> str:
    """A source in a line; how a query is laid out tells nothing."""
    parts = (source.path, source.postgres, source.spark, source.table, source.query)
    return " ".join(" ".join(part.lower().split() if part is source.query else [part]) for part in parts if part)


def _hash_place(site: Site, place: str) -> str:
    return site.keyed_hash(f"place: {place}".encode())
