"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from release_pipeline.errors import ReleasePipelineError, WrongUsage, read_out_of_space
from release_pipeline.plain_files import PARTIAL, replacing
from release_pipeline.store.folders import make_private_folder

PRIVATE, PUBLIC = 0o600, 0o644


def check_output(path: Path, *, endings: tuple[str, ...], overwrite: bool, hint: bool = True) -> None:
    """Refuse, before any work, an output that could not be written or that would destroy something."""
    if path.suffix.lower() not in endings:
        raise WrongUsage(f"the output must end in {' or '.join(endings)}.", where=str(path))
    try:
        if not path.parent.is_dir():
            raise WrongUsage("its folder does not exist.", where=str(path), remedy="Make the folder first.")
        if path.is_dir():
            raise WrongUsage("this is a directory.", where=str(path), remedy="Name a file.")
        if path.exists() and not overwrite:
            raise WrongUsage(
                "the file exists already.",
                where=str(path),
                remedy="Choose another name, or add --overwrite." if hint else "Choose another name.",
            )
        if not os.access(path.parent, os.W_OK):
            raise WrongUsage("its folder cannot be written to.", where=str(path))
    except OSError as error:
        raise WrongUsage(f"the path cannot be used: {error.strerror}.", where=str(path), remedy="Name another.") from None


def own_folder(folder: Path) -> None:
    """The folder is there, and nobody but its owner can change what is in it, whatever the umask was when it was made."""
    make_private_folder(folder)
    if folder.stat().st_mode & 0o022:
        folder.chmod(0o700)


def is_same_file(one: Path, other: Path) -> bool:
    """Whether both are there and the same file, whatever their names."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def write_private_json(path: Path, content: Mapping[str, Any]) -> None:
    """`content` as JSON for the owner alone."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_text(path: Path, text: str, *, mode: int | None = PRIVATE) -> None:
    """`text` as a file."""
    write_bytes(path, text.encode(), mode=mode)


def write_bytes(path: Path, content: bytes, *, mode: int | None = PRIVATE) -> None:
    """`content` as a file, for the owner alone unless another mode is named; None keeps that of the file that is there."""
    with appearing(path) as file:
        file.write(content)
        os.fchmod(file.fileno(), _read_mode(path) if mode is None else mode)


def _read_mode(path: Path) -> int:
    """The rights of the regular file at `path`, but none to run it, nor for everybody to write it."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(opened).st_mode
    finally:
        os.close(opened)
    if not stat.S_ISREG(mode):
        raise WrongUsage("this is no regular file.", where=str(path), remedy="Put the file itself here.")
    return mode & 0o664


def clear_partials(folder: Path) -> None:
    """What attempts that were killed have left of files, in a folder where nobody else writes meanwhile."""
    for left in folder.glob(f"{PARTIAL}*"):
        left.unlink()


@contextmanager
def appearing(path: Path) -> Generator[IO[bytes]]:
    """A private file, open for writing, that takes the place of `path` when the block ends well, and is gone when it does not."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        full = read_out_of_space(OSError(error.errno, error.strerror), str(path))
        raise full or ReleasePipelineError(f"the file cannot be written: {error.strerror}.", where=str(path)) from None
