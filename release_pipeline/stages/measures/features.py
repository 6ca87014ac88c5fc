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
    told = [_dictionary_of(column) for column in columns]
    known = pa.chunked_array([entries for entries, _ in told]).unique().sort()
    places = [_compute.index_in(entries, value_set=known).to_numpy().astype(np.int64) for entries, _ in told]
    return [np.append(place, BLANK)[at] for place, (_, at) in zip(places, told, strict=True)]


def _dictionary_of(column: pa.ChunkedArray) -> tuple[Any, npt.NDArray[np.int32]]:
    """The different entries as texts, and the place of each record's one, -1 for a blank: texts are made of few."""
    coded = column.combine_chunks().dictionary_encode()
    return coded.dictionary.cast(pa.string()), coded.indices.fill_null(-1).to_numpy()
