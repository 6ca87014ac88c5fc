"""Targets in folders, and in object stores through fsspec, which take credentials from the environment only."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.errors import ReleasePipelineError, read_out_of_space
from release_pipeline.store.environment import STORES
from release_pipeline.store.files import make_folder, sync
from release_pipeline.targets.target import Stored, TargetFailed, hash_of

PARTIAL = ".partial-"  # the beginning of a name while its file is being written to a folder


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """A folder that this machine sees: each file appears whole, and is on the disk then. `address`: as site.yaml has it."""

    root: Path
    address: str
    release: str

    @property
    def where(self) -> str:
        """See `Target`."""
        return f"{self.address.rstrip('/')}/{self.release}"

    @property
    def _folder(self) -> Path:
        return self.root / self.release

    def find(self) -> Mapping[str, Stored]:
        """See `Target`. An incomplete file that a killed attempt left is removed."""
        with _folder_errors(self.address):
            if not self._folder.is_dir():
                return {}
            for left in self._folder.glob(f"{PARTIAL}*"):
                left.unlink()
            return {file.name: _look_at(file) for file in sorted(self._folder.iterdir())}

    def put(self, file: Path) -> None:
        """See `Target`."""
        with _folder_errors(self.address):
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
        with _folder_errors(self.address):
            (self._folder / name).unlink()
            sync(self._folder)


@dataclass(slots=True)
class ObjectTarget:
    """A part of an object store, or any other store that fsspec writes to: an object is there whole or not at all."""

    address: str
    release: str
    _opened: tuple[Any, str] | None = None  # the store and the package's folder in it: to open one takes long

    @property
    def where(self) -> str:
        """See `Target`."""
        return f"{self.address.rstrip('/')}/{self.release}"

    def find(self) -> Mapping[str, Stored]:
        """See `Target`. S3's ETag is the MD5 of an object that was sent in one piece and is not encrypted with a customer's key:
        it can show that the content is the same, and never that it is another."""
        with self._store() as (store, folder):
            try:
                listed = store.ls(folder, detail=True)
            except FileNotFoundError:
                return {}
        files = [entry for entry in listed if entry["type"] == "file" and str(entry["name"]).rstrip("/") != folder.rstrip("/")]
        return {str(entry["name"]).rpartition("/")[2]: _read_listed(entry) for entry in files}

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
        """Yield the store and the package's folder in it. Errors of libraries may have addresses and credentials: none passes
        on."""
        scheme = self.address.partition("://")[0].lower()
        try:
            from fsspec.core import url_to_fs

            __import__(STORES[scheme])
        except ImportError:
            extra = "pip install 'release-pipeline[objects]'" if scheme == "s3" else f"pip install {STORES[scheme]}"
            raise TargetFailed(f"targets at {scheme}:// need {STORES[scheme]}.", where=self.address, remedy=extra) from None
        try:
            if self._opened is None:
                store, root = url_to_fs(self.address, skip_instance_cache=True, use_listings_cache=False)
                self._opened = store, f"{root.rstrip('/')}/{self.release}"
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
    """Return the size and hash of a file; for anything else a size that no file has."""
    if file.is_symlink() or not file.is_file():
        return Stored(size=-1)
    return Stored(file.stat().st_size, {"sha256": hash_of(file, "sha256")})


def _read_listed(listed: Mapping[str, Any]) -> Stored:
    etag = str(listed.get("ETag", "")).strip('"').lower()
    return Stored(listed.get("size"), hints=[etag] if etag else [])


@contextmanager
def _folder_errors(address: str) -> Generator[None]:
    """Turn errors of the system into ours while the block runs, without their texts, which may have a path."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        if (full := read_out_of_space(OSError(error.errno, reason), address)) is not None:
            raise full from None
        what = f"the folder cannot be read or written: {reason}."
        raise TargetFailed(what, where=address, remedy="Is it there, and may this account write to it?") from None
