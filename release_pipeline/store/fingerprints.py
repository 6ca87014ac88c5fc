"""SHA-256 of cells: the same digest for the same cells, wherever they lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def hash_columns(batches: Iterable[pa.RecordBatch]) -> dict[str, str]:
    """The digest of every column of some records, by its name; of one batch at least.

    It is of the type, of how many cells there are, and of three runs of bytes: where a cell is missing, how long every other text
    is, and all other cells. Each run has a digest of its own, so that it does not matter how records are cut into batches. Their
    order does matter: DuckDB delivers rows as they were stored, whatever its threads (`preserve_insertion_order`). Numbers that
    are equal are one, -0.0 and 0.0, as is every NaN, since DuckDB may give either of two; moments are in UTC.
    """
    digests: dict[str, _ColumnDigest] = {}
    for batch in batches:
        digests = digests or {field.name: _ColumnDigest(field.type) for field in batch.schema}
        for digest, cells in zip(digests.values(), batch.columns, strict=True):
            digest.add(cells)
    return {name: digest.finish() for name, digest in digests.items()}


class _ColumnDigest:
    """The digest of a column, which is given some of its cells at a time."""

    def __init__(self, kind: pa.DataType) -> None:
        has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
        self._kind = pa.timestamp(kind.unit, "UTC") if has_zone else kind
        self._count = 0
        self._missing, self._lengths, self._values = (hashlib.sha256() for _ in range(3))

    def add(self, cells: Any) -> None:
        """The next cells."""
        if cells.null_count:
            self._missing.update(view_bytes(self._count + np.flatnonzero(cells.is_null())))
        self._count += len(cells)
        there = cells.drop_null()
        if pa.types.is_floating(self._kind):
            numbers = there.to_numpy() + 0.0
            numbers[np.isnan(numbers)] = np.nan
            self._values.update(view_bytes(numbers))
        elif pa.types.is_integer(self._kind):
            self._values.update(view_bytes(there.to_numpy()))
        elif len(there):
            self._add_texts(there.cast(self._kind))

    def _add_texts(self, cells: Any) -> None:
        """Texts, or what is written as such."""
        texts = (cells if pa.types.is_binary(cells.type) else cells.cast(pa.large_string())).cast(pa.large_binary())
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
        self._lengths.update(view_bytes(np.diff(ends)))
        if data is not None:  # they are not all empty
            self._values.update(data[int(ends[0]) : int(ends[-1])])

    def finish(self) -> str:
        """It, of all cells."""
        runs = (self._missing, self._lengths, self._values)
        parts = [str(self._kind), self._count, *(run.hexdigest() for run in runs)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def view_bytes(numbers: npt.NDArray[Any]) -> Any:
    """The bytes of an array, without a copy of it where they lie together."""
    return np.ascontiguousarray(numbers).view(np.uint8).data
