"""Counts of records as the words say it, one record at a time: what the kernel of counts is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.store.in_place import RecordsInPlace


def count_together(grouped: Sequence[npt.ArrayLike], shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """How many records are in each combination of groups."""
    counts: npt.NDArray[np.int64] = np.zeros(tuple(shape), dtype=np.int64)
    columns: list[Any] = [np.asarray(own, dtype=np.intp) for own in grouped]
    np.add.at(counts, tuple(columns), 1)
    return counts


def count_cells_of(records: RecordsInPlace, column: str) -> Iterable[pa.RecordBatch]:
    """The cells of one column, as an engine counts them."""
    [(_, cells)] = records.count_cells([column])
    return cells
