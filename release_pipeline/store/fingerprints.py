"""SHA-256 of cells: as many as come at a time, the same digest however they are cut."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def digest_batches(batches: Iterable[pa.RecordBatch]) -> str:
    """The digest of records, in their order: of every column its name and type, which cells are missing, and all others."""
    digests: list[tuple[str, list[Any]]] = []
    for batch in batches:
        digests = digests or [(f"{field.name} {field.type}", [hashlib.sha256() for _ in range(3)]) for field in batch.schema]
        for cells, (_, (missing, ends, values)) in zip(batch.columns, digests, strict=True):
            missing.update(view_bytes(np.asarray(cells.is_null())))
            if pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
                values.update(view_bytes((cells.fill_null(0) if cells.null_count else cells).to_numpy()))
            else:
                texts, data = read_texts(cells)
                ends.update(view_bytes(np.diff(texts, prepend=0)))
                values.update(data)
    whole = hashlib.sha256()
    for name, parts in digests:
        for part in (hashlib.sha256(name.encode()), *parts):
            whole.update(part.digest())
    return whole.hexdigest()


def read_texts(chunk: Any) -> tuple[npt.NDArray[np.int64], Any]:
    """Where each of these entries ends, and the bytes of all; one that is missing is empty."""
    binary = chunk if pa.types.is_binary(chunk.type) else chunk.cast(pa.string()).cast(pa.binary())
    texts = binary.fill_null(b"").cast(pa.large_binary())
    if not len(texts):
        return np.empty(0, dtype=np.int64), b""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(ends[0]), int(ends[-1])
    return ends[1:] - first, data[first:last] if data is not None else b""


def view_bytes(numbers: npt.NDArray[Any]) -> Any:
    """The bytes of an array, without a copy of it where they lie together."""
    return np.ascontiguousarray(numbers).view(np.uint8).data
