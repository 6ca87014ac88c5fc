"""What a target is: a place that gets the files of a published package, and from which they are taken back. Each has the one
package that it was opened for."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from release_pipeline.errors import ReleasePipelineError


class TargetFailed(ReleasePipelineError):
    """A target could not be reached, refused, or has something else than it should have."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file at a target: its size and hashes (by `hashlib`'s names) as far as the target tells. `hints` may be the MD5 of the
    content and may be something else: one that is proves that it is the same, and another proves nothing."""

    size: int | None = None
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    hints: Sequence[str] = ()

    def is_same(self, file: Path) -> bool:
        """Whether it is certain that this has the content of a file."""
        if self.hashes:
            return self._has_size(file) and self._has_hashes(file)
        return bool(self.hints) and self._has_size(file) and hash_of(file, "md5") in self.hints

    def may_be(self, file: Path) -> bool:
        """Whether all that the target tells of it is so of a file."""
        return self._has_size(file) and self._has_hashes(file)

    def _has_size(self, file: Path) -> bool:
        return self.size is None or self.size == file.stat().st_size

    def _has_hashes(self, file: Path) -> bool:
        return all(hash_of(file, name) == known for name, known in self.hashes.items())


@dataclass(frozen=True, slots=True)
class Recall:
    """What is to become of a package at its target, whose `files` may be there: `tombstones` are put there, and of a retraction
    (`is_gone`) the data are taken away. `is_whole`: it had been delivered whole."""

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
    """One package at one target. Whatever fails raises `TargetFailed`, in words without a credential and without what was
    replied; the same calls once more then finish it."""

    @property
    def where(self) -> str:
        """Where people find the package."""
        ...

    def find(self) -> Mapping[str, Stored]:
        """The files that are there of this package, by name; none where it was never begun."""
        ...

    def put(self, file: Path) -> None:
        """A file of the package is there after this, in the place of one of its name."""
        ...

    def remove(self, name: str) -> None:
        """A file that was found is not there after this."""
        ...


def recall_files(target: Target, recall: Recall) -> Recalled:
    """What was done of a recall: tombstones first, then the data away; all away of what was never whole. Names are those of the
    package alone, whatever else lies there."""
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
    """The hash of a file, in hex, by the name that `hashlib` has for it."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest()
