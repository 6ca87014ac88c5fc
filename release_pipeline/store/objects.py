"""Sources in object stores, through fsspec. Whoever reads them is known by the environment alone (the store's own variables and
files of credentials): an address that has a password is refused."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

from release_pipeline.errors import ReleasePipelineError, SourceError, read_out_of_space
from release_pipeline.policy.sections import find_secret_in_address
from release_pipeline.store.anonymous import open_anonymous, path_of
from release_pipeline.store.loading import Columns, ReleaseFilter
from release_pipeline.store.schemes import STORES


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """A file in an object store; `local` is the door to it once it is here."""

    address: str
    said: str
    local: Any  # a FileSource or a SurveySource: any door with a path
    stamp: str
    written: float | None
    vault: Path | None

    @property
    def name(self) -> str:
        """The address, as it is declared."""
        return self.said

    @property
    def header(self) -> tuple[str, ...]:
        """See `SourceDoor`."""
        header: tuple[str, ...] = self.local.header
        return header

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceDoor`: fetched into a file of the vault without a name, and read from there."""
        with fetched(self.address, self.vault, said=self.said) as path:
            if stamp_of(self.address, said=self.said) != self.stamp:
                raise SourceError("the object was replaced while it was read.", where=self.said, remedy="Try again.")
            replace(self.local, path=path).load(into, columns, release)


def is_address(place: str) -> bool:
    """Whether a path is an address of an object store, or of anything else that is no local file."""
    return "://" in place


def check_address(address: str, *, said: str) -> str:
    """The kind of store that an address is of; refused where none is known, or where a password may stand in it."""
    if (secret := find_secret_in_address(address)) is not None:
        raise SourceError(f"{secret}.", where=said, remedy="Leave them out: the store knows who reads by the environment.")
    scheme = address.partition("://")[0].lower()
    if scheme not in STORES:
        known = ", ".join(f"{name}://" for name in STORES)
        raise SourceError("sources with such an address are not read.", where=said, remedy=f"Known are files and {known}.")
    return scheme


def stamp_of(address: str, *, said: str) -> str:
    """Changes when the object does: from what the store says of it."""
    with _store(address, said) as (store, key):
        return str(store.ukey(key))


def written_at(address: str, *, said: str) -> float | None:
    """When the object was written, in seconds since 1970; None where its store does not say."""
    with _store(address, said) as (store, key):
        try:
            return float(store.modified(key).timestamp())
        except NotImplementedError:
            return None


@contextmanager
def open_object(address: str, *, said: str) -> Generator[BinaryIO]:
    """The object, of which only the bytes that are asked for are fetched."""
    with _store(address, said) as (store, key), store.open(key, "rb") as file:
        yield file


@contextmanager
def fetched(address: str, vault: Path | None, *, said: str) -> Generator[Path]:
    """The path of the whole object while it is read."""
    with open_anonymous(vault) as into:
        with open_object(address, said=said) as file:
            shutil.copyfileobj(file, into, 8 << 20)
            into.flush()
        yield path_of(into)


@contextmanager
def _store(address: str, said: str) -> Generator[tuple[Any, str]]:
    """The store and the object's key in it. What libraries say may have addresses and credentials: it ends here."""
    scheme = check_address(address, said=said)
    try:
        from fsspec.core import url_to_fs

        __import__(STORES[scheme])
    except ImportError:
        extra = "pip install 'release-pipeline[objects]'" if scheme == "s3" else f"pip install {STORES[scheme]}"
        raise SourceError(f"sources at {scheme}:// need {STORES[scheme]}.", where=said, remedy=extra) from None
    try:
        yield url_to_fs(address, skip_instance_cache=True, use_listings_cache=False)
    except ReleasePipelineError:
        raise
    except FileNotFoundError:
        raise SourceError(
            "there is no such object, or this account may not see it.", where=said, remedy="Check address and credentials."
        ) from None
    except Exception as error:
        if (full := read_out_of_space(error, said)) is not None:
            raise full from None
        raise SourceError(
            "the object store cannot be read.", where=said, remedy="Check address, network, and credentials in the environment."
        ) from None
