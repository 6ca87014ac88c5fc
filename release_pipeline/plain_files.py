"""Files in folders that other accounts may write: opened once, then checked, read and replaced by descriptor.

A name can mean another file a moment later, so no name is looked up twice, and no link is followed below a trusted folder.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from release_pipeline.errors import ReleasePipelineError, WrongUsage

PARTIAL = ".partial-"
_PRIVATE = 0o600
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe must not wait for its writer
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def open_plain(path: Path) -> IO[bytes]:
    """The regular file at `path`, for reading; links are followed, a pipe, device or folder raises `WrongUsage`."""
    return _check_plain(os.open(path, _READ), str(path))


def open_below(folder: Path, name: str) -> IO[bytes]:
    """The regular file `name` below `folder`, for reading; raises `WrongUsage` where a link or `..` is on the way to it."""
    where, parts = str(folder / name), PurePosixPath(name).parts or (".",)
    if ".." in parts or name.startswith("/") or "\0" in name:
        what = "this path leads out of the folder that it starts from."
        raise WrongUsage(what, where=name[:200], remedy="Put the file below that folder, like lists/towns.csv.")
    here = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        file = _check_plain(os.open(parts[-1], _READ | os.O_NOFOLLOW, dir_fd=here), where)
        # fs.protected_hardlinks forbids names for files of others; not every system has it
        if _is_shared(here) and _count_names(parts[-1], here, os.fstat(file.fileno())) != 1:
            file.close()
            what = "this file has a second name (a hard link), or another took its place while it was opened, and other accounts "
            what += "may write in its folder."
            raise WrongUsage(what, where=where, remedy="Put a copy in its place, and try again.")
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        what = "this is a link to another place, or a link leads to it."
        raise WrongUsage(what, where=where, remedy="Put the file itself here: no link is followed.") from None
    finally:
        os.close(here)
    return file


def read_at_most(file: IO[bytes], most: int) -> bytes | None:
    """The content of an open file, which is closed; None where it has more than `most` bytes, whatever size it claims."""
    with file:
        content = file.read(most + 1)
    return None if len(content) > most else content


@contextmanager
def replacing(path: Path) -> Generator[IO[bytes]]:
    """A new private file next to `path`, open for writing, which takes its place when the block ends well.

    Raises `ReleasePipelineError` where another account, which may write in the folder, put something else there meanwhile.
    """
    partial = f"{PARTIAL}{secrets.token_hex(8)}"
    folder = os.open(path.parent, _FOLDER)
    try:
        with os.fdopen(os.open(partial, _CREATE, _PRIVATE, dir_fd=folder), "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(partial, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            written = os.fstat(file.fileno())
            if _is_shared(folder) and not _count_names(path.name, folder, written):
                what = "another account put something in its place. What is there now is not what was to be written."
                raise ReleasePipelineError(what, where=str(path), remedy="See who may write in its folder; write it again.")
    finally:
        with suppress(OSError):
            os.unlink(partial, dir_fd=folder)
        os.close(folder)


def _count_names(name: str, folder: int, opened: os.stat_result) -> int:
    """How many names the opened file has; 0 where `name` leads to it no more. One call says both: a name that is removed
    between two calls would be counted by neither."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    return there.st_nlink if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino) else 0


def _is_shared(folder: int) -> bool:
    """Whether accounts other than this one and root may write in the folder."""
    known = os.fstat(folder)
    return bool(known.st_mode & _OTHERS) or known.st_uid not in (os.geteuid(), 0)


def _check_plain(handle: int, where: str) -> IO[bytes]:
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise WrongUsage("this is a directory.", where=where, remedy="Name a file in it.")
    raise WrongUsage("this is no regular file.", where=where, remedy="Name a file: what a pipe gives, save in one.")
