"""Files without a name: what is fetched or unpacked lies there while it is read, and is gone with the process."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from release_pipeline.errors import SourceError
from release_pipeline.store.folders import make_vault

_BEGUN = ".incoming."


@contextmanager
def open_anonymous(vault: Path | None) -> Generator[BinaryIO]:
    """An empty file, on the disk of the vault for its owner alone; without a vault, in memory.

    It loses its name before anything is written to it: the system removes it when nobody has it open any more.
    """
    with os.fdopen(_make_in_memory() if vault is None else _make_in(vault), "w+b") as file:
        yield file


def path_of(file: BinaryIO) -> Path:
    """Where readers that want a path find an open file."""
    return Path(f"/dev/fd/{file.fileno()}")


def inherited_by(path: Path) -> tuple[int, ...]:
    """The open file that a child process must get with such a path; none with the path of an ordinary one."""
    return (int(path.name),) if path.parent == Path("/dev/fd") else ()


def _make_in(vault: Path) -> int:
    make_vault(vault)
    for left in vault.glob(f"{_BEGUN}*"):  # empty ones: whoever made them died at once
        left.unlink(missing_ok=True)
    path = vault / f"{_BEGUN}{secrets.token_hex(8)}"
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    path.unlink(missing_ok=True)
    return handle


def _make_in_memory() -> int:
    if not hasattr(os, "memfd_create"):
        raise SourceError("packed files are unpacked in memory, which this system does not offer.", remedy="Unpack it yourself.")
    return os.memfd_create("incoming", os.MFD_CLOEXEC)
