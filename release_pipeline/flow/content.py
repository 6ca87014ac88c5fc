"""How results are kept in the vault between stages, and the hash of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from release_pipeline.stages.column_table import PART, CutTable, cut_column
from release_pipeline.store.fingerprints import read_texts, view_bytes
from release_pipeline.store.vault import ReleaseWorkspace

_NONE_MISSING = memoryview(bytes(PART))  # of as many entries as are looked at together


def fingerprint(values: pa.ChunkedArray) -> str:
    """SHA-256 of the content of a column: its type, its entries and where they are missing. Of numbers no copy is made."""
    digest = hashlib.sha256(str(values.type).encode())
    for _, chunk in cut_column(values):
        is_whole = not chunk.null_count
        digest.update(_NONE_MISSING[: len(chunk)] if is_whole else view_bytes(chunk.is_null().to_numpy(zero_copy_only=False)))
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        for _, chunk in cut_column(values):
            digest.update(view_bytes((chunk.fill_null(0) if chunk.null_count else chunk).to_numpy()))
        return digest.hexdigest()
    digest.update(bytes(8 if len(values) else 16))  # where the first begins; of none Arrow had as much for texts
    before = 0
    for _, chunk in cut_column(values):  # where each text ends, and then the texts
        ends, _ = read_texts(chunk)
        digest.update(view_bytes(ends + before))
        before += int(ends[-1]) if len(ends) else 0
    for _, chunk in cut_column(values):
        digest.update(read_texts(chunk)[1])
    return digest.hexdigest()


def content_of(workspace: ReleaseWorkspace, table: str, columns: Sequence[str] | None = None) -> Mapping[str, str]:
    """The hash of each column of a table in the vault, or of some."""
    return workspace.content(table, fingerprint, columns)


def stored_table(workspace: ReleaseWorkspace, name: str, columns: Sequence[str] | None = None) -> CutTable:
    """A table in the vault, or some of its columns."""
    names = workspace.columns(name) if columns is None else tuple(columns)
    slices = partial(workspace.slices, name, rows=PART)
    return CutTable(names, workspace.count_rows(name), lambda column: workspace.read(name, [column]).column(0), slices)
