"""How results are kept in the vault between stages, and the hash of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from release_pipeline.privacy.arrays import pieces
from release_pipeline.stages.column_table import PART, CutTable
from release_pipeline.store.fingerprints import read_texts, view_bytes
from release_pipeline.store.vault import ReleaseWorkspace

_NONE_MISSING = memoryview(bytes(PART))  # of as many entries as are looked at together


def fingerprint(kind: Any, rows: int, parts: Callable[[], Iterator[Any]]) -> str:
    """SHA-256 of the content of a column: its type, its entries and where they are missing. `parts` gives so many rows, some at
    a time, from the start at every call."""
    digest = hashlib.sha256(str(kind).encode())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _hash_whole(digest.copy(), rows, parts) or _hash_numbers(digest, parts)
    for part in parts():
        digest.update(_view_missing(part))
    digest.update(bytes(8 if rows else 16))  # where the first begins; of none Arrow had as much for texts
    before = 0
    for part in parts():  # where each text ends, and then the texts
        ends, _ = read_texts(part)
        digest.update(view_bytes(ends + before))
        before += int(ends[-1]) if len(ends) else 0
    for part in parts():
        digest.update(read_texts(part)[1])
    return digest.hexdigest()


def _hash_whole(digest: Any, rows: int, parts: Callable[[], Iterator[Any]]) -> str:
    """That of numbers of which none is missing, which are read once; nothing where one is."""
    for rest in pieces(rows, PART):
        digest.update(_NONE_MISSING[: rest.stop - rest.start])
    for part in parts():
        if part.null_count:
            return ""
        digest.update(view_bytes(part.to_numpy()))
    return str(digest.hexdigest())


def _hash_numbers(digest: Any, parts: Callable[[], Iterator[Any]]) -> str:
    """That of numbers of which some may be missing."""
    for part in parts():
        digest.update(_view_missing(part))
    for part in parts():
        digest.update(view_bytes(part.fill_null(0).to_numpy()))
    return str(digest.hexdigest())


def _view_missing(part: Any) -> Any:
    return view_bytes(part.is_null().to_numpy(zero_copy_only=False))


def content_of(workspace: ReleaseWorkspace, table: str, columns: Sequence[str] | None = None) -> Mapping[str, str]:
    """The hash of each column of a table in the vault, or of some."""
    return workspace.content(table, fingerprint, columns)


def stored_table(workspace: ReleaseWorkspace, name: str, columns: Sequence[str] | None = None) -> CutTable:
    """A table in the vault, or some of its columns."""
    names = workspace.columns(name) if columns is None else tuple(columns)
    slices = partial(workspace.slices, name, rows=PART)
    return CutTable(names, workspace.count_rows(name), lambda column: workspace.read(name, [column]).column(0), slices)
