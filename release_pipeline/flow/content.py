"""How results are kept in the vault between stages, and the hash of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.stages.column_table import ColumnTable
from release_pipeline.store.vault import ReleaseWorkspace


def fingerprint(values: pa.ChunkedArray) -> str:
    """SHA-256 of the content of a column: its type, its entries and where they are missing. Of numbers no copy is made."""
    digest = hashlib.sha256(str(values.type).encode())
    for chunk in values.chunks:
        digest.update(_view(chunk.is_null().to_numpy(zero_copy_only=False)))
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        for chunk in values.chunks:
            digest.update(_view((chunk.fill_null(0) if chunk.null_count else chunk).to_numpy()))
        return digest.hexdigest()
    column = values.combine_chunks()
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.string()).cast(pa.binary())
    texts = column.fill_null(b"").cast(pa.large_binary())
    for buffer in texts.buffers()[1:]:
        digest.update(buffer or b"")
    return digest.hexdigest()


def _view(numbers: npt.NDArray[Any]) -> Any:
    """The bytes of an array, without a copy of it where they lie together."""
    return np.ascontiguousarray(numbers).view(np.uint8).data


def content_of(workspace: ReleaseWorkspace, table: str) -> Mapping[str, str]:
    """The hash of each column of a table in the vault."""
    return workspace.content(table, fingerprint)


def stored_table(workspace: ReleaseWorkspace, name: str, columns: Sequence[str] | None = None) -> ColumnTable:
    """A table in the vault, or some of its columns, each read when it is asked for."""
    names = workspace.columns(name) if columns is None else tuple(columns)
    return ColumnTable(names, workspace.count_rows(name), lambda column: workspace.read(name, [column]).column(0))
