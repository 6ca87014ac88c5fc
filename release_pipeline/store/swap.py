"""One folder in the place of another, which is moved aside and never deleted; whenever that is stopped, nothing is lost.

The new folder is made in a hidden one beside the place, which also names where the old one goes, before it goes there. Between
the two renames nothing is in the place: who finds it so puts the old one back, and begins anew.
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
    """A place, where what is there goes (None where nothing is), and where what takes its place is made."""

    place: Path
    aside: Path | None

    @property
    def staged(self) -> Path:
        """The folder that takes the place."""
        return find_left(self.place) / _SITE

    def finish(self) -> None:
        """The new folder is in the place after this, and the old one aside."""
        for folder in (self.staged, *(path for path in self.staged.rglob("*") if path.is_dir())):
            sync(folder)
        if self.aside is not None:
            _note_aside(self.place, self.aside)
            self.place.rename(self.aside)
        elif self.place.exists():
            self.place.rmdir()
        self.staged.rename(self.place)
        sync(self.place.parent)


@contextmanager
def swapping(place: Path) -> Generator[Swap]:
    """Put something in a place, alone; left before it is finished, everything is as it was."""
    if not place.name:
        raise StoreError("nothing can be put in the place of this.", where=str(place), remedy="Name a new folder.")
    make_folder(place.parent, mode=0o755)
    with locked(place.parent):
        put_back(place)
        is_free = not place.exists() or (place.is_dir() and not any(place.iterdir()))
        make_private_folder(find_left(place))
        try:
            yield Swap(place, None if is_free else _find_aside(place))
        finally:
            put_back(place)


def find_left(place: Path) -> Path:
    """The hidden folder beside a place, which is there while something is put in it, or after that was stopped."""
    return place.with_name(f".{place.name}.restoring")


def is_stopped(place: Path) -> bool:
    """Whether it was stopped between the two renames, so that nothing is in the place."""
    return bool(place.name) and not place.exists() and (find_left(place) / _ASIDE).exists()


def put_back(place: Path) -> None:
    """What a swap that was stopped has moved aside is in its place again, and what it made is gone."""
    left = find_left(place)
    if not left.exists():
        return
    if (left / _ASIDE).exists():
        aside = place.with_name((left / _ASIDE).read_text(encoding="utf-8"))
        if aside.exists() and not place.exists():
            aside.rename(place)
            sync(place.parent)
        elif aside.exists() and (left / _SITE).exists():
            raise StoreError(
                f"a restore was stopped here, what was here before is in {aside}, and something new was made in its place since.",
                where=str(place),
                remedy="Move the new folder away, and run the same command again.",
            )
    shutil.rmtree(left)


def _note_aside(place: Path, aside: Path) -> None:
    """Note where the old folder goes, on the disk before it goes there."""
    note = find_left(place) / _ASIDE
    partial = note.with_name(f".{_ASIDE}")
    with partial.open("w", encoding="utf-8") as file:
        file.write(aside.name)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(note)
    sync(note.parent)
    sync(place.parent)


def _find_aside(place: Path) -> Path:
    """A name that nothing has yet."""
    name = f"{place.name}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(place.with_name(name) for name in names if not place.with_name(name).exists())
