"""How results are kept in the vault between stages, and the hash of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from release_pipeline.store.vault import ReleaseWorkspace


def fingerprint(values: pa.ChunkedArray) -> str:
    """SHA-256 of the content of a column: its type, its entries and where they are missing."""
    column = values.combine_chunks()
    digest = hashlib.sha256(str(column.type).encode())
    digest.update(column.is_null().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        digest.update(np.ascontiguousarray(column.fill_null(0).to_numpy(zero_copy_only=False)).tobytes())
        return digest.hexdigest()
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.string()).cast(pa.binary())
    texts = column.fill_null(b"").cast(pa.large_binary())
    for buffer in texts.buffers()[1:]:
        digest.update(buffer or b"")
    return digest.hexdigest()


def content_of(workspace: ReleaseWorkspace, table: str) -> Mapping[str, str]:
    """The hash of each column of a table in the vault."""
    return workspace.content(table, fingerprint)
