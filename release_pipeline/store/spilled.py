"""Where DuckDB spills what a file of a vault has no memory for: confidential records, for as long as a stage takes."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from release_pipeline.errors import StoreError
from release_pipeline.store.folders import make_private_folder


def make_spill(file: Path, spill: Path) -> Path:
    """The folder for it, for the owner alone."""
    folder = find_spilled(file, spill)
    try:
        make_private_folder(spill)
        folder.mkdir(mode=0o700, exist_ok=True)
        others = spill.stat().st_mode & 0o022 or folder.stat().st_mode & 0o077 or folder.is_symlink()
        is_ours = folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        others, is_ours = False, False
    if others or not is_ours:
        raise StoreError(
            "others than this account may write to this folder." if others else "this account cannot write to this folder.",
            where=str(spill),
            remedy="Confidential records go there when memory is full: name a folder of its own as 'spill' in site.yaml.",
        )
    return folder


def remove_spilled(file: Path, spill: Path | None = None) -> None:
    """Remove what DuckDB spilled and a killed process left, beside the file and in its folder; whoever calls has the file's
    lock."""
    shutil.rmtree(file.with_name(f"{file.name}.tmp"), ignore_errors=True)
    if spill is None:
        return
    folder = find_spilled(file, spill)
    if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.geteuid():  # somebody else's
        return
    for left in folder.iterdir():
        with suppress(OSError):
            left.unlink()


def find_spilled(file: Path, spill: Path) -> Path:
    """Where DuckDB spills what a file of a vault has no memory for: other vaults have other folders there."""
    return spill / f"{file.stem}-{hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:16]}.duckdb.tmp"
