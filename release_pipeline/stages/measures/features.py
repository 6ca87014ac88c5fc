"""Tables as matrices: equal entries get equal numbers in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

Matrix = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
BLANK = -1
_compute: Any = pyarrow.compute  # its functions are made at run time


def encode_features(tables: Sequence[pa.Table]) -> list[Matrix]:
    """Each table as a model sees it: numbers as they are, entries by their code."""
    matrices = [np.empty((table.num_rows, table.num_columns)) for table in tables]
    for place, name in enumerate(tables[0].column_names):
        columns = [table.column(name) for table in tables]
        numeric = all(pa.types.is_floating(column.type) for column in columns)
        coded = [column.to_numpy() for column in columns] if numeric else encode_entries(columns)
        for matrix, column in zip(matrices, coded, strict=True):
            matrix[:, place] = column
    return matrices


def encode_entries(columns: Sequence[pa.ChunkedArray]) -> list[Codes]:
    """The place of each entry in the sorted list of all that occur, as numbers or texts; -1 for a blank."""
    if all(pa.types.is_floating(column.type) for column in columns):
        numbers = [column.to_numpy() for column in columns]
        entries = np.unique(np.concatenate(numbers))
        return [np.searchsorted(entries, part) for part in numbers]
    texts = [column.cast(pa.string()).combine_chunks() for column in columns]
    known = pa.chunked_array(texts).unique().drop_null().sort()
    return [_compute.index_in(part, value_set=known).fill_null(BLANK).to_numpy().astype(np.int64) for part in texts]
