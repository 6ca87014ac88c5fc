"""The frozen folder that people sign: data, evidence, and a hash over all of it."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from release_pipeline.flow.data_files import write_data
from release_pipeline.flow.sums import write_sums
from release_pipeline.flow.tables import Slices
from release_pipeline.policy import Policy
from release_pipeline.store.folders import make_private_folder, sync

_NO_PICTURES: Mapping[str, str] = {}


def freeze(
    folder: Path,
    table: Slices,
    formats: Sequence[str],
    evidence: Mapping[str, Any],
    pictures: Mapping[str, str] = _NO_PICTURES,
    policy: Policy | None = None,
) -> str:
    """Write the candidate into `folder`, whole or not at all, and return its hash. The same content gives the same bytes. Files
    say what the `policy` says of their columns.

    What was there of the same release before is replaced, and stays there if that fails. One at a time for one folder: the
    caller sees to it.
    """
    make_private_folder(folder.parent)
    for left in folder.parent.glob(f".{folder.name}.*"):  # of an attempt that was killed
        if left.name != f".{folder.name}.before":
            shutil.rmtree(left)
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    partial.mkdir(mode=0o700)
    try:
        for form in formats:
            write_data(partial, table, form, policy)
        (partial / "evidence.json").write_text(json.dumps(evidence, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        for name, picture in pictures.items():
            (partial / name).write_text(picture, encoding="utf-8")
        digest = write_sums(partial)
        for file in partial.iterdir():
            file.chmod(0o600)
            sync(file)
        _put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return digest


def _put_in_place(partial: Path, folder: Path) -> None:
    before = folder.with_name(f".{folder.name}.before")
    if before.exists() and not folder.exists():  # an earlier attempt stopped between the two renames
        before.rename(folder)
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    try:
        partial.replace(folder)
    except BaseException:
        if before.exists():
            before.rename(folder)
        raise
    sync(folder.parent)
    shutil.rmtree(before, ignore_errors=True)
