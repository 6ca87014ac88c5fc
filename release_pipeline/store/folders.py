"""Folders: private ones, one process at a time in one, and what is on the disk for good."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """`folder` and whatever is missing above it, for the owner alone."""
    make_folder(folder, mode=0o700)


def make_folder(folder: Path, *, mode: int) -> None:
    """`folder` and whatever is missing above it, with that mode, whatever the umask says."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=mode, exist_ok=True)
        path.chmod(mode)


def make_vault(vault: Path) -> None:
    """The folder of the confidential side: for its owner alone, and never to be committed to a repository."""
    vault.mkdir(mode=0o700, parents=True, exist_ok=True)
    if vault.stat().st_mode & 0o077:
        vault.chmod(0o700)
    ignore = vault / ".gitignore"
    if not ignore.exists():
        ignore.touch(mode=0o600)
        ignore.write_text("*\n", encoding="utf-8")


@contextmanager
def locked(folder: Path, *, waiting: Callable[[], None] | None = None) -> Generator[None]:
    """No other thread or process is in here with the same folder; it is made if missing. The system unlocks what died.

    `waiting` is called once if somebody else is in there.
    """
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def locked_if_free(folder: Path) -> Generator[bool]:
    """Likewise, and nobody waits: whether the folder was free. Where it was not, somebody else is in there during the block."""
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """What was written to a file, or to a folder's list of files, is on the disk after this."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
