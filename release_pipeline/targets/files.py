"""Folders, and object stores through fsspec. A store knows who writes by the environment alone, as where sources are read."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.errors import OutOfSpace, ReleasePipelineError, read_out_of_space
from release_pipeline.store.environment import STORES
from release_pipeline.store.files import make_folder, sync
from release_pipeline.targets.target import Stored, TargetFailed, hash_of

PARTIAL = ".partial-"  # what is being written to a folder


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """A folder of this machine, or that it sees: each file appears whole, and is on the disk then."""

    place: Path
    said: str
    release: str

    @property
    def where(self) -> str:
        """See `Target`."""
        return f"{self.said.rstrip('/')}/{self.release}"

    @property
    def _folder(self) -> Path:
        return self.place / self.release

    def find(self) -> Mapping[str, Stored]:
        """See `Target`; what a killed attempt left half written counts for nothing, and is cleared away."""
        with _folder_errors(self.said):
            if not self._folder.is_dir():
                return {}
            for left in self._folder.glob(f"{PARTIAL}*"):
                left.unlink()
            return {file.name: _look_at(file) for file in sorted(self._folder.iterdir())}

    def put(self, file: Path) -> None:
        """See `Target`."""
        with _folder_errors(self.said):
            make_folder(self._folder, mode=0o755)
            partial = self._folder / f"{PARTIAL}{secrets.token_hex(8)}"
            try:
                shutil.copyfile(file, partial)
                partial.chmod(0o644)
                sync(partial)
                partial.replace(self._folder / file.name)
            finally:
                partial.unlink(missing_ok=True)
            sync(self._folder)

    def remove(self, name: str) -> None:
        """See `Target`."""
        with _folder_errors(self.said):
            (self._folder / name).unlink()
            sync(self._folder)


@dataclass(slots=True)
class ObjectTarget:
    """A part of an object store, or whatever else fsspec writes to: an object is there whole or not at all."""

    address: str
    release: str
    _opened: tuple[Any, str] | None = None  # the store and the package's place in it: to open one takes long

    @property
    def where(self) -> str:
        """See `Target`."""
        return f"{self.address.rstrip('/')}/{self.release}"

    def find(self) -> Mapping[str, Stored]:
        """See `Target`. S3's ETag is the MD5 of an object that was sent in one piece and is not encrypted with a key of one's
        own: so it may tell that it is the same, and never that it is another."""
        with self._store() as (store, folder):
            try:
                listed = store.ls(folder, detail=True)
            except FileNotFoundError:
                return {}
        files = [one for one in listed if one["type"] == "file" and str(one["name"]).rstrip("/") != folder.rstrip("/")]
        return {str(one["name"]).rpartition("/")[2]: _read_listed(one) for one in files}

    def put(self, file: Path) -> None:
        """See `Target`."""
        with self._store() as (store, folder):
            store.put_file(str(file), f"{folder}/{file.name}")

    def remove(self, name: str) -> None:
        """See `Target`."""
        with self._store() as (store, folder):
            store.rm_file(f"{folder}/{name}")

    @contextmanager
    def _store(self) -> Generator[tuple[Any, str]]:
        """The store and the package's place in it. What libraries say may have addresses and credentials: it ends here."""
        scheme = self.address.partition("://")[0].lower()
        try:
            from fsspec.core import url_to_fs

            __import__(STORES[scheme])
        except ImportError:
            extra = "pip install 'release-pipeline[objects]'" if scheme == "s3" else f"pip install {STORES[scheme]}"
            raise TargetFailed(f"targets at {scheme}:// need {STORES[scheme]}.", where=self.address, remedy=extra) from None
        try:
            if self._opened is None:
                store, place = url_to_fs(self.address, skip_instance_cache=True, use_listings_cache=False)
                self._opened = store, f"{place.rstrip('/')}/{self.release}"
            yield self._opened
        except ReleasePipelineError:
            raise
        except Exception as error:
            if (full := read_out_of_space(error, self.address)) is not None:
                raise full from None
            raise TargetFailed(
                "the object store cannot be read or written.",
                where=self.address,
                remedy="Check address, network, and credentials in the environment.",
            ) from None


def _look_at(file: Path) -> Stored:
    """A file that is one is known by its hash; anything else is the content of no file."""
    if file.is_symlink() or not file.is_file():
        return Stored(size=-1)
    return Stored(file.stat().st_size, {"sha256": hash_of(file, "sha256")})


def _read_listed(listed: Mapping[str, Any]) -> Stored:
    etag = str(listed.get("ETag", "")).strip('"').lower()
    return Stored(listed.get("size"), hints=[etag] if etag else [])


@contextmanager
def _folder_errors(said: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        full = read_out_of_space(OSError(error.errno, os.strerror(error.errno or 0)), said)
        told = _tell(full, error, said)
        raise told from None


def _tell(full: OutOfSpace | None, error: OSError, said: str) -> ReleasePipelineError:
    if full is not None:
        return full
    words = f"the folder cannot be read or written: {os.strerror(error.errno or 0)}."
    return TargetFailed(words, where=said, remedy="Is it there, and may this account write to it?")
