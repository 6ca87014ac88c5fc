"""Puts one folder in place of another, which is moved aside and never deleted. If it is stopped at any moment, nothing is
lost.

The new folder is made in a hidden one next to the place, which also names the destination of the old one, before that is moved.
Between the two renames nothing is in the place: a process that finds it so puts the old one back, and begins again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from release_pipeline.errors import StoreError
from release_pipeline.store.files import locked, make_folder, make_private_folder, sync

_SITE, _ASIDE = "site", "aside"


@dataclass(frozen=True, slots=True)
class Swap:
    """A folder, and the path that it is moved to before another replaces it; None where there is none yet."""

    folder: Path
    aside: Path | None

    @property
    def staged(self) -> Path:
        """Return the new folder, which replaces the old one."""
        return find_left(self.folder) / _SITE

    def finish(self) -> None:
        """Move the old folder aside, and the new one into its place."""
        for folder in (self.staged, *(path for path in self.staged.rglob("*") if path.is_dir())):
            sync(folder)
        if self.aside is not None:
            _note_aside(self.folder, self.aside)
            self.folder.rename(self.aside)
        elif self.folder.exists():
            self.folder.rmdir()
        self.staged.rename(self.folder)
        sync(self.folder.parent)


@contextmanager
def swapping(folder: Path) -> Generator[Swap]:
    """Yield a swap that replaces a folder, one process at a time. Unless it is finished, everything stays as it was."""
    if not folder.name:
        raise StoreError("nothing can be put in the place of this.", where=str(folder), remedy="Name a new folder.")
    make_folder(folder.parent, mode=0o755)
    with locked(folder.parent):
        put_back(folder)
        is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
        make_private_folder(find_left(folder))
        try:
            yield Swap(folder, None if is_free else _find_aside(folder))
        finally:
            put_back(folder)


def find_left(folder: Path) -> Path:
    """Return the hidden folder next to a place, which exists during a swap, or after one that was stopped."""
    return folder.with_name(f".{folder.name}.restoring")


def is_stopped(folder: Path) -> bool:
    """Return whether it was stopped between the two renames, so that nothing is in the place."""
    return bool(folder.name) and not folder.exists() and (find_left(folder) / _ASIDE).exists()


def put_back(folder: Path) -> None:
    """Put the old folder of a stopped swap back into its place, and remove the new one."""
    left = find_left(folder)
    if not left.exists():
        return
    if (left / _ASIDE).exists():
        aside = folder.with_name((left / _ASIDE).read_text(encoding="utf-8"))
        if aside.exists() and not folder.exists():
            aside.rename(folder)
            sync(folder.parent)
        elif aside.exists() and (left / _SITE).exists():
            raise StoreError(
                f"a restore was stopped here, what was here before is in {aside}, and something new was made in its place since.",
                where=str(folder),
                remedy="Move the new folder away, and run the same command again.",
            )
    shutil.rmtree(left)


def _note_aside(folder: Path, aside: Path) -> None:
    """Record the destination of the old folder, on the disk before it is moved."""
    note = find_left(folder) / _ASIDE
    partial = note.with_name(f".{_ASIDE}")
    with partial.open("w", encoding="utf-8") as file:
        file.write(aside.name)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(note)
    sync(note.parent)
    sync(folder.parent)


def _find_aside(folder: Path) -> Path:
    """Return a name that does not exist yet."""
    name = f"{folder.name}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(folder.with_name(name) for name in names if not folder.with_name(name).exists())
