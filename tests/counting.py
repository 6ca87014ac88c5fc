"""Counts of records as the words say it, one record at a time: what the kernel of counts is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def count_together(grouped: Sequence[npt.ArrayLike], shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """How many records are in each combination of groups."""
    counts: npt.NDArray[np.int64] = np.zeros(tuple(shape), dtype=np.int64)
    columns: list[Any] = [np.asarray(own, dtype=np.intp) for own in grouped]
    np.add.at(counts, tuple(columns), 1)
    return counts
