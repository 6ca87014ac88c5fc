"""The interface of a target: it gets the files of one published package, and gives them back after a retraction."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from release_pipeline.errors import ReleasePipelineError


class TargetFailed(ReleasePipelineError):
    """A target could not be reached, refused, or has other files than it should have."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file at a target: its size and hashes (by `hashlib`'s names) as far as the target gives
    them. `hints` may be the MD5 of the content or something else: one that matches proves that the
    content is the same, and another proves nothing."""

    size: int | None = None
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    hints: Sequence[str] = ()

    def is_same(self, file: Path) -> bool:
        """Return whether it is certain that this has the content of a file."""
        if self.hashes:
            return self._has_size(file) and self._has_hashes(file)
        return bool(self.hints) and self._has_size(file) and hash_of(file, "md5") in self.hints

    def may_be(self, file: Path) -> bool:
        """Return whether a file has the size and hashes that the target gives."""
        return self._has_size(file) and self._has_hashes(file)

    def _has_size(self, file: Path) -> bool:
        return self.size is None or self.size == file.stat().st_size

    def _has_hashes(self, file: Path) -> bool:
        return all(hash_of(file, name) == known for name, known in self.hashes.items())


@dataclass(frozen=True, slots=True)
class Recall:
    """The work on a package at its target, where its `files` may be: put `tombstones` there and, after a retraction (`is_gone`),
    remove the data. `is_whole`: it had been delivered whole."""

    files: Collection[str]
    tombstones: Sequence[Path]
    is_gone: bool
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Recalled:
    """The files that a recall put there, and those that it removed."""

    put: Sequence[str] = ()
    removed: Sequence[str] = ()


class Target(Protocol):
    """One package at one target. A failure raises `TargetFailed`, without a credential or a reply of the target; the same calls
    again then finish the work."""

    @property
    def where(self) -> str:
        """Return the address where people find the package."""
        ...

    def find(self) -> Mapping[str, Stored]:
        """Return the files of this package that are there, by name; none where its delivery was never begun."""
        ...

    def put(self, file: Path) -> None:
        """Put a file of the package there, in place of one of its name."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file that `find` returned."""
        ...


def recall_files(target: Target, recall: Recall) -> Recalled:
    """Recall a package, and return what was done: tombstones first, then the data are removed; all files of a package that was
    never whole are removed. Only files of the package are touched."""
    there = target.find()
    mine = sorted(name for name in recall.files if name in there)
    if not recall.is_whole:
        for name in mine:
            target.remove(name)
        return Recalled(removed=mine)
    removed = [name for name in mine if recall.is_gone and name.startswith("data.")]
    for file in recall.tombstones:
        if file.name not in there or not there[file.name].is_same(file):
            target.put(file)
    for name in removed:
        target.remove(name)
    return Recalled([file.name for file in recall.tombstones], removed)


def hash_of(file: Path, algorithm: str) -> str:
    """Return the hash of a file, in hex, by `hashlib`'s name of the algorithm."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest()
